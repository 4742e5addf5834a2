"""The declarations of studies are consistent."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from recordings import study_of

from gccost import paths
from gccost.errors import GccostError
from gccost.judging.quantities import Ratio
from gccost.measuring import languages, toolchains
from gccost.measuring.cases import BUDGETS, FREE, Case, Study
from gccost.measuring.machine import MOST_BYTES
from gccost.studies import CLAIMS, STUDIES
from gccost.studies.siebenmann import sized

every_study = pytest.mark.parametrize("of", STUDIES.values(), ids=lambda e: e.name)
together = [of for of in STUDIES.values() if not of.on_request]


def test_a_case_is_the_same_in_every_study() -> None:
    known: dict[str, Case] = {}
    for case in (case for of in together for case in of.cases):
        other = known.setdefault(case.name, case)
        assert (other.program, other.n) == (case.program, case.n), case.name


def test_budgets_are_nested_and_include_the_headlines() -> None:
    headlines = [claim for claim in CLAIMS.values() if claim.headline]
    assert headlines
    for claim in headlines:
        of = study_of(claim)
        variants = {(c.variant, c.release) for c in of.within(BUDGETS["tiny"])}
        assert {
            (variant, go) for variant in claim.quantity.variants for go in claim.releases
        } <= variants
        if isinstance(claim.quantity, Ratio):  # at the same number of operations
            for go in claim.releases:
                found = {(c.release, c.variant): c.n for c in of.cases}
                assert len({found[go, variant] for variant in claim.quantity.variants}) == 1
    for of in STUDIES.values():
        sizes = [{c.name for c in of.within(limit)} for limit in BUDGETS.values()]
        assert all(a <= b for a, b in pairwise(sizes))


def test_a_control_differs_from_its_variant_only_by_name() -> None:
    controls: defaultdict[str, set[str]] = defaultdict(set)
    for of in together:
        n = {(c.variant, c.release): c.n for c in of.cases}
        for case in of.cases:
            if case.variant.control:
                assert case.n == n[replace(case.variant, control=""), case.release]
                assert case.release == toolchains.today(of.document)
                # A JVM compiles the program while it runs, so there is nothing to relink.
                java = languages.of(of).folder == paths.JAVASRC
                assert case.variant.control == ("same" if java else "relinked")
                controls[of.name].add(case.variant.benchmark)
    assert controls["lemire"] == controls["addcleanup"] == {"AllocateFree", "AllocateAuto"}


@every_study
def test_every_case_can_be_measured_and_read(of: Study) -> None:
    assert len({case.name for case in of.cases}) == len(of.cases)
    assert (paths.NOTEBOOKS / f"{of.chapter}.ipynb").exists()
    for case in of.cases:
        variant, folder = case.variant, languages.of(of).folder / case.program
        if folder.is_relative_to(paths.JAVASRC):
            assert (folder / "Main.java").exists()
        else:
            text = "".join(p.read_text() for p in folder.glob("*_test.go"))
            assert f"\nfunc Benchmark{variant.benchmark}(" in text
        unlimited = variant.gogc == "off" and not variant.limit
        keeps = case.leaks or (unlimited and not variant.stationary)
        assert bool(case.retained_bytes) == keeps, f"{case.name}: retained_bytes"
        assert case.n * case.retained_bytes < MOST_BYTES


def test_a_cleanup_case_requires_go_1_24() -> None:
    with pytest.raises(GccostError, match=r"Go 1.20.14 has no runtime.AddCleanup.*1.24 or later"):
        Case("objects", sized("Cleanup", 8), "1.20.14", 1000)


def test_memory_caps_only_cases_that_retain_memory() -> None:
    keeps = Case("objects", sized("Finalize", 512, gogc="off"), "1.27.4", 1000, retained_bytes=5000)
    frees = Case("objects", sized("Finalize", 512), "1.27.4", 1000)
    fitted = Case("cstr", FREE, "1.27.4", 0)
    assert fitted.capped(10_000) == fitted
    assert keeps.capped(10_000).n == 2
    assert keeps.capped(10**9) == keeps
    assert frees.capped(10_000) == frees
