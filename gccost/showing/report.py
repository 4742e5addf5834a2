"""The report: executed notebooks as one HTML file that asks nothing of the network.

Each notebook becomes a fragment whose ids begin with the notebook's name. The
fragments stand one after another in `index.html`, and each on a page of its
own. A page holds no script, its style and charts are in it, and it reads on a
phone, on paper, in light and in the dark. The same notebooks give the same
bytes.

What would break such a promise is an error that names notebook and cell: a
chart without alt text, a link that leads nowhere, a script, an image that would
have to be fetched.
"""

from __future__ import annotations

import base64
import csv
import io
import posixpath
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Comment, Tag
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from gccost import gokernel
from gccost.errors import GccostError
from gccost.files import write_whole
from gccost.showing import tables
from gccost.showing.execute import read_notebook

# A page stays light enough to be mailed and to open on a phone.
LARGEST_PAGE = 5_000_000

# Of a chart's data so many rows stand in the page; all of them in its CSV file.
_ROWS = 300

_TEMPLATE = Path(__file__).with_name("template")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_FORBIDDEN = ("base", "embed", "form", "frame", "iframe", "link", "meta", "object", "script")
_LOADING = ("action", "background", "data", "formaction", "poster", "src", "srcset", "xlink:href")
_REFERRING = ("aria-controls", "aria-describedby", "aria-labelledby", "for", "headers")
_OUTSIDE = re.compile(r"url\(\s*['\"]?(?!\s*['\"]?(?:#|data:))", re.IGNORECASE)
_INSIDE = re.compile(r"url\(\s*['\"]?#([^)'\"]+?)['\"]?\s*\)", re.IGNORECASE)

# What pyplot and IPython leave where a description should be: nothing, or a
# Python object's name in angle brackets.
_NO_ALT = re.compile(r"\s*(<.*>)?\s*", re.DOTALL)

# A table's cell that holds a figure begins with a number, which is no version,
# and has no words but units and the like.
_STARTS_AS_NUMBER = re.compile(r"[\[(<>≤≥≈~±+−-]*\s?\d")
_NO_NUMBER = re.compile(r"\d\.\d+\.\d|[^\W\d_]{5,}")
_NO_FIGURE = ("", "-", "–", "—", "−", "∞", "−∞", "?", "nan", "n/a")

# Where a line must not break: between a number and its unit.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[KMG]i?B)(?!\w))")

_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "in": 96.0}
_REM = 16.0

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"


def write_report(
    executed: Sequence[Path],
    out: Path,
    *,
    title: str,
    purpose: str,
    banner: str = "",
    ledger_csv: str = "",
) -> Path:
    """Write the report of the `executed` notebooks, in their order, into the folder `out`.

    `title` and `purpose` (one sentence) head every page; `banner` is HTML below
    them that says what was run. Written are `index.html` with all chapters,
    `<stem>.html` with one, `data/<chart>.csv` for each chart and, if given,
    `ledger_csv` as `ledger.csv`.

    Returns the path of `index.html`. Raises GccostError, naming notebook and
    cell, for what a page must not hold, and when a page weighs over 5 MB.
    """
    stems = [path.stem for path in executed]
    chapters = [_chapter(path, stems) for path in executed]
    head = _Fragments("report", stems)
    banner_html = head.tidy(banner, "the banner")
    _check_links([*head.links, *(link for chapter in chapters for link in chapter.links)], chapters)
    charts = _by_name(chapters)

    environment = _environment()
    page = environment.get_template("page.html")
    frame = {
        "title": title,
        "purpose": purpose,
        "banner": banner_html,
        "chapters": chapters,
        "ledger": bool(ledger_csv),
        "style": _made((_TEMPLATE / "style.css").read_text(encoding="utf-8").strip()),
    }
    pages = {"index": page.render(frame, whole=True, here=None)}
    for chapter in chapters:
        html = page.render(frame, whole=False, here=chapter)
        pages[chapter.stem] = _across_pages(html, chapter.stem, stems)
    for stem, html in pages.items():
        _check_weight(html, out / f"{stem}.html", charts)
        write_whole(out / f"{stem}.html", html.encode())
    for name, chart in charts.items():
        write_whole(out / "data" / f"{name}.csv", chart.csv.encode())
    if ledger_csv:
        write_whole(out / "ledger.csv", ledger_csv.encode())
    return out / "index.html"


