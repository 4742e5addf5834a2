"""The declarations of studies are consistent."""

import re
from collections import defaultdict
from dataclasses import replace

import nbformat
import pytest
from recordings import study_of

from gccost import paths
from gccost.cases import jobs, versions
from gccost.cases.cases import BUDGETS
from gccost.judging import ledger
from gccost.measuring import languages
from gccost.measuring.machine import MOST_BYTES
from gccost.showing import results
from gccost.studies import CLAIMS, STUDIES

together = [of for of in STUDIES.values() if not of.on_request]


def test_headlines_are_measured_at_every_budget_with_one_number_of_operations():
    headlines = [claim for claim in CLAIMS.values() if claim.headline]
    assert headlines
    for claim in headlines:
        n = {job["name"]: job["n"] for job in study_of(claim).within(BUDGETS["tiny"])}
        for go in claim.releases:
            sides = {n[jobs.name(case, go)] for case in claim.quantity.cases}
            assert len(sides) == 1, f"{claim.id} compares different numbers of operations"


def test_a_control_differs_from_its_variant_only_by_name():
    controlled: defaultdict[str, set[str]] = defaultdict(set)
    for of in together:
        # A JVM compiles the program while it runs, so there is nothing to relink.
        how = "same" if languages.of(of).folder == paths.JAVASRC else "relinked"
        for job in (job for job in of.jobs.values() if "control" in job):
            assert (job["release"], job["control"]) == (versions.today(of.document), how)
            assert job["argv"] == of.jobs[jobs.uncontrolled(job)]["argv"]
            controlled[of.name].add(job["benchmark"])
    assert controlled["lemire"] == controlled["addcleanup"] == {"AllocateFree", "AllocateAuto"}


@pytest.mark.parametrize("of", STUDIES.values(), ids=lambda study: study.name)
def test_the_evidence_of_every_claim_is_a_heading_in_one_of_its_notebooks(of):
    headings = {
        f"{name}#{heading.lower().replace(' ', '-')}"
        for name in of.notebooks
        for cell in nbformat.read(paths.NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
        for heading in re.findall(r"^##+ (.*)$", cell.source, re.MULTILINE)
    }
    assert {of.evidence(claim) for claim in of.claims} <= headings


def test_an_anchor_may_name_another_notebook():
    first, second, *_ = STUDIES["lemire"].claims
    there = replace(STUDIES["lemire"], claims=(replace(first, anchor="01a-more#why"), second))
    assert there.notebooks == ("01-lemire", "01a-more")
    shown = results.ledger(ledger.rows({}, [there])).html
    assert '<a href="01a-more.ipynb#why">chapter 1a</a>' in shown
    assert f'<a href="01-lemire.ipynb#{second.anchor}">chapter 1</a>' in shown


@pytest.mark.parametrize("of", STUDIES.values(), ids=lambda study: study.name)
def test_every_case_can_be_measured_and_read(of):
    for job in of.jobs.values():
        folder = languages.of(of).folder / job["program"]
        if folder.is_relative_to(paths.JAVASRC):
            assert (folder / "Main.java").exists()
        else:
            text = "".join(p.read_text() for p in folder.glob("*_test.go"))
            assert f"\nfunc Benchmark{job['benchmark']}(" in text
        is_off = job.get("gc") == "off" and not jobs.has(job, "short")
        keeps = jobs.has(job, "leaks") or is_off
        assert job["retained_bytes"] or not keeps, f"{job['name']}: retained_bytes"
        assert job["n"] * job["retained_bytes"] < MOST_BYTES
