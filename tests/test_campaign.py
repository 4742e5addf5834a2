"""Measuring: rounds, faults, and taking up again what was broken off."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from conftest import PROGRAM, FakeMachine, due

from gccost import places
from gccost.errors import GccostError, MissingTool
from gccost.judging.recording import Recording
from gccost.measuring import benchfmt, builds, frames, measure, runs
from gccost.measuring.experiments import EXPERIMENTS, experiment
from gccost.measuring.experiments.base import BUDGETS, FREE, Arm, Case, Experiment
from gccost.measuring.machine import describe, memory_for_a_sample
from gccost.measuring.samples import SampleFailed, run_sample

LEMIRE = EXPERIMENTS["lemire"]
TINY = BUDGETS["tiny"]
CASE = Case("cstr", Arm("AllocateFree"), "1.27.4", n=1000)


def program(folder: Path, behaviour: str) -> Path:
    path = folder / "program.test"
    path.write_text(PROGRAM + behaviour + "\n")
    path.chmod(0o755)
    return path


def measured(run: runs.Run):  # a frame of every sample of the run
    reading = benchfmt.read(run.results("lemire"))
    assert not reading.errors
    return frames.of_cases(reading.frame, LEMIRE.within(TINY))


# --- one sample ---------------------------------------------------------------


def test_a_sample_is_named_by_its_case(tmp_path: Path) -> None:
    sample = run_sample(program(tmp_path, 'line "$name"'), CASE, tmp_path)
    assert sample.name == "AllocateFree"
    assert sample.keys == {"go": "1.27.4", "gogc": "100", "setting": "published"}
    assert sample.n == 1000
    assert sample.metrics["ns/op"] == 10
    assert sample.metrics["elapsed-s"] > 0


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("exit 3", "failed with exit code 3"),
        ("echo 'panic: lost' >&2; exit 2", "panic: lost"),
        ("kill -SEGV $$", "was ended by SIGSEGV"),
        ("true", "printed 0 results"),
        ('line "$name"; line "$name"', "printed 2 results"),
        ('n=7; line "$name"', "ran 7 operations, not 1000"),
        ('ns=NaN; line "$name"', "cannot be read"),
        ("echo 'BenchmarkAllocateFree-2 1000 ns/op'", "cannot be read"),
        ('line "$name" | sed "s/0 c-misfreed/1 c-misfreed/"', "freed that was not allocated"),
    ],
)
def test_a_program_that_fails_is_no_sample(tmp_path: Path, behaviour: str, why: str) -> None:
    with pytest.raises(SampleFailed, match=why) as failure:
        run_sample(program(tmp_path, behaviour), CASE, tmp_path)
    assert failure.value.place == CASE.name


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    hanging = program(tmp_path, f'sleep 60 & echo $! > "{tmp_path}/child"; wait')
    with pytest.raises(SampleFailed, match=r"hung: it was ended after 0\.5 s"):
        run_sample(hanging, CASE, tmp_path, limit=0.5)
    child = int((tmp_path / "child").read_text())
    status = Path(f"/proc/{child}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_a_precise_case_runs_on_one_proc_pinned(tmp_path: Path) -> None:
    show = f'env > "{tmp_path}/env"; nproc > "{tmp_path}/nproc"; line "$name"'
    precise = replace(CASE, arm=Arm("AllocateFree", gogc="off", setting="precise"))
    run_sample(program(tmp_path, show), precise, tmp_path)
    variables = dict(v.split("=", 1) for v in (tmp_path / "env").read_text().splitlines())
    assert variables["GOMAXPROCS"] == "1"
    assert variables["GOGC"] == "off"
    assert (tmp_path / "nproc").read_text().strip() == "1"


def test_the_users_go_settings_do_not_reach_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMAXPROCS", "GOMEMLIMIT", "GODEBUG", "GOFLAGS", "MALLOC_ARENA_MAX"):
        monkeypatch.setenv(name, "9")
    run_sample(program(tmp_path, f'env > "{tmp_path}/env"; line "$name"'), CASE, tmp_path)
    variables = dict(v.split("=", 1) for v in (tmp_path / "env").read_text().splitlines())
    assert "9" not in variables.values()


def test_a_sub_benchmark_is_asked_for_and_known_by_its_keys(tmp_path: Path) -> None:
    sized = replace(CASE, arm=Arm("Finalize", sub=(("words", "8"),)))
    asked = f'echo "$@" > "{tmp_path}/asked"; '
    sample = run_sample(
        program(tmp_path, asked + "line BenchmarkFinalize/words=8"), sized, tmp_path
    )
    assert sample.keys["words"] == "8"
    assert "-test.bench=^Benchmark(Finalize)$/^words=8$" in (tmp_path / "asked").read_text()
    with pytest.raises(SampleFailed, match="ran Finalize"):
        run_sample(program(tmp_path, "line BenchmarkFinalize/words=16"), sized, tmp_path)


def test_a_benchmark_that_refuses_says_why(tmp_path: Path) -> None:
    refuses = "printf -- '--- SKIP: BenchmarkX\\n    x_test.go:7: it may never run\\n'"
    with pytest.raises(SampleFailed, match="the program skipped it: it may never run"):
        run_sample(program(tmp_path, refuses), CASE, tmp_path)


# --- a run --------------------------------------------------------------------


def test_every_round_holds_every_case_as_often_as_declared(machine: FakeMachine) -> None:
    run = measure.measure(measure.plan(LEMIRE, TINY))
    frame = measured(run)
    for number, round_ in frame.groupby("round"):
        assert round_["name"].value_counts().to_dict() == due(LEMIRE, TINY, number)
    assert frame["round"].nunique() >= TINY.min_rounds


def test_the_order_differs_from_round_to_round(machine: FakeMachine) -> None:
    frame = measured(measure.measure(measure.plan(LEMIRE, TINY)))
    orders = {tuple(round_["name"]) for _, round_ in frame.groupby("round", sort=False)}
    assert len(orders) == frame["round"].nunique()


def test_a_release_is_measured_in_one_stretch_and_the_baseline_all_through_it() -> None:
    chance = random.Random(1)
    firsts = set()
    for _ in range(20):
        order = measure.in_order(LEMIRE.cases, chance)
        assert Counter(order) == {case: case.repeats for case in LEMIRE.cases}
        stretches = [list(group) for _, group in groupby(order, key=lambda case: case.release)]
        assert len(stretches) == len(LEMIRE.releases)
        firsts.add(stretches[0][0].release)
        for stretch in stretches:
            places = [i / len(stretch) for i, case in enumerate(stretch) if case.arm == FREE]
            # Of five, one in each fifth: a draw that knew nothing of the others would
            # leave out a half one time in sixteen.
            assert min(places) < 0.4
            assert max(places) > 0.6
    assert firsts == set(LEMIRE.releases)


def test_every_round_is_built_anew_with_a_layout_of_its_own(machine: FakeMachine) -> None:
    run = measure.measure(measure.plan(LEMIRE, TINY))
    rounds = measured(run)["round"].nunique()
    layouts = {path.stem.rpartition("-")[2] for path in machine.built}
    # Each round's own and its twin's, and those of the first builds, which are not measured.
    # Another for the twins that are linked anew, which are measured in every second round.
    assert len(layouts) == 2 + rounds + (rounds + 1) // 2


def test_what_is_finished_is_not_measured_again(machine: FakeMachine) -> None:
    first = measure.measure(measure.plan(LEMIRE, TINY))
    before = first.results("lemire").read_bytes()
    machine.behaviour = "exit 1"
    again = measure.measure(measure.plan(LEMIRE, TINY))
    assert again == first
    assert again.results("lemire").read_bytes() == before


def test_a_changed_source_makes_results_stale(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measure.measure(measure.plan(LEMIRE, TINY))
    monkeypatch.setattr(builds, "source_hash", lambda programs: "another")
    plan = measure.plan(LEMIRE, TINY)
    assert measure.find(plan) is None
    assert measure.measure(plan) != first
    assert first.results("lemire").exists()


@pytest.mark.parametrize("at", [1, 5, 17, 60])
def test_a_run_that_is_broken_off_goes_on_from_there(machine: FakeMachine, at: int) -> None:
    plan = measure.plan(LEMIRE, TINY)
    seen = 0

    def stop(done: float, total: float, what: str) -> None:
        nonlocal seen
        seen += 1
        if seen > at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure.measure(plan, stop)
    run = measure.find(plan)
    assert run is not None
    path = run.results("lemire")
    before = path.read_bytes()
    with path.open("ab") as file:  # the line that a kill would have cut
        file.write(b"BenchmarkAllocateAuto/go=1.27.4/gogc=100/setting=published-2\t8000\t11")
    assert measure.measure(measure.plan(LEMIRE, TINY)) == run
    assert path.read_bytes().startswith(before)
    for number, round_ in measured(run).groupby("round"):
        assert round_["name"].value_counts().to_dict() == due(LEMIRE, TINY, number)


def test_a_case_that_fails_is_left_out_and_the_rest_goes_on(machine: FakeMachine) -> None:
    machine.behaviour = '[ "$name" = BenchmarkAllocateDummy ] && exit 9; line "$name"'
    run = measure.measure(measure.plan(LEMIRE, TINY))
    names = set(measured(run)["benchmark"])
    assert "AllocateDummy" not in names
    assert "AllocateAuto" in names
    troubles = run.experiment("lemire")["troubles"]
    assert any("AllocateDummy" in t and "left out from here on" in t for t in troubles)


def test_when_every_case_fails_the_error_says_why(machine: FakeMachine) -> None:
    machine.behaviour = "echo 'cannot map memory' >&2; exit 1"
    with pytest.raises(GccostError, match=r"no case of it can be measured.*cannot map memory"):
        measure.measure(measure.plan(LEMIRE, TINY))


def test_blocks_that_stay_unfreed_are_a_trouble_unless_by_design(machine: FakeMachine) -> None:
    machine.behaviour = 'line "$name" | sed "s/0 c-unfreed-drained/900 c-unfreed-drained/"'
    run = measure.measure(measure.plan(LEMIRE, TINY))
    troubles = " ".join(run.experiment("lemire")["troubles"])
    assert "AllocateAuto" in troubles
    assert "AllocateDummy" not in troubles


def test_a_missing_release_leaves_out_its_cases(machine: FakeMachine) -> None:
    machine.missing = {"1.20.14"}
    run = measure.measure(measure.plan(LEMIRE, TINY))
    assert set(measured(run)["release"]) == {"1.27.4"}
    assert "cannot be fetched" in run.experiment("lemire")["missing"]["1.20.14"]


def test_with_no_release_at_all_nothing_is_measured(machine: FakeMachine) -> None:
    machine.missing = {"1.20.14", "1.27.4"}
    with pytest.raises(MissingTool, match="nothing can be measured"):
        measure.measure(measure.plan(LEMIRE, TINY))
    assert not runs.all_runs(places.runs())


def test_a_larger_budget_adds_to_the_same_run(machine: FakeMachine) -> None:
    first = measure.measure(measure.plan(LEMIRE, TINY))
    before = first.results("lemire").read_bytes()
    larger = replace(BUDGETS["standard"], seconds=0.0, scale=TINY.scale)
    again = measure.measure(measure.plan(LEMIRE, larger))
    assert again == first
    assert again.results("lemire").read_bytes().startswith(before)
    assert set(again.experiment("lemire")["finished"]) == {"tiny", "standard"}
    frame = frames.of_cases(benchfmt.read(again.results("lemire")).frame, LEMIRE.within(larger))
    assert "AllocateCleanup" in set(frame["benchmark"])


def test_tiny_samples_are_never_pooled_with_real_ones(machine: FakeMachine) -> None:
    tiny, quick = (measure.plan(LEMIRE, BUDGETS[name]) for name in ("tiny", "quick"))
    assert tiny.key != quick.key


def test_two_at_once_in_one_place(machine: FakeMachine) -> None:
    with (
        runs.exclusive(places.runs(), "measuring"),
        pytest.raises(GccostError, match="another gccost is measuring here"),
    ):
        measure.measure(measure.plan(LEMIRE, TINY))


def test_an_unknown_experiment_is_named() -> None:
    with pytest.raises(GccostError, match="lemire"):
        experiment("nothing")


# --- what is measured less often, or not here ---------------------------------


def seldom(machine: FakeMachine, **facts) -> Experiment:
    """Lemire's first two cases, the second with other facts."""
    first, second = LEMIRE.cases[0], replace(LEMIRE.cases[4], **facts)
    return replace(LEMIRE, cases=(first, second), headline=())


