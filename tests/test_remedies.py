"""Chapter 08's claims, from a recording with synthetic times."""

from __future__ import annotations

import math

import pytest
import recordings

from gccost.measuring.toolchains import TODAY_GO
from gccost.studies import CLAIMS
from gccost.studies.remedies import slabs

AMONG = {"1": 50.0, "2": 30.0, "4": 60.0}  # ns per slab handle by goroutines; others take 100


@pytest.mark.parametrize(("lost", "ratio"), [("nothing", 60 / 50), ("Parallel", math.nan)])
def test_a_claim_on_several_goroutines_is_judged_by_the_worst_count(tmp_path, lost, ratio):
    def change(case, _, metrics):
        factor = AMONG.get(dict(case.variant.sub).get("goroutines", ""), 100.0) / 100
        for name in metrics.keys() & {"ns/op", "cpu-ns/op", "slice-p05-ns/op", "slices-ns/op"}:
            metrics[name] *= factor
        if lost in case.variant.benchmark:
            metrics.clear()

    equal = dict.fromkeys(recordings.NS, 100.0)
    made = recordings.recorded(tmp_path, "remedies", rounds=4, ns=equal, change=change)
    worst = made.estimate(CLAIMS["X7c"].quantity, TODAY_GO)
    assert worst.value == pytest.approx(ratio, rel=0.05, nan_ok=True)
    assert bool(worst.samples) == (lost == "nothing")


def test_a_batch_is_compared_with_a_slab_of_its_size():
    slab, batch = CLAIMS["X6d"].quantity.variants
    assert (batch.benchmark, slab) == ("Batch", slabs("Slab", 256))
