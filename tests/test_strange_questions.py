"""What a study answers to a question that its run cannot answer, or that is slightly wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import recordings
from pandas.api.types import is_float_dtype, is_integer_dtype

from gccost.errors import GccostError
from gccost.notebook import OpenedStudy


def opened(folder: Path, name: str = "lemire", **more: object) -> OpenedStudy:
    return OpenedStudy(recordings.recorded(folder, name, **more), "replay", ())


def test_a_variant_that_was_not_measured_is_named_and_its_row_is_empty(tmp_path, capsys):
    def without(case, number: int, values: dict[str, float]) -> None:
        if case.variant.benchmark == "AllocateAuto":
            values.clear()

    study = opened(tmp_path, change=without)
    gap = study.compare("finalizer frees", "manual free", gc="on")
    told = capsys.readouterr().out
    for release in study.releases:
        assert f"{release}, finalizer frees: not measured" in told
    assert "manual free" not in told
    assert gap.ratio.isna().all()
    assert (gap.n == 0).all()
    assert all(is_float_dtype(gap[name]) for name in gap if name.startswith(("ratio", "more")))
    assert all(is_integer_dtype(gap[name]) for name in ("rounds", "n"))
    assert gap.round(2).equals(gap)


def test_a_comparison_of_cases_that_do_not_exist_is_refused(tmp_path):
    study = opened(tmp_path)
    with pytest.raises(GccostError, match="no case with") as raised:
        study.compare("finalizer does nothing", "manual free", gc="off")
    assert "gc" in raised.value.hint
