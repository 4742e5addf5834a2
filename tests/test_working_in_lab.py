"""JupyterLab in a real browser: a notebook of each kind runs."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import pytest
from browser import Browser
from lab import Lab, charts_due, command, errors, lab, pictures, run_all
from measured import Made
from playwright.sync_api import Page

from gccost.showing import gokernel

# One notebook of each kind.
NOTEBOOKS = ("00-results", "01-lemire", "go-pacer")


@pytest.fixture(scope="module")
def opened(browser: Browser, made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab in measure mode, with the runs that `made` measured."""
    folder = tmp_path_factory.mktemp("lab")
    environment = {
        **os.environ,
        "GCCOST_BUDGET": "tiny",
        "GCCOST_MODE": "measure",
        "GCCOST_ONLY": "",
        "GCCOST_RUNS": str(made.runs),
    }
    with lab(folder / "clone", environment) as running:
        yield running


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_runs_and_draws_every_chart(
    browser: Browser, opened: Lab, notebook: str
) -> None:
    if notebook.startswith("go-") and gokernel.find() is None:
        pytest.skip("the Go kernel is not built: make kernel")

    def look(page: Page) -> tuple[list[str], list[int], int]:
        run_all(page)
        return errors(page), pictures(page), page.get_by_text("Nothing to draw (").count()

    (failed, drawn, unmeasured), _, _ = browser.visit(opened.of(notebook), look)
    assert failed == []
    assert len(drawn) + unmeasured == charts_due(notebook)
    assert len(drawn) > unmeasured or notebook.startswith("go-")
    assert all(width > 200 for width in drawn)


def test_the_server_is_local_and_requires_the_token(opened: Lab) -> None:
    assert opened.token
    assert opened.url.startswith("http://127.0.0.1:")
    assert "--ip=127.0.0.1" in command()
    refused = httpx.get(f"{opened.url}api/contents")
    assert refused.status_code == 403
    start = httpx.get(opened.url, params={"token": opened.token})
    assert start.headers["location"].startswith("/lab/tree/00-results.ipynb")
    answer = httpx.get(f"{opened.url}api/kernelspecs", params={"token": opened.token})
    known = answer.json()["kernelspecs"]
    assert "python3" in known
    assert gokernel.find() is None or gokernel.NAME in known
