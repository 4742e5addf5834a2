"""No two chapters give two figures for one thing, or a line says why there are two."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pandas as pd
import pytest
from scipy import special, stats

import gccost
from gccost import paths
from gccost.costs.costs import COSTS
from gccost.studies import STUDIES

TIMES = ("ns", "settled_ns", "cpu_ns")
# What a cost is, besides the thing that costs it.
OF_A_COST = set(COSTS)
# The usual setting, which some studies name and others do not have.
USUAL = {
    "bytes": "8",
    "words": "1",
    "gc": "on",
    "gogc": "100",
    "runtime": "stock",
    "setting": "published",
    "experiment": "one by one|by the handle's size",
}
# Programs of their own, or measured in fewer sittings, with the lines that say so. Their
# figures may lie this far from those of the documents' programs.
SAID = {
    "releases": (
        ("06-release-by-release", "its costs need not equal theirs"),
        ("06-release-by-release", "the time for a record need not equal"),
    ),
    "handles": (("08-instead", "their figures differ from those"),),
}
FARTHEST = 1.25
NORMAL = float(special.ndtri(0.975))


def things(costs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of each thing that costs: a way on a release in one setting."""
    keys = costs.drop(columns=[*OF_A_COST, "study"]).astype("string").fillna("")
    for key, usual in USUAL.items():
        keys[key] = keys[key].where(~keys[key].str.fullmatch(usual), "")
    for _, rows in costs.groupby([keys[key] for key in keys]):
        yield rows


def error(cost: Any) -> float:
    """The standard error of a cost's logarithm, from its 95 % interval."""
    return math.log(cost.high / cost.low) / 2 / NORMAL


def disagreeing(costs: pd.DataFrame) -> list[str]:
    """Pairs of studies with two figures for one thing that nothing explains.

    One in a hundred sets of as many pairs of equal costs has a pair that is this far apart.
    """
    pairs = [
        (a, b)
        for rows in things(costs.dropna(subset=["low", "high"]))
        for (_, a), (_, b) in itertools.combinations(rows.iterrows(), 2)
    ]
    limit = float(special.ndtri(1 - 0.005 / len(pairs)))
    lines = []
    for a, b in pairs:
        off = abs(math.log(a.value / b.value))
        apart = off > limit * math.hypot(error(a), error(b))
        explained = {a.study, b.study} & SAID.keys()
        if apart and (off > math.log(FARTHEST) or not explained):
            what = f"{a.release}, {a.variant}, {a.metric}"
            lines.append(f"{what}: {a.value:.4g} ({a.study}), {b.value:.4g} ({b.study})")
    return lines


@pytest.fixture(scope="module")
def costs() -> pd.DataFrame:
    """Every cost that a chapter can show, a row for each study and metric."""
    frames = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCCOST_MODE", "replay")
        # The one measures one thing often; what the other frees manually is a wrapper.
        for name in STUDIES.keys() - {"precision", "wrappers"}:
            study = gccost.open(name)
            recorded = [metric for metric in TIMES if metric in study.samples()]
            frames += [study.costs(metric).assign(study=name, metric=metric) for metric in recorded]
    return pd.concat(frames, ignore_index=True)


def test_no_two_chapters_give_two_figures_for_one_thing(costs: pd.DataFrame):
    assert not disagreeing(costs)


def test_a_case_of_two_studies_has_one_figure(costs: pd.DataFrame):
    documents = costs[costs.study.isin(["lemire", "siebenmann", "addcleanup", "remedies"])]
    shared = [rows for rows in things(documents) if len(set(rows.study)) > 1]
    assert shared
    for rows in shared:
        assert len(set(rows.value)) == 1, rows


@pytest.mark.parametrize("study", ["handles", "releases", "remedies"])
def test_another_figure_is_noticed(costs: pd.DataFrame, study):
    changed = costs[costs.variant.eq("manual free")].copy()
    changed.loc[changed.study.eq(study), ["value", "low", "high"]] *= 1.4
    assert any(study in line for line in disagreeing(changed))


def test_two_figures_for_the_walk_are_near(monkeypatch):
    monkeypatch.setenv("GCCOST_MODE", "replay")
    slopes = []
    for name, more in (("why", {"order": "ascending", "bytes": 8}), ("releases", {})):
        study = gccost.open(name)
        calls = study.calls(variant="SetFinalizer alone", release=study.today, **more)
        line = stats.linregress(calls.records, calls.ns)
        slopes.append(line.slope)
    assert max(slopes) / min(slopes) < FARTHEST


@pytest.mark.parametrize(("chapter", "line"), sorted({*itertools.chain(*SAID.values())}))
def test_a_line_says_why_there_are_two(chapter, line):
    node = nbformat.read(paths.NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    text = " ".join(cell.source for cell in node.cells)
    assert line in re.sub(r"\s+", " ", text)
