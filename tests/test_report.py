"""Executed notebooks and the report, tested without a browser."""

from __future__ import annotations

import base64
import itertools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
import recordings
from nbformat import NotebookNode
from notebooks_fixture import (
    FILES,
    code,
    execute,
    executed,
    prose,
    report,
    write,
    write_fixture_report,
)

from gccost import opening, paths, stats
from gccost.errors import GccostError
from gccost.judging.rules import Label, Verdict
from gccost.measuring.cases import budget
from gccost.measuring.toolchains import TODAY_GO
from gccost.notebook import OpenedStudy, Results
from gccost.settings import Settings
from gccost.showing import report as reporting
from gccost.showing.execute import execute_all, named_outputs
from gccost.showing.figures import MARKERS, as_file
from gccost.showing.results import TEMPLATES
from gccost.showing.results import ledger as ledger_table

__all__ = ["executed", "report"]  # fixtures, for pytest to find

PLACEHOLDER = "No description has been provided for this image"


# Running notebooks


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., NotebookNode]:
    """Run code cells in replay, and return the written notebook."""

    def run(*sources: str, **options: object) -> NotebookNode:
        cells = [code(source, f"cell-{at}") for at, source in enumerate(sources, start=1)]
        notebook = write(tmp_path / "notebooks" / "08-try.ipynb", cells)
        into = tmp_path / "out" / "08-try.ipynb"
        return nbformat.read(execute(notebook, into, **options), as_version=4)  # type: ignore[arg-type]

    return run


def texts(node: NotebookNode) -> list[str]:
    return [output.text for cell in node.cells for output in cell.outputs if "text" in output]


def test_a_notebook_runs_with_this_python_in_its_folder(
    run: Callable[..., NotebookNode], tmp_path: Path
) -> None:
    node = run(
        "import os, sys\nprint(sys.executable, os.getcwd(), os.environ['GCCOST_MODE'],"
        " os.environ['GCCOST_BUDGET'], sep='\\n')",
        settings=Settings("measure", budget("tiny")),
    )
    told = [sys.executable, str(tmp_path / "notebooks"), "measure", "tiny"]
    assert texts(node) == ["\n".join(told) + "\n"]


def test_executed_notebooks_are_normalised(run: Callable[..., NotebookNode]) -> None:
    node = run(
        "import sys\nprint('a')\nprint('warned', file=sys.stderr)\nprint('b')",
        "",
        "kind = 'application/vnd.jupyter.widget-view+json'\n"
        "display({kind: {'model_id': '1'}, 'text/plain': 'a slider'}, raw=True)\n2 + 2",
        "!printf 'one\\ntwo\\n'",
        "print('10 %\\r20 %\\rdone')",
    )
    assert set(node.metadata) == {"kernelspec", "language_info"}
    assert set(node.metadata.language_info) == {"name", "pygments_lexer", "file_extension"}
    assert node.metadata.kernelspec.name == "python3"
    assert [cell.id for cell in node.cells] == [f"cell-{n}" for n in range(1, 6)]
    assert [cell.execution_count for cell in node.cells] == [1, None, 2, 3, 4]
    assert all(cell.metadata == {} for cell in node.cells)
    assert texts(node) == ["a\nb\n", "warned\n", "one\ntwo\n", "done\n"]
    assert "widget" not in str(node.cells[2].outputs[0].data.keys())


def test_executing_a_notebook_again_changes_nothing(executed: Sequence[Path]) -> None:
    before = executed[0].read_bytes()
    execute(executed[0], executed[0])
    assert executed[0].read_bytes() == before


def test_standard_error_can_be_forwarded(run: Callable[..., NotebookNode]) -> None:
    said: list[str] = []
    node = run(
        "import sys\nprint('3 s left', file=sys.stderr)\nprint('kept')", on_stderr=said.append
    )
    assert "".join(said) == "3 s left\n"
    assert texts(node) == ["kept\n"]


def test_a_failing_cell_is_reported_with_its_error(
    run: Callable[..., NotebookNode], tmp_path: Path
) -> None:
    with pytest.raises(GccostError) as caught:
        run("x = 1", "def half(n):\n    return n / 0\n\nhalf(x)")
    assert caught.value.location == "08-try.ipynb, cell 2, line 2"
    assert caught.value.message == "ZeroDivisionError: division by zero"
    assert "make lab" in caught.value.hint
    assert not (tmp_path / "out" / "08-try.ipynb").exists()