def test_a_case_of_every_second_round_is_measured_in_every_second(machine: FakeMachine) -> None:
    of = seldom(machine, every=2)
    run = measure.measure(measure.plan(of, TINY))
    frame = frames.of_cases(benchfmt.read(run.results("lemire")).frame, of.within(TINY))
    rounds = {name: sorted(set(own["round"])) for name, own in frame.groupby("name")}
    assert rounds[of.cases[0].name] == [1, 2, 3, 4]
    assert rounds[of.cases[1].name] == [1, 3]


def test_a_case_for_many_cpus_is_left_out_on_few(machine: FakeMachine) -> None:
    of = seldom(machine, cpus=10_000)
    plan = measure.plan(of, TINY)
    assert [case.name for case in plan.cases] == [of.cases[0].name]
    assert measure.finished(measure.measure(plan), plan)


def test_a_case_too_large_for_the_memory_is_capped_and_says_so(machine: FakeMachine) -> None:
    whole = LEMIRE.within(TINY)[4]
    of = seldom(machine, kept=memory_for_a_sample(describe()) // (whole.n // 2))
    run = measure.measure(measure.plan(of, TINY))
    assert "this machine's memory allows" in run.experiment("lemire")["troubles"][0]
    loaded = Recording.load(of, run)
    capped = loaded.samples(of.cases[1].arm, of.cases[1].release)
    assert len(capped) == 4
    assert set(capped["n"]) == {whole.n // 2}


def test_a_program_is_its_own_sources_and_those_that_it_imports() -> None:
    files = builds.sources("parallel")
    assert {path.parent.name for path in files} == {"gosrc", "parallel", "cstr", "meter"}
    assert len(files) == len(set(files))
