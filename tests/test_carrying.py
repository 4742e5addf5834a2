"""How far a figure carries: the same claims on two recorded machines."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import recordings

import gccost
from gccost import paths
from gccost.judging import carrying, ledger, reference
from gccost.judging.carrying import by_machine, carried, farthest, with_others
from gccost.judging.ledger import Row
from gccost.judging.quantities import Amount, Difference, Ratio, Share
from gccost.run.runs import Run
from gccost.showing.results import on_other
from gccost.studies import CLAIMS, STUDIES

ALL = list(STUDIES.values())
NS = {"AllocateAuto": 600.0, "AllocateFree": 100.0}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.setenv("GCCOST_MODE", "replay")
    return tmp_path / "runs"


def added(folder, factor: float = 1.0, **more) -> Run:
    """A recorded run whose finalizers take so many times as long."""
    ns = NS | {"AllocateAuto": factor * NS["AllocateAuto"]}
    run, _ = reference.add(recordings.record(folder, ns=ns, **more).folder, ALL)
    return run


@pytest.fixture
def two(folder) -> None:
    """Two recorded machines; on the second a finalizer takes half as long again."""
    added(folder)
    added(folder, 1.5, cpus=16)


def test_both_figures_of_a_claim_and_the_factor_between_them(two):
    found = gccost.results().carried().set_index(["id", "release"]).loc[("L1", "Go 1.20.14")]
    assert found["kind"] == "ratio of times"
    assert found["value"] == pytest.approx(6, rel=0.05)
    assert found["other_value"] == pytest.approx(9, rel=0.05)
    assert found["factor"] == found["other_value"] / found["value"]
    assert "16 CPUs" in found["other_machine"]
    assert "2 CPUs" in found["machine"]
    assert found["run"] != found["other_run"]


def test_the_ledger_has_the_figure_of_another_machine(two):
    shown = gccost.results().ledger()
    table = pd.read_csv(io.StringIO(shown.csv)).set_index(["id", "toolchain"])
    row = table.loc[("L1", "Go 1.20.14")]
    assert row["other_estimate"] == pytest.approx(9, rel=0.05)
    assert row["other_over_estimate"] == pytest.approx(1.5, rel=0.05)
    assert "16 CPUs" in row["other_machine"]
    assert "16 CPUs: " in shown.html
    assert "× this figure" in shown.html
    measured = table["other_estimate"].notna()
    assert table.loc[~measured, "other_machine"].isna().all()


def test_of_three_machines_the_ledger_has_the_farthest_one():
    machines = pair_of_machines([0.5, 1.5])
    middle = [replace(row, machine="middle") for row in pair_of_machines([0.8, 1.2])["other"]]
    rows = with_others(machines["one"], {**machines, "middle": middle})
    assert [[other.machine for other in row.others] for row in rows] == [["other", "middle"]] * 2
    assert [row.other_over_this for row in rows] == [0.5, 1.5]
    assert on_other(rows[0]).startswith(". other, the farthest of 2 other machines: 1.00×")
    (row,) = with_others(middle[:1], machines)
    assert (row.other.machine, row.other_over_this) == ("other", 0.625)


def test_the_table_of_machines_has_the_factor(two):
    lines = gccost.results().machines().text.splitlines()
    assert "÷ first" in lines[1]
    (line,) = [line for line in lines if line.startswith("L1") and "Go 1.20.14" in line]
    assert line.split()[-1] == "1.50×"


def test_one_machine_carries_nothing(folder):
    added(folder)
    results = gccost.results()
    assert results.carried().empty
    assert results.machines() is None
    ledgers = pd.read_csv(io.StringIO(results.ledger().csv))
    assert ledgers["other_estimate"].isna().all()


def test_a_run_of_other_programs_is_no_other_machine(two):
    (other,) = (run for run in map(Run, paths.reference().glob("2*")) if _cpus(run) == 16)
    programs = other.manifest()["programs"]
    other.update(programs=dict.fromkeys(programs, "0" * 64))
    assert by_machine(ALL) == {}
    assert gccost.results().carried().empty


def _cpus(run: Run) -> int:
    return run.manifest()["machine"]["allowed_cpus"]


@pytest.mark.parametrize(
    ("value", "other", "factor"),
    [(2.0, 3.0, 1.5), (0.0, 0.0, 1.0), (0.0, 3.0, None), (3.0, 0.0, None), (-1.0, 2.0, None)],
)
def test_a_factor_needs_two_positive_figures(value, other, factor):
    found = ledger.over(other, value)
    assert np.isnan(found) if factor is None else found == factor


def test_a_kind_is_that_of_the_figure():
    kinds = {
        Ratio("a", "b"): "ratio of times",
        Ratio("a", "b", "settled_cpu_ns"): "ratio of times",
        Ratio("a", "b", "peak_rss_bytes"): "ratio of memory",
        Ratio("a", "b", "c_held_peak"): "count",
        Ratio("a", "b", "gc_cycle_op"): "another figure",
        Amount("a", "gc_cycles"): "count",
        Difference("a", "b"): "another figure",
        Share("a", ("f",)): "another figure",
    }
    assert {quantity: carrying.kind(quantity) for quantity in kinds} == kinds


def pair_of_machines(factors) -> dict[str, list[Row]]:
    """Two machines whose figures of L1 differ by these factors."""
    (row, *_) = ledger.rows({}, [STUDIES["lemire"]])
    first, other = [], []
    for number, factor in enumerate(factors):
        claim = replace(CLAIMS["L1"], id=f"L1{number}")
        figure = replace(row.estimate, value=2.0, n=5)
        one = replace(row, claim=claim, estimate=figure, machine="one")
        first.append(one)
        there = replace(figure, value=2.0 * factor)
        other.append(replace(one, estimate=there, machine="other"))
    return {"one": first, "other": other}


def test_figures_of_a_third_cpu_are_held_to_what_two_machines_differ_by():
    factors = np.exp(np.linspace(-0.5, 0.5, 201))
    assert farthest(pair_of_machines(factors)) == {
        "ratio of times": pytest.approx(np.exp(0.5), rel=0.01)
    }
    assert farthest(pair_of_machines(factors[:19])) == {}
    assert farthest({}) == {}
    assert carried({"one": [], "two": "cannot be judged"}).empty
