"""Widgets: their choices, and that only an interactive session shows them."""

from __future__ import annotations

import ipywidgets
import pytest

from gccost.judging.ledger import by_document
from gccost.showing import widgets
from gccost.study import open_results


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCCOST_MODE", "replay")
        patch.setenv("GCCOST_ONLY", "lemire")
        return open_results().rows


def test_rows_can_be_filtered_by_document_verdict_and_text(rows):
    every = [row for of in by_document(rows) for line in of.lines for row in line.rows]
    assert widgets.picked(rows) == every
    assert len(every) == len(rows)
    found = widgets.picked(rows, document="Lemire", text="NEARLY TEN")
    assert found == [row for row in rows if row.claim.id == "L1"]
    assert len(found) == 2
    today = {row.claim.id for row in rows if row.is_today and str(row.verdict) == "holds"}
    assert {row.claim.id for row in widgets.picked(rows, verdict="holds")} == today


def test_menus_offer_every_document_and_verdict(rows, monkeypatch):
    offered = {}
    monkeypatch.delenv(widgets.HEADLESS, raising=False)
    monkeypatch.setattr(
        ipywidgets, "interact", lambda show, **choices: offered.update(show=show, **choices)
    )
    widgets.pick(rows)
    assert offered["document"] == ["all", *(of.short for of in by_document(rows))]
    assert set(offered["verdict"]) == {"all", *(str(row.verdict) for row in rows)}

    shown = []
    monkeypatch.setattr(widgets, "display", shown.append)
    offered["show"]("Lemire", "all", "L1")
    offered["show"]("Lemire", "all", "nothing at all")
    assert "L1" in shown[0].text
    assert shown[1].markdown == "No claim is like this."


def test_a_headless_session_shows_no_widgets(rows, monkeypatch, capsys):
    monkeypatch.setenv(widgets.HEADLESS, "1")
    monkeypatch.setattr(ipywidgets, "interact", lambda *_, **__: pytest.fail("shown"))
    widgets.pick(rows)
    assert capsys.readouterr() == ("", "")
