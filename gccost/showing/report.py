"""The report: executed notebooks as self-contained HTML pages.

The first notebook is the landing page, `index.html`; each other one is a page of its own.
A page loads nothing from the network, and works on a phone, on paper, and in light and
dark mode. Its one script, on the landing page, only adds filters; nothing needs it. The
same notebooks give the same bytes.

A page that violates these rules (a chart without alt text, a script, a remote image) has an
error in its place that names notebook and cell; the other pages are written.
"""

from __future__ import annotations

import csv
import io
import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString
from markupsafe import Markup, escape
from nbconvert import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbformat import NotebookNode

from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.showing import gokernel, tables
from gccost.showing.execute import incomplete, is_whole, read_notebook, title_of
from gccost.showing.results import PAGES, STYLE, TEMPLATES

LARGEST_PAGE = 5_000_000  # bytes; small enough for mail and for a phone
ROWS = 300  # of a chart's data on the page; its CSV file has all rows

_PICTURES = ("image/svg+xml", "image/png", "image/jpeg")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_FORBIDDEN = frozenset(
    ("base", "embed", "foreignobject", "form", "frame", "iframe", "link", "meta")
    + ("object", "script")
)
_LOADING = ("action", "background", "data", "formaction", "href", "poster", "src", "srcset")
_REFERRING = ("aria-controls", "aria-describedby", "aria-labelledby", "for", "headers")
_OUTSIDE = re.compile(r"url\(\s*['\"]?(?!\s*['\"]?(?:#|data:))", re.IGNORECASE)
_INSIDE = re.compile(r"(?<=url\(#)[^)'\"]+|(?<=^#).+")

# A missing description: nothing, a Python object's name in angle brackets, or nbconvert's
# placeholder.
_NO_ALT = re.compile(r"\s*(<.*>|No description has been provided.*)?\s*", re.DOTALL)

# A numeric cell begins with a number that is not a version, and has no words except units.
_STARTS_AS_NUMBER = re.compile(r"[\[(<>≤≥≈~±+−-]*\s?\d")
_NO_NUMBER = re.compile(r"\d\.\d+\.\d|[^\W\d_]{5,}")
_NO_FIGURE = ("", "-", "–", "—", "−", "∞", "−∞", "?", "nan", "n/a")

# The space between a number and its unit, where a line must not break.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[KMG]i?B)(?!\w))")


def write_report(
    executed: Sequence[Path], out: Path, *, title: str, purpose: str, files: Mapping[str, str]
) -> dict[str, GccostError]:
    """Write the report of the `executed` notebooks, in order, to the folder `out`.

    `title` and `purpose` (one sentence) describe every page. Writes the first notebook as
    `index.html`, the others as `<stem>.html`, `data/<chart>.csv` for each chart, and
    `files`, texts by name. Deletes the pages of an earlier report that this one lacks.

    A page that would have content that it must not have, or be larger than 5 MB, has the
    reason in its place. Returns these errors, with notebook and cell, by the notebook's stem.
    """
    stems = [path.stem for path in executed]
    pages = {stem: f"{stem}.html" if at else "index.html" for at, stem in enumerate(stems)}
    chapters: list[_Chapter] = []
    charts: dict[str, _Chart] = {}
    failed: dict[str, GccostError] = {}
    for path in executed:
        try:
            chapter = _Chapter(read_notebook(path), path, pages)
            _check_charts(chapter, charts)
        except GccostError as error:
            failed[path.stem] = error
            chapter = _Chapter(incomplete(title_of(path), str(error)), path, pages)
        charts |= {chart.name: chart for chart in chapter.charts if chart.csv}
        chapters.append(chapter)
    failed |= _broken_links(chapters)
    frame = {
        "title": title,
        "purpose": purpose,
        "chapters": chapters,
        "files": files,
        "style": _template(STYLE) + _template("style.css"),
        "script": _template("results.js"),
    }
    page = PAGES.get_template("page.html")
    for chapter in chapters:
        html = page.render(frame, here=chapter, landing=chapter is chapters[0])
        write_whole(out / chapter.page, html.encode())
    texts = {f"data/{name}.csv": chart.csv for name, chart in charts.items()} | dict(files)
    for name, text in texts.items():
        write_whole(out / name, text.encode())
    for path in out.glob("*.html"):
        if path.name not in pages.values() and path.is_file() and _is_page(path):
            path.unlink()
    return failed


