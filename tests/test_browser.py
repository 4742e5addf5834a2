"""The report in a real browser, on a desktop, on a phone and in print."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from browser import DESKTOP, PHONE, Browser
from notebooks_fixture import executed, report
from playwright.sync_api import Page

pytestmark = pytest.mark.slow

__all__ = ["executed", "report"]  # fixtures, for pytest to find

LEDGER = "11-ledger.html"
PAGES = ["index.html", "01-lemire.html", LEDGER]
SEARCH = "search.html"
NARROW = (320, 640)  # 1280 pixels at 400 % zoom, as WCAG requires
A4 = (673, 900)  # without its margins
# Folds the ledger's table, as one of several is.
FOLD = """() => {
    const results = document.querySelector(".results");
    const folded = document.createElement("details");
    folded.append(...results.childNodes);
    results.append(folded);
}"""
# What stands after each link, and its address.
AFTER = "all => all.map(a => [JSON.parse(getComputedStyle(a, '::after').content), a.href])"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("window", "media"),
    [(DESKTOP, "screen"), (PHONE, "screen"), (NARROW, "screen"), (A4, "print")],
)
def test_a_page_fetches_nothing_and_fits(browser: Browser, report, name, window, media):
    seen = browser.open_report(report / name, window=window, media=media)
    assert seen.requests == seen.problems == seen.sticking_out == seen.broken == []
    assert seen.unshaded == []
    assert seen.scripts == (name != "index.html")
    assert seen.scroll_width <= seen.inner_width == window[0]
    assert seen.charts > seen.empty_charts == 0


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("window", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_axe_finds_no_violations(browser: Browser, report, name, window, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core is missing: scripts/setup test"
    )

    def look(page: Page) -> None:
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert axe.Axe().run(page).response["violations"] == []

    browser.visit(report / name, look, window=window, scheme=scheme)


def test_pages_and_charts_follow_the_colour_scheme_but_print_is_white(browser: Browser, report):
    page = report / "01-lemire.html"
    light, dark = (browser.open_report(page, scheme=scheme) for scheme in ("light", "dark"))
    printed = browser.open_report(page, scheme="dark", media="print")
    assert printed.paper == "rgb(255, 255, 255)"
    assert light.paper != dark.paper
    assert light.inks
    assert set(dark.inks).isdisjoint({*light.inks, *printed.inks})


def test_contents_are_a_sidebar_that_folds_on_a_phone(browser: Browser, report):
    def beside(page: Page) -> None:
        contents = page.get_by_role("navigation", name="Contents", exact=True)
        contents.get_by_role("link", name="The gap").click()
        assert page.url.endswith("#the-gap")
        assert contents.is_visible()  # it stays in place while the text scrolls

    def folded(page: Page) -> None:
        assert not page.locator(".sidebar").is_visible()
        link = page.locator("details.contents").get_by_role("link", name="The gap")
        assert not link.is_visible()
        page.get_by_text("Contents", exact=True).click()
        link.click()
        assert page.url.endswith("#the-gap")

    browser.visit(report / "01-lemire.html", beside)
    browser.visit(report / "01-lemire.html", folded, window=PHONE)


def test_the_keyboard_skips_to_the_content_and_opens_a_claim(browser: Browser, report):
    def look(page: Page) -> None:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.locator("tr#l1 summary").focus()
        page.keyboard.press("Enter")
        assert page.locator("tr#l1 dl").is_visible()

    browser.visit(report / LEDGER, look)


@pytest.mark.parametrize("scripts", [True, False])
def test_the_ledger_is_complete_without_javascript(browser: Browser, report, tmp_path, scripts):
    """The report's folder has a name with spaces and non-ASCII letters."""
    folder = tmp_path / "Meßdaten für später"
    shutil.copytree(report, folder)

    def look(page: Page) -> None:
        assert page.locator("tr[data-verdict]").count() == 5
        assert all(row.is_visible() for row in page.locator("tr[data-verdict]").all())
        assert page.locator(".filters").count() == scripts
        page.get_by_role("link", name="Is a finalizer ten times").first.click()
        assert page.url.endswith("01-lemire.html")

    browser.visit(folder / LEDGER, look, scripts=scripts)


