"""Busy sittings, in which other programs used the CPUs: they are named, not rejected."""

from __future__ import annotations

import pandas as pd

from gccost.cases import benchmarks

BUSY = 0.10  # the share of time waited above which a sitting is busy


def delays(samples: pd.DataFrame) -> pd.Series:
    """The median share of time that the threads of a benchmark's processes waited, by sitting.

    The series has the benchmark's name: the first of the table that the samples have and that
    waits for nothing by design, because it is short and runs alone. It is empty if there is none.
    """
    if "run_delay_share" not in samples:
        return pd.Series(dtype=float)
    alone = samples[~samples["name"].str.contains("/load=(?:busy|full)")]
    of = alone["name"].str.split("/").str[0]
    for benchmark in benchmarks.table():
        own = alone[of == benchmark]
        if len(own) and benchmarks.of(benchmark).has("short"):
            return own.groupby("sitting")["run_delay_share"].median().rename(benchmark)
    return pd.Series(dtype=float)
