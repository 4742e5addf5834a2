"""Chapter 08's claims, from a recording with synthetic times."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import recordings
from recordings import OTHERWISE, Metrics

from gccost.judging.recording import Recording
from gccost.measuring.cases import FREE, Case
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies import CLAIMS
from gccost.studies.remedies import SETTLED, slabs

# ns per operation by benchmark (otherwise 100), and per slab handle by goroutines.
NS = {"Batch": 20.0, "Slab": 30.0, "AllocateAuto": 900.0, "AllocateCleanup": 600.0}
AMONG = {"1": 50.0, "2": 30.0, "4": 60.0}
TIMES = ("ns/op", "cpu-ns/op", "slice-p05-ns/op", "slices-ns/op")


def made_up(folder: Path, without: str = "nothing") -> Recording:
    """A recording without benchmarks that match `without`; a manual free takes 100 ns."""

    def change(case: Case, _: int, metrics: Metrics) -> None:
        sub = dict(case.variant.sub)
        ns = AMONG.get(sub.get("goroutines", ""), NS.get(case.variant.benchmark, 100.0))
        factor = (ns + float(sub.get("mb", 0))) / OTHERWISE
        for name in metrics.keys() & TIMES:
            metrics[name] *= factor
        metrics[SETTLED] = metrics["ns/op"]
        if without in case.variant.benchmark:
            metrics.clear()

    equal = dict.fromkeys(recordings.NS, OTHERWISE)
    return recordings.recorded(folder, "remedies", rounds=4, ns=equal, change=change)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return made_up(tmp_path_factory.mktemp("runs"))


def test_x7c_uses_the_worst_goroutine_count(recording: Recording) -> None:
    worst = recording.estimate(CLAIMS["X7c"].quantity, TODAY_GO)
    assert worst.value == pytest.approx(60 / 50, rel=0.05)
    assert worst.low < worst.value < worst.high


def test_x7c_has_no_estimate_without_parallel_samples(tmp_path: Path) -> None:
    worst = made_up(tmp_path, "Parallel").estimate(CLAIMS["X7c"].quantity, TODAY_GO)
    assert not worst.samples
    assert math.isnan(worst.value)


def test_x6d_compares_a_batch_and_a_slab_of_equal_size() -> None:
    batch, slab = CLAIMS["X6d"].quantity.variants[1], CLAIMS["X6d"].quantity.variants[0]
    assert (batch.benchmark, slab) == ("Batch", slabs("Slab", 256))
    assert CLAIMS["X6a"].quantity.variants == (slabs("Slab"), FREE)
