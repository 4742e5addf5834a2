"""The report in a real browser: what a reader sees, on a screen, a phone and paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import DESKTOP, PHONE, Browser, Scheme
from notebooks_fixture import executed, report
from playwright.sync_api import Page

__all__ = ["executed", "report"]  # fixtures, for pytest to find

PAGES = ["index.html", "01-lemire.html"]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("window", "scheme"), [(DESKTOP, "dark"), (PHONE, "light")])
def test_a_page_asks_nothing_breaks_nothing_and_can_be_read(
    browser: Browser, report: Path, name: str, window: tuple[int, int], scheme: Scheme
) -> None:
    seen = browser.open_report(report / name, window=window, scheme=scheme)
    assert seen.requests == ()
    assert seen.problems == ()
    assert seen.scripts == 0
    assert seen.scroll_width <= seen.inner_width == window[0]
    assert seen.sticking_out == ()
    assert seen.duplicate_ids == seen.dangling == ()
    assert seen.undescribed == seen.broken == ()
    assert seen.charts > 0
    assert seen.empty_charts == 0
    for kind in ("text", "code", "chart"):
        assert seen.weakest(kind).ratio >= 7, seen.weakest(kind)


def test_dark_and_light_are_dark_and_light(browser: Browser, report: Path) -> None:
    def ground(page: Page) -> int:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgb()").split(","))

    light, _, _ = browser.visit(report / "index.html", ground, scheme="light")
    dark, _, _ = browser.visit(report / "index.html", ground, scheme="dark")
    assert light > 600
    assert dark < 150


def test_contents_are_next_to_the_text_and_fold_on_a_phone(browser: Browser, report: Path) -> None:
    def beside(page: Page) -> None:
        contents = page.get_by_role("navigation", name="Contents", exact=True)
        assert contents.is_visible()
        contents.get_by_role("link", name="The gap").click()
        assert page.url.endswith("#01-lemire--the-gap")
        assert page.get_by_role("heading", name="The gap").bounding_box()["y"] < 200
        assert contents.is_visible()  # it stays while the text moves

    def folded(page: Page) -> None:
        assert not page.locator(".sidebar").is_visible()
        link = page.locator("details.contents").get_by_role("link", name="The gap")
        assert not link.is_visible()
        page.get_by_text("Contents", exact=True).click()
        link.click()
        assert page.get_by_role("heading", name="The gap").bounding_box()["y"] < 200

    browser.visit(report / "index.html", beside)
    browser.visit(report / "index.html", folded, window=PHONE)


def test_code_and_data_unfold(browser: Browser, report: Path) -> None:
    def look(page: Page) -> None:
        code = page.locator("details.code").last
        assert not code.locator("pre").is_visible()
        code.locator("summary").click()
        assert code.locator("pre").is_visible()
        data = page.locator("details.data").first
        data.locator("summary").click()
        assert data.get_by_role("cell", name="580").is_visible()

    browser.visit(report / "index.html", look)


def test_the_keyboard_reaches_the_content_first(browser: Browser, report: Path) -> None:
    def look(page: Page) -> None:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"

    browser.visit(report / "index.html", look)


def test_on_a_desktop_no_column_of_the_ledger_must_be_scrolled_to(
    browser: Browser, report: Path
) -> None:
    def look(page: Page) -> None:
        # A claim may name a function, and a verdict give its reason.
        page.evaluate(
            """() => {
              document.querySelector(".ledger .words").textContent +=
                " (*mspan).specialFindSplicePoint";
              for (const small of document.querySelectorAll(".ledger small"))
                small.textContent += " −0.000199× (−0.000474 to −0.0000204)";
            }"""
        )
        room, width = page.locator(".ledger").first.evaluate(
            "e => [e.parentElement.clientWidth, e.offsetWidth]"
        )
        assert width <= room

    browser.visit(report / "index.html", look)


def test_on_a_phone_the_ledger_is_read_from_top_to_bottom(browser: Browser, report: Path) -> None:
    def look(page: Page) -> None:
        verdict = page.locator(".ledger .verdict").first
        box = verdict.bounding_box()
        assert box["x"] + box["width"] <= PHONE[0]
        assert page.locator(".ledger").evaluate("e => e.scrollWidth") <= PHONE[0]

    browser.visit(report / "index.html", look, window=PHONE)


def test_on_paper_it_is_dark_on_white_and_nothing_is_cut(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    """A4 less its margins is 673 CSS pixels wide."""
    page = report / "index.html"
    seen = browser.open_report(page, window=(673, 900), scheme="dark", media="print")
    assert seen.scroll_width <= seen.inner_width
    assert seen.sticking_out == ()
    for kind in ("text", "code", "chart"):
        assert seen.weakest(kind).ratio >= 7, seen.weakest(kind)

    def look(at: Page) -> None:
        assert at.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        for gone in (".sidebar", ".skip", "details.contents", "details.code", "details.data"):
            assert not at.locator(gone).first.is_visible()
        overflowing = at.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => e.scrollWidth > innerWidth)"
            ".map(e => e.outerHTML.slice(0, 60))"
        )
        assert overflowing == []
        at.pdf(path=tmp_path / "report.pdf", format="A4")

    browser.visit(page, look, window=(673, 900), scheme="dark", media="print")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_a_bad_page_is_recognized(browser: Browser, tmp_path: Path) -> None:
    """Otherwise the promises above would hold for any page."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!DOCTYPE html><title>bad</title><body style='background: #fff'>"
        "<p id=a style='color: #bbb; width: 2000px'>pale and wide</p><p id=a>again</p>"
        "<a href='#nowhere'>x</a><img src='http://a.invalid/b.png'>"
        "<svg width=9 height=9><text y=9 fill='#ddd'>paler</text></svg>"
        "<script>console.error('oh'); lost()</script>"
    )
    seen = browser.open_report(page)
    assert seen.requests == ("http://a.invalid/b.png",)
    assert any("oh" in problem for problem in seen.problems)
    assert any("lost is not defined" in problem for problem in seen.problems)
    assert seen.scroll_width > seen.inner_width
    assert "pale and wide" in seen.sticking_out[0]
    assert seen.duplicate_ids == ("a",)
    assert seen.dangling == ("nowhere",)
    assert len(seen.undescribed) == 2
    assert len(seen.broken) == 1
    assert seen.scripts == 1
    assert seen.weakest("text").ratio == pytest.approx(1.9, abs=0.1)
    assert seen.weakest("chart").ratio == pytest.approx(1.4, abs=0.1)
