"""What data/reference holds: recorded whole, and fit to judge by."""

from __future__ import annotations

import pytest

from gccost import places
from gccost.judging.claims import CLAIMS
from gccost.judging.recording import Recording
from gccost.measuring import languages
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.experiments.base import BUDGETS
from gccost.measuring.machine import MOST_BYTES
from gccost.study import reference

RECORDED = {f.stem for f in places.reference().glob("*/*.txt")}
every_recording = pytest.mark.parametrize(
    "recording",
    [Recording.load(of, reference(of)) for of in EXPERIMENTS.values() if of.name in RECORDED],
    ids=lambda recording: recording.experiment.name,
)
# What frees nothing by hand: its cost is the collector's too, so it must take part.
AUTOMATIC = {"AllocateAuto", "AllocateCleanup", "EmptyFinalizer", "Finalize", "Cleanup"}
AUTOMATIC |= {"ParallelAuto", "ParallelCleanup"}


@every_recording
def test_every_line_can_be_used(recording: Recording) -> None:
    assert recording.problems == ()
    assert recording.run.manifest()["scale"] == 1


@every_recording
def test_it_was_recorded_of_what_stands_here(recording: Recording) -> None:
    assert recording.entry["sources"] == languages.source_hash(recording.experiment)
    assert not recording.entry["machine"]["dirty"]


@every_recording
def test_every_case_was_measured(recording: Recording) -> None:
    finished = recording.entry["finished"]
    if recording.experiment.apart:
        assert finished
        return
    assert BUDGETS["standard"].name in finished or BUDGETS["thorough"].name in finished
    cpus = recording.entry["machine"]["allowed_cpus"]
    due = [c for c in recording.experiment.within(BUDGETS["standard"]) if c.cpus <= cpus]
    assert {case.name for case in due} <= set(recording.frame["name"])


@every_recording
def test_the_gc_takes_part_wherever_it_is_on(recording: Recording) -> None:
    frame = recording.frame
    gogc = frame.get("gogc", default="")  # a JVM has none
    automatic = frame["benchmark"].isin(AUTOMATIC) & (gogc == "100")
    assert (frame.loc[automatic, "gc-cycles"] >= 1).all()
    many = automatic & (frame["n"] >= 4_000_000)
    assert (frame.loc[many, "gc-cycles"] >= 3).all()


@every_recording
def test_no_sample_takes_too_much_memory_or_frees_a_block_twice(recording: Recording) -> None:
    frame = recording.frame
    for limit, metric in ((MOST_BYTES, "peak-rss-bytes"), (0, "c-misfreed")):
        if metric in frame:
            assert (frame[metric].dropna() <= limit).all()


@every_recording
def test_every_claim_got_a_verdict_that_rests_on_samples(recording: Recording) -> None:
    for claim in CLAIMS.values():
        if claim.experiment == recording.experiment.name and claim.cpus <= recording.cpus:
            for go in claim.releases:
                assert recording.estimate(claim.quantity, go).samples > 0, (claim.id, go)
