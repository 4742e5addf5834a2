"""How precise the measuring is: independent measurements by several methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gccost.measuring.experiments.base import AS_PUBLISHED, Arm, Case, Experiment, Ratio
from gccost.measuring.toolchains import TODAY_GO

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "count": "go test -count=10, as people run it",
        "matched": "go test -count, our clock, procs, pinning and N",
        "rounds": "fresh processes in paired rounds",
        "beside": "fresh processes, in turns on one CPU",
    }
)
LOADS: Mapping[str, str] = MappingProxyType(
    {"quiet": "quiet", "busy": "another process keeps a core busy"}
)
MEASUREMENTS = ("1", "2", "3", "4")
# How often a round of ours samples the baseline: its short samples are the noisy ones.
BASELINE_REPEATS = 8
BASELINE = "AllocateFree"
_COMPARED = (BASELINE, "AllocateAuto", "AllocateCleanup")
# The baseline against itself: what the measuring adds where nothing differs.
ITSELF = "itself"
# N of the baseline beside itself: as long as a finalizer's sample, as near as matters.
_BESIDE_ITSELF = 16_000_000
# Long enough for the GC's own rhythm to show in sixteen laps.
_DRIFTED = 8_000_000


def measured_by(benchmark: str, method: str, load: str, measurement: str) -> Arm:
    """An arm of one of the independent measurements of the precision experiment."""
    setting = "published" if method == "count" else "precise"
    more = (("method", method), ("load", load), ("measurement", measurement))
    if benchmark == ITSELF:
        return Arm(BASELINE, setting=setting, more=(*more, ("against", ITSELF)))
    return Arm(benchmark, setting=setting, more=more)


def precision_clock(method: str) -> str:
    """The metric that a method compares."""
    return "ns/op" if method == "count" else "cpu-ns/op"


def independent(benchmark: str, method: str, load: str) -> tuple[Ratio, ...]:
    """The independent measurements of one ratio to the baseline."""
    return tuple(
        Ratio(
            measured_by(benchmark, method, load, measurement),
            measured_by(BASELINE, method, load, measurement),
            precision_clock(method),
            all_along=method == "beside",
        )
        for measurement in MEASUREMENTS
    )


DRIFT = Arm("AllocateAutoLaps")


def _precision() -> Iterator[Case]:
    for method in METHODS:
        n = 0 if method == "count" else AS_PUBLISHED
        for load in LOADS:
            for measurement in MEASUREMENTS:
                for benchmark in _COMPARED:
                    arm = measured_by(benchmark, method, load, measurement)
                    often = method == "rounds" and benchmark == BASELINE
                    repeats = BASELINE_REPEATS if often else 1
                    yield Case("cstr", arm, TODAY_GO, n, repeats=repeats)
    for load in LOADS:
        for measurement in MEASUREMENTS:
            arm = measured_by(ITSELF, "beside", load, measurement)
            yield Case("cstr", arm, TODAY_GO, _BESIDE_ITSELF)
    yield Case("cstr", DRIFT, TODAY_GO, _DRIFTED)


EXPERIMENT = Experiment(
    name="precision",
    chapter="09-how-sure",
    question="Does the measuring give the same figure again?",
    cases=tuple(_precision()),
    headline=(),
    document=TODAY_GO,
    apart="make precision",
)
