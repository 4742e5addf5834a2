"""A claim's verdicts as a table, and as they would be with another bar."""

from __future__ import annotations

import pytest
import recordings

from gccost.errors import GccostError
from gccost.judging import rules
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


def test_another_bar_is_judged_and_not_kept(study: OpenedStudy):
    before = study.verdicts
    assert before.set_index("id").loc["M1", "verdict"].eq("holds").all()
    shown = study.judge("M1", bar=1000)
    assert "bar 1000, as asked" in shown.text
    assert "above 1,000×" in shown.text
    assert shown.text.count("does not hold") == 2
    assert "does not hold" not in study.judge("M1", bar=2).text
    assert study.verdicts.equals(before)
    assert [line.rpartition("  ")[2] for line in study.judge("M1").text.splitlines()[1:]] == [
        "holds"
    ] * 2


@pytest.mark.parametrize(
    ("rule", "published", "bar", "expected"),
    [
        (rules.Effect(), 5.0, 6, (6, float("inf"))),
        (rules.Effect(), 0.5, 0.7, (-float("inf"), 0.7)),
        (rules.AtMost(), 100, 50, (-float("inf"), 50)),
        (rules.Same(), 1, (0.9, 1.1), (0.9, 1.1)),
        (rules.Effect(), 5.0, (2, 4), (2, 4)),
    ],
)
def test_a_bar_is_on_the_side_of_the_rule(rule, published, bar, expected):
    assert rules.asked(rule, published, bar).bounds(published) == expected


def test_the_margin_of_a_rule_is_kept():
    assert rules.asked(rules.AtMost(margin=1.0), 3, 2) == rules.Between(1.0, high=2)


@pytest.mark.parametrize("rule", [rules.Same(), rules.UShaped(), rules.Occurs()])
def test_a_rule_without_a_single_bar_refuses_one(rule):
    with pytest.raises(GccostError) as raised:
        rules.asked(rule, 1.0, 6)
    assert raised.value.hint


def test_outside_jupyter_a_table_is_its_text(study: OpenedStudy):
    shown = study.judge("M1")
    assert repr(shown) == shown.text
