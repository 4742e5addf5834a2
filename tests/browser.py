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
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from playwright.sync_api import Browser as PlaywrightBrowser
from playwright.sync_api import Page, Request, sync_playwright

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MISSING = "no Chromium on this machine: apt-get install chromium (macOS: brew install chromium)"

Scheme = Literal["light", "dark"]
Media = Literal["screen", "print"]
T = TypeVar("T")

DESKTOP = (1280, 900)
PHONE = (390, 844)

# The WCAG contrast between each text on the page and its background. The colour of
# text in an SVG is its fill.
_CONTRASTS = r"""
() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const parse = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return { r, g, b, a: a / 255 };
  };
  const over = (top, under) => ({
    r: top.r * top.a + under.r * (1 - top.a),
    g: top.g * top.a + under.g * (1 - top.a),
    b: top.b * top.a + under.b * (1 - top.a),
    a: 1,
  });
  const luminance = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((c) => {
      c /= 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(parse(getComputedStyle(at).backgroundColor));
    }
    const dark = matchMedia("screen and (prefers-color-scheme: dark)").matches;
    const base = dark ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
    return layers.reverse().reduce((under, top) => over(top, under), base);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent.trim();
    const element = node.parentElement;
    if (!text || ["STYLE", "TITLE", "title"].includes(element.tagName)) continue;
    const drawn = element.closest("svg") !== null;
    const style = getComputedStyle(element);
    const ground = behind(element);
    const ink = over(parse(drawn ? style.fill : style.color), ground);
    const [a, b] = [luminance(ink), luminance(ground)].sort((x, y) => y - x);
    const kind = drawn ? "chart" : element.closest("pre") ? "code" : "text";
    found.push({ kind, ratio: (a + 0.05) / (b + 0.05), text: text.slice(0, 60) });
  }
  return found;
}
"""

# Elements wider than the window without a scrolling parent.
_STICKING_OUT = r"""
() => [...document.body.querySelectorAll("*")]
  .filter((element) => {
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.right <= innerWidth + 1 || box.left < -innerWidth) return false;
    for (let at = element.parentElement; at; at = at.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX)) return false;
    }
    return true;
  })
  .map((element) => element.outerHTML.slice(0, 80))
"""

_FACTS = r"""
() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const ids = all("[id]").map((element) => element.id);
  return {
    scroll_width: document.documentElement.scrollWidth,
    inner_width: innerWidth,
    duplicate_ids: ids.filter((id, at) => ids.indexOf(id) !== at),
    dangling: all("a[href^='#']")
      .map((link) => decodeURIComponent(link.getAttribute("href").slice(1)))
      .filter((id) => document.getElementById(id) === null),
    undescribed: all("img, svg")
      .filter((e) => !e.closest("[aria-hidden=true]"))
      .filter((e) => !(e.getAttribute("alt") || e.getAttribute("aria-label") || "").trim())
      .map((e) => e.outerHTML.slice(0, 80)),
    broken: all("img").filter((e) => e.naturalWidth === 0).map((e) => e.outerHTML.slice(0, 80)),
    charts: all("figure").length,
    empty_charts: all("figure svg, figure img").filter((e) => {
      const box = e.getBoundingClientRect();
      return box.width < 50 || box.height < 30;
    }).length,
    scripts: document.scripts.length,
  };
}
"""


@dataclass(frozen=True)
class Contrast:
    """A text's contrast with its background; `ratio` is WCAG's, from 1 to 21.

    `kind` is "text", "code" (in a <pre>) or "chart" (in an SVG).
    """

    kind: str
    ratio: float
    text: str


@dataclass(frozen=True)
class PageInfo:
    """What the browser observed on a page.

    `requests` are the URLs requested besides the page itself, except data: and
    blob:; `problems` are console errors, console warnings and uncaught errors.
    Lengths are in CSS pixels.
    """

    requests: tuple[str, ...]
    problems: tuple[str, ...]
    scroll_width: int
    inner_width: int
    sticking_out: tuple[str, ...]
    duplicate_ids: tuple[str, ...]
    dangling: tuple[str, ...]
    undescribed: tuple[str, ...]
    broken: tuple[str, ...]
    charts: int
    empty_charts: int
    scripts: int
    contrasts: tuple[Contrast, ...]

    def weakest(self, kind: str) -> Contrast:
        """The text of a kind with the lowest contrast."""
        return min((one for one in self.contrasts if one.kind == kind), key=lambda one: one.ratio)


class Browser:
    """A headless Chromium that opens pages and reports what it saw."""

    def __init__(self, chromium: PlaywrightBrowser, thread: ThreadPoolExecutor) -> None:
        self._chromium = chromium
        self._thread = thread

    def visit(
        self,
        page: Path | str,
        look: Callable[[Page], T],
        *,
        window: tuple[int, int] = DESKTOP,
        scheme: Scheme = "light",
        media: Media = "screen",
        scripts: bool = True,
    ) -> tuple[T, tuple[str, ...], tuple[str, ...]]:
        """Open a file or URL and `look` at it; return its result, the requests and the problems.

        `look` runs in the browser's thread and is given Playwright's page. On a
        file's page, HTTP requests are recorded and blocked.
        """
        return self._thread.submit(self._visit, page, look, window, scheme, media, scripts).result()

    def open_report(
        self,
        page: Path | str,
        *,
        window: tuple[int, int] = DESKTOP,
        scheme: Scheme = "light",
        media: Media = "screen",
    ) -> PageInfo:
        """Open a page and return what the browser observed."""

        def look(at: Page) -> dict[str, object]:
            facts: dict[str, object] = at.evaluate(_FACTS)
            facts["sticking_out"] = at.evaluate(_STICKING_OUT)
            facts["contrasts"] = [Contrast(**one) for one in at.evaluate(_CONTRASTS)]
            return facts

        facts, requests, problems = self.visit(
            page, look, window=window, scheme=scheme, media=media
        )
        fixed = {name: tuple(v) if isinstance(v, list) else v for name, v in facts.items()}
        return PageInfo(requests=requests, problems=problems, **fixed)

    def _visit(
        self,
        page: Path | str,
        look: Callable[[Page], T],
        window: tuple[int, int],
        scheme: Scheme,
        media: Media,
        scripts: bool,
    ) -> tuple[T, tuple[str, ...], tuple[str, ...]]:
        url = page.resolve().as_uri() if isinstance(page, Path) else page
        requests: list[str] = []
        problems: list[str] = []

        def on_request(request: Request) -> None:
            if request.url != url and not request.url.startswith(("data:", "blob:")):
                requests.append(request.url)

        width, height = window
        context = self._chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        try:
            if isinstance(page, Path):
                context.route(lambda to: to.startswith("http"), lambda route: route.abort())
            at = context.new_page()
            at.on("request", on_request)
            at.on("pageerror", lambda error: problems.append(str(error)))
            at.on(
                "console",
                lambda said: (
                    problems.append(said.text) if said.type in ("error", "warning") else None
                ),
            )
            at.emulate_media(media=media, color_scheme=scheme)
            at.goto(url, wait_until="load")
            return look(at), tuple(requests), tuple(problems)
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
        playwright = thread.submit(sync_playwright().start).result()
        try:
            started = thread.submit(
                playwright.chromium.launch, executable_path=path, args=list(FLAGS)
            ).result()
            try:
                yield Browser(started, thread)
            finally:
                thread.submit(started.close).result()
        finally:
            thread.submit(playwright.stop).result()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The session's browser."""
    with chromium() as running:
        yield running
