"""JupyterLab in a real browser: notebooks run, and measuring can be stopped."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import httpx
import psutil
import pytest
from browser import Browser
from faketools import FakeTools, wait_for
from lab import (
    SECONDS,
    Lab,
    charts_due,
    command,
    confirm,
    errors,
    lab,
    menu,
    pictures,
    run_all,
    wait_until_ready,
    wait_until_run,
)
from measured import Made
from playwright.sync_api import Page

from gccost.showing import gokernel

# One notebook of each kind.
NOTEBOOKS = ("00-results", "04-cloudflare", "go-pacer")


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
        wait_until_ready(page)
        run_all(page)
        wait_until_run(page)
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


# --- in the middle of measuring -----------------------------------------------------------


def measuring(tools: FakeTools) -> list[psutil.Process]:
    """The programs under measurement, and what belongs to them."""
    with suppress(psutil.NoSuchProcess):
        return [one for one in tools.processes() if "python" not in one.name()]
    return measuring(tools)  # one has just ended


def kernel(tools: FakeTools) -> psutil.Process:
    (one,) = [p for p in tools.processes() if "ipykernel_launcher" in " ".join(p.cmdline())]
    return one


def percent(page: Page) -> int:
    """The progress bar's value; -1 if there is none."""
    said = " ".join(page.locator(".jp-OutputArea-output").all_text_contents())
    found = re.findall(r"budget:\s*(\d+)\s*%", said)
    return int(found[-1]) if found else -1


def interrupt(page: Page, tools: FakeTools) -> None:
    menu(page, "Kernel", "Interrupt Kernel")


def restart(page: Page, tools: FakeTools) -> None:
    menu(page, "Kernel", re.compile("^Restart Kernel…"))
    confirm(page)


def shut_down(page: Page, tools: FakeTools) -> None:
    menu(page, "Kernel", "Shut Down Kernel")


def kill(page: Page, tools: FakeTools) -> None:
    kernel(tools).send_signal(signal.SIGKILL)
    confirm(page)  # that the kernel died and will restart


def revive(page: Page) -> None:
    """Wait until the kernel is idle; on a busy machine the first restart may come to nothing."""
    dialog, idle = page.locator(".jp-Dialog"), page.get_by_text(re.compile(r"\| Idle$")).first
    for _ in range(4):
        wait_for(lambda: dialog.is_visible() or idle.is_visible(), 20)
        if dialog.is_visible():
            confirm(page)
        elif idle.is_visible():
            break
        else:
            menu(page, "Kernel", re.compile("^Restart Kernel…"))
    wait_until_ready(page)


ENDINGS: list[Callable[[Page, FakeTools], None]] = [interrupt, restart, kill, shut_down]
BETWEEN = 7  # samples from one ending to the next
OPENS, MEASURES = (json.dumps(f'gccost.{call}("lemire")')[1:-1] for call in ("open", "measure"))


def test_stopped_measurements_clean_up_and_resume(browser: Browser, tools: FakeTools) -> None:
    """One run, interrupted four times and resumed each time."""

    def look(page: Page) -> None:
        wait_until_ready(page)
        before = b""
        for number, end in enumerate(ENDINGS, start=1):
            tools.from_the(BETWEEN, of="sample")
            with (tools.folder / "sample").open("a") as file:
                file.write("\nsleep 0.6\n")  # 1 % of the budget takes some seconds
            run_all(page)
            reached = tools.folder / "reached"
            assert wait_for(reached.exists), end.__name__
            # The bar starts at 0, so it has moved.
            assert wait_for(lambda: percent(page) > 0, 30), (end.__name__, percent(page))
            end(page, tools)
            assert wait_for(lambda: not measuring(tools), 10), (end.__name__, measuring(tools))
            recorded = tools.the_run().samples.read_bytes()
            assert recorded.startswith(before), "earlier samples were lost"
            assert recorded.count(b"\nBenchmark") == number * (BETWEEN - 1)
            before = recorded
            if end is shut_down:
                page.get_by_text("No Kernel").first.wait_for(timeout=SECONDS)
                menu(page, "Kernel", re.compile("^Restart Kernel…"))
            revive(page)
        tools.do()
        run_all(page)
        wait_until_run(page)
        assert errors(page) == []
        after = tools.the_run().samples.read_bytes()
        assert after.startswith(before)
        assert len(after) > len(before)

    # The tiny budget ends before its bar reaches 1 %.
    environment = {**tools.environment(), "GCCOST_MODE": "measure", "GCCOST_BUDGET": "quick"}
    with lab(tools.folder / "clone", environment) as running:
        path = running.folder / "notebooks" / "01-lemire.ipynb"
        text = path.read_text()
        assert OPENS in text
        path.write_text(text.replace(OPENS, MEASURES))
        browser.visit(running.of("01-lemire"), look)
    assert wait_for(lambda: not tools.processes(), 10), tools.processes()
