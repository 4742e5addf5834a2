"""Executed notebooks and the report, tested without a browser."""

from __future__ import annotations

import base64
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import nbformat
import numpy as np
import pytest
import recordings
from bs4 import BeautifulSoup
from click.testing import CliRunner
from faketools import PATIENCE
from matplotlib.colors import to_rgb
from nbformat import NotebookNode
from notebooks_fixture import (
    FILES,
    code,
    execute,
    executed,
    prose,
    report,
    write,
    write_all,
    write_fixture_report,
)

from gccost import cli, paths, sitting, stats
from gccost.cases.cases import budget
from gccost.cases.settings import Settings
from gccost.errors import GccostError
from gccost.judging.rules import Label, Verdict
from gccost.notebook import OpenedStudy, Results
from gccost.showing import forked
from gccost.showing.charts import MARKERS, as_file
from gccost.showing.execute import named_outputs
from gccost.showing.report import ROWS, _rows_shown
from gccost.showing.results import TEMPLATES
from gccost.showing.results import ledger as ledger_table

__all__ = ["executed", "report"]  # fixtures, for pytest to find

# Running notebooks


@pytest.fixture
def run(tmp_path) -> Callable[..., NotebookNode]:
    """Run code cells in replay, and return the written notebook."""

    def run(*sources: str, **options: object) -> NotebookNode:
        cells = [code(source, f"cell-{at}") for at, source in enumerate(sources, start=1)]
        notebook = write(tmp_path / "notebooks" / "08-try.ipynb", cells)
        into = tmp_path / "out" / "08-try.ipynb"
        return nbformat.read(execute(notebook, into, **options), as_version=4)  # type: ignore[arg-type]

    return run


def test_a_notebook_runs_here_and_is_normalised(run: Callable[..., NotebookNode], tmp_path):
    node = run(
        "import os, sys\nprint(sys.executable, os.getcwd(), os.environ['GCCOST_MODE'],"
        " os.environ['GCCOST_BUDGET'], sep='\\n')",
        "",
        "kind = 'application/vnd.jupyter.widget-view+json'\n"
        "display({kind: {'model_id': '1'}, 'text/plain': 'a slider'}, raw=True)\n2 + 2",
        "!printf 'one\\ntwo\\n'",
        "print('10 %\\r20 %\\rdone')",
        settings=Settings("measure", budget("tiny")),
    )
    printed = [out.text for cell in node.cells for out in cell.outputs if "text" in out]
    first = [sys.executable, str(tmp_path / "notebooks"), "measure", "tiny"]
    assert printed == ["\n".join(first) + "\n", "one\ntwo\n", "done\n"]
    assert set(node.metadata) == {"kernelspec", "language_info"}
    assert "version" not in node.metadata.language_info
    assert [cell.id for cell in node.cells] == [f"cell-{n}" for n in range(1, 6)]
    assert [cell.execution_count for cell in node.cells] == [1, None, 2, 3, 4]
    assert all(cell.metadata == {} for cell in node.cells)
    assert "widget" not in str(node.cells[2].outputs[0].data.keys())


@pytest.mark.parametrize(
    ("cell", "where", "why"),
    [
        ("def half(n):\n    return n / 0\n\nhalf(1)", ", line 2", "division by"),
        ("import gccost\nraise gccost.MissingTool('no Go', 'PATH', 'get it')", "", "PATH: no Go"),
        ("import os\nos.kill(os.getpid(), 9)", "", "Kernel died"),
        ("import warnings\nwarnings.warn('no hue')\n2", "", "it wrote to stderr: .*: no hue"),
    ],
)
def test_a_failing_cell_is_reported_where_it_is(
    run: Callable[..., NotebookNode], tmp_path, cell, where, why
):
    with pytest.raises(GccostError, match=why) as caught:
        run("1", cell)
    assert caught.value.location == f"08-try.ipynb, cell 2{where}"
    ran = tmp_path / "out" / "08-try.ipynb"
    page = write_fixture_report([ran], tmp_path / "report") / "index.html"
    (box,) = BeautifulSoup(page.read_bytes(), "html.parser").select(".warning")
    assert box.get_text() == f"This chapter is incomplete{caught.value}"