def test_the_ledger_can_be_filtered_sorted_and_linked_to(browser: Browser, report):
    def look(page: Page) -> None:
        def shown() -> list[str]:
            rows = page.locator("tr[data-verdict]").all()
            return [str(row.get_attribute("id")) for row in rows if row.is_visible()]

        every = shown()
        assert every == ["l1", "l2a", "l2b", "l3", "l4"]
        page.get_by_label("Text").fill("profile")
        assert shown() == ["l3"]
        assert "1 of 5" in page.locator(".filters").inner_text()
        page.get_by_label("Text").fill("")
        page.get_by_label("Verdict today").select_option("does not hold")
        assert shown() == ["l1", "l3"]
        page.get_by_label("Verdict today").select_option("all")
        page.get_by_label("Order").select_option("measured ÷ published")
        assert shown() == ["l1", "l2b", "l2a", "l3", "l4"]  # the last two have no factor
        page.get_by_label("Order").select_option("as on the ledger")
        assert shown() == every
        assert not page.locator("#l2b dl").is_visible()
        page.locator("#l2b .id a").click()
        assert page.url.endswith("#l2b")
        page.locator("#l2b dl").wait_for()  # the page opens it a moment later

    browser.visit(report / LEDGER, look)


def test_the_address_keeps_the_filters_and_sets_them(browser: Browser, report):
    def look(page: Page) -> None:
        page.get_by_label("Text").fill("100 % of it & more")
        page.get_by_label("Verdict today").select_option("does not hold")
        kept = page.url
        page.goto("about:blank")
        page.goto(kept)
        assert page.get_by_label("Text").input_value() == "100 % of it & more"
        assert page.get_by_label("Verdict today").input_value() == "does not hold"
        assert "0 of 5" in page.locator(".filters").inner_text()
        page.evaluate("location.hash = 'verdict=does+not+hold&document=gone'")
        page.get_by_text("2 of 5 claims").wait_for()
        assert page.get_by_label("Text").input_value() == ""
        assert page.get_by_label("Document").input_value() == ""

    browser.visit(report / LEDGER, look)


