"""The table of jobs: what it holds, what a reader does with it, and what a damaged one says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import recordings
from faketools import wait_for

from gccost import paths
from gccost.cases import benchmarks, jobs
from gccost.cases.cases import BUDGETS
from gccost.cases.versions import TODAY_GO, title
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging import opening
from gccost.judging.claims import Study
from gccost.judging.rounding import written
from gccost.measuring import planning
from gccost.run import benchfmt, jobtable, runs
from gccost.studies import STUDIES

JOBS = {name: job for study in STUDIES.values() for name, job in study.jobs.items()}
ROW = recordings.job("AllocateFree")


def test_every_job_is_read_as_it_was_written(tmp_path):
    jobtable.write(tmp_path / "jobs.csv", JOBS.values())
    assert jobtable.read(tmp_path / "jobs.csv") == {
        name: {key: value for key, value in job.items() if value != "" or key in jobtable._FIRST}
        for name, job in JOBS.items()
    }


def test_a_sample_of_every_job_is_read_as_it_was_written():
    for name, job in JOBS.items():
        [sample] = benchfmt.parse(f"Benchmark{name} 1 1 ns/op").samples.values()
        assert sample.full_name == jobs.name(name, job["release"]) == name
        assert benchfmt.parse(benchfmt.format_line(sample)).samples == {1: sample}


FREED = "AllocateFree,cstr,1000,,,,,,manual free,,short\n"


@pytest.mark.parametrize(
    ("line", "more", "where", "problem", "hint"),
    [
        ("quik AllocateFree/go=today", "", "quik", "no budget 'quik'", "name one of quick"),
        ("quick AlocateFree/go=today", "", "AlocateFree", "no benchmark", "one of AllocateFree"),
        ("quick AllocateFree/gocg=off/go=today", "", "gocg=off", "no key 'gocg'", "one of gogc"),
        ("quick AllocateFree/gogc=/go=today", "", "gogc=", "gogc has no value", "leave it out"),
        ("quick AllocateFree/go=todya", "", "go=todya", "no release 'todya'", "one of today"),
        ("quick AllocateFree", "", "quick AllocateFree", "not name a release", "add /go=today"),
        ("quick AllocateFree/gogc=of/go=today", "", "gogc", "'of' is no whole number", "like 100"),
        ("quick AllocateFree/gogc=9..1/go=today", "", "9..1", "range is empty", "write 1..9"),
        (
            "quick Mine/go=today",
            "Mine,cstr,many\n",
            "Mine",
            "'many' is no whole number",
            "like 100",
        ),
        ("quick AllocateFree/gogc=1..x/go=today", "", "1..x", "no range", "write it like"),
        (
            "quick AllocateFree/go=today",
            "AllocateFree,,2000\n",
            "csv:3",
            "two of n: 2000, and 1000",
            "",
        ),
        (
            "quick Mine/go=today",
            "Mine,,1000\n",
            "csv:3",
            "has no program",
            "fill the column program",
        ),
        ("quick Mine/go=today", "Mine,cstr\n", "csv:3", "has no n", "fill the column n"),
        ("quick Mine/go=1.20.14", "Mine,cstr,9,,,,1.24\n", "1.20.14", "not in Go 1.20.14", "1.24"),
        ("quick Zzzzz/go=today", "", "Zzzzz", "no benchmark", ""),
        (
            "quick AllocateFree/setting=precize/go=today",
            "",
            "precize",
            "no setting",
            "one of precise",
        ),
        ("quick AllocateFree/gc=G1/go=today", "", "gc=G1", "no key 'gc'", "one of gogc"),
        ("", "Mine,cstt,9\n", "csv:3", "no program 'cstt'", "one of cstr"),
        ("", "AlocateFree,,9\n", "csv:3", "has no program", "one of AllocateFree"),
        ("", "Mine/wrods=1..2,cstr,9,,words\n", "csv:3", "no key 'wrods'", "one of words"),
        ("", "Mine/words=1..x,cstr,9,,words\n", "csv:3", "no range", "write it like"),
        ("", "Mine,cstr,9,,,seting=precise\n", "csv:3", "no key 'seting'", "one of setting"),
        ("", "Mine,cstr,9,,,setting=precize\n", "csv:3", "no setting 'precize'", "one of precise"),
        ("", "Mine,cstr,9,,words,gomaxprocs=wrods\n", "csv:3", "no whole number", "like 100"),
        ("", "Mine,cstr,9,,,,,,,,shrot\n", "csv:3", "no trait 'shrot'", "one of short"),
    ],
)
def test_a_wrong_line_of_a_study_or_the_table_is_named_with_the_nearest_word(
    tmp_path, monkeypatch, line, more, where, problem, hint
):
    names = [field.name for field in fields(benchmarks.Benchmark)]
    padded = more and more.strip() + "," * (len(names) - 1 - more.count(",")) + "\n"
    table = tmp_path / "benchmarks.csv"
    table.write_text(f"{','.join(names)}\n{FREED}{padded}")
    monkeypatch.setattr(paths, "BENCHMARKS", table)
    for kept in (benchmarks.table, jobs.name):
        kept.cache_clear()
    try:
        with pytest.raises(GccostError) as raised:
            Study("mine", "12-mine", "?", line or "quick Mine/go=today").jobs  # noqa: B018
    finally:
        benchmarks.table.cache_clear()
        jobs.name.cache_clear()
    error = raised.value
    assert (where in error.location, line in error.location) == (True, True)
    assert problem in error.message
    assert hint in error.hint


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
    jobtable.write(path, [ROW])
    path.write_text(path.read_text().replace(old, new, 1))
    if why is None:  # the name of the job has changed, and nothing else
        assert ROW["name"] not in jobtable.read(path)
        return
    with pytest.raises(GccostError) as raised:
        jobtable.read(path)
    assert why in raised.value.message
    assert (raised.value.location, raised.value.hint) == (str(path), jobtable.RESTORE)


def test_the_columns_of_an_older_table_are_dropped(tmp_path):
    path = tmp_path / "jobs.csv"
    jobtable.write(path, [ROW | {"sliced": True, "gated": False}])
    assert "sliced" in path.read_text()
    assert jobtable.read(path) == {ROW["name"]: ROW}


def test_a_job_that_is_there_twice_is_refused(tmp_path):
    jobtable.write(tmp_path / "jobs.csv", [ROW, ROW])
    with pytest.raises(GccostError, match=r"jobs\.csv:3: the job .* is there twice"):
        jobtable.read(tmp_path / "jobs.csv")


def test_line_ends_of_another_system_change_nothing(tmp_path):
    path = tmp_path / "jobs.csv"
    jobtable.write(path, [ROW])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(jobtable.read(path)) == [ROW["name"]]


def test_a_run_without_its_table_is_skipped_with_a_word(tmp_path):
    run = recordings.record(tmp_path, rounds=1)
    run.jobs_csv.unlink()
    assert runs.all_runs(tmp_path) == []
    [why] = runs.skipped(tmp_path)
    assert f"The run {run.name} is skipped: jobs.csv" in why


def test_a_sample_without_a_job_is_named_and_the_others_count(tmp_path):
    run = recordings.record(tmp_path, rounds=2)
    table = jobtable.read(run.jobs_csv)
    gone = next(iter(table))
    jobtable.write(run.jobs_csv, [job for name, job in table.items() if name != gone])
    recording = Recording(STUDIES["lemire"], run)
    assert any(f"no job of jobs.csv is named {gone}" in why for why in recording.problems)
    assert gone not in set(recording.frame["name"])
    assert len(set(recording.frame["name"])) == len(table) - 1


def test_the_readme_s_lines_give_the_ledger_s_digits():
    text = (paths.ROOT / "data" / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([*filter(None, code.splitlines())]) <= 70
    imported = {
        line.split()[1] for line in code.splitlines() if line.startswith(("import", "from"))
    }
    assert imported == {"numpy", "pandas", "scipy"}
    namespace: dict[str, Any] = {"run": opening.reference(STUDIES["lemire"]).folder}
    exec(code, namespace)  # noqa: S102
    found = namespace["found"]
    found["toolchain"] = found["release"].map(title)
    printed = pd.read_csv(paths.ROOT / "tests/golden/ledger.csv", dtype=str)
    both = printed.merge(found, left_on=["id", "toolchain"], right_on=["claim", "toolchain"])
    assert {"L1", "M1"} <= {*both["id"]}
    assert len(both) > 60
    for row in both.to_dict("records"):
        theirs = [row[end] for end in ("value", "low_y", "high_y")]
        ours = [row["estimate"], row["low_x"], row["high_x"]]
        assert theirs == pytest.approx([*map(float, ours)], rel=1e-4), row["id"]
        if row["id"] in ("L1", "M1"):
            assert [*map(written, theirs)] == ours


@pytest.mark.parametrize(("budget", "rounds"), [("tiny", 1), ("quick", 3), ("standard", 8)])
def test_a_job_has_its_own_rounds_from_the_standard_budget_on(budget, rounds):
    plan = planning.Plan({}, BUDGETS[budget], planning.settled, {})
    assert plan.rounds(recordings.job("AllocateFree") | {"rounds": 8}) == rounds


def test_a_job_is_measured_on_a_machine_that_has_just_its_cpus():
    job = recordings.job("AllocateFree") | {"cpus": 2}
    assert [planning.fitting([job], {"allowed_cpus": cpus}) for cpus in (1, 2)] == [[], [job]]


@pytest.mark.parametrize(("load", "loops"), [("busy", 1), ("full", len(os.sched_getaffinity(0)))])
def test_loops_run_next_to_a_program_under_load_and_end_with_it(tmp_path, load, loops):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\ncat /proc/$PPID/task/$PPID/children\nexit 3\n")
    program.chmod(0o755)
    job = jobs.job(f"AllocateFree/load={load}", TODAY_GO)
    command = shlex.split(job["argv"].replace("{program}", str(program)))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    assert len(done.stdout.split()) == loops + 1
    assert wait_for(lambda: not any(map(is_running, done.stdout.split())))


def is_running(pid: str) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
