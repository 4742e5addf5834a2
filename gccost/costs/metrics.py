"""The metrics of a sample: the column that a frame has for each, and its scale.

The scale decides how `gccost.costs.method` reads a metric in a sitting:

- a *time*: the lower quartile; a *rate*: that of the time of an operation;
- an *amount*, such as memory: the median;
- a *count*, which may be 0: the median, on the linear scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Scale = Literal["time", "rate", "amount", "count"]


def column(metric: str) -> str:
    """The name of a metric as a pandas user writes it: "peak-rss-bytes" is peak_rss_bytes."""
    return metric.replace("ns/op", "ns").replace("/", "_per_").replace("-", "_").replace(".", "_")


_REPORTED: Mapping[Scale, str] = {
    "time": "ns/op settled-ns/op cpu-ns/op settled-cpu-ns/op call-ns special-ns gc-pause-ns/op "
    "gctrace-cpu-ns elapsed-s user-s sys-s cpu-s gc-pause-s build-s unix-s",
    "rate": "op/s op/cpu-s",
    "amount": "op-p50-ns op-p99-ns op-p99.9-ns op-max-ns pause-max-ns stall-max-ns peak-rss-bytes "
    "gc-cycle-bytes gctrace-goal-bytes gctrace-live-bytes rss-bytes/special stride-bytes "
    "gc-cycle-op delay-p50-ms delay-p99-ms",
    "count": "mark-ns/special sweep-ns/special off-heap-bytes/span B/op allocs/op c-allocated "
    "c-freed c-unfreed-loop c-unfreed-drained c-misfreed c-held-mean c-held-peak c-held/survivor "
    "c-held/live c-held-peak/live cleanups-waiting cpu-share cpus-busy died faults "
    "finalizers-waiting freed-share gc-cycles gc-cycles-to-free late-share "
    "gc-cycles/s gc-share-classes gc-share-memstats gctrace-cycles gctrace-share held/op "
    "held-drained/op held-records/op leaked native-allocated native-freed opened "
    "passed-records/op records registered/op registered-drained/op run-delay-share "
    "executed gc-cycles-after gc-cycles-before off-heap-bytes panic-share ran-share "
    "ran-share-yielded returned by-leak-profile by-numgoroutine by-profile-count "
    "by-profile-text by-stack finalizers cleanups weak-pointers "
    "oldest-first reported-share cleaner-bytes finalize-bytes",
}
REPORTED: Mapping[str, Scale] = {
    column(metric): scale for scale, metrics in _REPORTED.items() for metric in metrics.split()
}
"""The scale of each metric that programs report, by column."""

# Those of a line are through a process's times of a call, by the length of the list.
SCALES: Mapping[str, Scale] = {
    **REPORTED,
    **dict.fromkeys(("slope_ns", "intercept_ns"), "count"),
}
# Metrics with a column for each time, or each lap.
SERIES = re.compile(r"lap\d+_ns|c_held_\d+(_ms)?|rss_bytes_\d+")
# The same, and metrics of others, by their unit.
_PATTERNS: Mapping[str, Scale] = {
    r"c_held_\d+_ms|rss_bytes_\d+": "amount",
    r".+_per_s": "rate",
    r".+_(ns|s)": "time",
}


def scale(name: str) -> Scale:
    """The scale of a metric by its column; what is not known, nor a time or rate, is a count."""
    for pattern, scale in _PATTERNS.items():
        if name not in SCALES and re.fullmatch(pattern, name):
            return scale
    return SCALES.get(name, "count")
