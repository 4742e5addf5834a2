"""The metrics of a sample: the column that a frame has for each, its unit, and its kind.

The kind decides how `gccost.judging.costs.cost` estimates a metric:

- a *time* is increased by disturbances: the lower quartile over processes;
- a *rate* is lowered by them: the upper quartile;
- a *level*, such as memory, is moved either way, and never 0: the median, on the log scale;
- a *count* may be 0: the median, on the linear scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from gccost.errors import GccostError, nearest

Kind = Literal["time", "rate", "level", "count"]


class Metric(NamedTuple):
    """A metric's column in a frame, its unit, and its kind."""

    column: str
    unit: str
    kind: Kind


# What `go test` prints is a mean; `quiet_ns` and `settled_ns` are what a cost is made of.
_MEANS = {"ns/op": "mean-ns", "settled-ns/op": "settled-mean-ns"}


def _column(metric: str) -> str:
    """The name of a metric as a pandas user writes it: "peak-rss-bytes" is peak_rss_bytes."""
    metric = _MEANS.get(metric, metric)
    return metric.replace("ns/op", "ns").replace("/", "_per_").replace("-", "_").replace(".", "_")


_KINDS: Mapping[Kind, Mapping[str, str]] = {
    "time": {
        "ns": "ns/op settled-ns/op cpu-ns/op settled-cpu-ns/op call-ns special-ns gc-pause-ns/op "
        "slices-ns/op slice-min-ns/op slice-p01-ns/op slice-p05-ns/op slice-p10-ns/op "
        "slice-p25-ns/op slice-p50-ns/op reference-ns/op reference-min-ns/op gctrace-cpu-ns",
        "s": "elapsed-s user-s sys-s cpu-s gc-pause-s build-s unix-s",
    },
    "rate": {"1/s": "op/s op/cpu-s"},
    "level": {
        "ns": "op-p50-ns op-p99-ns op-p99.9-ns op-max-ns pause-max-ns stall-max-ns",
        "bytes": "peak-rss-bytes gc-cycle-bytes gctrace-goal-bytes gctrace-live-bytes "
        "rss-bytes/special stride-bytes",
        "operations": "gc-cycle-op",
    },
    "count": {
        "ns": "mark-ns/special sweep-ns/special",
        "bytes": "off-heap-bytes/span",
        "": "B/op allocs/op c-allocated c-freed c-unfreed-loop c-unfreed-drained c-misfreed "
        "c-held-mean c-held-peak c-held/survivor c-held/live c-held-peak/live cpu-share "
        "cpus-busy died faults gc-cycles "
        "gc-cycles-to-free gc-cycles/s gc-share-classes gc-share-memstats gctrace-cycles "
        "gctrace-share held/op held-drained/op held-records/op leaked native-allocated "
        "native-freed opened passed-records/op records registered/op registered-drained/op "
        "run-delay-share slices",
    },
}

METRICS: Mapping[str, Metric] = {
    metric: Metric(_column(metric), unit, kind)
    for kind, units in _KINDS.items()
    for unit, metrics in units.items()
    for metric in metrics.split()
}
"""What the programs report."""

QUIET: Mapping[str, str] = {"quiet_ns": "ns/op", "settled_ns": "settled-ns/op"}
"""The columns that enter a cost, and the metrics that they are derived from."""

# Metrics with a column for each time, or each lap.
_SERIES: Mapping[str, tuple[str, Kind]] = {
    r"lap\d+_ns": ("ns", "time"),
    r"c_held_\d+": ("blocks", "count"),
    r"c_held_\d+_ms": ("ms", "level"),
    r"rss_bytes_\d+": ("bytes", "level"),
}

_COLUMNS: Mapping[str, Metric] = {
    **{metric.column: metric for metric in METRICS.values()},
    **{quiet: Metric(quiet, "ns", "time") for quiet in QUIET},
    # Of the line through a process's times of a call, by the length of the list.
    **{name: Metric(name, "ns", "count") for name in ("slope_ns", "intercept_ns")},
}


def column(metric: str) -> str:
    """The column of a metric, whether it is ours or another program's."""
    return METRICS[metric].column if metric in METRICS else _column(metric)


def by_column(name: str) -> Metric:
    """A metric by its column. Raises GccostError, naming the nearest, if there is none."""
    for pattern, (unit, kind) in _SERIES.items():
        if re.fullmatch(pattern, name):
            return Metric(name, unit, kind)
    if name not in _COLUMNS:
        raise GccostError(f"there is no metric {name!r}", hint=nearest(name, _COLUMNS))
    return _COLUMNS[name]
