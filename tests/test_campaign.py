"""The campaign: samples, rounds, open questions, faults, and resuming."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import recordings
from campaigns import LEMIRE, after, gccost
from conftest import FakeMachine, due
from faketools import PROGRAM, script, wait_for
from measured import run_sample

from gccost import paths, sitting
from gccost.cases import jobs, sources
from gccost.cases.cases import BUDGETS, OpenQuestion, Rank, Standing, Study
from gccost.cases.versions import TODAY_GO
from gccost.costs.recording import Recording
from gccost.costs.samples import of_run
from gccost.judging import ledger
from gccost.judging.questions import narrower, questions
from gccost.judging.rules import Label
from gccost.measuring import campaign, machine, planning
from gccost.measuring.planning import Plan
from gccost.measuring.sampler import SampleFailed
from gccost.run import jobtable, runs
from gccost.run.jobtable import Job
from gccost.stats import Estimate

TINY = replace(BUDGETS["tiny"], rounds=4)  # enough for verdicts
CASE = recordings.job("AllocateFree")
FREE, AUTO, DUMMY = "AllocateFree", "AllocateAuto", "AllocateDummy"
NAMES = {case: jobs.name(case, TODAY_GO) for case in (FREE, AUTO, DUMMY)}


def study(*cases: str, name: str = "made up") -> Study:
    return Study(name, "01-lemire", "?", f"tiny {'|'.join(cases)}/go=today")


def program(folder: Path, behaviour: str) -> Path:
    return script(folder / "program.test", PROGRAM + behaviour)


def measured(run: runs.Run, plan: Plan) -> pd.DataFrame:
    """Every sample of a plan's cases in a run."""
    assert not run.reading().errors
    frame = of_run(run).frame
    frame = frame[frame["name"].isin(list(plan.pool))]
    return frame.assign(benchmark=[plan.pool[name]["benchmark"] for name in frame["name"]])


def counted(run: runs.Run, plan: Plan) -> dict[str, int]:
    """The number of rounds of each benchmark in a run."""
    return measured(run, plan).groupby("benchmark")["round"].nunique().to_dict()


# --- one sample ---------------------------------------------------------------


def test_a_sample_takes_its_name_and_keys_from_its_case(tmp_path):
    sample = run_sample(program(tmp_path, 'line "$name"'), CASE, tmp_path)
    assert sample.name == "AllocateFree"
    assert sample.keys == {"go": "1.27.4", "gogc": "100", "setting": "published"}
    assert (sample.n, sample.metrics["ns/op"], sample.metrics["cpu-ns/op"]) == (1000, 10, 10)
    assert sample.metrics["elapsed-s"] > 0


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("echo 'panic: lost' >&2; exit 2", "failed with exit code 2: panic: lost"),
        ("kill -SEGV $$", "was ended by SIGSEGV"),
        ('line "$name" | sed "s/ ns.op/ ms\\/op/"', "printed no ns/op"),
        ("true", "printed 0 results"),
        ('line "$name"; line "$name"', "printed 2 results"),
        ('n=7; line "$name"', "ran 7 operations, not 1000"),
        ("line BenchmarkAllocateAuto", "ran AllocateAuto"),
        ('ns=NaN; line "$name"', "cannot be read"),
        ('line "$name" | sed "s/0 c-misfreed/1 c-misfreed/"', "freed that was not allocated"),
        ("printf -- '--- SKIP: X\\n    x_test.go:7: never\\n'", "the program skipped it: never"),
    ],
)
def test_a_failing_program_gives_no_sample(tmp_path, behaviour, why):
    with pytest.raises(SampleFailed, match=why) as failure:
        run_sample(program(tmp_path, behaviour), CASE, tmp_path)
    assert failure.value.location == CASE["name"]


def test_a_hanging_program_is_killed_with_its_children(tmp_path):
    child = f'echo $$ > "{tmp_path}/child"; sleep 60; touch "{tmp_path}/ended"'
    hanging = program(tmp_path, f"sh -c '{child}' & wait")
    with pytest.raises(SampleFailed, match=r"hung: it was ended after 2 s"):
        run_sample(hanging, CASE, tmp_path, limit=2)
    status = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    assert wait_for(lambda: not status.exists() or status.read_text().split()[2] == "Z")
    assert not (tmp_path / "ended").exists()  # it was not waited for


