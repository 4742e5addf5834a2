"""The file ratios.csv of a run: the ratios that its claims are about.

The prior of intervals is fitted to these ratios (see `gccost.costs.method`), and anyone can compute
the claims from this file, jobs.csv and samples.txt alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from gccost.cases import jobs
from gccost.costs import metrics
from gccost.costs.method import RATIOS
from gccost.files import write_whole
from gccost.judging.claims import Study
from gccost.judging.quantities import Ratio
from gccost.run.runs import Run


def table(run: Run, studies: Iterable[Study]) -> pd.DataFrame:
    """A row per ratio of times or memory: claim, release, metric, and its cases' samples.

    A ratio that several claims have stands once, with the first of them.
    """
    measured = run.table()
    rows = []
    for study in studies:
        for claim in study.claims:
            quantity = claim.quantity
            if not isinstance(quantity, Ratio) or metrics.scale(quantity.metric) == "count":
                continue
            for release in claim.releases:
                over, under = (jobs.name(case, release) for case in quantity.cases)
                if over in measured and under in measured:
                    rows.append([claim.id, release, quantity.metric, over, under])
    frame = pd.DataFrame(rows, columns=RATIOS)
    return frame.drop_duplicates(["metric", "over", "under"])


def write(run: Run, studies: Iterable[Study]) -> None:
    """Write the ratios of a run's claims into its folder."""
    text = table(run, studies).to_csv(index=False, lineterminator="\n")
    write_whole(run.ratios_csv, text.encode())
