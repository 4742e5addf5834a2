"""The table of jobs: what it holds, what a reader does with it, and what a damaged one says."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest
import recordings

from gccost import opening, paths
from gccost.errors import GccostError
from gccost.judging.recording import Recording
from gccost.judging.rounding import written
from gccost.measuring import benchfmt, benchmarks, jobs, runs
from gccost.measuring.cases import AUTO, CLEANUP, FREE, Case
from gccost.measuring.toolchains import DOCUMENT_GO, ISSUE_GO, TODAY_GO, title
from gccost.studies import STUDIES

CASES = {case.name: case for study in STUDIES.values() for case in study.cases}
ROW = jobs.job(Case("cstr", FREE, TODAY_GO, 1000))


def test_every_job_is_read_as_it_was_written(tmp_path):
    written = {name: jobs.job(case) for name, case in CASES.items()}
    jobs.write(tmp_path / "jobs.csv", written.values())
    assert jobs.read(tmp_path / "jobs.csv") == {
        name: {key: value for key, value in job.items() if value != "" or key in jobs._FIRST}
        for name, job in written.items()
    }


def test_a_sample_of_every_job_is_read_as_it_was_written():
    for name in CASES:
        [sample] = benchfmt.parse(f"Benchmark{name} 1 1 ns/op").samples.values()
        assert sample.full_name == name
        assert benchfmt.parse(benchfmt.format_line(sample)).samples == {1: sample}


def test_every_benchmark_has_a_row():
    assert {case.variant.benchmark for case in CASES.values()} <= benchmarks.table().keys()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("name,program", "names,program", "line 2 lacks name"),
        (",1000,", ",10e2,", "line 2.n is 1000.0, not a whole number"),
        (",1000,", ",-1,", "line 2.n is -1, not a whole number"),
        (",1000,", ",", "line 2 has"),
        ("\n", "\nX,", "line 2 has"),
        (TODAY_GO, "", None),
    ],
)
def test_a_damaged_table_names_the_line(tmp_path, old, new, why):
    path = tmp_path / "jobs.csv"
    jobs.write(path, [ROW])
    path.write_text(path.read_text().replace(old, new, 1))
    if why is None:  # the name of the job has changed, and nothing else
        assert ROW["name"] not in jobs.read(path)
        return
    with pytest.raises(GccostError) as raised:
        jobs.read(path)
    assert why in raised.value.message
    assert (raised.value.location, raised.value.hint) == (str(path), jobs.RESTORE)


def test_the_columns_of_an_older_table_are_dropped(tmp_path):
    path = tmp_path / "jobs.csv"
    jobs.write(path, [ROW | {"sliced": True, "gated": False}])
    assert "sliced" in path.read_text()
    assert jobs.read(path) == {ROW["name"]: ROW}


def test_a_job_that_is_there_twice_is_refused(tmp_path):
    jobs.write(tmp_path / "jobs.csv", [ROW, ROW])
    with pytest.raises(GccostError, match=r"jobs\.csv:3: the job .* is there twice"):
        jobs.read(tmp_path / "jobs.csv")


def test_line_ends_of_another_system_change_nothing(tmp_path):
    path = tmp_path / "jobs.csv"
    jobs.write(path, [ROW])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(jobs.read(path)) == [ROW["name"]]


def test_a_run_without_its_table_is_skipped_with_a_word(tmp_path):
    run = recordings.record(tmp_path, rounds=1)
    run.jobs_csv.unlink()
    assert runs.all_runs(tmp_path) == []
    [why] = runs.skipped(tmp_path)
    assert f"The run {run.name} is skipped: jobs.csv" in why


def test_a_sample_without_a_job_is_named_and_the_others_count(tmp_path):
    run = recordings.record(tmp_path, rounds=2)
    table = jobs.read(run.jobs_csv)
    gone = next(iter(table))
    jobs.write(run.jobs_csv, [job for name, job in table.items() if name != gone])
    recording = Recording(STUDIES["lemire"], run)
    assert any(f"no job of jobs.csv is named {gone}" in why for why in recording.problems)
    assert gone not in set(recording.frame["name"])
    assert len(set(recording.frame["name"])) == len(table) - 1


def test_the_readme_s_lines_give_the_ledger_s_digits():
    text = (paths.ROOT / "data" / "README.md").read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"run": opening.reference(STUDIES["lemire"]).folder}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, namespace)  # noqa: S102
    printed = pd.read_csv(paths.ROOT / "tests/golden/ledger.csv", dtype=str)
    for claim, over, release in (
        ("L1", AUTO, DOCUMENT_GO),
        ("L1", AUTO, TODAY_GO),
        ("M1", CLEANUP, ISSUE_GO),
        ("M1", CLEANUP, TODAY_GO),
    ):
        pair, on = (over.on(release), FREE.on(release)), title(release)
        theirs = [namespace["ratio"](*pair), *namespace["interval"](*pair)]
        [row] = printed[(printed["id"] == claim) & (printed["toolchain"] == on)].itertuples()
        assert [written(each) for each in theirs] == [row.estimate, row.low, row.high]