def test_a_precise_case_runs_pinned_without_inherited_settings(tmp_path, monkeypatch):
    for name in ("GOMAXPROCS", "GOMEMLIMIT", "GODEBUG", "GOFLAGS", "MALLOC_ARENA_MAX"):
        monkeypatch.setenv(name, "9")
    show = f'env > "{tmp_path}/env"; nproc > "{tmp_path}/nproc"; echo "$@" > "{tmp_path}/asked"; '
    sized = recordings.job("Finalize/words=8/gogc=off/setting=precise")
    binary = program(tmp_path, show + "line BenchmarkFinalize/words=8")
    sample = run_sample(binary, sized, tmp_path)
    assert sample.keys["words"] == "8"
    assert "-test.bench=^Benchmark(Finalize)$/^words=8$" in (tmp_path / "asked").read_text()
    variables = dict(v.split("=", 1) for v in (tmp_path / "env").read_text().splitlines())
    set_ = {"GOMAXPROCS": "1", "GOGC": "off"}
    assert {name: variables[name] for name in set_} == set_
    assert "9" not in variables.values()
    assert (tmp_path / "nproc").read_text().strip() == "1"


@pytest.mark.parametrize(
    ("case", "variable"),
    [
        ("TreesDropped/gomemlimit=8MiB", "GOMEMLIMIT=8MiB"),
        ("LargeAdopted/arenas=1", "MALLOC_ARENA_MAX=1"),
    ],
)
def test_a_case_sets_a_variable_of_its_process(tmp_path, case, variable):
    sized = recordings.job(case)
    binary = program(tmp_path, f'env > "{tmp_path}/env"; line "$name"')
    run_sample(binary, sized, tmp_path)
    assert variable in (tmp_path / "env").read_text().splitlines()


# --- rounds ---------------------------------------------------------------------


@dataclass
class Sampler:
    """Replaces measured processes; each takes the given seconds."""

    seconds: Callable[[jobtable.Job], float] = lambda job: 1.0
    delay: Callable[[jobtable.Job], float] = lambda job: 0.0
    taken: list[str] = field(default_factory=list)

    def __call__(self, job, program, scratch, *, profile=None):
        self.taken.append(job["benchmark"])
        if profile:
            profile.touch()
        times = {"ns/op": 10.0, "run-delay-share": self.delay(job), "elapsed-s": self.seconds(job)}
        return [recordings.of_job(job, times)] * job.get("count", 1)


@pytest.fixture
def sampler(machine: FakeMachine) -> Sampler:
    machine.sampler = Sampler()
    return machine.sampler


def asking(*open_questions: OpenQuestion, until: int = 1000) -> Callable[[runs.Run], Standing]:
    """Questions that stay open until this many rounds are measured."""

    def standing(run: runs.Run) -> Standing:
        rounds = max(s.metrics["round"] for s in run.reading().samples.values())
        return Standing(open_questions if rounds < until else (), 0, len(open_questions))

    return standing


def test_a_case_shared_by_studies_is_measured_once(sampler: Sampler):
    two = study(FREE, AUTO, name="one"), study(FREE, DUMMY, name="other")
    run = campaign.measure(plan := planning.plan(two, TINY))
    once = {FREE: TINY.rounds * jobs.PROCESSES, AUTO: TINY.rounds, DUMMY: TINY.rounds}
    assert Counter(sampler.taken) == once
    assert "one" in run.studies
    assert "other" in run.studies
    assert campaign.measure(plan) == run  # a finished plan is not measured again
    assert Counter(sampler.taken) == once


def test_another_sitting_is_added_on_request(sampler: Sampler):
    plan = planning.plan([study(FREE, AUTO)], TINY)
    run = campaign.measure(plan)
    once = Counter(sampler.taken)
    assert campaign.measure(plan, again=True) == run
    assert Counter(sampler.taken) == Counter({name: 2 * n for name, n in once.items()})
    sittings = run.manifest()["sittings"]
    assert [(s["budget"], s["studies"], bool(s["because"])) for s in sittings] == [
        ("tiny", ["made up"], True)
    ] * 2
    rounds = measured(run, plan).groupby("sitting")["round"].agg(["min", "max"])
    assert rounds.to_numpy().tolist() == [[1, TINY.rounds], [TINY.rounds + 1, 2 * TINY.rounds]]


