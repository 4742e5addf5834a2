"""Tables with a row per variant: its costs, its processes' resource usage, or its overhead.

A table is a mapping from a column's heading to a function that makes a line's cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gccost import rounding
from gccost.judging.recording import Recording
from gccost.measuring import toolchains
from gccost.measuring.cases import Ratio, Variant
from gccost.showing import tables
from gccost.showing.tables import Cell, Markup
from gccost.stats import Estimate
from gccost.studies.common import NAMES
from gccost.studies.remedies import name as called


@dataclass(frozen=True)
class Line:
    """A variant on a release, with its baseline."""

    recording: Recording
    variant: Variant
    baseline: Variant
    release: str

    def level(self, metric: str) -> float:
        return self.recording.level(self.variant, self.release, metric).value

    def amount(self, metric: str) -> float:
        return self.recording.amount(self.variant, self.release, metric).value

    def over(self, metric: str = "ns/op") -> Ratio:
        return Ratio(self.variant, self.baseline, metric)

    def added(self, metric: str = "ns/op") -> Estimate:
        return self.recording.added(self.over(metric), self.release)


Column = Callable[[Line], str | Cell]
Columns = Mapping[str, Column]


def of_variants(
    recording: Recording,
    columns: Columns,
    variants: Iterable[Variant],
    baseline: Variant,
    release: str,
) -> Markup:
    """Return a table of the variants that were measured on a release."""
    lines = [Line(recording, variant, baseline, release) for variant in variants]
    heap = dict(baseline.sub).get("mb")
    where = f", next to {heap} MB of live Go memory" if heap else ""
    return tables.table(
        list(columns),
        [
            [column(line) for column in columns.values()]
            for line in lines
            if len(recording.samples(line.variant, release))
        ],
        caption=toolchains.title(release) + where,
    )


def level(metric: str, shown: Callable[[float], str] = rounding.plain) -> Column:
    """A column of a metric that is never 0."""
    return lambda line: shown(line.level(metric))


def amount(metric: str, shown: Callable[[float], str] = rounding.count) -> Column:
    """A column of a metric that may be 0, such as a count."""
    return lambda line: shown(line.amount(metric))


def compared(shown: Column, of_baseline: str = "–") -> Column:
    """A column that compares with the baseline; the baseline's own cell is `of_baseline`."""
    return lambda line: Cell(of_baseline) if line.variant == line.baseline else shown(line)


def costs(baseline: Variant) -> Columns:
    """Columns for time, ratio to a baseline, memory, and blocks left unfreed."""
    return {
        "variant": lambda line: (
            NAMES[line.variant.benchmark] + (", GC off" if line.variant.gogc == "off" else "")
        ),
        "cost, ns/op": level("ns/op"),
        "mean, ns/op": lambda line: rounding.plain(line.recording.mean(line.variant, line.release)),
        f"against {NAMES[baseline.benchmark]}": compared(
            lambda line: tables.estimate(
                line.recording.estimate(line.over(), line.release), "ratio"
            ),
            of_baseline="1",
        ),
        "added per object": compared(lambda line: tables.estimate(line.added(), "ns")),
        "CPU ns/op": level("cpu-ns/op"),
        "settled ns/op": level("settled-ns/op"),
        "allocs/op": amount("allocs/op"),
        "GC cycles": amount("gc-cycles"),
        "blocks left by the loop, the drain": lambda line: Cell(
            rounding.count(line.amount("c-unfreed-loop")),
            rounding.count(line.amount("c-unfreed-drained")),
        ),
        "page faults": amount("faults"),
        "peak RSS": level("peak-rss-bytes", rounding.mebibytes),
    }


_STEADY = 5  # collections, so that the number of waiting blocks has a mean


def choices(c_ns: float, per_second: float) -> Columns:
    """Columns for the cost that a variant adds to a program that now frees manually.

    `c_ns` is the time of the C work per object in ns; `per_second` is the number of
    objects per second.
    """

    def added(line: Line) -> float:
        return line.added("settled-ns/op").value

    def wait(line: Line) -> str:
        # Little's law: the mean number of waiting blocks times the time per block. Where the
        # loop ends after a few collections, that is the length of the loop.
        mean = line.recording.amount(line.variant, line.release, "c-held-mean")
        if not mean.samples or line.amount("gc-cycles") < _STEADY:
            return "–"
        return rounding.duration(mean.value * line.level("ns/op"))

    return {
        "choice": lambda line: called(line.variant),
        "added per object": lambda line: tables.estimate(line.added("settled-ns/op"), "ns"),
        f"to C work of {rounding.nanoseconds(c_ns)}": lambda line: rounding.percent(
            added(line) / c_ns
        ),
        f"of a core, at {rounding.count(per_second)} a second": lambda line: rounding.percent(
            line.added("settled-cpu-ns/op").value * per_second / 1e9
        ),
        "adds 5 % or less from": lambda line: rounding.nanoseconds(max(added(line), 0) / 0.05),
        "C blocks waiting, at the peak": amount("c-held-peak"),
        "a block waits, on average": wait,
    }