@pytest.mark.parametrize(("window", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_all_pages_can_be_searched(browser: Browser, report, window, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")

    def look(page: Page) -> None:
        shown = page.locator(".passages > li:visible")
        assert shown.count() == 0
        page.get_by_label("Words").fill("Drawn  from the SAMPLES")
        assert [link.inner_text() for link in shown.locator("a").all()] == [
            "Is a finalizer ten times more expensive than freeing by hand?: The gap"
        ]
        assert shown.locator("mark").inner_text() == "drawn"
        assert axe.Axe().run(page).response["violations"] == []
        page.goto(f"{page.url.partition('#')[0]}#text=profile")
        assert "L3: " in shown.locator("a").first.inner_text()
        shown.locator("a").first.click()
        page.locator("tr#l3 dl").wait_for()
        assert page.url.endswith(f"{LEDGER}#l3")

    _, requests, problems = browser.visit(report / SEARCH, look, window=window, scheme=scheme)
    assert problems == []
    assert [Path(each).name for each in requests] == [LEDGER]


def test_without_a_script_the_search_page_has_all_text(browser: Browser, report):
    def look(page: Page) -> None:
        text = page.locator("main").inner_text()
        assert "What follows is drawn from the samples, and the cell that ran them" in text
        assert "Daniel Lemire measured" in text
        assert "CSV" not in text

    browser.visit(report / SEARCH, look, scripts=False)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_listing_can_be_copied(browser: Browser, report, scripts):
    def look(page: Page) -> None:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        button = page.get_by_role("button", name="copy")
        assert button.count() == scripts
        if scripts:
            button.click()
            page.get_by_role("button", name="copied").wait_for()
            code = page.evaluate("navigator.clipboard.readText()")
            assert code.startswith("// AllocateAuto allocates")
            assert code.endswith("\treturn handle\n}\n")

    browser.visit(report / "01-lemire.html", look, scripts=scripts)


def test_the_ledgers_scale_stays_in_view_on_a_phone(browser: Browser, report):
    def look(page: Page) -> None:
        page.locator("tr#l4").evaluate("row => row.scrollIntoView()")
        axis, picture = (
            page.locator(f"{each} svg").bounding_box() for each in (".ledger thead", "tr#l4")
        )
        assert axis
        assert picture
        assert 0 <= axis["y"] < picture["y"]
        assert (axis["x"], axis["width"]) == (picture["x"], picture["width"])

    browser.visit(report / LEDGER, look, window=PHONE)


def test_a_narrow_ledger_is_as_wide_as_its_table(browser: Browser, report):
    def look(page: Page) -> None:
        last, table = (page.locator(each).bounding_box() for each in ("#l4 td.today", ".ledger"))
        assert last
        assert table
        assert last["x"] + last["width"] == pytest.approx(table["x"] + table["width"], abs=1)

    browser.visit(report / LEDGER, look, window=(900, 900))


@pytest.mark.parametrize("window", [DESKTOP, PHONE])
def test_a_figure_shows_its_title_once(browser: Browser, report, window):
    def look(page: Page) -> None:
        for figure in page.locator("figure").all():
            title = str(figure.locator(".finding").text_content())
            said = figure.get_by_text(title, exact=True).all()
            assert [each.is_visible() for each in said].count(True) == 1

    browser.visit(report / "01-lemire.html", look, window=window)


@pytest.mark.parametrize("window", [DESKTOP, PHONE])
def test_headlines_show_document_and_published_figure(browser: Browser, report, window):
    def look(page: Page) -> None:
        small = page.locator(".headlines tbody .words small")
        assert "Lemire 2023 · published 8.67×" in small.inner_text()
        assert small.is_visible()

    browser.visit(report / "index.html", look, window=window)


@pytest.mark.parametrize("name", PAGES)
def test_paper_has_all_text_and_no_controls(browser: Browser, report, tmp_path, name):
    def look(at: Page) -> None:
        gone = at.locator(".sidebar, .skip, details.contents, details.code, .filters, .file")
        assert not any(each.is_visible() for each in gone.all())
        folded = at.locator("main details:not(.code, .data) > summary")
        assert all(each.is_visible() for each in folded.all())
        if name == "01-lemire.html":
            assert "Recorded run" in at.locator("main").inner_text()
        if name == LEDGER:
            at.evaluate(FOLD)
            rows = at.locator(".results > details tr[data-verdict]").all()
            assert rows
            assert all(row.is_visible() for row in rows)
        links = at.locator("main a[href^=http]").evaluate_all(AFTER)
        assert all(after == f" ({address})" for after, address in links)
        at.pdf(path=tmp_path / "report.pdf", format="A4")

    browser.visit(report / name, look, window=A4, scheme="dark", media="print")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_the_checks_detect_a_bad_page(browser: Browser, tmp_path):
    """Otherwise the tests above could pass for any page."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!DOCTYPE html><title>bad</title><p style='width: 2000px'>wide</p>"
        "<img src='http://a.invalid/b.png'><figure><svg width=9 height=9></svg></figure>"
        "<script>console.error('oh'); lost()</script>"
    )
    seen = browser.open_report(page)
    assert seen.requests == ["http://a.invalid/b.png"]
    assert {"oh", "lost is not defined"} <= set(seen.problems)
    assert seen.scroll_width > seen.inner_width
    assert "wide" in seen.sticking_out[0]
    assert len(seen.broken) == seen.empty_charts == seen.charts == seen.scripts == 1
