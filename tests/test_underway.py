"""The page that shows the first figures while measuring is under way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from campaigns import LEMIRE, TINY
from conftest import FakeMachine

from gccost import paths
from gccost.measuring import campaign, planning
from gccost.run.runs import Run
from gccost.showing import underway

ROUNDS = 4


@pytest.fixture
def page(monkeypatch, tmp_path):
    monkeypatch.setenv("GCCOST_REPORT", str(tmp_path / "report"))
    (tmp_path / "report").mkdir()
    monkeypatch.setattr(underway, "SECONDS", 0)
    return paths.report() / "index.html"


def measure(figures: underway.FirstFigures, seen) -> Run:
    plan = planning.plan([LEMIRE], replace(TINY, rounds=ROUNDS))

    def on_round(run: Run) -> None:
        figures.show(run)
        seen(run)

    return campaign.measure(plan, on_round=on_round)


def test_each_round_brings_figures_and_the_third_an_interval(machine: FakeMachine, page):
    said: list[str] = []
    shown: list[str] = []

    def seen(run: Run) -> None:
        soup = BeautifulSoup(page.read_text(), "html.parser")
        shown.append(soup.get_text(" ", strip=True))
        assert run.name in shown[-1]

    run = measure(underway.FirstFigures([LEMIRE], said.append), seen)
    assert len(shown) == ROUNDS
    assert "no interval yet" in shown[0]
    assert "no interval yet" not in shown[-1]
    assert all("nearly ten times" in text and "holds" not in text for text in shown)
    [line] = said
    assert line.startswith("the first figures are in ")
    assert underway.may_write(page)
    assert run.manifest()["finished"]


def test_the_page_of_a_report_stays_until_the_next_report(machine: FakeMachine, page):
    page.write_text('<html lang="en" class="report">')
    said: list[str] = []
    measure(underway.FirstFigures([LEMIRE], said.append), lambda run: None)
    assert page.read_text() == '<html lang="en" class="report">'
    assert not said


def test_a_run_that_cannot_be_judged_is_measured_all_the_same(machine: FakeMachine, page):
    figures = underway.FirstFigures([LEMIRE], print)

    def damaged(run: Run) -> None:
        run.ratios_csv.write_text("not a table\n")

    run = measure(figures, damaged)
    assert run.manifest()["finished"]
