"""Experiments are data: what they declare must fit together."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from gccost import places
from gccost.errors import GccostError
from gccost.measuring import languages, toolchains
from gccost.measuring.experiments import EXPERIMENTS, experiment
from gccost.measuring.experiments.base import BUDGETS, SETTINGS, Arm, Case, Experiment, budget
from gccost.measuring.experiments.siebenmann import sized
from gccost.measuring.machine import MOST_BYTES

every_experiment = pytest.mark.parametrize("of", EXPERIMENTS.values(), ids=lambda e: e.name)
in_rounds = pytest.mark.parametrize(
    "of", [e for e in EXPERIMENTS.values() if not e.apart], ids=lambda e: e.name
)


@every_experiment
def test_no_two_cases_have_one_name(of: Experiment) -> None:
    names = [c.name for c in of.cases]
    assert len(set(names)) == len(names)


@every_experiment
def test_headline_ratios_are_measured_at_every_budget(of: Experiment) -> None:
    for limit in BUDGETS.values():
        arms = {(c.arm, c.release) for c in of.within(limit)}
        releases = {go for _, go in arms}
        assert releases >= {of.document, toolchains.today(of.document)}
        for ratio in of.headline:
            for go in releases:
                assert {(arm, go) for arm in ratio.arms} <= arms


@every_experiment
def test_what_the_gc_bears_on_is_compared_at_the_same_n(of: Experiment) -> None:
    for ratio in of.headline:
        for go in of.releases:
            over, under = (
                next(c for c in of.cases if (c.arm, c.release) == (arm, go))
                for arm in (ratio.numerator, ratio.denominator)
            )
            assert over.n == under.n


@every_experiment
def test_a_twin_is_its_arm_in_all_but_the_name(of: Experiment) -> None:
    n = {(c.arm, c.release): c.n for c in of.cases}
    for case in of.cases:
        if case.arm.twin:
            assert case.n == n[replace(case.arm, twin=""), case.release]


@in_rounds
def test_the_baseline_and_the_dearest_arm_have_twins_of_both_kinds(of: Experiment) -> None:
    twins: dict[str, set[str]] = {}
    for case in of.cases:
        if case.arm.twin:
            twins.setdefault(case.arm.benchmark, set()).add(case.arm.twin)
    # A JVM compiles the program while it runs: there is nothing to link anew.
    kinds = {"same"} if languages.of(of).folder == places.JAVASRC else {"same", "relinked"}
    assert len(twins) >= 2
    assert set(map(frozenset, twins.values())) == {frozenset(kinds)}


@every_experiment
def test_every_benchmark_stands_in_its_program(of: Experiment) -> None:
    for case in of.cases:
        assert case.arm.setting in SETTINGS
        folder = languages.of(of).folder / case.program
        if folder.is_relative_to(places.JAVASRC):
            assert (folder / "Main.java").exists()
            continue
        text = "".join(p.read_text() for p in folder.glob("*_test.go"))
        assert re.search(rf"^func Benchmark{case.arm.benchmark}\(", text, re.MULTILINE)


@every_experiment
def test_a_leaking_case_fits_in_memory(of: Experiment) -> None:
    for case in of.cases:
        frees = case.arm.benchmark in ("AllocateFree", "AllocateDefer")
        unlimited = case.arm.gogc == "off" and not case.arm.limit
        keeps = case.leaks or (unlimited and not frees)
        assert bool(case.kept) == keeps, f"{case.name}: what an operation keeps is not declared"
        assert case.n * case.kept < MOST_BYTES


@every_experiment
def test_its_chapter_stands(of: Experiment) -> None:
    assert (places.NOTEBOOKS / f"{of.chapter}.ipynb").exists()


def test_a_larger_budget_measures_all_that_a_smaller_one_does() -> None:
    for of in EXPERIMENTS.values():
        sizes = [{c.name for c in of.within(limit)} for limit in BUDGETS.values()]
        assert all(a <= b for a, b in pairwise(sizes))


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(GccostError, match="tiny, quick, standard, thorough"):
        budget("quik")
    with pytest.raises(GccostError, match=r"no experiment 'lemur'.*lemire"):
        experiment("lemur")


def test_a_release_without_cleanups_is_not_asked_for_their_curve() -> None:
    with pytest.raises(GccostError, match=r"Go 1.20.14 has no runtime.AddCleanup.*1.24 or later"):
        Case("objects", sized("Cleanup", 8), "1.20.14", 1000)


def test_memory_caps_what_a_case_keeps_and_nothing_else() -> None:
    keeps = Case("objects", sized("Finalize", 512, gogc="off"), "1.27.4", 1000, kept=5000)
    frees = Case("objects", sized("Finalize", 512), "1.27.4", 1000)
    fitted = Case("cstr", Arm("AllocateFree"), "1.27.4", 0)
    assert fitted.capped(10_000) == fitted
    assert keeps.capped(10_000).n == 2
    assert keeps.capped(10**9) == keeps
    assert frees.capped(10_000) == frees


def test_a_case_of_every_second_round_is_due_in_the_first() -> None:
    case = Case("cstr", Arm("AllocateAuto"), "1.27.4", 1000, every=2)
    assert [case.due(number) for number in (1, 2, 3, 4)] == [True, False, True, False]