# What a chapter is made of. The templates read these.


@dataclass(frozen=True, slots=True)
class _Chart:
    """A picture with its description and, if it is a chart, its data."""

    anchor: str
    name: str
    picture: Markup
    alt: str
    csv: str
    table: Markup
    left_out: int
    kind: Literal["chart"] = "chart"


@dataclass(frozen=True, slots=True)
class _Html:
    html: Markup
    kind: Literal["html"] = "html"


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    kind: Literal["stdout", "stderr", "error", "result"]


@dataclass(frozen=True, slots=True)
class _Cell:
    anchor: str
    prose: Markup
    code: Markup
    outputs: tuple[_Chart | _Html | _Text, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    anchor: str
    title: str
    level: int


@dataclass(frozen=True, slots=True)
class _Link:
    """A link to `anchor` somewhere in the report, as the author wrote it."""

    place: str
    href: str
    anchor: str


@dataclass(frozen=True, slots=True)
class _Chapter:
    stem: str
    title: str
    sections: tuple[_Section, ...]
    body: Markup
    charts: tuple[_Chart, ...]
    anchors: frozenset[str]
    links: tuple[_Link, ...]


def _chapter(path: Path, stems: Sequence[str]) -> _Chapter:
    """The fragment that the executed notebook at `path` becomes."""
    node = read_notebook(path)
    language = node.metadata.get("language_info", {})
    highlighted = Highlight2HTML(pygments_lexer=language.get("pygments_lexer", "python"))
    fragments = _Fragments(path.stem, stems)
    anchors = {cell.id: fragments.claim(cell.id) for cell in node.cells}
    cells = []
    place = f"{path.name}, before the first cell"
    for cell in node.cells:
        anchor = anchors[cell.id]
        prose = code = Markup()
        outputs: tuple[_Chart | _Html | _Text, ...] = ()
        if cell.cell_type == "markdown":
            prose = fragments.markdown(cell.source, place, anchor, cell.get("attachments", {}))
        elif cell.cell_type == "code":
            place = f"{path.name}, cell {cell.execution_count}"
            if cell.source.strip() and "hide" not in cell.metadata.get("tags", []):
                code = _made(highlighted(cell.source).strip())
            outputs = tuple(
                shown
                for output in cell.outputs
                if (shown := _output(output, fragments, place, anchor)) is not None
            )
            place = f"{path.name}, after cell {cell.execution_count}"
        # A heading may have taken its cell's id over: then the box needs none.
        own = "" if anchor in (section.anchor for section in fragments.sections) else anchor
        if prose or code or outputs:
            cells.append(_Cell(own, prose, code, outputs))
        else:
            fragments.anchors.discard(anchor)
    titles = [section.title for section in fragments.sections if section.level == 1]
    body = _environment().get_template("chapter.html").render(cells=cells, note=_note(node))
    return _Chapter(
        stem=path.stem,
        title=titles[0] if titles else path.stem,
        sections=tuple(section for section in fragments.sections if section.level == 2),
        body=_made(body.strip()),
        charts=tuple(
            shown for cell in cells for shown in cell.outputs if isinstance(shown, _Chart)
        ),
        anchors=frozenset(fragments.anchors),
        links=tuple(fragments.links),
    )


def _note(node: NotebookNode) -> Markup:
    """Of a notebook whose output is kept and not made anew each time: of when it is."""
    if not gokernel.is_go(node):
        return Markup()
    when, stale = gokernel.kept(node)
    box = tables.warnings([stale] if stale else [], "This output is stale")
    return _made(f"<p>{escape(when)}</p>{box.html}")


def _output(
    output: NotebookNode, fragments: _Fragments, place: str, anchor: str
) -> _Chart | _Html | _Text | None:
    """The best form of an output that a page can show, or None for an empty one."""
    if output.output_type == "stream":
        return _Text(strip_ansi(output.text.rstrip()), output.name)
    if output.output_type == "error":
        return _Text(strip_ansi("\n".join(output.traceback)), "error")
    data = output.data
    if any(kind in data for kind in ("image/svg+xml", "image/png", "image/jpeg")):
        return _chart(data, output.metadata.get("gccost", {}), fragments, place)
    if "text/html" in data:
        return _Html(fragments.tidy(data["text/html"], place, anchor))
    if "text/markdown" in data:
        return _Html(fragments.markdown(data["text/markdown"], place, anchor))
    text = strip_ansi(data.get("text/plain", ""))
    return _Text(text, "result") if text else None


def _chart(
    data: Mapping[str, str], about: Mapping[str, str], fragments: _Fragments, place: str
) -> _Chart:
    """A picture for the page: its best form, alt text, and the data as a table."""
    alt = data.get("text/plain", "").strip()
    if _NO_ALT.fullmatch(alt):
        raise GccostError(
            "this picture has no alt text",
            place,
            'display it with its description as "text/plain", as gccost.showing.charts does',
        )
    fragments.pictures += 1
    name = about.get("chart", f"{fragments.stem}-{fragments.pictures}")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise GccostError(
            f"the chart's name {name!r} cannot name a file",
            place,
            "use letters, digits and hyphens",
        )
    rows = data.get("text/csv", "")
    if "chart" in about and not rows.strip():
        raise GccostError(
            f"the chart {name} comes without its data",
            place,
            'display them with it as "text/csv", as gccost.showing.charts does',
        )
    if "image/svg+xml" in data:
        prefix = f"{fragments.stem}--p{fragments.pictures}-"
        picture = _svg(data["image/svg+xml"], prefix, alt, place)
    else:
        kind = "image/png" if "image/png" in data else "image/jpeg"
        picture = _raster(data[kind], kind, alt)
    table, left_out = _data_table(rows)
    return _Chart(
        anchor=fragments.claim(f"chart-{name}"),
        name=name,
        picture=picture,
        alt=alt,
        csv=rows,
        table=table,
        left_out=left_out,
    )


class _Fragments:
    """Makes one notebook's HTML fit for a page that it shares with others.

    `stem` names the notebook and `stems` all that are in the report. Collected
    on the way: `anchors`, the ids given out; `sections`, the headings; `links`,
    what points into the report; `pictures`, how many there were.
    """

    def __init__(self, stem: str, stems: Iterable[str]) -> None:
        self.stem = stem
        self.stems = frozenset(stems)
        self.anchors: set[str] = set()
        self.sections: list[_Section] = []
        self.links: list[_Link] = []
        self.pictures = 0

    def claim(self, wanted: str) -> str:
        """An id that begins with the notebook's name and is nowhere else."""
        first = self._anchor(self.stem, wanted)
        anchor, count = first, 1
        while anchor in self.anchors:
            count += 1
            anchor = f"{first}-{count}"
        self.anchors.add(anchor)
        return anchor

    def markdown(
        self,
        source: str,
        place: str,
        cell_anchor: str = "",
        attachments: Mapping[str, dict[str, str]] | None = None,
    ) -> Markup:
        """Markdown as HTML for the page, code fences highlighted by their language."""
        renderer = IPythonRenderer(
            escape=False, exclude_anchor_links=True, attachments=dict(attachments or {})
        )
        return self.tidy(MarkdownWithMath(renderer).render(source), place, cell_anchor)

    def tidy(self, html: str, place: str, cell_anchor: str = "") -> Markup:
        """`html` with prefixed ids, resolved links, dressed tables and lowered headings.

        Raises GccostError for what runs a script or would be fetched.
        """
        soup = BeautifulSoup(html, "html.parser")
        for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
            comment.extract()
        for style in soup.select("style"):
            style.decompose()
        renamed = {str(tag["id"]): self.claim(str(tag["id"])) for tag in soup.select("[id]")}
        for tag in soup.select("*"):
            _check_tag(tag, place)
            _clean_attributes(tag, renamed)
        for link in soup.select("a[href]"):
            self._link(link, place)
        for heading in soup.select(",".join(_HEADINGS)):
            self._heading(heading, cell_anchor)
        for table in soup.select("table"):
            _dress(table)
        for text in soup.find_all(string=_BEFORE_UNIT):
            if not text.find_parent(["pre", "code"]):
                text.replace_with(_BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text))
        return _made(str(soup).strip())

    @staticmethod
    def _anchor(stem: str, fragment: str) -> str:
        slug = re.sub(r"[\W_]+", "-", fragment.lower()).strip("-")
        return f"{stem}--{slug or 'section'}"

    def _heading(self, heading: Tag, cell_anchor: str) -> None:
        """Give a heading its id, note it for the contents, put it one level down.

        The one h1 of a page is the report's own.
        """
        level = _HEADINGS.index(heading.name) + 1
        title = " ".join(heading.get_text().split())
        taken = {section.anchor for section in self.sections}
        if "id" in heading.attrs:
            anchor = str(heading["id"])
        elif self._anchor(self.stem, title) == cell_anchor and cell_anchor not in taken:
            anchor = cell_anchor
        else:
            anchor = self.claim(title)
        heading["id"] = anchor
        heading.name = _HEADINGS[min(level, len(_HEADINGS) - 1)]
        self.sections.append(_Section(anchor, title, level))

    def _link(self, link: Tag, place: str) -> None:
        """Point a link at its place in the report; outside it, say where instead.

        A link to a file of the repository would be dead where the report is
        read alone, so its path is shown; one to a notebook that is not in this
        report becomes its text.
        """
        href = str(link["href"])
        parts = urlsplit(href)
        if parts.scheme in ("http", "https", "mailto"):
            return
        if parts.scheme or parts.netloc:
            raise GccostError(f"this link cannot be followed: {href}", place, "use https")
        path, fragment = unquote(parts.path), unquote(parts.fragment)
        stem = self.stem
        if path.endswith(".ipynb"):
            stem = posixpath.basename(path).removesuffix(".ipynb")
            if stem not in self.stems:
                link.unwrap()
                return
        elif path:
            file = posixpath.normpath(posixpath.join("notebooks", path))
            if file not in link.get_text():
                link.insert_after(BeautifulSoup(f" (<code>{escape(file)}</code>)", "html.parser"))
            link.unwrap()
            return
        anchor = self._anchor(stem, fragment.removeprefix("cell-id=")) if fragment else stem
        link["href"] = f"#{anchor}"
        self.links.append(_Link(place, href, anchor))