def test_kernels_come_from_one_process_and_know_nothing_of_each_other(
    run: Callable[..., NotebookNode], monkeypatch
):
    cells = [
        "import gccost, os\n'own' in vars(gccost), os.environ.get('GCCOST_OTHER')",
        "gccost.own = 1\nos.getppid()",
    ]

    def shown() -> list[str]:
        node = run(*cells)
        return [cell.outputs[0].data["text/plain"] for cell in node.cells]

    alone, parent = shown()
    assert alone == "(False, None)"
    assert parent != str(os.getpid())
    monkeypatch.setenv("GCCOST_OTHER", "yes")
    assert shown() == ["(False, 'yes')", parent]


def test_without_fork_a_kernel_is_started_as_usual(run: Callable[..., NotebookNode], monkeypatch):
    monkeypatch.setattr(forked, "IS_POSSIBLE", False)
    node = run("import os\nos.getppid()")
    assert node.cells[0].outputs[0].data["text/plain"] == str(os.getpid())


def half(number: int) -> float:
    return number / 2


def parent(number: int) -> int:
    return os.getppid()


def die(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number: int) -> None:
    raise GccostError(f"there is no {number}", "here", "count anew")


def test_pages_are_made_by_processes_that_come_from_the_same_one(run: Callable[..., NotebookNode]):
    (cell,) = run("import os\nos.getppid()").cells
    assert forked.each(half, range(5), at_once=2) == [0, 0.5, 1, 1.5, 2]
    (number,) = forked.each(parent, [0])
    assert cell.outputs[0].data["text/plain"] == str(number)
    with pytest.raises(GccostError, match="die: a process ended too early"):
        forked.each(die, [0])
    with pytest.raises(GccostError, match="here: there is no 7"):
        forked.each(refuse, [7])


@pytest.mark.slow
def test_a_cell_may_print_a_hundred_megabytes(run: Callable[..., NotebookNode]):
    node = run("print('x' * 10**8)")
    assert len(node.cells[0].outputs[0].text) == 10**8 + 1


def test_fonts_are_looked_for_before_a_notebook_runs(
    run: Callable[..., NotebookNode], monkeypatch, tmp_path
):
    monkeypatch.setenv("HOME", str(tmp_path))
    node = run(
        "import threading\n"
        "threading.Timer = None  # with which matplotlib says that it looks for fonts\n"
        "import matplotlib.font_manager\n1"
    )
    assert node.cells[0].outputs[0].data["text/plain"] == "1"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("not json", "does not appear to be JSON"),
        ('{"nbformat": 4, "nbformat_minor": 5}', "not a Jupyter notebook"),
        (
            '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells":'
            ' [{"cell_type": "markdown", "metadata": {}, "source": []}]}',
            "lack unique ids",
        ),
    ],
)
def test_a_file_that_is_not_a_notebook_is_reported(tmp_path, text, why):
    notebook = tmp_path / "x.ipynb"
    if text is not None:
        notebook.write_text(text)
    with pytest.raises(GccostError, match=why) as caught:
        execute(notebook, tmp_path / "ran.ipynb")
    assert caught.value.location == str(notebook)
    assert caught.value.hint
    assert why in (tmp_path / "ran.ipynb").read_text()


LATER = """
import time
from pathlib import Path
pages = [Path({report!r}, name) for name in ("index.html", "02-siebenmann.html")]
until = time.monotonic() + {patience}
while not all(page.exists() for page in pages):
    assert time.monotonic() < until, "the first page did not come"
    time.sleep(0.05)
assert "It was still running" in pages[1].read_text()
"""