def test_a_gccost_error_in_a_cell_is_passed_on_unchanged(
    run: Callable[..., NotebookNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(reporting.__file__).parents[2]))
    with pytest.raises(GccostError) as caught:
        run(
            "from gccost.errors import MissingTool\n"
            "raise MissingTool('no Go', 'PATH', 'apt-get install golang')",
        )
    assert str(caught.value) == (
        "08-try.ipynb, cell 1: PATH: no Go. To fix it: apt-get install golang"
    )


def test_a_dead_kernel_is_reported(run: Callable[..., NotebookNode]) -> None:
    with pytest.raises(GccostError, match=r"cell 2: the kernel died, ended by SIGKILL"):
        run("1", "import os\nos.kill(os.getpid(), 9)")


MEETING = """
import time
from pathlib import Path
Path({own!r}).touch()
until = time.monotonic() + 60
while not Path({other!r}).exists():
    assert time.monotonic() < until, "the other did not come"
    time.sleep(0.05)
"""


def test_several_notebooks_run_at_once(tmp_path: Path) -> None:
    others = "from pathlib import Path\nassert any(Path(f'{x}-ran.ipynb').exists() for x in 'ab')"
    cells = [MEETING.format(own="a", other="b"), MEETING.format(own="b", other="a"), others]
    notebooks = {
        write(tmp_path / f"{name}.ipynb", [code(cell, name)]): tmp_path / f"{name}-ran.ipynb"
        for name, cell in zip("abc", cells, strict=True)
    }
    begun: list[Path] = []
    execute_all(notebooks, Settings("replay"), at_once=2, on_start=begun.append)
    assert begun == list(notebooks)
    assert all(path.exists() for path in notebooks.values())


def test_a_failing_notebook_stops_the_others(tmp_path: Path) -> None:
    after_the_first = MEETING.format(own="b", other="0-ran.ipynb") + "1 / 0"
    cells = ["1", after_the_first, "import time\ntime.sleep(600)", "1"]
    notebooks = {
        write(tmp_path / f"{i}.ipynb", [code(cell, "one")]): tmp_path / f"{i}-ran.ipynb"
        for i, cell in enumerate(cells)
    }
    with pytest.raises(GccostError, match="ZeroDivisionError"):
        execute_all(notebooks, Settings("replay"), at_once=2)
    assert [path.exists() for path in notebooks.values()] == [True, False, False, False]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "there is no such notebook"),
        ("not json", "this is not a Jupyter notebook"),
        ('{"nbformat": 4, "nbformat_minor": 5}', "this is not a Jupyter notebook"),
        (
            '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells":'
            ' [{"cell_type": "markdown", "metadata": {}, "source": []}]}',
            "lack unique ids",
        ),
    ],
)
def test_a_file_that_is_not_a_notebook_is_reported(
    tmp_path: Path, text: str | None, told: str
) -> None:
    notebook = tmp_path / "x.ipynb"
    if text is not None:
        notebook.write_text(text)
    with pytest.raises(GccostError, match=told) as caught:
        execute(notebook, notebook)
    assert caught.value.location == str(notebook)


# The pages