def _is_page(path: Path) -> bool:
    """Whether a file is a page of a report under its own name, not a copy or another file."""
    html = path.read_text(encoding="utf-8", errors="replace")
    return f'<a href="{path.name}" aria-current="page">' in html


def _template(name: str) -> Markup:
    return _safe((TEMPLATES / name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class _Chart:
    """A picture with its alt text, the source of an SVG, and the data of a chart."""

    name: str
    alt: str
    svg: str
    csv: str


@dataclass(frozen=True, slots=True)
class _Section:
    anchor: str
    title: str
    level: int


class _Chapter:
    """An executed notebook as a page.

    `body` is its HTML. `anchors` are its ids, `headings` the sections of all levels, `links`
    the locations of links with their targets, and `notes` the addresses of links to the web.
    """

    def __init__(self, node: NotebookNode, path: Path, pages: Mapping[str, str]) -> None:
        self.stem, self.page, self.is_whole = path.stem, pages[path.stem], is_whole(node)
        self.anchors: set[str] = {"content"}
        self.headings: list[_Section] = []
        self.links: list[tuple[str, str, str]] = []
        self.notes: list[str] = []
        self._pages = pages
        self.charts = list(_prepare_charts(node, path))
        self._pictures = iter(self.charts)
        self.body = self._tidied(BeautifulSoup(_rendered(node), "html.parser"), path.name)

    @property
    def title(self) -> str:
        return next((each.title for each in self.headings if each.level == 1), self.stem)

    @property
    def sections(self) -> list[_Section]:
        """The headings for the table of contents."""
        return [each for each in self.headings if each.level == 2]

    def _tidied(self, soup: BeautifulSoup, name: str) -> Markup:
        for comment in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
            comment.extract()
        cells = soup.find_all("div", recursive=False)
        for cell in cells:
            if cell.find(True) is not None:
                cell["id"] = self._unique_id(str(cell["id"]))
        location = f"{name}, before the first cell"
        for cell in cells:
            if number := cell.attrs.pop("data-number"):
                location = f"{name}, cell {number}"
            if cell.find(True) is None:
                cell.decompose()
            else:
                self._tidy(cell, location)
            if number:
                location = f"{name}, after cell {number}"
        return _safe(str(soup).strip())

    def _tidy(self, cell: Tag, location: str) -> None:
        """Make a cell's ids unique, resolve its links, make its tables and charts accessible.

        Raises GccostError for scripts and remote content.
        """
        for style in cell.find_all("style"):
            style.decompose()
        self._check_and_rename(cell.find_all(True), location)
        for tag in cell.find_all(style=True):
            _drop_style(tag)
        for link in cell.find_all("a", href=True):
            self._link(link, location)
        for heading in cell.find_all(_HEADINGS):
            self._heading(heading, cell)
        for table in cell.find_all("table", role=False):  # one with a role is laid out already
            _format_table(table)
        for wide in cell.find_all("pre"):
            wide["tabindex"] = "0"  # it scrolls, and the keyboard must reach it
        for text in cell.find_all(string=_BEFORE_UNIT):
            if not text.find_parent(["pre", "code"]):
                text.replace_with(_BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text))
        for canvas in cell.find_all("div", class_="canvas"):
            chart = next(self._pictures)
            if chart.svg:
                drawing = _drawing(chart, location)
                self._check_and_rename([drawing, *drawing.find_all(True)], location)
                canvas.append(drawing)

    def _unique_id(self, wanted: str) -> str:
        """Return a unique id."""
        first = anchor = _anchor(wanted)
        count = 1
        while anchor in self.anchors:
            count += 1
            anchor = f"{first}-{count}"
        self.anchors.add(anchor)
        return anchor

    def _check_and_rename(self, tags: Sequence[Tag], location: str) -> None:
        """Check tags, and make their ids and references unique on the page."""
        for tag in tags:
            _check_tag(tag, location)
        renamed = {
            str(tag["id"]): self._unique_id(str(tag["id"])) for tag in tags if "id" in tag.attrs
        }
        for tag in tags:
            for name, value in list(tag.attrs.items()):
                if name.startswith(("on", "xmlns")) or name in ("border", "version"):
                    del tag[name]
                elif name == "id":
                    tag[name] = renamed[str(value)]
                elif name in _REFERRING:
                    tag[name] = " ".join(renamed.get(word, word) for word in str(value).split())
                elif isinstance(value, str) and tag.name != "a":
                    tag[name] = _INSIDE.sub(lambda at: renamed.get(at[0], at[0]), value)

    def _heading(self, heading: Tag, cell: Tag) -> None:
        """Give a heading its id, and add it to the contents."""
        title = " ".join(heading.get_text().split())
        if "id" not in heading.attrs:
            if _anchor(title) == cell.get("id"):
                heading["id"] = cell.attrs.pop("id")
            else:
                heading["id"] = self._unique_id(title)
        level = _HEADINGS.index(heading.name) + 1
        self.headings.append(_Section(str(heading["id"]), title, level))

    def _link(self, link: Tag, location: str) -> None:
        """Point a link at its target in the report; on paper, a note has a web address.

        A link to a file of the repository becomes the file's path, because the report may be
        read alone. A link to a notebook that is not in this report becomes its text.
        """
        href = str(link["href"])
        parts = urlsplit(href)
        if parts.scheme in ("http", "https", "mailto"):
            self.notes.append(href)
            mark = f'<sup class="note">{len(self.notes)}</sup>'
            link.insert_after(BeautifulSoup(mark, "html.parser"))
            return
        if parts.scheme or parts.netloc:
            raise GccostError(f"this link cannot be followed: {href}", location, "use https")
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        stem = self.stem
        if path.endswith(".ipynb"):
            stem = posixpath.basename(path).removesuffix(".ipynb")
            if stem not in self._pages:
                link.unwrap()
                return
        elif path:
            file = posixpath.normpath(posixpath.join("notebooks", path))
            if file not in link.get_text():
                link.insert_after(BeautifulSoup(f" (<code>{escape(file)}</code>)", "html.parser"))
            link.unwrap()
            return
        anchor = _anchor(fragment.removeprefix("cell-id=")) if fragment else ""
        page = "" if stem == self.stem and anchor else self._pages[stem]
        link["href"] = f"{page}#{anchor}" if anchor else page
        self.links.append((location, stem, anchor))


def _rendered(node: NotebookNode) -> str:
    """A notebook as HTML, by nbconvert with our template for a chapter."""
    exporter = HTMLExporter(
        extra_template_basedirs=[str(TEMPLATES.parent)],
        template_name=TEMPLATES.name,
        template_file="chapter.html",
        exclude_anchor_links=True,
        filters={
            "csv_rows": lambda text: list(csv.reader(io.StringIO(text))),
            "highlight_code": Highlight2HTML(
                pygments_lexer=node.metadata.get("language_info", {}).get("pygments_lexer")
            ),
        },
    )
    # HTMLExporter's own method parses and writes the whole page once more.
    html, _ = TemplateExporter.from_notebook_node(
        exporter, node, {"note": _note(node), "rows": ROWS}
    )
    return html


def _note(node: NotebookNode) -> str:
    """A note, as HTML, of when a notebook with stored output was run."""
    if not gokernel.is_go(node):
        return ""
    when, stale = gokernel.stored(node)
    box = tables.warnings([stale] if stale else [], "This output is stale")
    return f"<p>{escape(when)}</p>{box.html}"


def _prepare_charts(node: NotebookNode, path: Path) -> Iterator[_Chart]:
    """The notebook's pictures, checked; their metadata get a name and a number."""
    chapter = re.match(r"\d+", path.stem)
    before = f"{int(chapter[0])}." if chapter else ""
    count = itertools.count(1)
    for cell in node.cells:
        location = f"{path.name}, cell {cell.get('execution_count')}"
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            kind = next((kind for kind in _PICTURES if kind in data), None)
            if kind is None:
                continue
            alt, rows = (data.setdefault(key, "") for key in ("text/plain", "text/csv"))
            about = output.metadata.get("gccost", {})
            if "chart" in about and not rows.strip():
                raise GccostError(
                    f"the chart {about['chart']} comes without its data",
                    location,
                    'display them with it as "text/csv", as gccost.showing.charts do',
                )
            name = about.get("chart", f"{path.stem}-{cell.id}")
            if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
                raise GccostError(
                    f"the chart's name {name!r} cannot name a file",
                    location,
                    "use letters, digits and hyphens",
                )
            title = about.get("title", "")
            number = f"{before}{next(count)}"
            output.metadata["gccost"] = {"chart": name, "number": number, "title": title}
            yield _Chart(name, alt.strip(), data.get("image/svg+xml", ""), rows)


def _anchor(fragment: str) -> str:
    return re.sub(r"[\W_]+", "-", fragment.lower()).strip("-") or "section"


def _drawing(chart: _Chart, location: str) -> Tag:
    """A chart's SVG as an element of the page, described by its alt text.

    It scales down to the available width. The settings of matplotlib's style sheet, which
    would affect every chart on the page, are set on the drawing instead.
    """
    source = chart.svg[chart.svg.find("<svg") :].replace("xlink:href=", "href=")
    svg = BeautifulSoup(re.sub(r">\s+<", "><", source), "html.parser").find("svg")
    if svg is None:
        raise GccostError("the SVG cannot be read", location)
    inherited = ""
    for sheet in svg.find_all("style"):
        rule = re.fullmatch(r"\s*\*\s*\{([^{}]*)\}\s*", sheet.get_text())
        if rule is None:
            raise GccostError(
                "the SVG's style sheet would reach the whole page",
                location,
                "style its elements one by one",
            )
        inherited += rule[1].strip().rstrip(";") + ";"
    for element in svg.find_all(["desc", "metadata", "style", "title"]):
        element.decompose()
    used = set(re.findall(r"""(?:url\(|href=["'])#([^)"']+)""", source))
    for tag in [svg, *svg.find_all(id=True)]:
        if tag.get("id") not in used:
            tag.attrs.pop("id", None)
    in_points = str(svg.get("width")).endswith("pt")
    width, height = (_number(svg.attrs.pop(side, "")) for side in ("width", "height"))
    svg.attrs.setdefault("viewbox", f"0 0 {width:g} {height:g}")
    svg["role"], svg["aria-label"] = "img", chart.alt
    svg["style"] = f"--width:{width / (12 if in_points else 16):g}rem;{inherited}"
    title = BeautifulSoup("", "html.parser").new_tag("title")
    title.string = chart.alt
    svg.insert(0, title)
    return svg.extract()


def _number(length: object) -> float:
    """A length without its unit; 0 if there is none."""
    match = re.match(r"[\d.]+", str(length))
    return float(match[0]) if match else 0.0


def _check_tag(tag: Tag, location: str) -> None:
    """Raise GccostError for an element that the report must not have."""
    if tag.name in _FORBIDDEN:
        raise GccostError(
            f"an output or a text contains <{tag.name}>, which the report does not allow",
            location,
            "show it as a table, a chart or text",
        )
    for name, value in tag.attrs.items():
        text = value if isinstance(value, str) else " ".join(value)
        loads = name in _LOADING and tag.name != "a"
        if (loads and not text.startswith(("data:", "#"))) or _OUTSIDE.search(text):
            raise GccostError(
                f"<{tag.name} {name}={text[:60]!r}> would have to be fetched",
                location,
                "attach the picture to the cell, or display it as an output",
            )
    alt = str(tag.get("alt") or tag.get("aria-label") or "")
    if tag.name in ("img", "svg") and _NO_ALT.fullmatch(alt) and tag.get("aria-hidden") != "true":
        raise GccostError(
            "this picture has no alt text",
            location,
            'write ![a description](…), or display the description with it as "text/plain"',
        )


def _drop_style(tag: Tag) -> None:
    """Remove a tag's style, except the alignment of cells."""
    if aligned := re.search(r"text-align:\s*(right|center)", str(tag.attrs.pop("style"))):
        _add_class(tag, "num" if aligned[1] == "right" else "centre")


def _format_table(table: Tag) -> None:
    """Make a table accessible and align its numbers; wide tables scroll in a box."""
    columns: dict[int, list[Tag]] = {}
    for column, cell in _cells_by_column(table):
        columns.setdefault(column, []).append(cell)
    for cells in columns.values():
        texts = [_text(cell).lower() for cell in cells if cell.get("scope") != "col"]
        figures = [text for text in texts if text not in _NO_FIGURE]
        if figures and all(map(_is_figure, figures)):
            for cell in cells:
                _add_class(cell, "num")
    for cell in table.find_all("th"):
        if not _text(cell):  # nothing that could be a heading
            cell.name = "td"
            del cell["scope"]
    caption = table.find("caption")
    label = _text(caption) if caption else ", ".join(map(_text, table.select("thead th")))
    box = BeautifulSoup("", "html.parser").new_tag(
        "div",
        attrs={"class": "table", "role": "group", "tabindex": "0", "aria-label": label or "table"},
    )
    table.wrap(box)


def _cells_by_column(table: Tag) -> Iterator[tuple[int, Tag]]:
    """A table's cells in a single column, with the column's number; sets headings' scopes."""
    below: dict[int, int] = {}  # column -> further rows that a cell above spans
    for row in table.select("tr"):
        cells = row.find_all(["th", "td"], recursive=False)
        is_head = all(cell.name == "th" for cell in cells)
        column, reach = 0, {at: rows - 1 for at, rows in below.items() if rows > 1}
        for cell in cells:
            while below.get(column, 0) > 0:
                column += 1
            if cell.name == "th" and "scope" not in cell.attrs:
                cell["scope"] = "col" if is_head else "row"
            width, height = (int(str(cell.get(span, "1"))) for span in ("colspan", "rowspan"))
            if width == 1:
                yield column, cell
            reach |= dict.fromkeys(range(column, column + width), height - 1)
            column += width
        below = reach


def _is_figure(text: str) -> bool:
    return bool(_STARTS_AS_NUMBER.match(text)) and not _NO_NUMBER.search(text)


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def _add_class(tag: Tag, name: str) -> None:
    classes = [str(one) for one in tag.get_attribute_list("class") if one]
    tag["class"] = " ".join(dict.fromkeys([*classes, name]))


def _broken_links(chapters: Sequence[_Chapter]) -> dict[str, GccostError]:
    """The first broken link of each chapter, by its stem; a failed chapter may lack a target."""
    known = {chapter.stem: {"", *chapter.anchors} for chapter in chapters if chapter.is_whole}
    return {
        chapter.stem: GccostError(
            f"the link to {anchor} has no target in the report",
            location,
            "point it to a heading or to the id of a cell that shows something",
        )
        for chapter in chapters
        for location, stem, anchor in reversed(chapter.links)
        if anchor not in known.get(stem, {anchor})
    }


def _check_charts(chapter: _Chapter, known: Mapping[str, _Chart]) -> None:
    """Raise GccostError if a chart has another one's name, or if the page is too large."""
    data = {name: chart.csv for name, chart in known.items()}
    for chart in chapter.charts:
        if chart.csv and data.setdefault(chart.name, chart.csv) != chart.csv:
            raise GccostError(
                f"two charts named {chart.name} have different data",
                f"{chapter.stem}.ipynb",
                "give one of them another name",
            )
    size = len(chapter.body.encode())
    if size > LARGEST_PAGE:
        largest = max(chapter.charts, key=lambda chart: len(chart.svg), default=None)
        which = f"; the largest chart is {largest.name}" if largest else ""
        raise GccostError(
            f"the page weighs {size / 1e6:.1f} MB, more than {LARGEST_PAGE / 1e6:.0f}",
            f"{chapter.stem}.ipynb",
            f"draw fewer points{which}",
        )


def _safe(html: str) -> Markup:
    """Mark HTML of this module as safe, so that it is not escaped again."""
    return Markup(html)  # noqa: S704
