"""The report: executed notebooks as self-contained HTML pages.

The first notebook is the landing page, `index.html`; each other one is a page of its own.
A page loads nothing from the network, and works on a phone, on paper, and in light and
dark mode. Scripts only add to it: filters to the ledger, and buttons that copy to a chapter's
listings, and a page that searches all others; nothing needs them. The same notebooks give the
same bytes.

A page that violates these rules (a chart without alt text, a script, a remote image) has an
error in its place that names notebook and cell; the other pages are written.
"""

from __future__ import annotations

import csv
import io
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString
from markupsafe import Markup, escape
from nbconvert import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbformat import NotebookNode

from gccost import paths
from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.showing import forked, gokernel, provenance, tables
from gccost.showing.charts import as_file
from gccost.showing.execute import incomplete, is_whole, read_notebook, title_of
from gccost.showing.results import PAGES, STYLE, TEMPLATES
from gccost.showing.search import Passage, passages

ROWS = 20  # of a chart's data on the page; its CSV file has all rows

_SVG = "image/svg+xml"
_PICTURES = {_SVG, "image/png", "image/jpeg"}
_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
# What the report must not have, as CSS selectors.
_FORBIDDEN = "base, embed, foreignobject, form, frame, iframe, link, meta, object, script"
_FETCHED = "[srcset], [background], [action], [formaction], " + ", ".join(
    f":not(a)[{name}]:not([{name}^='data:'], [{name}^='#'])"
    for name in ("href", "src", "data", "poster")
)
_NO_ALT = ", ".join(
    f"{picture}:is(:not([{name}]), [{name}=''], [{name}^='<'], [{name}^='No description has'])"
    for picture, name in (("img", "alt"), ("svg:not([aria-hidden='true'])", "aria-label"))
)
_OUTSIDE = re.compile(r"url\(\s*['\"]?(?!\s*['\"]?(?:#|data:))", re.IGNORECASE)

# A numeric cell begins with a number that is not a version, and has no words except units.
_STARTS_AS_NUMBER = re.compile(r"[\[(<>≤≥≈~±+−-]*\s?\d")
_NO_NUMBER = re.compile(r"\d\.\d+\.\d|[^\W\d_]{5,}")
_NO_FIGURE = ["", "-", "–", "—", "−", "∞", "−∞", "?", "nan", "n/a"]

_LONG_NUMBER = re.compile(r"-?\d{4,}(\.\d+)?")

# The space between a number and its unit, where a line must not break.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[KMG]i?B)(?!\w))")


def write_report(
    executed: Sequence[Path],
    out: Path,
    *,
    title: str,
    purpose: str,
    files: Mapping[str, str],
    at_once: int = 1,
) -> dict[str, GccostError]:
    """Write the report of the `executed` notebooks, in order, to the folder `out`.

    `title` and `purpose` (one sentence) describe every page. Writes the first notebook as
    `index.html`, the others as `<stem>.html`, `search.html`, `data/<chart>.csv` and
    `figures/<chart>.svg` for each chart, and `files`, texts by name. Deletes the pages of chapters
    that this report lacks. It makes `at_once` pages at a time.

    A page that would have content that it must not have has the reason in its place. Returns
    these errors, with notebook and cell, by the notebook's stem.
    """
    pages = {path.stem: f"{path.stem}.html" for path in executed}
    pages[executed[0].stem] = "index.html"
    chapters: list[_Chapter] = []
    charts: dict[str, str] = {}
    for chapter in forked.each(partial(_chapter, pages=pages), executed, at_once):
        try:
            _check_names(chapter, charts)
        except GccostError as error:
            chapter = _failed(chapter.path, pages, error)
        charts |= dict(chapter.charts)
        chapters.append(chapter)
    failed = {chapter.stem: chapter.error for chapter in chapters if chapter.error}
    failed |= _broken_links(chapters)
    frame = {
        "title": title,
        "purpose": purpose,
        "chapters": chapters,
        "files": files,
        "style": _template(STYLE) + _template("style.css"),
        "filters": _template("results.js"),
        "copying": _template("copy.js"),
        "searching": _template("search.js"),
    }
    page = PAGES.get_template("page.html")
    written: list[_Chapter | _Search] = [*chapters, _Search(chapters)]
    for here in written:
        html = page.render(frame, here=here, landing=here is chapters[0])
        write_whole(out / here.page, html.encode())
    for name, text in {**files, **charts}.items():
        write_whole(out / name, text.encode())
    for notebook in paths.NOTEBOOKS.glob("*.ipynb"):
        if notebook.stem not in pages:
            (out / f"{notebook.stem}.html").unlink(missing_ok=True)
    return failed


