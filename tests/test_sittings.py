"""Sittings of one machine: whether the headline ratios agree within their intervals."""

from __future__ import annotations

from pathlib import Path

import pytest
import recordings

from gccost.judging.quantities import Ratio, SittingsAgree
from gccost.judging.rules import Agrees, Label
from gccost.measuring.cases import AUTO, FREE, Case
from gccost.measuring.toolchains import TODAY_GO

AGREEMENT = SittingsAgree(Ratio(AUTO, FREE))


@pytest.mark.usefixtures("no_recorded_sittings")
@pytest.mark.parametrize(
    ("sittings", "slower", "label"),
    [([1, 2] * 4, 1.0, Label.HOLDS), ([1, 2] * 4, 3.0, Label.FAILS), ([1] * 8, 1.0, None)],
    ids=["equal", "one is slow", "one sitting"],
)
def test_sittings_agree(
    tmp_path: Path, sittings: list[int], slower: float, label: Label | None
) -> None:
    def sat(case: Case, number: int, metrics: recordings.Metrics) -> None:
        metrics["sitting"] = sittings[number - 1]
        if case.variant == AUTO and metrics["sitting"] == 2:
            metrics["ns/op"] *= slower

    found = recordings.recorded(tmp_path, change=sat).estimate(AGREEMENT, TODAY_GO)
    assert found.n == (len(set(sittings)) if label else 0)
    if label:
        assert Agrees().judge(found, 1.0).label is label
        assert found.value == pytest.approx(slower, rel=0.1)