class Page(HTMLParser):
    """A parsed page; parsing checks that elements are closed in order."""

    VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"})

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"duplicate attribute in {self.get_starttag_text()}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"line {self.getpos()[0]}"

    def all(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


@pytest.fixture(scope="session")
def pages(report: Path) -> Mapping[str, Page]:
    return {path.name: Page(path) for path in sorted(report.glob("*.html"))}


@pytest.fixture(scope="session")
def index(pages: Mapping[str, Page]) -> Page:
    return pages["index.html"]


@pytest.fixture(scope="session")
def chapter(pages: Mapping[str, Page]) -> Page:
    return pages["01-lemire.html"]


def test_the_report_has_a_landing_page_and_chapter_pages(pages: Mapping[str, Page]) -> None:
    assert list(pages) == ["01-lemire.html", "index.html"]
    for page in pages.values():
        assert page.text.startswith('<!DOCTYPE html>\n<html lang="en"')
        assert len(page.all("h1")) == len(page.all("main")) == 1
        described = [meta for meta in page.all("meta") if meta.get("name") == "description"]
        assert described[0]["content"]
        assert len(page.ids()) == len(set(page.ids()))


def test_every_link_has_a_target(pages: Mapping[str, Page]) -> None:
    for name, page in pages.items():
        for link in page.all("a"):
            file, _, fragment = link["href"].partition("#")
            if file.startswith("https://"):
                continue
            target = pages[file or name]
            assert not fragment or unquote(fragment) in target.ids(), link


def test_links_between_notebooks_point_to_report_pages(pages: Mapping[str, Page]) -> None:
    hrefs = {name: [a["href"] for a in page.all("a")] for name, page in pages.items()}
    assert "01-lemire.html#the-gap" in hrefs["index.html"]
    assert "01-lemire.html" in hrefs["index.html"]
    assert "#l1" in hrefs["index.html"]  # a claim's row
    assert "#measured" in hrefs["01-lemire.html"]
    assert "index.html#the-ledger" in hrefs["01-lemire.html"]
    assert "index.html#ledger" in hrefs["01-lemire.html"]  # by cell id


def test_links_to_pages_outside_the_report_become_text(chapter: Page) -> None:
    assert "what comes next" in chapter.text
    assert "siebenmann" not in chapter.text
    assert "the code (<code>gosrc/cstr/cstr.go</code>)" in chapter.text


def test_web_links_have_footnotes_for_print(chapter: Page) -> None:
    assert 'the document</a><sup class="note">1</sup>' in chapter.text
    assert re.search(r'<ol class="notes"[^>]*>\s*<li>https://example.org/lemire</li>', chapter.text)


def test_pages_fetch_nothing_and_run_no_notebook_scripts(pages: Mapping[str, Page]) -> None:
    loading = ("src", "srcset", "poster", "data", "action", "xlink:href")
    for name, page in pages.items():
        assert page.all("link", "iframe", "object", "embed", "form") == []
        assert len(page.all("script")) == (name == "index.html")
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on")]
            for name in loading:
                assert attributes.get(name, "data:").startswith("data:")
            if tag != "a":
                assert attributes.get("href", "#").startswith("#")
        assert re.findall(r"url\((?!#)[^)]*\)|@import", page.text) == []


def test_every_picture_has_alt_text(index: Page, chapter: Page) -> None:
    pictures = [one for one in index.all("svg", "img") if one.get("aria-hidden") != "true"]
    assert len(pictures) == 1 + 5 + 1  # one headline claim, five ledger rows, one chart
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)
    assert pictures[0]["aria-label"] == (
        "published 8.67×; Go 1.20.14 1.00× (0.900 to 1.10), holds; "
        "Go 1.27.4 2.00× (1.80 to 2.20), does not hold"
    )
    said = [one.get("aria-label", one.get("alt")) for one in chapter.all("svg", "img")]
    assert said == [
        "A finalizer costs 18.4 times freeing by hand. By hand 61 ns, by finalizer 1,150 ns.",
        "The same, as a picture. By hand 61 ns, by finalizer 1,150 ns.",
    ]
    assert f"<title>{said[0]}</title>" in chapter.text
    for page in (index, chapter):
        assert PLACEHOLDER not in page.text
        assert "DOCTYPE svg" not in page.text
        assert "<metadata" not in page.text


def test_charts_are_numbered_and_can_be_linked(chapter: Page) -> None:
    assert re.findall(r'<a href="#([^"]+)">(Figure [^<]+)</a>', chapter.text) == [
        ("chart-lemire-gap", "Figure 1.1"),
        ("chart-lemire-raster", "Figure 1.2"),
    ]


def test_charts_do_not_affect_each_other(pages: Mapping[str, Page]) -> None:
    """A style sheet in an SVG, or a duplicate id, would change other charts."""
    for page in pages.values():
        assert len(page.all("style")) == 1
        used = re.findall(r'(?:url\(#|<use[^>]* (?:xlink:)?href="#)([^")]+)', page.text)
        assert used
        assert set(used) <= set(page.ids())


def test_every_chart_has_its_data_in_the_page_and_as_csv(report: Path, chapter: Page) -> None:
    files = sorted(path.name for path in (report / "data").iterdir())
    assert files == ["lemire-gap.csv", "lemire-raster.csv", "verdicts.csv"]
    written = (report / "data" / "lemire-gap.csv").read_text()
    assert written == "variant,ns\nfreed manually,61\nAddCleanup,611\nfinalizer,1150\n"
    assert '<td>AddCleanup</td><td class="num">611</td>' in chapter.text
    assert (report / "ledger.csv").read_text() == FILES["ledger.csv"]