def _chapter(path: Path, pages: Mapping[str, str]) -> _Chapter:
    """The chapter of an executed notebook; one that says why, if it cannot be shown."""
    try:
        return _Chapter(read_notebook(path), path, pages)
    except GccostError as error:
        return _failed(path, pages, error)


def _failed(path: Path, pages: Mapping[str, str], error: GccostError) -> _Chapter:
    """A chapter that has its title, and why the notebook cannot be shown."""
    chapter = _Chapter(incomplete(title_of(path), str(error)), path, pages)
    chapter.error = error
    return chapter


def _template(name: str) -> Markup:
    return _safe((TEMPLATES / name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class _Section:
    anchor: str
    title: str
    level: int


class _Search:
    """The page that searches all others."""

    page, title = "search.html", "Search"
    anchors = frozenset({"content"})
    has_listings = False

    def __init__(self, chapters: Sequence[_Chapter]) -> None:
        self.body = _safe(PAGES.get_template("search.html").render(chapters=chapters))


class _Chapter:
    """An executed notebook as a page.

    `body` is its HTML, and `charts` the names and texts of its charts' files. `anchors` are its
    ids, `headings` the sections of all levels, and `links` the locations of links with their
    targets. `error` says why the notebook cannot be shown.
    """

    error: GccostError | None = None

    def __init__(self, node: NotebookNode, path: Path, pages: Mapping[str, str]) -> None:
        self.path = path
        self.stem = path.stem
        self.page = pages[path.stem]
        self.is_whole = is_whole(node)
        self.anchors: set[str] = {"content"}
        self.headings: list[_Section] = []
        self.passages: list[Passage] = []
        self.links: list[tuple[str, str, str]] = []
        self.has_listings = False
        self._pages = pages
        self.charts = list(_prepare_charts(node, path))
        self._files = {name for name, _ in self.charts}
        self.body = self._tidied(BeautifulSoup(_rendered(node), "html.parser"), path.name)

    @property
    def title(self) -> str:
        for heading in self.headings:
            if heading.level == 1:
                return heading.title
        return self.stem

    @property
    def sections(self) -> list[_Section]:
        """The headings for the table of contents."""
        return [each for each in self.headings if each.level == 2]

    def _tidied(self, soup: BeautifulSoup, name: str) -> Markup:
        for comment in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
            comment.extract()
        for cell in soup.find_all("div", recursive=False):
            if cell.find(True) is None:
                cell.decompose()
        cells = soup.find_all("div", recursive=False)
        self.anchors.update(_anchor(str(cell["id"])) for cell in cells)
        for cell in cells:
            number = cell.attrs.pop("data-number") or cell["id"]
            self._tidy(cell, f"{name}, cell {number}")
        self.passages = passages(soup)
        return _safe(str(soup).strip())

    def _tidy(self, cell: Tag, location: str) -> None:
        """Give a cell's headings ids, resolve its links, make its tables accessible.

        Raises GccostError for scripts and remote content.
        """
        _check(cell, location)
        # What follows is for HTML only.
        canvases = cell.select(".canvas")
        drawings = [[drawn.extract() for drawn in canvas.find_all("svg")] for canvas in canvases]
        for style in cell.find_all("style"):
            style.decompose()
        for tag in [cell, *cell.find_all(True)]:
            self._clean(tag)
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
        for listing in cell.select(":is(.output, .prose) > .highlight"):
            _add_class(listing, "listing")
            self.has_listings = True
        for canvas, drawn in zip(canvases, drawings, strict=True):
            canvas.extend(drawn)

    def _clean(self, tag: Tag) -> None:
        """Remove a tag's handlers and styles, but for the alignment of cells; spell its id."""
        for name in list(tag.attrs):
            if name.startswith("on") or name == "border":
                del tag[name]
        if aligned := re.search(r"text-align:\s*(right|center)", str(tag.attrs.pop("style", ""))):
            _add_class(tag, "num" if aligned[1] == "right" else "centre")
        if "id" in tag.attrs:
            tag["id"] = _anchor(str(tag["id"]))
            self.anchors.add(str(tag["id"]))

    def _heading(self, heading: Tag, cell: Tag) -> None:
        """Give a heading its id, and add it to the contents."""
        title = " ".join(heading.get_text().split())
        anchor, number = _anchor(title), 1
        if anchor == cell.get("id"):
            self.anchors.remove(str(cell.attrs.pop("id")))
        while anchor in self.anchors:  # of another heading, or of a cell
            number += 1
            anchor = f"{_anchor(title)}-{number}"
        self.anchors.add(anchor)
        heading["id"] = anchor
        level = _HEADINGS.index(heading.name) + 1
        self.headings.append(_Section(anchor, title, level))

    def _link(self, link: Tag, location: str) -> None:
        """Point a link at its target in the report.

        A link to a file of the repository becomes the file's path, because the report may be
        read alone. A link to a notebook that is not in this report becomes its text.
        """
        href = str(link["href"])
        parts = urlsplit(href)
        if parts.scheme in ("http", "https", "mailto") or href in self._files:
            return
        if parts.scheme or parts.netloc:
            raise GccostError(f"this link cannot be followed: {href}", location, "use https")
        path = unquote(parts.path)
        stem = posixpath.basename(path).removesuffix(".ipynb") or self.stem
        if path and not path.endswith(".ipynb"):
            file = posixpath.normpath(posixpath.join("notebooks", path))
            if file not in link.get_text():
                link.insert_after(BeautifulSoup(f" (<code>{escape(file)}</code>)", "html.parser"))
            elif not link.find("code"):
                link.wrap(BeautifulSoup("", "html.parser").new_tag("code"))
            link.unwrap()
        elif stem not in self._pages:
            link.unwrap()
        else:
            page = "" if stem == self.stem and parts.fragment else self._pages[stem]
            anchor = ""
            if parts.fragment:
                anchor = _anchor(unquote(parts.fragment).removeprefix("cell-id="))
            link["href"] = f"{page}#{anchor}" if anchor else page
            self.links.append((location, stem, anchor))


def _rendered(node: NotebookNode) -> str:
    """A notebook as HTML, by nbconvert with our template for a chapter."""
    language = node.metadata.get("language_info", {})
    exporter = HTMLExporter(
        extra_template_basedirs=[str(TEMPLATES.parent)],
        template_name=TEMPLATES.name,
        template_file="chapter.html",
        exclude_anchor_links=True,
        filters={
            "csv_rows": _rows_shown,
            "highlight_code": Highlight2HTML(pygments_lexer=language.get("pygments_lexer")),
        },
    )
    resources = {"note": _note(node), "rows": ROWS}
    # HTMLExporter's own method parses and writes the whole page once more.
    html, _ = TemplateExporter.from_notebook_node(exporter, node, resources)
    return html


def _note(node: NotebookNode) -> str:
    """A note, as HTML, of when a notebook with stored output was run."""
    if not gokernel.is_go(node):
        return ""
    when, stale = gokernel.stored(node)
    box = tables.warnings([stale] if stale else [], "This output is stale")
    return f"<p>{escape(when)}</p>{box.html}"


def _prepare_charts(node: NotebookNode, path: Path) -> Iterator[tuple[str, str]]:
    """Number the notebook's pictures, fit SVGs to a page, and give the charts' files."""
    chapter = re.match(r"0*(\d+[a-z]?)-", path.stem)
    before = f"{chapter[1]}." if chapter else ""
    number = 0
    for cell in node.cells:
        location = f"{path.name}, cell {cell.get('execution_count')}"
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if _PICTURES.isdisjoint(data):
                continue
            number += 1
            about = {"chart": f"{path.stem}-{cell.id}", "title": ""}
            about |= output.metadata.get("gccost", {})
            output.metadata["gccost"] = {**about, "number": f"{before}{number}"}
            alt, rows = (data.setdefault(kind, "") for kind in ("text/plain", "text/csv"))
            if _SVG in data:
                yield f"figures/{about['chart']}.svg", as_file(data[_SVG])
                data[_SVG] = _drawing(data[_SVG], alt.strip(), location)
            if rows.strip():
                yield f"data/{about['chart']}.csv", rows


def _rows_shown(text: str) -> list[list[str]]:
    """The rows of a chart's CSV file that its page shows: without runs, which the page names."""
    rows = list(csv.reader(io.StringIO(text)))
    head = rows[0] if rows else []
    shown = []
    for at, column in enumerate(head):
        if column not in provenance.COLUMNS:
            shown.append(at)
    as_written = "year" in head
    return [[row[at] if as_written else _separated(row[at]) for at in shown] for row in rows]


def _separated(text: str) -> str:
    """A number with its thousands set apart; any other text as it is."""
    if not _LONG_NUMBER.fullmatch(text):
        return text
    whole, point, rest = text.partition(".")
    return f"{int(whole):,}{point}{rest}"


def _anchor(fragment: str) -> str:
    return re.sub(r"[\W_]+", "-", fragment.lower()).strip("-") or "section"


def _drawing(svg: str, alt: str, location: str) -> str:
    """An SVG as an element of the page, described by its alt text.

    It scales down to the available width. The settings of matplotlib's style sheet, which
    would affect every chart on the page, are set on the drawing instead.
    """
    opening, ended, inside = svg[svg.find("<svg") :].partition(">")
    if not ended:
        raise GccostError("the SVG cannot be read", location)
    style = ""
    for sheet in re.findall(r"<style\b[^>]*>(.*?)</style>", inside, re.DOTALL):
        rule = re.fullmatch(r"\s*\*\s*\{([^{}]*)\}\s*", sheet)
        if rule is None:
            raise GccostError(
                "the SVG's style sheet would reach the whole page",
                location,
                "style its elements one by one",
            )
        style += rule[1].strip().rstrip(";") + ";"
    inside = re.sub(r"<(desc|metadata|style)\b.*?</\1>", "", inside, flags=re.DOTALL)
    inside = re.sub(r">\s+<", "><", inside).strip().replace("xlink:href=", "href=")
    used = set(re.findall(r"""(?:url\(|href=["'])#([^)"']+)""", inside))
    inside = re.sub(r' id="([^"]*)"', lambda at: at[0] if at[1] in used else "", inside)

    sides = dict(re.findall(r'\s(width|height)="([\d.]+)', opening))
    width = float(sides.get("width", 0))
    height = float(sides.get("height", 0))
    opening = re.sub(r'\s(?:id|style|width|height|version|xmlns[\w:]*)="[^"]*"', "", opening)
    if "viewBox" not in opening:
        opening += f' viewBox="0 0 {width:g} {height:g}"'
    per_rem = 12 if re.search(r'\swidth="[\d.]+pt"', svg) else 16
    about = f'role="img" aria-label="{escape(alt)}" style="--width:{width / per_rem:g}rem;{style}"'
    return f"{opening} {about}>{inside}"


def _check(cell: Tag, location: str) -> None:
    """Raise GccostError for an element that the report must not have."""
    why = "is not allowed"
    hint = "show it as a table, a chart or text"
    tag = cell.select_one(_FORBIDDEN)
    if tag is None:
        why = "would have to be fetched"
        hint = "attach the picture to the cell, or display it as an output"
        tag = cell.select_one(_FETCHED) or _styled_from_outside(cell)
    if tag is None:
        why = "has no alt text"
        hint = 'write ![a description](…), or display the description with it as "text/plain"'
        tag = cell.select_one(_NO_ALT)
    if tag is not None:
        raise GccostError(f"{str(tag)[:60]} {why}", location, hint)


def _styled_from_outside(cell: Tag) -> Tag | None:
    """An element whose style, or another attribute, has an address outside the page."""
    for tag in cell.find_all(True):
        for value in tag.attrs.values():
            if _OUTSIDE.search(str(value)):
                return tag
    return None


def _format_table(table: Tag) -> None:
    """Make a table accessible and align its numbers; wide tables scroll in a box."""
    for cells in _columns(table):
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
    label = ", ".join(map(_text, table.select("thead th")))
    if caption:
        label = _text(caption)
    about = {"class": "table", "role": "group", "tabindex": "0", "aria-label": label or "table"}
    table.wrap(BeautifulSoup("", "html.parser").new_tag("div", attrs=about))


def _columns(table: Tag) -> Iterable[list[Tag]]:
    """The cells of each column, but for those that span several; sets headings' scopes."""
    taken: set[tuple[int, int]] = set()
    columns: dict[int, list[Tag]] = defaultdict(list)
    for y, row in enumerate(table.select("tr")):
        cells = row.find_all(["th", "td"], recursive=False)
        scope = "col" if all(cell.name == "th" for cell in cells) else "row"
        x = 0
        for cell in cells:
            while (x, y) in taken:
                x += 1
            width = int(str(cell.get("colspan", "1")))
            height = int(str(cell.get("rowspan", "1")))
            for right in range(width):
                for down in range(height):
                    taken.add((x + right, y + down))
            if cell.name == "th":
                cell.attrs.setdefault("scope", scope)
            if width == 1:
                columns[x].append(cell)
    return columns.values()


def _is_figure(text: str) -> bool:
    return bool(_STARTS_AS_NUMBER.match(text)) and not _NO_NUMBER.search(text)


def _text(tag: Tag) -> str:
    return " ".join(tag.get_text(" ").split())


def _add_class(tag: Tag, name: str) -> None:
    classes = [str(one) for one in tag.get_attribute_list("class") if one]
    tag["class"] = " ".join(dict.fromkeys([*classes, name]))


def _check_names(chapter: _Chapter, known: Mapping[str, str]) -> None:
    """Raise GccostError if a chart has the name of another one that differs."""
    files = dict(known)
    for name, text in chapter.charts:
        if files.setdefault(name, text) != text:
            raise GccostError(
                f"two charts named {Path(name).stem} differ",
                f"{chapter.stem}.ipynb",
                "give one of them another name",
            )


def _broken_links(chapters: Sequence[_Chapter]) -> dict[str, GccostError]:
    """The first broken link of each chapter, by its stem; a failed chapter may lack a target."""
    targets: dict[str, set[str]] = {}
    for chapter in chapters:
        if chapter.is_whole:
            targets[chapter.stem] = {"", *chapter.anchors}
    broken: dict[str, GccostError] = {}
    for chapter in chapters:
        for location, stem, anchor in chapter.links:
            if stem not in targets or anchor in targets[stem] or chapter.stem in broken:
                continue
            problem = f"the link to {anchor} has no target in the report"
            hint = "point it to a heading or to the id of a cell that shows something"
            broken[chapter.stem] = GccostError(problem, location, hint)
    return broken


def _safe(html: str) -> Markup:
    """Mark HTML of this module as safe, so that it is not escaped again."""
    return Markup(html)  # noqa: S704
