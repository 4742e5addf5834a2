"""End to end: measure at the tiny budget, run the notebooks, check the report."""

from __future__ import annotations

import pandas as pd
import pytest
from browser import PHONE, Browser
from measured import Made, one_of_a_kind

from gccost.cases import jobs, versions
from gccost.costs.recording import Recording
from gccost.judging.quantities import Share, SittingsAgree
from gccost.measuring import planning
from gccost.run.runs import all_runs
from gccost.studies import CLAIMS, STUDIES

pytestmark = pytest.mark.slow


def test_every_case_has_valid_samples(made: Made):
    (run,) = all_runs(made.runs)
    assert run.reading().errors == []
    measured, failed = one_of_a_kind(), run.manifest()["failed"]
    for of in STUDIES.values():
        if of.on_request:
            continue
        cases = [job for name, job in of.jobs.items() if name in measured]
        frame = Recording(of, run).frame
        rounds = frame.groupby("name")["round"].nunique()
        for job in planning.fitting(cases, run.manifest()["machine"]):
            # A sample that a busy machine disturbs fails, and is measured again.
            assert job["name"] in rounds, failed.get(job["name"])
        if "c_allocated" not in frame:
            continue
        frame = frame[frame["c_allocated"].gt(0)]  # other cases free Go objects only
        assert (frame["c_misfreed"] == 0).all()
        # A slab allocates its blocks together, so the last slab may have unused ones, and the
        # slab of the handles that were made before the loop.
        spare = frame["name"].str.contains("/handles=") * 1024
        benchmark = frame["name"].str.replace("/.*", "", regex=True)
        spare = spare + 1024 * (benchmark == "ParallelSlab")
        leaks = benchmark.isin({job["benchmark"] for job in cases if jobs.has(job, "leaks")})
        assert (frame.loc[~leaks, "c_unfreed_drained"] <= 8 + spare[~leaks]).all()
        n = frame["operations"].mask(benchmark.str.contains("Reused"), frame["c_allocated"])
        assert frame["c_allocated"].between(n - spare, n + spare).all()


def test_the_ledger_judges_what_was_measured(made: Made):
    ledger = pd.read_csv(made.report / "ledger.csv", keep_default_na=False)
    measured, judged = one_of_a_kind(), set()
    for row in ledger.itertuples():
        claim = CLAIMS[row.id]
        releases = [go for go in claim.releases if versions.title(go) == row.toolchain]
        needed = {jobs.name(case, go) for go in releases for case in claim.quantity.cases}
        if row.verdict == "cannot be tested on this machine":
            assert claim.cpus > 1 or claim.cores > 1 or claim.system
        elif not needed <= measured.keys() or isinstance(claim.quantity, Share | SittingsAgree):
            continue  # a profile of milliseconds may hold no sample, and there is one sitting
        else:
            judged.add(row.id)
            low, high = float(row.low or "-inf"), float(row.high or "inf")  # empty: unbounded
            assert low <= float(row.estimate) <= high
            assert row.verdict != "not measured"
    assert judged >= {"L1", "L2a", "L2b", "L4"}


def test_the_plain_command_output_is_stored_and_shown(made: Made):
    (run,) = all_runs(made.runs)
    kept = run.manifest()["shell"].values()
    assert any("BenchmarkAllocateAuto" in each["output"] for each in kept)
    assert "BenchmarkAllocateAuto" in (made.report / "01-lemire.html").read_text(encoding="utf-8")


def test_the_report_renders_in_a_browser(browser: Browser, made: Made):
    seen = browser.open_report(made.report / "01-lemire.html", window=PHONE)
    assert seen.requests == seen.problems == seen.broken == seen.sticking_out == []
    assert seen.scroll_width <= seen.inner_width
    assert seen.charts > seen.empty_charts == 0