def test_a_chapter_that_fails_costs_its_page_only(tmp_path, monkeypatch):
    results, lemire, ledger = write_all(tmp_path)
    for broken in (results, lemire, ledger):
        write(broken, [prose("# Broken", "title"), code("1 / 0", "one")])
    source = LATER.format(report=str(tmp_path / "report"), patience=PATIENCE)
    cells = [prose("# Siebenmann", "title"), code(source, "later")]
    later = write(tmp_path / "02-siebenmann.ipynb", cells)
    monkeypatch.setattr(sitting, "measure", lambda *_: True)
    monkeypatch.setattr(sitting, "notebooks", lambda *_: [results, lemire, later, ledger])
    monkeypatch.setenv("GCCOST_REPORT", str(tmp_path / "report"))
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    recordings.record(tmp_path / "reference", rounds=1)
    done = CliRunner().invoke(cli.main, ["report"])
    assert done.exit_code == 1
    said, *whys = done.stderr.splitlines()[-4:]
    assert said == "gccost: the pages of 00-results, 01-lemire, 11-ledger are incomplete:"
    assert all("ipynb, cell 1, line 1: ZeroDivisionError" in why for why in whys)
    written = {path.name: path.read_text() for path in (tmp_path / "report").glob("*.html")}
    written.pop("search.html")
    assert {name: "chapter is incomplete" in page for name, page in written.items()} == {
        "index.html": True,
        "01-lemire.html": True,
        "02-siebenmann.html": False,
        "11-ledger.html": True,
    }
    assert "\nL1," in (tmp_path / "report" / "ledger.csv").read_text()


# The pages


@pytest.fixture(scope="session")
def pages(report) -> Mapping[str, BeautifulSoup]:
    files = sorted(report.glob("*.html"))
    return {file.name: BeautifulSoup(file.read_bytes(), "html.parser") for file in files}


@pytest.fixture(scope="session")
def chapter(pages: Mapping[str, BeautifulSoup]) -> BeautifulSoup:
    return pages["01-lemire.html"]


def ids(page: BeautifulSoup) -> list[str]:
    return [str(tag["id"]) for tag in page.find_all(id=True)]


def test_pages_have_few_scripts_and_refer_to_nothing_outside(pages: Mapping[str, BeautifulSoup]):
    """The browser's tests check the rest."""
    for name, page in pages.items():
        assert len(page.select("script")) == (name != "index.html")
        text = str(page)
        assert not re.search(r" on\w+=|url\((?!#)[^)]*\)|@import", text)
        # A duplicate id in an SVG would change other charts.
        assert len(ids(page)) == len(set(ids(page)))
        used = re.findall(r'(?:url\(#|<use[^>]* href="#)([^")]+)', text)
        assert (name == "search.html") or used
        assert set(used) <= set(ids(page))


def test_links_lead_to_a_target_or_become_text(
    report, pages: Mapping[str, BeautifulSoup], chapter: BeautifulSoup
):
    hrefs = {name: {str(a["href"]) for a in page.select("a")} for name, page in pages.items()}
    assert {"01-lemire.html", "11-ledger.html#l1"} <= hrefs["index.html"]
    linked = {"#measured", "11-ledger.html#the-ledger", "11-ledger.html#ledger"}
    assert linked <= hrefs["01-lemire.html"]
    for name, links in hrefs.items():
        for href in (href for href in links if not href.startswith("https://")):
            file, _, fragment = href.partition("#")
            assert (report / unquote(file)).exists(), href
            assert not fragment or unquote(fragment) in ids(pages[file or name]), href
    said = chapter.get_text()
    assert "what comes next" in said
    assert "siebenmann" not in str(chapter)
    assert "the code (gosrc/cstr/cstr.go)" in said