def _check_tag(tag: Tag, place: str) -> None:
    """Raise for an element that the report must not hold."""
    if tag.name in _FORBIDDEN:
        raise GccostError(
            f"an output or a text holds <{tag.name}>, which no page of the report may",
            place,
            "show it as a table, a chart or text",
        )
    for name, value in tag.attrs.items():
        text = value if isinstance(value, str) else " ".join(value)
        loads = name in _LOADING and not text.startswith(("data:", "#"))
        if loads or _OUTSIDE.search(text):
            raise GccostError(
                f"<{tag.name} {name}={text[:60]!r}> would have to be fetched",
                place,
                "attach the picture to the cell, or display it as an output",
            )
    described = any(str(tag.get(name, "")).strip() for name in ("alt", "aria-label"))
    decoration = tag.get("aria-hidden") == "true"
    if tag.name in ("img", "svg") and not described and not decoration:
        raise GccostError(
            "this picture has no alt text",
            place,
            "write ![what is to be seen](…), or give it an aria-label",
        )


def _clean_attributes(tag: Tag, renamed: Mapping[str, str]) -> None:
    """Drop what styles or acts by itself, and carry the new ids through."""
    style = str(tag.attrs.pop("style", ""))
    aligned = re.search(r"text-align:\s*(right|center)", style)
    if aligned:
        _add_class(tag, "num" if aligned[1] == "right" else "centre")
    for name in [name for name in tag.attrs if name.startswith("on") or name == "border"]:
        del tag[name]
    for name, value in list(tag.attrs.items()):
        if name == "id":
            tag[name] = renamed[str(value)]
        elif name in _REFERRING:
            tag[name] = " ".join(renamed.get(word, word) for word in str(value).split())
        elif isinstance(value, str):
            tag[name] = _INSIDE.sub(lambda at: f"url(#{renamed.get(at[1], at[1])})", value)


