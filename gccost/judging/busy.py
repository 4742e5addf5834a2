"""Busy sittings, in which other programs used the CPUs: they are named, not rejected."""

from __future__ import annotations

import pandas as pd

BENCHMARK = "AllocateFree"  # in every sitting of the documents
BUSY = 0.10  # the share of time waited above which a sitting is busy


def delays(samples: pd.DataFrame) -> pd.Series:
    """The median share of time that the threads of a sitting's processes waited for a CPU.

    Of `BENCHMARK` if a sitting has it, and of all processes otherwise; by sitting.
    """
    if "run_delay_share" not in samples:
        return pd.Series(dtype=float)
    own = samples[samples["name"].str.startswith(f"{BENCHMARK}/")]
    medians = (each.groupby("sitting")["run_delay_share"].median() for each in (own, samples))
    of_benchmark, of_all = medians
    return of_benchmark.combine_first(of_all)
