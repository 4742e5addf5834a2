"""What a study answers to a question that its run cannot answer, or that is slightly wrong."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pandas as pd
import pytest
import recordings
from pandas.api.types import is_float_dtype, is_integer_dtype
from pandas.testing import assert_frame_equal

import gccost
from gccost.errors import GccostError, nearest
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
    lacking = ", ".join(study.releases)
    assert told == f"finalizer frees: not measured on {lacking} (run {study.run})\n"
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
    assert study.compare({"gc": pd.NA}, "manual free", gc="on").ratio.isna().all()


def test_a_hint_has_the_nearest_name_first_whatever_its_case(tmp_path):
    with pytest.raises(GccostError) as raised:
        opened(tmp_path).samples(GC="on")
    assert raised.value.hint.startswith("name one of gc")
    assert nearest("B", "abcd") == "name one of b, a, c, d"
    assert nearest("W1", ["L1", "W1a", "W1b", "W2", "W3"]) == "name one of W1a, W1b"


@pytest.mark.parametrize("call", ["costs", "compare"])
def test_a_unit_is_answered_with_the_columns_that_have_it(tmp_path, call: str):
    study = opened(tmp_path)
    sides = ("finalizer frees", "manual free") if call == "compare" else ()
    with pytest.raises(GccostError) as raised:
        getattr(study, call)(*sides, metric="ns/op")
    assert raised.value.hint == "name one of mean_ns, quiet_ns"


@pytest.mark.parametrize("name", ["lemire", "addcleanup", "remedies"])
def test_the_keys_of_a_study_tell_its_cases_apart(tmp_path, name: str):
    study = opened(tmp_path, name, rounds=2, cpus=8)
    costs = study.costs()
    assert not costs.duplicated(study.keys).any()
    found = study.samples().groupby(study.keys, dropna=False, sort=False)
    by_hand = found.apply(gccost.cost).reset_index().dropna(subset="value")
    sizes = {"rounds": int, "n": int}
    assert_frame_equal(
        by_hand.astype(sizes)[costs.columns].reset_index(drop=True), costs, check_dtype=False
    )


def test_filtered_samples_keep_every_key(tmp_path):
    study = opened(tmp_path, "addcleanup", rounds=2, cpus=8)
    one = study.samples(gc="on", experiment="one by one")
    by_hand = one.groupby(study.keys, dropna=False).apply(gccost.cost)
    assert len(by_hand) == len(study.costs(gc="on", experiment="one by one"))
    assert "experiment" not in one


def test_every_frame_says_which_run_it_is_of(tmp_path):
    study = opened(tmp_path)
    names = ("controls", "stacks", "traces", "slices", "verdicts", "sides")
    frames = [study.samples(), study.costs(gc="on"), study.shares(), study.calls()]
    frames += [study.compare("finalizer frees", "manual free", gc="on")]
    for frame in [*frames, *(getattr(study, name) for name in names)]:
        assert isinstance(frame, pd.DataFrame)
        assert frame.attrs["run"] == study.run == study.recording.run.name


def test_help_has_all_that_a_study_gives_with_signatures():
    manual = gccost.__doc__ or ""
    for name, member in vars(OpenedStudy).items():
        if name.startswith("_") or name in ("recording", "mode", "notices", "name"):
            continue
        if callable(member):
            given = inspect.signature(member).parameters.values()
            bare = [each.replace(annotation=inspect.Parameter.empty) for each in given][1:]
            assert f" {name}{inspect.Signature(bare)}".replace("'", '"') in manual
        else:
            assert re.search(rf"^    (\w+, )*{name}\b", manual, re.MULTILINE), name


def test_a_cost_of_several_cases_or_without_its_metric_is_refused():
    lemire = gccost.open("lemire")
    samples = lemire.samples(variant="finalizer frees")
    with pytest.raises(GccostError, match="the samples have several values of release") as raised:
        gccost.cost(samples)
    assert "study.keys" in raised.value.hint
    one = lemire.samples(variant="finalizer frees", release=lemire.today, gc="on")
    with pytest.raises(GccostError, match="the samples have no column 'quite_ns'") as raised:
        gccost.cost(one, "quite_ns")
    assert "quiet_ns" in raised.value.hint


def test_samples_that_lost_their_run_have_a_cost_without_an_interval(tmp_path):
    study = opened(tmp_path)
    samples = study.samples(variant="manual free", gc="on", release=study.today)
    whole, lost = (gccost.cost(each) for each in (samples, pd.DataFrame(samples.to_dict("list"))))
    assert whole["low"] < whole["value"] < whole["high"]
    assert lost["value"] == pytest.approx(whole["value"], rel=0.1)
    assert lost[["low", "high"]].isna().all()
