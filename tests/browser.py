"""A real browser for the tests, which reports what a reader would see.

The `browser` fixture starts a headless Chromium once a session, in a separate
thread: Playwright keeps an event loop running in the thread that uses it, which
would prevent tests from running their own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import pytest
from faketools import PATIENCE
from playwright.sync_api import Browser as PlaywrightBrowser
from playwright.sync_api import ConsoleMessage, Page, Request, sync_playwright

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MISSING = "no Chromium on this machine: apt-get install chromium (macOS: brew install chromium)"

T = TypeVar("T")

DESKTOP = (1280, 900)
PHONE = (390, 844)

# Lengths are in CSS pixels. `sticking_out` has the elements that are wider than the window
# and have no parent that scrolls; `unshaded` has those that are cut and have no shade that says
# so; `inks` has the colours of the text in charts.
_FACTS = r"""
() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const scrolls = (element) =>
    element &&
    (["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX) ||
      scrolls(element.parentElement));
  return {
    scroll_width: document.documentElement.scrollWidth,
    inner_width: innerWidth,
    sticking_out: all("body *")
      .filter((element) => {
        const { width, left, right } = element.getBoundingClientRect();
        return width && right > innerWidth + 1 && left >= -innerWidth;
      })
      .filter((element) => !scrolls(element.parentElement))
      .map((element) => element.outerHTML.slice(0, 80)),
    unshaded: all("body *")
      .filter((e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX))
      .filter((e) => e.scrollWidth > e.clientWidth)
      .filter((e) => !getComputedStyle(e).backgroundImage.includes("gradient"))
      .map((e) => e.outerHTML.slice(0, 80)),
    broken: all("img").filter((e) => e.naturalWidth === 0).map((e) => e.outerHTML.slice(0, 80)),
    charts: all("figure").length,
    empty_charts: all("figure svg, figure img").filter((e) => {
      const box = e.getBoundingClientRect();
      return box.width < 50 || box.height < 30;
    }).length,
    inks: [...new Set(all("figure svg text").map((text) => getComputedStyle(text).fill))],
    paper: getComputedStyle(document.body).backgroundColor,
    scripts: document.scripts.length,
  };
}
"""


class Browser:
    """A headless Chromium that opens pages and reports what it saw."""

    def __init__(self, chromium: PlaywrightBrowser, thread: ThreadPoolExecutor) -> None:
        self._chromium = chromium
        self._thread = thread

    def visit(
        self, page: Path | str, look: Callable[[Page], T], **how: Any
    ) -> tuple[T, list[str], list[str]]:
        """Open a file or URL and `look` at it; return its result, the requests and the problems.

        `look` runs in the browser's thread and is given Playwright's page. The requests are
        those besides the page itself, except data: and blob:; on a file's page, those to the
        web are blocked. The problems are console errors, console warnings and uncaught errors.
        """
        return self._thread.submit(self._visit, page, look, **how).result()

    def open_report(self, page: Path, **how: Any) -> SimpleNamespace:
        """Open a page and return what the browser observed: _FACTS, requests and problems."""
        facts, requests, problems = self.visit(page, lambda at: at.evaluate(_FACTS), **how)
        return SimpleNamespace(requests=requests, problems=problems, **facts)

    def _visit(
        self,
        page: Path | str,
        look: Callable[[Page], T],
        window: tuple[int, int] = DESKTOP,
        scheme: Literal["light", "dark"] = "light",
        media: Literal["screen", "print"] = "screen",
        scripts: bool = True,
    ) -> tuple[T, list[str], list[str]]:
        url = page.resolve().as_uri() if isinstance(page, Path) else page
        requests: list[str] = []
        problems: list[str] = []

        def on_request(request: Request) -> None:
            if request.url != url and not request.url.startswith(("data:", "blob:")):
                requests.append(request.url)

        def on_console(said: ConsoleMessage) -> None:
            if said.type in ("error", "warning"):
                problems.append(said.text)

        width, height = window
        context = self._chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        try:
            if isinstance(page, Path):
                context.route(lambda to: to.startswith("http"), lambda route: route.abort())
            context.set_default_timeout(1000 * PATIENCE)
            at = context.new_page()
            at.on("request", on_request)
            at.on("pageerror", lambda error: problems.append(str(error)))
            at.on("console", on_console)
            at.emulate_media(media=media, color_scheme=scheme)
            at.goto(url, wait_until="load")
            return look(at), requests, problems
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser.

    Without Chromium, the test is skipped with a hint; with CI=true it fails.
    """
    path = next(filter(None, map(shutil.which, CANDIDATES)), None)
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with ThreadPoolExecutor(1, thread_name_prefix="browser") as thread:
        playwright = thread.submit(lambda: sync_playwright().start()).result()
        launch, limit = playwright.chromium.launch, 1000 * PATIENCE
        try:
            started = thread.submit(launch, executable_path=path, args=FLAGS, timeout=limit)
            yield Browser(started.result(), thread)
        finally:
            thread.submit(playwright.stop).result()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The session's browser."""
    with chromium() as running:
        yield running