def test_only_numeric_table_cells_get_numeric_alignment(chapter: Page) -> None:
    aligned = re.findall(r'<t[dh][^>]*class="num"[^>]*>([^<]*)', chapter.text)
    assert {"60.6", "1,150", "18.4× (18.1 to 18.8)", "–", "allocs/op"} <= set(aligned)
    assert not {"AllocateFree", "1.20 ", "1.27.4 ", "release", "verdict"} & set(aligned)


def test_tables_scroll_and_are_keyboard_accessible(chapter: Page) -> None:
    boxes = [one for one in chapter.all("div") if one.get("class") == "table"]
    assert len(boxes) == len(chapter.all("table")) == 3
    assert all(one["tabindex"] == "0" and one["aria-label"] for one in boxes)


def test_code_is_folded_and_highlighted_by_its_language(index: Page, chapter: Page) -> None:
    assert '<span class="kd">func</span>' in chapter.text  # the Go fence
    assert '<span class="kn">import</span>' in chapter.text  # Python, in a cell
    folded = [one for one in chapter.all("details") if one.get("class") == "code"]
    assert len(folded) == 4
    assert "class Chart" not in re.sub("<[^>]+>", "", index.text)  # the cell is tagged `hide`
    assert "What makes this run less trustworthy" in index.text  # its output is shown


def test_heading_levels_are_never_skipped(pages: Mapping[str, Page]) -> None:
    for page in pages.values():
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        for above, below in itertools.pairwise(levels):
            assert below <= above + 1


def test_the_report_is_reproducible(executed: Sequence[Path], report: Path, tmp_path: Path) -> None:
    again = write_fixture_report(executed, tmp_path)
    names = sorted(path.relative_to(report) for path in report.rglob("*") if path.is_file())
    assert names == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    for name in names:
        assert (again / name).read_bytes() == (report / name).read_bytes()


def test_pages_that_a_report_lacks_are_deleted_and_other_files_kept(tmp_path: Path) -> None:
    made = [
        write(tmp_path / f"{name}.ipynb", [prose("# A", "a")]) for name in ("00-a", "01-b", "02-c")
    ]
    out = tmp_path / "report"
    reporting.write_report(made, out, title="T", purpose="P.", files={})
    kept = {"mine.html": "<html>", "notes.txt": "", "copy.html": (out / "01-b.html").read_text()}
    for name, text in kept.items():
        (out / name).write_text(text)
    reporting.write_report(made[::2], out, title="T", purpose="P.", files={})
    assert {path.name for path in out.iterdir()} == {"index.html", "02-c.html", *kept}
    assert (out / "copy.html").read_text() == kept["copy.html"]


# What the report refuses


PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\0\0\0\1\0\0\0\1").decode()
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt">%s</svg>'


def shown(**data: str) -> NotebookNode:
    """A cell with these outputs, by MIME type (`image_png` for image/png)."""
    kinds = {"svg": "image/svg+xml"}
    bundle = {kinds.get(kind, kind.replace("_", "/")): value for kind, value in data.items()}
    cell = code("show()", "the-cell")
    cell.execution_count = 3
    about = {"gccost": {"chart": "a-chart", "title": "A chart"}} if "text_csv" in data else {}
    cell.outputs = [nbformat.v4.new_output("display_data", data=bundle, metadata=about)]
    return cell


def page_of(tmp_path: Path, *cells: NotebookNode) -> str:
    notebook = write(tmp_path / "07-why.ipynb", [prose("# Why", "title"), *cells])
    write_fixture_report_of_one(notebook, tmp_path / "report")
    return (tmp_path / "report" / "index.html").read_text()