def _dress(table: Tag) -> None:
    """Make a table accessible and align its figures; wide ones scroll in a box.

    A ledger's cells know their column's heading: on a phone its rows are cards.
    """
    columns: dict[int, list[Tag]] = {}
    for column, cell in _cells_by_column(table):
        columns.setdefault(column, []).append(cell)
    for cells in columns.values():
        if "ledger" in table.get_attribute_list("class"):
            for cell in cells[1:]:
                cell["data-column"] = _text(cells[0])
        texts = [_text(cell).lower() for cell in cells if cell.get("scope") != "col"]
        figures = [text for text in texts if text not in _NO_FIGURE]
        if figures and all(map(_is_figure, figures)):
            for cell in cells:
                _add_class(cell, "num")
    caption = table.find("caption")
    label = _text(caption) if caption else ", ".join(map(_text, table.select("thead th")))
    box = BeautifulSoup("", "html.parser").new_tag(
        "div",
        attrs={"class": "table", "role": "region", "tabindex": "0", "aria-label": label or "table"},
    )
    table.wrap(box)


def _cells_by_column(table: Tag) -> Iterator[tuple[int, Tag]]:
    """The cells of a table that stand in one column, with its number, scopes set."""
    below: dict[int, int] = {}  # column -> rows that a cell above still reaches into
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


