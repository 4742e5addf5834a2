"""Measuring in JupyterLab can be stopped in every way, and resumes."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from contextlib import suppress

import psutil
from browser import Browser
from faketools import FakeTools, wait_for
from lab import (
    confirm,
    errors,
    lab,
    menu,
    run_all,
    wait_until_ready,
    wait_until_run,
)
from playwright.sync_api import Page


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
SLOWLY = "\nsleep 0.6\n"  # 1 % of the budget takes some seconds
OPENS, MEASURES = (json.dumps(f'gccost.{call}("lemire")')[1:-1] for call in ("open", "measure"))


def test_stopped_measurements_clean_up_and_resume(browser: Browser, tools: FakeTools) -> None:
    """One run, interrupted four times and resumed each time."""

    def look(page: Page) -> None:
        wait_until_ready(page)
        before = b""
        for number, end in enumerate(ENDINGS, start=1):
            tools.from_the(BETWEEN, of="sample")
            with (tools.folder / "sample").open("a") as file:
                file.write(SLOWLY * (number == 1))
            run_all(page)
            reached = tools.folder / "reached"
            assert wait_for(reached.exists), end.__name__
            if number == 1:  # the bar starts at 0, so it has moved
                assert wait_for(lambda: percent(page) > 0), percent(page)
            end(page, tools)
            assert wait_for(lambda: not measuring(tools)), (end.__name__, measuring(tools))
            recorded = tools.the_run().samples.read_bytes()
            assert recorded.startswith(before), "earlier samples were lost"
            assert recorded.count(b"\nBenchmark") == number * (BETWEEN - 1)
            before = recorded
            if end is shut_down:
                page.get_by_text("No Kernel").first.wait_for()
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
    # Without recorded sittings, whose spread would leave questions open until the budget is spent.
    environment["GCCOST_REFERENCE"] = str(tools.folder / "nothing-recorded")
    with lab(tools.folder / "clone", environment) as running:
        path = running.folder / "notebooks" / "01-lemire.ipynb"
        text = path.read_text()
        assert OPENS in text
        path.write_text(text.replace(OPENS, MEASURES))
        browser.visit(running.of("01-lemire"), look)
    assert wait_for(lambda: not tools.processes()), tools.processes()
