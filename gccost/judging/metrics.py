"""The metrics of a sample: the column that a frame has for each, and its kind.

The kind decides how `gccost.judging.costs.cost` estimates a metric:

- a *time* or a *rate*: the mean of the logs over processes;
- a *level*, such as memory: the median, on the log scale;
- a *count*, which may be 0: the median, on the linear scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Kind = Literal["time", "rate", "level", "count"]

# What `go test` prints is a mean; `quiet_ns` and `settled_ns` are what a cost is made of.
_MEANS = {"ns/op": "mean-ns", "settled-ns/op": "settled-mean-ns"}


def column(metric: str) -> str:
    """The name of a metric as a pandas user writes it: "peak-rss-bytes" is peak_rss_bytes."""
    metric = _MEANS.get(metric, metric)
    return metric.replace("ns/op", "ns").replace("/", "_per_").replace("-", "_").replace(".", "_")


_REPORTED: Mapping[Kind, str] = {
    "time": "ns/op settled-ns/op cpu-ns/op settled-cpu-ns/op call-ns special-ns gc-pause-ns/op "
    "slices-ns/op slice-min-ns/op slice-p01-ns/op slice-p05-ns/op slice-p10-ns/op slice-p25-ns/op "
    "slice-p50-ns/op probe-ns/op gctrace-cpu-ns elapsed-s user-s sys-s "
    "cpu-s gc-pause-s build-s unix-s",
    "rate": "op/s op/cpu-s",
    "level": "op-p50-ns op-p99-ns op-p99.9-ns op-max-ns pause-max-ns stall-max-ns peak-rss-bytes "
    "gc-cycle-bytes gctrace-goal-bytes gctrace-live-bytes rss-bytes/special stride-bytes "
    "gc-cycle-op",
    "count": "mark-ns/special sweep-ns/special off-heap-bytes/span B/op allocs/op c-allocated "
    "c-freed c-unfreed-loop c-unfreed-drained c-misfreed c-held-mean c-held-peak c-held/survivor "
    "c-held/live c-held-peak/live cpu-share cpus-busy died faults gc-cycles gc-cycles-to-free "
    "gc-cycles/s gc-share-classes gc-share-memstats gctrace-cycles gctrace-share held/op "
    "held-drained/op held-records/op leaked native-allocated native-freed opened "
    "passed-records/op records registered/op registered-drained/op run-delay-share slices",
}
REPORTED: Mapping[str, Kind] = {
    column(metric): kind for kind, metrics in _REPORTED.items() for metric in metrics.split()
}
"""The kind of each metric that programs report, by column."""

QUIET: Mapping[str, str] = {"quiet_ns": "mean_ns", "settled_ns": "settled_mean_ns"}
"""The columns that enter a cost, and the columns that they are derived from."""

# Those of a line are through a process's times of a call, by the length of the list.
KINDS: Mapping[str, Kind] = {
    **REPORTED,
    **dict.fromkeys(QUIET, "time"),
    **dict.fromkeys(("slope_ns", "intercept_ns"), "count"),
}
# Metrics with a column for each time, or each lap.
SERIES = re.compile(r"lap\d+_ns|c_held_\d+(_ms)?|rss_bytes_\d+")
# The same, and metrics of others, by their unit.
_PATTERNS: Mapping[str, Kind] = {
    r"c_held_\d+_ms|rss_bytes_\d+": "level",
    r".+_per_s": "rate",
    r".+_(ns|s)": "time",
}


def kind(name: str) -> Kind:
    """The kind of a metric by its column; what is not known, nor a time or rate, is a count."""
    for pattern, kind in _PATTERNS.items():
        if name not in KINDS and re.fullmatch(pattern, name):
            return kind
    return KINDS.get(name, "count")
