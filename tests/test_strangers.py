"""A run whose every text is markup does nothing in JupyterLab or on the report's pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import Browser
from lab import lab
from notebooks_fixture import code, execute, prose, write, write_fixture_report
from playwright.sync_api import Page
from test_adding import with_markup

from gccost import reporting
from gccost.judging import reference
from gccost.studies import STUDIES

pytestmark = pytest.mark.slow

SHOWN = {
    "notice": "opened",
    "shell": "opened.shell('go test')",
    "judged": "opened.judge('L1')",
    "verdicts": "opened.verdicts",
    "notices": "results",
    "ledger": "results.ledger()",
    "first": "results.first_screen()",
    "words": "Markdown(opened.machine)",
    "facts": "gccost.computers()",
    "machines": "gccost.machines()",
    "chart": """\
machines = gccost.machines().dropna(subset="value").head(9)
with gccost.figure("strange", opened.machine, machines):
    grid = sns.catplot(
        machines, x="value", y="id", hue="machine", legend=False,
        palette=gccost.palette(machines.machine),
    )
    gccost.intervals(grid, machines, y="id", hue="machine", label="machine")""",
}
START = """\
import seaborn as sns
from IPython.display import Markdown

import gccost

opened, results = gccost.open("lemire"), gccost.results()"""
# What would be there if any text were taken for HTML, Markdown or TeX.
TAKEN = (
    "img[src='x'], [onerror], main script, .jp-OutputArea script, a[href^=javascript],"
    " mjx-container"
)


@pytest.fixture
def notebook(tmp_path, monkeypatch) -> Path:
    """A notebook that shows everything of such a run, executed and trusted."""
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    reference.add(with_markup(tmp_path / "runs").folder, list(STUDIES.values()))
    cells = [code(source, name) for name, source in SHOWN.items()]
    cells = [prose("# A run", "title"), code(START, "a"), *cells]
    return execute(write(tmp_path / "unexecuted.ipynb", cells), tmp_path / "strange.ipynb")


def look(page: Page) -> str:
    """The text on the page, where the run must have made no element, and the chart is drawn."""
    page.get_by_text("onerror=alert(1)").first.wait_for(state="attached")
    page.wait_for_timeout(2000)  # TeX is typeset later
    assert page.locator(TAKEN).count() == 0
    chart = page.locator("figure svg, .jp-OutputArea-output img").bounding_box()
    assert chart
    assert chart["width"] > 200
    return page.locator("body").text_content() or ""


def test_markup_of_a_run_makes_no_element_request_or_script(browser: Browser, notebook, tmp_path):
    write_fixture_report([notebook], tmp_path / "report")
    text, requests, problems = browser.visit(tmp_path / "report" / "index.html", look)
    assert requests == problems == []
    assert text.count("<img src=x onerror=alert(1)>") > 5

    with lab(tmp_path / "clone", {**os.environ}) as running:
        target = running.folder / "notebooks" / "strange.ipynb"
        target.write_bytes(notebook.read_bytes())
        reporting.sign(target)
        text, requests, _ = browser.visit(running.of("strange"), look)
    assert text.count("<img src=x onerror=alert(1)>") > 5
    assert "official Jupyter news" not in text  # set-up has answered that question
    assert not [url for url in requests if url.endswith("/x") or not url.startswith(running.url)]
