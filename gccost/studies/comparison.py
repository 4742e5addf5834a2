"""Tables with a row per variant: its costs, or its processes' resource usage.

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
from gccost.studies.weimer import name as on_a_jvm
from gccost.studies.weimer import per_object


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


def _objects(line: Line) -> str:
    return rounding.count(float(line.recording.samples(line.variant, line.release)["n"].iloc[0]))


# Resource usage of whole processes, as `time` prints it. The baseline is an idle
# process; per-object costs are net of it.
PROCESSES: Columns = {
    "variant": lambda line: on_a_jvm(line.variant),
    "objects": compared(_objects),
    "user s": amount("user-s", rounding.plain),
    "system s": amount("sys-s", rounding.plain),
    "elapsed s": amount("elapsed-s", rounding.plain),
    "CPU": amount("cpu-share", rounding.percent),
    "peak RSS": level("peak-rss-bytes", rounding.mebibytes),
    "page faults": amount("faults"),
    "collections": amount("gc-cycles"),
    "paused ms": lambda line: rounding.plain(1000 * line.amount("gc-pause-s")),
    "CPU ns per object": compared(
        lambda line: tables.estimate(
            per_object(line.recording, line.variant, line.release)[1], "ns"
        )
    ),
}