def write_fixture_report_of_one(notebook: Path, out: Path) -> None:
    reporting.write_report([notebook], out, title="T", purpose="P.", files={})


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        (shown(image_png=PIXEL), "no alt text"),
        (shown(image_png=PIXEL, text_plain="<Figure size 640x480 with 1 Axes>"), "no alt text"),
        (shown(svg=SVG % "", text_plain=" "), "no alt text"),
        (shown(svg=SVG % "", text_plain="A.", text_csv=" "), "without its data"),
        (shown(svg=SVG % "<script/>", text_plain="A."), "contains <script>"),
        (shown(svg=SVG % "<style>g {fill: red}</style>", text_plain="A."), "style sheet"),
        (shown(svg=SVG % '<image href="https://a.b/c.png"/>', text_plain="A."), "to be fetched"),
        (shown(svg=SVG % '<g style="fill: url(https://a.b)"/>', text_plain="A."), "to be fetched"),
        (shown(svg="<svg", text_plain="A."), "cannot be read"),
        (shown(text_html="<script>alert(1)</script>"), "contains <script>"),
        (shown(text_html="<iframe src='https://a.b'></iframe>"), "contains <iframe>"),
        (shown(text_html="<img alt='a' src='https://a.b/c.png'>"), "to be fetched"),
        (shown(text_html="<img alt='a' src='//a.b/c.png'>"), "to be fetched"),
        (shown(text_html="<p style='background: url(https://a.b)'>"), "to be fetched"),
        (shown(text_html=f"<img src='data:image/png;base64,{PIXEL}'>"), "no alt text"),
        (shown(text_html="<a href='javascript:alert(1)'>x</a>"), "cannot be followed"),
        (shown(text_html="<a href='#no-such-place'>x</a>"), "has no target"),
    ],
)
def test_forbidden_output_is_reported_with_its_cell(
    tmp_path: Path, cell: NotebookNode, told: str
) -> None:
    with pytest.raises(GccostError, match=told) as caught:
        page_of(tmp_path, cell)
    assert caught.value.location == "07-why.ipynb, cell 3"


def test_forbidden_prose_is_reported_too(tmp_path: Path) -> None:
    with pytest.raises(GccostError, match="to be fetched") as caught:
        page_of(tmp_path, shown(text_plain="1"), prose("![a map](map.png)", "map"))
    assert caught.value.location == "07-why.ipynb, after cell 3"


def test_different_charts_may_not_share_a_name(tmp_path: Path) -> None:
    one, other = (shown(svg=SVG % "", text_plain="A.", text_csv=f"x\n{n}\n") for n in (1, 2))
    other.id = "another-cell"
    again = nbformat.from_dict({**one, "id": "again"})
    page_of(tmp_path, one, again)
    with pytest.raises(GccostError, match="two charts named a-chart"):
        page_of(tmp_path, one, other)


def test_an_oversized_page_reports_its_largest_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporting, "LARGEST_PAGE", 1_000_000)
    points = '<path d="M 0 0 L 99999 99999"/>' * 40_000
    heavy = shown(svg=SVG % points, text_plain="Many points.", text_csv="x\n1\n")
    with pytest.raises(GccostError, match=r"weighs \d\.\d MB, more than 1") as caught:
        page_of(tmp_path, heavy)
    assert "a-chart" in caught.value.hint


# Page details


