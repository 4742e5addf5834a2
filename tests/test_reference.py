"""The recordings in data/reference are complete and can be judged."""

from __future__ import annotations

import pytest
from recordings import benchmarks_of

from gccost import paths
from gccost.cases import jobs, sources
from gccost.cases.cases import BUDGETS
from gccost.cases.settings import Settings
from gccost.costs.recording import Recording
from gccost.judging import opening
from gccost.judging.opening import reference
from gccost.measuring import planning
from gccost.measuring.machine import MOST_BYTES, memory_for_a_sample
from gccost.run import runs
from gccost.studies import STUDIES

STANDARD = BUDGETS["standard"]
recorded = runs.all_runs(paths.reference())


@pytest.fixture(
    scope="module",
    params=[
        name for name, study in STUDIES.items() if any(name in run.studies for run in recorded)
    ],
)
def recording(request) -> Recording:
    """The recording of each study, in turn."""
    of = STUDIES[request.param]
    return Recording(of, reference(of))


# Variants without manual frees: their cost includes the collector's, so it must run.
AUTOMATIC = {"AllocateAuto", "AllocateCleanup", "EmptyFinalizer", "Finalize", "Cleanup"}
AUTOMATIC |= {"ParallelAuto", "ParallelCleanup"}


def test_every_study_without_its_own_command_is_recorded():
    assert runs.skipped(paths.reference()) == ()
    for of in STUDIES.values():
        if not of.on_request:
            assert of.name in reference(of).studies


def test_every_recorded_line_is_usable(recording: Recording):
    assert recording.problems == ()
    assert recording.manifest["scale"] == 1


def test_the_recording_matches_the_current_sources(recording: Recording):
    here = sources.source_hashes(recording.study)
    assert here.items() <= recording.manifest["programs"].items()
    assert not recording.manifest["machine"]["dirty"]
    notices = opening.shown(recording.study, Settings("replay")).notices
    assert not any("programs have changed since" in each for each in notices)
    if "lemire" in recording.run.studies:  # whose chapter runs plain commands
        assert recording.manifest["shell"]


def test_every_case_was_measured(recording: Recording):
    if recording.study.on_request:
        return
    finished = recording.manifest["finished"]
    assert any(BUDGETS[name].reaches("standard") for name in finished if name in BUDGETS)
    memory = memory_for_a_sample(recording.manifest["machine"])
    due = planning.fitting(recording.study.within(STANDARD), {"allowed_cpus": recording.cpus})
    names = {*recording.frame["name"]}
    assert {job["name"] for job in due} <= names
    for job in due:  # and today's N is the recorded one
        assert recording.jobs[job["name"]]["n"] == jobs.capped(job, memory)["n"]


def test_the_gc_runs_wherever_it_is_enabled(recording: Recording):
    frame = recording.frame
    enabled = frame["name"].str.contains("/gogc=100/")
    automatic = benchmarks_of(recording).isin(AUTOMATIC) & enabled
    assert (frame.loc[automatic, "gc_cycles"] >= 1).all()
    many = automatic & (frame["operations"] >= 4_000_000)
    assert (frame.loc[many, "gc_cycles"] >= 3).all()


def test_samples_stay_in_memory_limits_and_misfree_nothing(recording: Recording):
    frame = recording.frame
    for limit, metric in ((MOST_BYTES, "peak_rss_bytes"), (0, "c_misfreed")):
        if metric in frame:
            assert (frame[metric].dropna() <= limit).all()