def test_an_interrupted_sitting_goes_on(sampler: Sampler):
    plan = planning.plan([study(FREE, AUTO)], TINY)
    whole = TINY.rounds * (jobs.PROCESSES + 1)
    campaign.measure(plan)
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(plan, after(3), again=True)
    run = campaign.measure(plan, again=True)
    assert len(run.manifest()["sittings"]) == 2
    taken = measured(run, plan)
    assert taken.groupby("sitting").size().to_list() == [whole, whole]
    assert taken.groupby(["name", "round"]).size().max() == jobs.PROCESSES


def test_every_round_is_complete_with_its_own_order_and_layout(
    machine: FakeMachine, sampler: Sampler
):
    plan = planning.plan([LEMIRE], TINY)
    frame = measured(campaign.measure(plan), plan)
    rounds = list(frame.groupby("round"))
    for number, round_ in rounds:
        assert round_["name"].value_counts().to_dict() == due(plan, int(number))
    assert len(rounds) == 4
    assert len({tuple(round_["name"]) for _, round_ in rounds}) == len(rounds)
    # Each round's layout, and that of its controls.
    layouts = {path.stem.rpartition("-")[2] for path in machine.built}
    assert len(layouts) == 2 * len(rounds)


def test_each_release_is_one_block_with_baselines_throughout():
    order = campaign.in_order(LEMIRE.jobs.values(), random.Random(1))
    counts = {name: jobs.processes(job) for name, job in LEMIRE.jobs.items()}
    assert Counter(job["name"] for job in order) == counts
    blocks = [list(group) for _, group in groupby(order, key=itemgetter("release"))]
    assert len(blocks) == len(LEMIRE.releases)
    for block in blocks:
        places = [i / len(block) for i, job in enumerate(block) if recordings.is_of(job, FREE)]
        # Of four, one in each quarter.
        assert min(places) < 0.4
        assert max(places) > 0.6


def test_baselines_are_spread_evenly_over_a_round():
    for seed in range(100):
        order = campaign.in_order(LEMIRE.jobs.values(), random.Random(seed))
        for _, group in groupby(order, key=itemgetter("release")):
            block = list(group)
            names = Counter(job["name"] for job in block)
            for name, count in names.items():
                places = [i / len(block) for i, job in enumerate(block) if job["name"] == name]
                # The nth of so many lies in the nth part, but for the scatter of the others.
                off = [abs(place - (i + 0.5) / count) for i, place in enumerate(places)]
                assert max(off) < 0.5 / count + 0.2


AUTO_OPEN, DUMMY_OPEN = (OpenQuestion((NAMES[case],), 1) for case in (AUTO, DUMMY))
WIDE_DUMMY = replace(DUMMY_OPEN, rounds=10, rank=Rank.FIGURE, width=0.5)
FIRST = 4 * (9 + 7 + 4)  # seconds of the first rounds


@pytest.mark.parametrize(
    ("open_questions", "seconds", "rounds", "because"),
    [
        ([AUTO_OPEN, DUMMY_OPEN], 0, (4, 4, 4), "each case has its rounds"),
        ([AUTO_OPEN, DUMMY_OPEN], FIRST + 8, (4, 5, 5), "91 of the 88 s are spent"),
        ([replace(DUMMY_OPEN, rounds=2), AUTO_OPEN], FIRST + 12, (5, 4, 5), "93 of the 92 s"),
        ([AUTO_OPEN], 1e6, (6, 4, 6), "nothing is open"),
        ([WIDE_DUMMY, AUTO_OPEN], FIRST + 14, (4, 5, 5), "91 of the 94 s are spent"),
        ([WIDE_DUMMY], FIRST + 15, (4, 5, 5), "91 of the 95 s are spent"),
    ],
    ids=[
        "first rounds are completed",
        "the cheaper case first",
        "the least time first",
        "decided is enough",
        "a wide figure before a verdict",
        "a round narrows a figure",
    ],
)
def test_remaining_budget_goes_to_the_cheapest_open_questions(
    sampler: Sampler, open_questions, seconds, rounds, because
):
    sampler.seconds = lambda job: {AUTO: 9.0, DUMMY: 7.0}.get(job["benchmark"], 1.0)
    limit = replace(TINY, seconds=seconds)
    plan = planning.plan([study(FREE, AUTO, DUMMY)], limit, asking(*open_questions, until=6))
    run = campaign.measure(plan)
    # Each round for a question measures the baseline again.
    assert counted(run, plan) == dict(zip((AUTO, DUMMY, FREE), rounds, strict=True))
    assert run.manifest()["finished"]["tiny"]["because"].startswith(because)


