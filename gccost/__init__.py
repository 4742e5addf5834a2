"""gccost: what automatic cleanup costs in Go and Java, measured and judged.

What a notebook calls:

    import gccost
    lemire = gccost.open("lemire")            # your newest run of the study, or the recorded one
    samples = lemire.samples(gc="on")         # a row per process
    costs = lemire.costs(gc="on")             # a row per case: value, low, high (95 %), rounds, n
    gap = lemire.compare("finalizer frees", "manual free", gc="on")    # a row per release
    lemire.judge("L1")                        # a claim's verdicts, with rule and reason

| call | gives |
|---|---|
| `open(study, run)`, `measure(study, budget)` | a study; only `measure` measures |
| `runs()` | the runs that `open` can show, recorded ones and your own |
| `cost(samples)`, `derive(f, *costs)` | the estimator, and any function of costs |
| `sittings(cost)` | the sittings that a cost or a ratio averages |
| `read(*files)`, `published(table)`, `source(file, *functions)` | your benchmarks, figures, code |
| `chart(name, title, data)`, `intervals(grid, costs)` | finish a chart, draw its intervals |
| `palette(names)` | the inks of variants |
| `table(frame, *costs)` | a table of your own making, and which of its figures are recorded |
| `results(sittings)` | every study, the ledger of all claims, each machine, each sitting left out |
| `times(row)`, `ns(row)`, `percent(row)`, `number(row)` | a figure with its interval as text |
| `prose(text)` | sentences; one that lacks a figure is left out |

Few need `simulate(truth, bound, within, spread)` (verdicts on a ratio whose truth is known), and
the errors `GccostError` and `MissingTool`.

What a study gives; filters are keywords, such as gc="on" or variant=["manual free"]:

    samples(**filters)                                  a row per process
    costs(metric="ns", **filters)                       a row per case
    compare(over, under, metric="ns", **filters)        ratio and difference, a row per release
    judge(*claims)                                      the claims' verdicts as a table
    shares(parts=None, *, within=(), of=(), by_profile=False, **filters)
                                                        shares of CPU profiles
    calls(**filters)                                    the time of a call by its list's length
    shell(command)                                      a command's output, and as a frame

    keys, then, today, releases                         what tells cases apart; releases
    run, mode, cpus, machine, about                     facts about the run
    published, verdicts                                 the document's figures; claims judged
    busy                                                the share of time waited, by sitting
    controls, stacks, traces                            A/A ratios; profiles; GC cycles

    samples.groupby(study.keys, dropna=False).apply(gccost.cost)     # as costs()

A mean by fewer columns than `study.keys` mixes cases, such as GC on and off; `cost` refuses that.

Frames of costs and shares have the columns value, low and high (a 95 % confidence interval),
rounds and n (processes); those of `compare` have a ratio and a difference. Times are in ns per
operation unless a column's name says otherwise.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gccost.cases.published import published
    from gccost.costs.costs import cost, derive, sittings
    from gccost.errors import GccostError, MissingTool
    from gccost.judging.simulation import simulate
    from gccost.notebook import listed_runs as runs
    from gccost.notebook import measure, results
    from gccost.notebook import open_study as open
    from gccost.showing.drawing import chart, table
    from gccost.showing.inks import palette
    from gccost.showing.intervals import intervals
    from gccost.showing.programs import source
    from gccost.showing.quoting import ns, number, percent, prose, times
    from gccost.showing.reading import read

__all__ = [
    "GccostError",
    "MissingTool",
    "chart",
    "cost",
    "derive",
    "intervals",
    "measure",
    "ns",
    "number",
    "open",
    "palette",
    "percent",
    "prose",
    "published",
    "read",
    "results",
    "runs",
    "simulate",
    "sittings",
    "source",
    "table",
    "times",
]

# Loaded when first used, so that the command line starts without pandas and seaborn.
_WHERE = {
    "errors": "GccostError MissingTool",
    "costs.costs": "cost derive sittings",
    "cases.published": "published",
    "judging.simulation": "simulate",
    "notebook": "measure open results runs",
    "showing.drawing": "chart table",
    "showing.inks": "palette",
    "showing.intervals": "intervals",
    "showing.programs": "source",
    "showing.quoting": "ns number percent prose times",
    "showing.reading": "read",
}
_RENAMED = {"open": "open_study", "runs": "listed_runs"}


def __getattr__(name: str) -> Any:
    for module, names in _WHERE.items():
        if name in names.split():
            return getattr(import_module(f"gccost.{module}"), _RENAMED.get(name, name))
    raise AttributeError(f"module 'gccost' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
