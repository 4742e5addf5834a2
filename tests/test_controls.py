"""The widgets: shown only to an interactive reader."""

from __future__ import annotations

import ipywidgets
import pytest

from gccost.showing import widgets
from gccost.study import open_results


@pytest.fixture(scope="module")
def rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCCOST_MODE", "replay")
        patch.setenv("GCCOST_ONLY", "lemire")
        return open_results().rows


def test_picked_rows_are_in_the_ledgers_order(rows):
    assert widgets.picked(rows) == rows
    (claim,) = {row.claim.id for row in widgets.picked(rows, claim="L1")}
    assert claim == "L1"
    one = widgets.picked(rows, "L1", rows[0].toolchain)
    assert one == [
        row for row in rows if (row.claim.id, row.toolchain) == ("L1", rows[0].toolchain)
    ]
    assert len(one) == 1


def test_a_reader_gets_every_claim_and_toolchain_to_pick_from(rows, monkeypatch):
    offered = {}
    monkeypatch.delenv(widgets.HEADLESS, raising=False)
    monkeypatch.setattr(
        ipywidgets, "interact", lambda show, **choices: offered.update(show=show, **choices)
    )
    widgets.pick(rows)
    assert set(offered["claim"]) == {"all", *(row.claim.id for row in rows)}
    assert set(offered["toolchain"]) == {"all", *(row.toolchain for row in rows)}

    shown = []
    monkeypatch.setattr(widgets, "display", shown.append)
    offered["show"]("L1", rows[0].toolchain)
    offered["show"]("L1", "Go 9")
    assert "L1" in shown[0].text
    assert shown[1].markdown == "L1 is not judged on Go 9."


def test_where_no_reader_is_nothing_is_shown(rows, monkeypatch, capsys):
    monkeypatch.setenv(widgets.HEADLESS, "1")
    monkeypatch.setattr(ipywidgets, "interact", lambda *_, **__: pytest.fail("shown"))
    widgets.pick(rows)
    assert capsys.readouterr() == ("", "")