@pytest.mark.parametrize("slower", [1.5, 2.5, 10])
def test_a_busy_machine_takes_longer_and_then_gets_fewer_rounds_of_all_cases(
    sampler: Sampler, slower
):
    sampler.seconds = lambda job: slower
    cases = study(FREE, AUTO, DUMMY)
    limit = replace(TINY, seconds=TINY.rounds * 6)
    open_questions = [OpenQuestion((name,), 1) for name in cases.jobs]
    run = campaign.measure(plan := planning.plan([cases], limit, asking(*open_questions)))
    assert set(counted(run, plan)) == {FREE, AUTO, DUMMY}
    rounds = counted(run, plan).values()
    assert max(rounds) - min(rounds) <= 1
    assert (min(rounds) >= limit.rounds) == (slower < 3)
    # The first round is always completed.
    taken = runs.seconds_of(run.reading().samples.values())
    assert taken <= max(limit.most, slower * 6) + slower


def recorded_as(folder: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
    """Make a synthetic run the recorded one."""
    recordings.record(folder, **how)
    monkeypatch.setattr(paths, "reference", lambda: folder)


DUMMY_L4 = (NAMES[DUMMY], NAMES[AUTO])


def noisy(ratio: float, spread: float, rounds: int = 1000) -> recordings.Change:
    """The empty finalizer near the bound of L4, 1.25, with noise; without it after these rounds."""
    chance = random.Random(2)

    def change(job: Job, number: int, metrics: recordings.Metrics) -> None:
        if job["benchmark"] == "AllocateDummy":
            metrics["ns/op"] = ratio * 700 * (1 + chance.uniform(0, spread))
            if number > rounds:
                metrics.clear()

    return change


@pytest.mark.parametrize(
    ("reference", "open_"),
    [
        ({"rounds": 40, "change": noisy(1.06, 0.5)}, False),
        ({"rounds": 40, "change": noisy(1.06, 0.5, rounds=0)}, True),
        ({"rounds": 40, "change": noisy(1.06, 0.5, rounds=1)}, True),
        ({"rounds": 40, "change": noisy(0.95, 1.2), "cpu": "Another CPU"}, True),
        ({"rounds": 40, "ns": {"AllocateDummy": 700.0}}, True),
    ],
    ids=["as noisy", "without the case", "one process of it", "far noisier", "hardly any noise"],
)
def test_no_time_goes_to_what_the_recorded_run_could_not_decide(
    tmp_path, monkeypatch, reference, open_
):
    recorded_as(tmp_path / "recorded", monkeypatch, **reference)
    run = recordings.record(tmp_path / "run", rounds=8, change=noisy(1.1, 0.2))
    for name in ("quick", "standard"):  # a run that may be recorded itself does not skip it
        standing = questions([LEMIRE], BUDGETS[name])(run)
        expected = open_ or name == "standard"
        assert (DUMMY_L4 in {question.cases for question in standing.open_questions}) is expected
        assert bool(standing.left) is not expected
    # No verdict depends on the recorded run, however narrow its intervals are.
    rows = ledger.rows({"lemire": Recording(LEMIRE, run)}, [LEMIRE])
    (row,) = (r for r in rows if (r.claim.id, r.release) == ("L4", TODAY_GO))
    assert row.verdict.label is Label.UNDECIDED


@pytest.mark.parametrize(
    ("half_width", "lasting", "more"),
    [
        (0.03, 0.0, []),  # narrow enough
        (0.08, 0.0, [30]),  # half as wide after four times the rounds
        (0.40, 0.0, [30]),  # in steps
        (0.08, 0.5, [8]),  # nearly as narrow as more rounds can make it
        (0.08, 0.7, []),  # sittings differ, which more rounds of one do not reduce
    ],
)
def test_headlines_get_the_rounds_that_make_them_narrower(half_width, lasting, more):
    estimate = Estimate(10, 10 - 10 * half_width, 10 + 10 * half_width, 10, 10, 0.95)
    estimate = replace(estimate, lasting=lasting)
    asked = [question.rounds for question in narrower(estimate, ("a",), 0.04)]
    assert asked == pytest.approx(more, abs=1)


def test_a_damaged_recorded_run_ends_no_campaign(tmp_path, monkeypatch):
    recorded_as(tmp_path / "recorded", monkeypatch, rounds=4)
    (tmp_path / "recorded" / "reference.json").write_text("[")
    run = recordings.record(tmp_path / "run", rounds=8, change=noisy(1.1, 0.2))
    standing = questions([LEMIRE], BUDGETS["quick"])(run)
    assert DUMMY_L4 in {question.cases for question in standing.open_questions}


@pytest.mark.usefixtures("no_recorded_sittings")
def test_a_campaign_ends_when_its_verdicts_are_decided(sampler: Sampler):
    """The questions are the ledger's; every ratio of these samples is 1."""
    limit = replace(TINY, seconds=1e6)
    plan = planning.plan([LEMIRE], limit, questions([LEMIRE], limit))
    run = campaign.measure(plan)
    assert set(counted(run, plan).values()) <= {TINY.rounds}
    standing = plan.standing(run)
    assert standing.open_questions == ()
    assert standing.decided == 8  # of four claims on two releases; L3 needs macOS
    assert standing.verdicts == 8


def test_a_second_study_is_added_to_the_run_of_the_first(sampler: Sampler):
    for name, studies in (("lemire", ["lemire"]), ("why", ["lemire", "why"])):
        result = gccost("measure", "--budget=tiny", f"--only={name}")
        assert result.exit_code == 0, result.output
        (run,) = runs.all_runs(paths.runs())
        assert run.manifest()["finished"]["tiny"]["studies"] == studies
        assert run.manifest()["sittings"][-1]["studies"] == [name]
        if name == "lemire":
            assert set(run.manifest()["programs"]) == {"cstr"}
            assert set(sampler.taken) == {job["benchmark"] for job in LEMIRE.jobs.values()}
            assert "of 8 verdicts decided" in result.output
        assert f"{len(run.reading().samples)} samples in " in result.output


@pytest.mark.parametrize(
    ("options", "because", "rounds"),
    [(("--fixed",), "each case has its rounds", {3}), ((), "s are spent", None)],
)
def test_a_fixed_plan_asks_no_question(sampler: Sampler, monkeypatch, options, because, rounds):
    open_question = OpenQuestion((next(iter(LEMIRE.jobs)),), 1)
    monkeypatch.setattr(sitting, "questions", lambda *_: asking(open_question))
    result = gccost("measure", "--budget=quick", "--only=lemire", *options)
    assert because in result.output
    (run,) = runs.all_runs(paths.runs())
    plan = planning.plan([LEMIRE], BUDGETS["quick"])
    assert rounds in (None, {*counted(run, plan).values()})


# --- the same run, or a new one --------------------------------------------------


@pytest.mark.parametrize("changed", ["sources", "compiler", "method", "scale", "machine"])
def test_changed_sources_method_or_machine_start_a_new_run(sampler: Sampler, monkeypatch, changed):
    first = campaign.measure(planning.plan([study(FREE)], TINY))
    before = first.samples_txt.read_bytes()
    assert campaign.fits(first, planning.plan([study(FREE)], TINY))
    limit = TINY
    if changed == "sources":
        monkeypatch.setattr(sources, "hash_of_go", lambda programs: "another")
    elif changed == "method":
        monkeypatch.setattr(campaign, "METHOD", "another")
    elif changed == "scale":
        limit = replace(BUDGETS["quick"], seconds=0.0)
    elif changed == "compiler":
        first.update(compilers={"C compiler": "another"})
    else:  # an equal fingerprint is not enough
        first.update(machine=first.manifest()["machine"] | {"cpu": "another"})
    plan = planning.plan([study(FREE)], limit)
    assert not campaign.fits(first, plan)
    assert campaign.measure(plan) != first
    assert first.samples_txt.read_bytes() == before


def test_a_larger_budget_extends_the_run(sampler: Sampler):
    first = campaign.measure(planning.plan([LEMIRE], TINY))
    before = first.samples_txt.read_bytes()
    more = replace(BUDGETS["standard"], seconds=0.0, scale=TINY.scale)
    plan = planning.plan([LEMIRE], more)
    assert campaign.measure(plan) == first
    assert first.samples_txt.read_bytes().startswith(before)
    assert set(first.manifest()["finished"]) == {"tiny", "standard"}
    counts = measured(first, plan).groupby(["name", "round"]).size()
    assert set(counts) == {1, 4}
    rounds = measured(first, plan).groupby(["sitting", "name"])["round"].nunique()
    assert set(rounds.loc[1]) == {TINY.rounds}
    assert set(rounds.loc[2]) == {more.rounds}


# --- faults --------------------------------------------------------------


def test_unfreed_blocks_are_reported_unless_by_design(machine: FakeMachine):
    machine.behaviour = 'line "$name" | sed "s/0 c-unfreed-drained/900 c-unfreed-drained/"'
    run = campaign.measure(planning.plan([study(AUTO, DUMMY)], TINY))
    assert set(run.manifest()["troubles"]) == {NAMES[AUTO]}


MANY = "Sign/goroutines=96"  # which needs 16 CPUs


# --- cases measured once, capped or not at all ------------------------------------


def test_once_and_cpus_limit_the_samples_of_a_case(sampler: Sampler, monkeypatch):
    monkeypatch.setattr(
        jobs, "has", lambda job, trait: (job["benchmark"], trait) == (DUMMY, "once")
    )
    of = replace(study(AUTO, DUMMY), cases=f"{study(AUTO, DUMMY).cases}\ntiny {MANY}/go=today")
    limit = replace(TINY, seconds=1e6)
    plan = planning.plan([of], limit, asking(OpenQuestion((NAMES[DUMMY],), 1), until=6))
    assert campaign.finished(campaign.measure(plan), plan)
    assert Counter(sampler.taken) == {AUTO: TINY.rounds, DUMMY: 1}


def test_a_case_too_large_for_memory_is_capped_and_reported(sampler: Sampler, monkeypatch):
    of, name = study(AUTO, DUMMY), NAMES[DUMMY]
    monkeypatch.setattr(
        machine, "memory_for_a_sample", lambda known: 4000 * of.jobs[name]["retained_bytes"]
    )
    run = campaign.measure(planning.plan([of], TINY))
    assert run.manifest()["troubles"] == {
        name: ["this machine's memory allows 4,000 operations only"]
    }
    capped = Recording(of, run).processes(name)
    assert len(capped) == TINY.rounds
    assert set(capped["operations"]) == {4000}


_SOURCE = """// Package a is measured.
package a

/*
#include <stdlib.h>
*/
import "C"

// Work works.
func Work() { work() } // at once
"""


@pytest.mark.parametrize(
    ("line", "instead", "counts"),
    [
        ("// Work works.", "\t/** Work works.\n\t * @return nothing\n\t */\n", False),
        ("// Work works.", "//go:noinline", True),
        ("// Package a is measured.", "// +build linux", True),
        ("#include <stdlib.h>", "#include <malloc.h>", True),
        ("func Work() { work() }", "func Work() { work(); work() }", True),
    ],
)
def test_the_source_hash_ignores_only_comments(tmp_path, line, instead, counts):
    path = tmp_path / "a.go"
    path.write_text(_SOURCE)
    before = sources.hash_of_code([path], tmp_path)
    assert before != sources.hash_of_code([path], tmp_path.parent)  # of another folder
    assert line in _SOURCE
    path.write_text(_SOURCE.replace(line, instead))
    assert (sources.hash_of_code([path], tmp_path) != before) is counts