def test_every_chart_has_number_alt_text_and_data(report, chapter: BeautifulSoup):
    assert [(a["href"], a.get_text()) for a in chapter.select("figcaption > a:not(.file)")] == [
        ("#chart-lemire-gap", "Figure 1.1"),
        ("#chart-lemire-again", "Figure 1.2"),
    ]
    assert [a["href"] for a in chapter.select("figcaption > .file")] == [
        *("data/lemire-gap.csv", "figures/lemire-gap.svg"),
        *("data/lemire-again.csv", "figures/lemire-again.svg"),
    ]
    names = {"lemire-again", "lemire-gap", "verdicts"}
    assert {path.stem for path in (report / "data").glob("*.csv")} == names
    assert {path.stem for path in (report / "figures").glob("*.svg")} == names
    drawn = (report / "figures" / "lemire-gap.svg").read_text()
    assert drawn.startswith("<svg ")
    assert "var(" not in drawn  # no page gives it colours
    written = (report / "data" / "lemire-gap.csv").read_text()
    rows = [
        ",".join(cell.get_text().replace(",", "") for cell in row.select("th, td"))
        for row in chapter.select("figure")[0].select("tr")
    ]
    *_, run, machine, date = written.splitlines()[0].split(",")
    assert (run, machine, date) == ("run", "machine", "date")
    assert [line.rsplit(",", 3)[0] for line in written.splitlines()] == rows
    assert "finalizer,1150" in rows
    (svg, _) = chapter.select("figure svg")
    assert all(word in svg["aria-label"] for word in ("A finalizer costs", "AddCleanup", "611"))
    assert svg["role"] == "img"  # whose parts no screen reader reads
    assert (report / "ledger.csv").read_text() == FILES["ledger.csv"]


def test_the_data_of_a_chart_have_their_thousands_set_apart():
    text = "live,value,words,run\n100000,1234.5,Go 1.27.4,a\n-5000,999,12e3,a\n"
    _, *rows = _rows_shown(text)
    assert rows == [["100,000", "1,234.5", "Go 1.27.4"], ["-5,000", "999", "12e3"]]
    assert _rows_shown("year,value\n2017,5000\n")[1] == ["2017", "5000"]


def test_the_pages_of_the_recorded_runs_are_small_and_their_files_are_there(tmp_path):
    """The notebooks here have the outputs of `make replay`."""
    write_fixture_report(sorted(paths.NOTEBOOKS.glob("*.ipynb")), tmp_path)
    for path in tmp_path.glob("*.html"):
        assert path.stat().st_size < (300_000 if path.stem == "search" else 900_000)
        page = BeautifulSoup(path.read_bytes(), "html.parser")
        hrefs = {str(a["href"]).partition("#")[0] for a in page.select("a")}
        outside = {href for href in hrefs if href.startswith("https://")}
        lacking = {href for href in hrefs - outside if not (tmp_path / unquote(href)).exists()}
        assert not lacking, path
        for figure in page.select("figure"):
            kinds = {a.get_text() for a in figure.select("figcaption > .file")}
            assert kinds == {"CSV", "SVG"}, figure["id"]


def test_tables_and_code_are_laid_out(pages: Mapping[str, BeautifulSoup], chapter: BeautifulSoup):
    aligned = {cell.get_text() for cell in chapter.select("td.num")}
    assert aligned >= {"60.6", "1,150", "18.4× (18.1 to 18.8)", "–"}
    assert not {"AllocateFree", "1.20", "1.27.4"} & aligned
    assert len(chapter.select("div.table[tabindex]")) == len(chapter.select("table")) == 3
    assert chapter.select(".kd")  # a keyword of the Go fence
    assert chapter.select("details.code .kn")  # a keyword of Python, in a cell
    results = pages["11-ledger.html"].get_text()
    assert "enumerate" not in results  # the cell is tagged `hide`
    assert "why <it> is so" in results  # its output is shown


def test_the_report_is_reproducible_and_keeps_other_files(executed, report, tmp_path):
    for name in ("mine.html", "02-siebenmann.html"):  # the second is a page of an earlier report
        (tmp_path / name).write_text("<html>")
    write_fixture_report(executed, tmp_path)
    there = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    made = {path.relative_to(report) for path in report.rglob("*") if path.is_file()}
    assert there == {*made, Path("mine.html")}
    for path in made:
        assert (tmp_path / path).read_bytes() == (report / path).read_bytes()


# What the report shows and refuses of any output


PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\0\0\0\1\0\0\0\1").decode()
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9pt" height="9pt">%s</svg>'


def shown(**data: str) -> NotebookNode:
    """A cell with these outputs, by MIME type (`image_png` for image/png, `svg` of its content)."""
    bundle = {kind.replace("_", "/"): value for kind, value in data.items() if kind != "svg"}
    if "svg" in data:
        bundle |= {"image/svg+xml": SVG % data["svg"], "text/plain": data.get("text_plain", "A.")}
    about = {"gccost": {"chart": "a-chart", "title": "A chart"}} if "text_csv" in data else {}
    cell = code("show()", "the-cell")
    cell.execution_count = 3
    cell.outputs = [nbformat.v4.new_output("display_data", data=bundle, metadata=about)]
    return cell