def _data_table(rows: str) -> tuple[Markup, int]:
    """The first rows of a chart's CSV as a table, and how many are left out."""
    if not rows.strip():
        return Markup(), 0
    head, *body = csv.reader(io.StringIO(rows))

    def line(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    html = (
        f"<table><thead>{line(head, 'th')}</thead><tbody>"
        f"{''.join(line(row, 'td') for row in body[:_ROWS])}</tbody></table>"
    )
    soup = BeautifulSoup(html, "html.parser")
    for table in soup.select("table"):
        _dress(table)
    return _made(str(soup)), max(0, len(body) - _ROWS)


def _svg(source: str, prefix: str, alt: str, place: str) -> Markup:
    """An SVG document as an element of the page, described by `alt`.

    Ids get `prefix`. The drawing takes the width it is given, up to the one it
    was drawn for. What matplotlib sets for all elements by a style sheet, which
    on a page would reach every other chart, is set on the drawing itself.
    """
    try:
        # It comes from a notebook, whose code has just been run as it stands.
        root = ET.fromstring(source)  # noqa: S314
    except ET.ParseError as error:
        raise GccostError(f"the SVG cannot be read: {error}", place) from None
    if root.tag != f"{_SVG}svg":
        raise GccostError(f"the SVG begins with <{root.tag}>", place)
    inherited = ""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style":
                rule = re.fullmatch(r"\s*\*\s*\{([^{}]*)\}\s*", child.text or "")
                if rule is None:
                    raise GccostError(
                        "the SVG's style sheet would reach the whole page",
                        place,
                        "style its elements one by one",
                    )
                inherited += rule[1].strip().rstrip(";") + ";"
            elif child.tag in (f"{_SVG}script", f"{_SVG}foreignObject"):
                name = child.tag.removeprefix(_SVG)
                raise GccostError(f"the SVG holds <{name}>, which the report may not", place)
            elif child.tag.startswith(_SVG) and child.tag.removeprefix(_SVG) not in (
                "desc",
                "metadata",
                "title",
            ):
                continue
            parent.remove(child)
    ids = {element.get("id") for element in root.iter()} - {None}
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = dict(_svg_attributes(element.attrib, ids, prefix, place))
        if not (element.text or "").strip():
            element.text = None
        element.tail = None if not (element.tail or "").strip() else element.tail
    width, height = (_pixels(root.attrib.pop(side, "")) for side in ("width", "height"))
    root.attrib.setdefault("viewBox", f"0 0 {width:g} {height:g}")
    root.attrib |= {
        "role": "img",
        "aria-label": alt,
        "style": f"--width:{width / _REM:g}rem;{inherited}",
    }
    title = ET.Element("title")
    title.text = alt
    root.insert(0, title)
    return _made(ET.tostring(root, encoding="unicode"))


def _svg_attributes(
    attributes: Mapping[str, str], ids: Iterable[str | None], prefix: str, place: str
) -> Iterator[tuple[str, str]]:
    """The attributes of an SVG element as HTML has them, its references prefixed."""
    for name, value in attributes.items():
        if name in ("href", _XLINK_HREF):
            if value.startswith("#"):
                yield "href", f"#{prefix}{value[1:]}" if value[1:] in ids else value
            elif value.startswith("data:"):
                yield "href", value
            else:
                raise GccostError(f"the SVG would fetch {value[:60]!r}", place)
        elif name.startswith(("{", "on", "xmlns")) or name == "version":
            continue
        elif _OUTSIDE.search(value):
            raise GccostError(f"the SVG would fetch {value[:60]!r}", place)
        elif name == "id":
            yield name, prefix + value
        elif name == "d":
            yield name, " ".join(value.split())
        else:
            yield name, _INSIDE.sub(lambda at: f"url(#{prefix}{at[1]})", value)


def _pixels(length: str) -> float:
    """A CSS length in pixels; 0 for none."""
    match = re.fullmatch(r"\s*([\d.]+)\s*([a-z]*)\s*", length)
    return float(match[1]) * _PIXELS.get(match[2], 1.0) if match else 0.0


def _raster(encoded: str, kind: str, alt: str) -> Markup:
    """A PNG or JPEG as an element of the page, described by `alt`."""
    packed = "".join(encoded.split())
    header = base64.b64decode(packed[:64])
    size = ""
    if kind == "image/png" and len(header) >= 24:
        width, height = struct.unpack(">II", header[16:24])
        size = f' width="{width}" height="{height}" style="--width:{width / _REM:g}rem"'
    return _made(f'<img src="data:{kind};base64,{packed}" alt="{escape(alt)}"{size}>')


def _check_links(links: Iterable[_Link], chapters: Sequence[_Chapter]) -> None:
    """Raise for a link into the report that leads nowhere."""
    known = {chapter.stem for chapter in chapters}.union(*(one.anchors for one in chapters))
    for link in links:
        if link.anchor not in known:
            raise GccostError(
                f"the link to {link.href} leads nowhere in the report",
                link.place,
                "point it to a heading or to the id of a cell that shows something",
            )


def _by_name(chapters: Iterable[_Chapter]) -> dict[str, _Chart]:
    """The charts that have data, by name; the same name always has the same data."""
    charts: dict[str, _Chart] = {}
    for chapter in chapters:
        for chart in chapter.charts:
            if chart.csv and charts.setdefault(chart.name, chart).csv != chart.csv:
                raise GccostError(
                    f"two charts are called {chart.name} and differ in their data",
                    f"{chapter.stem}.ipynb",
                    "give one of them another name",
                )
    return charts


def _across_pages(html: str, here: str, stems: Sequence[str]) -> str:
    """`html` of the chapter `here` by itself: links to other chapters name their page."""

    def resolve(match: re.Match[str]) -> str:
        anchor = match[1]
        owners = [stem for stem in stems if anchor == stem or anchor.startswith(f"{stem}--")]
        page = max(owners, key=len, default=here)
        return match[0] if page == here else f'href="{page}.html#{anchor}"'

    return re.sub(r'href="#([^"]+)"', resolve, html)


def _check_weight(html: str, path: Path, charts: Mapping[str, _Chart]) -> None:
    weight = len(html.encode())
    if weight > LARGEST_PAGE:
        heaviest = max(charts.values(), key=lambda chart: len(chart.picture), default=None)
        mend = "draw fewer points"
        if heaviest is not None:
            share = len(heaviest.picture) / 1e6
            mend += f"; the heaviest chart is {heaviest.name} with {share:.1f} MB"
        raise GccostError(
            f"the page weighs {weight / 1e6:.1f} MB, more than {LARGEST_PAGE / 1e6:.0f}",
            str(path),
            mend,
        )


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATE),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )


def _made(html: str) -> Markup:
    """HTML that this module has made or tidied, and that is not to be escaped again."""
    return Markup(html)  # noqa: S704
