"""Chapter 08's charts and claims, from a recording with synthetic times."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import recordings
from recordings import OTHERWISE, Metrics

from gccost.judging.recording import Recording
from gccost.measuring.cases import FREE, Case
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies import CHARTS, CLAIMS
from gccost.studies.remedies import (
    HEAP_REMEDIES,
    HEAPS,
    LATENCY,
    MANUAL,
    SETTLED,
    slabs,
    with_heap,
)

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


def test_costs_are_relative_to_manual_and_batched_frees(recording: Recording) -> None:
    data = CHARTS["remedies-cost"](recording).data
    of_slabs = data[data["variant"] == "slabs of 256"].set_index("against")["estimate"]
    assert of_slabs["manual free"] == pytest.approx(0.3, rel=0.05)
    assert of_slabs["manual free, batches of 256"] == pytest.approx(1.5, rel=0.05)
    assert set(data[data["variant"] == "adopted: slabs of 64"]["against"]) == {
        "manual free",
        "manual free, one C heap",
    }


def test_the_heap_chart_covers_every_remedy_and_heap_size(recording: Recording) -> None:
    chart = CHARTS["remedies-heap"](recording)
    assert set(zip(chart.data["mb"], chart.data["variant"], strict=True)) == {
        (mb, benchmark) for mb in HEAPS for benchmark in HEAP_REMEDIES
    }
    assert "1 GB" in chart.title
    assert with_heap("HeapManual", 0) == MANUAL


def test_the_latency_chart_covers_every_remedy(recording: Recording) -> None:
    data = CHARTS["remedies-latency"](recording).data
    assert len(data) == 3 * len(LATENCY)
    assert set(data["unit"]) == {"op-p99-ns", "op-p99.9-ns", "op-max-ns"}


def test_c_memory_held_is_shown_in_kilobytes(recording: Recording) -> None:
    data = CHARTS["remedies-held"](recording).data
    for value in (500, 2000):
        assert data["estimate"].sub(value).abs().lt(0.02 * value).any()


def test_c_memory_held_is_shown_over_time(recording: Recording) -> None:
    chart = CHARTS["remedies-over-time"](recording)
    of_slabs = chart.data[chart.data["variant"] == "slabs of 64"]
    assert list(of_slabs["seconds"]) == [0.01, 0.02, 0.03, 0.04]
    assert list(of_slabs["estimate"]) == pytest.approx([0, 0.05, 0.1, 0.15], rel=0.02)
    assert chart.title.startswith("C memory held over one run: up to 0.15")


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("heap", "Manual"),
        ("latency", "Latency"),
        ("cost", "Adopted"),
    ],
)
def test_charts_tolerate_missing_benchmarks(tmp_path: Path, name: str, lost: str) -> None:
    chart = CHARTS[f"remedies-{name}"](made_up(tmp_path, lost))
    assert chart.title
    assert name == "cost" or chart.data.empty


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