def page_of(tmp_path: Path, *cells: NotebookNode) -> str:
    notebook = write(tmp_path / "07-why.ipynb", [prose("# Why", "title"), *cells])
    return (write_fixture_report([notebook], tmp_path / "report", {}) / "index.html").read_text()


@pytest.mark.parametrize(
    ("why", "output"),
    [
        ("no alt text", {"image_png": PIXEL}),
        ("no alt text", {"image_png": PIXEL, "text_plain": "<Figure size 640x480 with 1 Axes>"}),
        ("no alt text", {"svg": "", "text_plain": " "}),
        ("no alt text", {"text_html": f"<img src='data:image/png;base64,{PIXEL}'>"}),
        ("<script.* is not allowed", {"svg": "<script/>"}),
        ("<script.* is not allowed", {"text_html": "<script>alert(1)</script>"}),
        ("<iframe.* is not allowed", {"text_html": "<iframe src='https://a.b'></iframe>"}),
        ("style sheet", {"svg": "<style>g {fill: red}</style>"}),
        ("to be fetched", {"svg": '<image href="https://a.b/c.png"/>'}),
        ("to be fetched", {"svg": '<g style="fill: url(https://a.b)"/>'}),
        ("to be fetched", {"text_html": "<img alt='a' src='//a.b/c.png'>"}),
        ("to be fetched", {"text_html": "<img alt='a' srcset='https://a.b/c.png 2x'>"}),
        ("to be fetched", {"text_html": "<p style='background: url(https://a.b)'>"}),
        ("cannot be read", {"image_svg+xml": "<svg", "text_plain": "A."}),
        ("cannot be followed", {"text_html": "<a href='javascript:alert(1)'>x</a>"}),
        ("has no target", {"text_html": "<a href='#no-such-place'>x</a>"}),
        ("to be fetched", "![a map](map.png)"),
    ],
)
def test_forbidden_output_is_reported_with_its_cell(tmp_path, why, output):
    cell = prose(output, "map") if isinstance(output, str) else shown(**output)
    with pytest.raises(GccostError, match=why) as caught:
        page_of(tmp_path, cell)
    assert caught.value.location == f"07-why.ipynb, cell {cell.get('execution_count', 'map')}"


def test_different_charts_may_not_share_a_name(tmp_path):
    one, other = (shown(svg="", text_csv=f"x\n{n}\n") for n in (1, 2))
    other.id = "another-cell"
    page_of(tmp_path, one, nbformat.from_dict({**one, "id": "again"}))
    with pytest.raises(GccostError, match="two charts named a-chart"):
        page_of(tmp_path, one, other)


def streamed(text: str) -> NotebookNode:
    cell = code("print()", "stream")
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return cell


def with_attachment() -> NotebookNode:
    cell = prose("![a pixel](attachment:dot.png)", "picture")
    cell.attachments = {"dot.png": {"image/png": PIXEL}}
    return cell


FRAME = (
    '<div><style scoped>td {color: #000}</style><!-- x --><table border="1"><thead>'
    '<tr style="text-align: right;"><th></th><th onclick="alert(1)">ns</th></tr></thead>'
    "<tbody><tr><th>0</th><td>61</td></tr></tbody></table></div>"
)