def luminance(colour: str) -> float:
    """WCAG's relative luminance of #rrggbb."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_chart_colours_have_contrast_and_distinct_markers() -> None:
    css = "".join((TEMPLATES / name).read_text() for name in ("results.css", "style.css"))
    for ink in ("ink", "muted", "blue", "orange", "green", "purple"):
        papers, inks = (re.findall(rf"--{name}: (#\w{{6}});", css) for name in ("paper", ink))
        for paper, colour in zip(papers, inks, strict=True):
            low, high = sorted((luminance(paper), luminance(colour)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{ink}: {colour} on {paper}"
    markers, signs = zip(*MARKERS.values(), strict=True)
    assert len(set(markers)) == len(set(signs)) == len(MARKERS)


def test_long_chart_data_is_cut_on_the_page_but_not_in_csv(tmp_path: Path) -> None:
    rows = "x\n" + "".join(f"{n}\n" for n in range(1000))
    page = page_of(tmp_path, shown(svg=SVG % "", text_plain="A.", text_csv=rows))
    assert page.count('<td class="num">') == 300
    assert "which has 700 more rows" in page
    assert (tmp_path / "report" / "data" / "a-chart.csv").read_text() == rows


def test_equal_headings_get_distinct_anchors(tmp_path: Path) -> None:
    page = page_of(
        tmp_path, prose("## So what?\n\n[down](#So-what-2)", "a"), prose("## So what?", "b")
    )
    assert '<h2 id="so-what">' in page
    assert '<h2 id="so-what-2">' in page
    assert '<a href="#so-what-2">down</a>' in page


def test_text_output_is_escaped(tmp_path: Path) -> None:
    cell = shown(text_plain="<b> & 1 < 2")
    stream = nbformat.v4.new_output("stream", name="stdout", text="\x1b[31mred\x1b[0m <i>\n")
    cell.outputs.append(stream)
    page = page_of(tmp_path, cell)
    assert "&lt;b&gt; &amp; 1 &lt; 2</pre>" in page
    assert "red &lt;i&gt;</pre>" in page


def test_inline_styles_and_handlers_are_removed(tmp_path: Path) -> None:
    page = page_of(
        tmp_path,
        shown(
            text_html="<div><style scoped>td {color: #000}</style><!-- x -->"
            '<table border="1" class="dataframe"><thead><tr style="text-align: right;"><th></th>'
            '<th onclick="alert(1)">ns</th></tr></thead><tbody><tr><th>0</th><td>61</td></tr>'
            "</tbody></table></div>"
        ),
    )
    body = page[page.index("<main") :]
    assert '<th class="num" scope="col">ns</th>' in body
    assert '<th class="num" scope="row">0</th>' in body
    for gone in ("<style", "border=", "onclick", "text-align", "<!--"):
        assert gone not in body


def test_attached_pictures_are_embedded(tmp_path: Path) -> None:
    cell = prose("![a pixel](attachment:dot.png)", "picture")
    cell.attachments = {"dot.png": {"image/png": PIXEL}}
    assert f'alt="a pixel" src="data:image/png;base64,{PIXEL}"' in page_of(tmp_path, cell)


# The results page with missing or unusual data


def results_of(folder: Path, *names: str, **manifest: object) -> Results:
    """The results of synthetic runs of these studies, with these facts in their manifests."""
    opened = {}
    for name in names:
        made = recordings.recorded(folder / name, name, rounds=4)
        made.run.update(**manifest)
        opened[name] = OpenedStudy(made, "replay", ())
    return Results(opened)


def test_missing_studies_are_shown_as_not_measured(tmp_path: Path) -> None:
    results = results_of(tmp_path, "lemire")
    assert results.first_screen().html.count('<tr role="row"><th role="rowheader"') == 5
    assert "L1" in results.ledger().html
    assert results.ledger().html.count("not measured") > 50
    lemire, *others = results.first_screen().text.splitlines()
    assert ", holds" in lemire
    assert all("not measured" in other or "needs" in other for other in others)


def test_only_claims_of_the_chosen_study_are_counted() -> None:
    settings = Settings("replay", only="lemire")
    documents = {row.document for row in opening.rows(opening.every(settings), "lemire")}
    assert documents == {"lemire"}


def test_the_results_page_works_without_any_study() -> None:
    assert "not measured" in Results({}).first_screen().html


def test_an_unmeasured_claim_shows_its_reason_and_no_marks(tmp_path: Path) -> None:
    results = results_of(tmp_path, "lemire", missing={TODAY_GO: "a <b>proxy</b> refused"})
    rows = [
        replace(row, estimate=stats.nothing(), verdict=Verdict(Label.UNMEASURED, "a <b> & c"))
        for row in results._rows
        if row.claim.id == "L1"
    ]
    shown = ledger_table(rows).html
    assert "not measured: a &lt;b&gt; &amp; c" in shown
    assert "<circle" not in shown
    assert "nan" not in shown.replace('data-factor="nan"', "")


def test_machine_names_are_escaped(tmp_path: Path) -> None:
    name = '<script>alert("x")</script> & <b>CPU</b> [a](b)'
    machine = {"cpu": name, "allowed_cpus": 2, "release": "<i>OS</i>"}
    results = results_of(tmp_path, "lemire", machine=machine)
    shown = results._repr_mimebundle_()[0]["text/html"]
    assert "<script" not in shown
    assert "<i>" not in shown
    assert not set("<>[]*`$") & set(results.study("lemire").machine)


def test_the_readme_picture_is_current() -> None:
    kept = (paths.NOTEBOOKS / "headlines.svg").read_text(encoding="utf-8")
    drawn = named_outputs(paths.NOTEBOOKS / "00-results.ipynb")
    assert kept == as_file(drawn["headlines"]["image/svg+xml"])
    assert "var(" not in kept
