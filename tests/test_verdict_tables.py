"""A claim's verdicts as a table."""

from __future__ import annotations

import pytest
import recordings

from gccost.notebook import OpenedStudy
from gccost.showing import tables


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> OpenedStudy:
    run = recordings.recorded(tmp_path_factory.mktemp("run"), "addcleanup", cpus=8)
    return OpenedStudy(run)


def test_a_claim_and_its_rule_stand_once_beside_the_verdicts_of_all_releases(study: OpenedStudy):
    shown = study.judge("M1")
    assert shown.html.count("M1:") == shown.text.count("M1:") == 1
    assert shown.html.count('rowspan="2"') == 3  # claim, published, rule
    assert "above 2.95×" in shown.html
    assert "Go&nbsp;1" in shown.html
    assert "Go 1" not in shown.html
    assert '<th scope="rowgroup" rowspan="2" style="text-align: left; font-weight: normal">' in (
        shown.html
    )


def test_equal_cells_of_two_claims_are_not_merged():
    rows = [["one", "2×", "a"], ["one", "2×", "b"], ["two", "2×", "a"]]
    shown = tables.table(("claim", "published", "on"), rows, merged={0, 1})
    assert shown.text.splitlines() == [
        "claim  published  on",
        "one    2×         a",
        "                  b",
        "two    2×         a",
    ]


def test_outside_jupyter_a_table_is_its_text(study: OpenedStudy):
    shown = study.judge("M1")
    assert repr(shown) == shown.text