@pytest.mark.parametrize(
    ("cells", "there", "gone"),
    [
        ([shown(text_plain="<b> & 1 < 2")], ["&lt;b&gt; &amp; 1 &lt; 2</pre>"], ["<b> &"]),
        ([streamed("\x1b[31mred\x1b[0m <i>\n")], ["red &lt;i&gt;</pre>"], ["\x1b", "<i>"]),
        ([with_attachment()], [f'alt="a pixel" src="data:image/png;base64,{PIXEL}"'], []),
        (
            [shown(image_png=PIXEL, text_plain="A pixel.")],
            [f'alt="A pixel." src="data:image/png;base64,{PIXEL}"'],
            [],
        ),
        (
            [prose("## So what?\n\n[down](#So-what-2)", "a"), prose("## So what?", "b")],
            ['<h2 id="so-what">', '<h2 id="so-what-2">', '<a href="#so-what-2">down</a>'],
            [],
        ),
        (
            [shown(text_html=FRAME)],
            ['<th class="num" scope="col">ns</th>', '<th class="num" scope="row">0</th>'],
            ["<style", "border=", "onclick", "text-align", "<!--"],
        ),
    ],
)
def test_an_output_is_shown_safely(tmp_path, cells, there, gone):
    page = page_of(tmp_path, *cells)
    body = page[page.index("<main") : page.index("</main>")]
    assert all(text in body for text in there), body
    assert not any(text in body for text in gone), body


def test_long_chart_data_is_cut_on_the_page_but_not_in_csv(tmp_path):
    rows = "x\n" + "".join(f"{n}\n" for n in range(1000))
    page = page_of(tmp_path, shown(svg="", text_csv=rows))
    assert page.count('<td class="num">') == ROWS
    assert (tmp_path / "report" / "data" / "a-chart.csv").read_text() == rows


def luminance(colour: str) -> float:
    """WCAG's relative luminance of #rrggbb."""
    part = np.array(to_rgb(colour))
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_chart_colours_have_contrast_and_distinct_markers():
    css = "".join((TEMPLATES / name).read_text() for name in ("results.css", "style.css"))
    for ink in ("ink", "muted", "blue", "orange", "green", "purple"):
        papers, inks = (re.findall(rf"--{name}: (#\w{{6}});", css) for name in ("paper", ink))
        for paper, colour in zip(papers, inks, strict=True):
            low, high = sorted((luminance(paper), luminance(colour)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, f"{ink}: {colour} on {paper}"
    markers, signs = zip(*MARKERS.values(), strict=True)
    assert len(set(markers)) == len(set(signs)) == len(MARKERS)


# The results page with missing or unusual data


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    """The results of a synthetic run of lemire."""
    made = recordings.recorded(tmp_path_factory.mktemp("results"), rounds=4)
    return Results({"lemire": OpenedStudy(made)})


def test_missing_studies_are_shown_as_not_measured(results: Results):
    assert results.first_screen().html.count('<tr role="row"><th role="rowheader"') == 5
    assert results.ledger().html.count("not measured") > 50
    lemire, *others = results.first_screen().text.splitlines()
    assert ", holds" in lemire
    assert all("not measured" in other or "needs" in other for other in others)
    assert re.search('id="S1".*see <a href="#L1">', results.ledger().html)
    assert "not measured" in Results({}).first_screen().html


def test_an_unmeasured_claim_shows_its_reason_and_no_marks(results: Results):
    unmeasured = Verdict(Label.UNMEASURED, "a <b> & c")
    rows = [row for row in results._rows if row.claim.id == "L1"]
    rows = [replace(row, estimate=stats.nothing(), verdict=unmeasured) for row in rows]
    shown = ledger_table(rows).html
    assert "not measured: a &lt;b&gt; &amp; c" in shown
    assert "<circle" not in shown
    assert "nan" not in shown.replace('data-factor="nan"', "")


@pytest.mark.parametrize(("low", "high", "arrows"), [(5, 5, ""), (0, 1e9, "◀▶"), (1, 1e9, "▶")])
def test_an_interval_that_leaves_the_scale_ends_in_an_arrow(results: Results, low, high, arrows):
    row = next(row for row in results._rows if row.claim.id == "L1")
    estimate = replace(row.estimate, value=5.0, low=low, high=high)
    shown = ledger_table([replace(row, estimate=estimate)]).html
    assert re.findall("[◀▶]", shown) == [*arrows]
    assert "<circle" in shown


def test_the_readme_picture_is_current():
    kept = (paths.NOTEBOOKS / "headlines.svg").read_text(encoding="utf-8")
    drawn = named_outputs(paths.NOTEBOOKS / "11-ledger.ipynb")["headlines"]
    assert kept == as_file(drawn["image/svg+xml"])
    assert "var(" not in kept
