"""How precise the measuring is: independent measurements of one ratio, by two methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gccost.measuring.experiments.base import AS_PUBLISHED, Arm, Case, Experiment
from gccost.measuring.toolchains import TODAY_GO

OURS, COUNT = "rounds", "count"
METHODS: Mapping[str, str] = MappingProxyType(
    {
        OURS: "fresh processes in rounds, each round built anew",
        COUNT: "go test -count=10, as people run it",
    }
)
LOADS: Mapping[str, str] = MappingProxyType(
    {"quiet": "quiet", "busy": "another process keeps a core busy"}
)
MEASUREMENTS = tuple(str(number) for number in range(1, 9))
BASELINE, COSTLY = "AllocateFree", "AllocateAuto"
# Long enough for the GC's own rhythm to show in sixteen laps.
_DRIFTED = 8_000_000
DRIFT = Arm("AllocateAutoLaps")


def measured_by(benchmark: str, method: str, load: str, measurement: str) -> Arm:
    """An arm of one of the independent measurements of the precision experiment."""
    return Arm(benchmark, more=(("method", method), ("load", load), ("measurement", measurement)))


def _precision() -> Iterator[Case]:
    for method in METHODS:
        for load in LOADS:
            for measurement in MEASUREMENTS:
                for benchmark in (BASELINE, COSTLY):
                    arm = measured_by(benchmark, method, load, measurement)
                    yield Case("cstr", arm, TODAY_GO, AS_PUBLISHED if method == OURS else 0)
    yield Case("cstr", DRIFT, TODAY_GO, _DRIFTED)


EXPERIMENT = Experiment(
    name="precision",
    chapter="09-how-sure",
    question="Does the measuring give the same figure again?",
    cases=tuple(_precision()),
    document=TODAY_GO,
    apart="make precision",
)
