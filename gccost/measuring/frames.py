"""Selecting the samples of cases, as a frame."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from gccost.measuring import toolchains
from gccost.measuring.benchfmt import Reading, frame_of
from gccost.measuring.cases import Case

MOST_ROUNDS = 1_000_000  # the largest valid round number


def of_cases(reading: Reading, cases: Iterable[Case]) -> pd.DataFrame:
    """A row per sample that belongs to the cases and has their N and a round.

    The columns are those of `benchfmt.frame_of`, and the `name` and `release` of the case.
    """
    known: dict[tuple[str, frozenset[tuple[str, str]]], Case] = {}
    for case in cases:
        keys = dict(case.variant.sub) | toolchains.named(case.release) | case.variant.keys()
        known[case.variant.benchmark, frozenset(keys.items())] = case
    names = {name for name, _ in known}
    found = {}
    for line, sample in reading.samples.items():
        if sample.name in names and 1 <= sample.metrics.get("round", 0) <= MOST_ROUNDS:
            of = known.get((sample.name, frozenset(sample.keys.items())))
            if of and of.n in (0, sample.n):
                found[line] = sample, of
    frame = frame_of({line: sample for line, (sample, _) in found.items()})
    for column in ("name", "release"):
        values = [getattr(case, column) for _, case in found.values()]
        frame[column] = pd.Series(values, dtype="str")
    return frame if found else frame.assign(round=pd.Series(dtype=float))
