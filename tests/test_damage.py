"""Damaged run files: the good part is used, and the bad part is reported."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Callable

import pytest
import recordings
from campaigns import (
    LEMIRE,
    TINY,
    after,
    assert_complete,
    gccost,
    page_of,
    planned,
)
from conftest import FakeMachine

from gccost import paths, processes
from gccost.cases import jobs, published, versions
from gccost.cases.settings import Settings
from gccost.cases.versions import TODAY_GO
from gccost.costs import recorded as recorded_runs
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging import ledger, opening
from gccost.measuring import campaign
from gccost.run import runs
from gccost.showing import notice
from gccost.studies import STUDIES


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Recording:
    return recordings.recorded(tmp_path_factory.mktemp("recorded"), rounds=3)


@pytest.fixture
def copy(recorded, tmp_path) -> runs.Run:
    """A copy of the recorded run, to be damaged."""
    return runs.Run(shutil.copytree(recorded.run.folder, tmp_path / recorded.run.name))


def test_unusable_lines_change_no_cost_and_are_listed_up_to_a_number(recorded, copy):
    name = "BenchmarkAllocateFree/go=1.27.4/gogc=100/setting=published-2"
    wrong = ("80 ms/op\t4 round", "80 ns/op", "80 ns/op\t1e18 round", "80 ns/op\t0 round")
    copy.append([*(f"{name}\t1600000\t{more}" for more in wrong), f"{name}\t7\t80 ns/op\t1 round"])
    with copy.samples_txt.open("ab") as file:
        file.write(b"\x00\xff garbage\n" + b"BenchmarkX\n" * 999)
    spoilt = recordings.alone("lemire", copy)
    for case in ("AllocateFree", "AllocateAuto"):
        name = jobs.name(case, TODAY_GO)
        assert spoilt.cost(name) == recorded.cost(name)
    said = " ".join(spoilt.problems)
    assert said.count("the round is not a whole number from 1") == 3
    assert "the sample has 7 operations, and its job has 1600000" in said
    page = page_of(spoilt)
    assert page.count("This could not be used") == notice.SHOWN_PROBLEMS
    assert f"{len(spoilt.problems) - notice.SHOWN_PROBLEMS} more could not be used" in page
    assert "samples.txt:" in page


def test_measuring_resumes_after_the_results_are_overwritten(machine: FakeMachine):
    plan = planned()
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(plan, after(30))
    run = campaign.find(plan)
    run.samples_txt.write_bytes(b"\x00" * 4096)
    assert campaign.measure(plan) == run
    assert_complete(run)


def test_an_unreadable_run_is_reported_and_skipped(machine: FakeMachine):
    old = campaign.measure(planned())
    description = old.folder / "run.json"
    description.write_text(description.read_text().replace('"format": 4', '"format": 1'))
    before = old.samples_txt.read_bytes()
    done = gccost("measure", "--only=lemire")
    assert done.exit_code == 0
    why = "move the folder away and measure"
    assert f"The run {old.name} is skipped: " in done.stderr
    assert why in done.stderr
    (new,) = runs.all_runs(paths.runs())
    assert new != old
    assert_complete(new)
    assert old.samples_txt.read_bytes() == before
    shown = opening.shown(STUDIES["lemire"], Settings("measure", TINY))
    assert any(old.name in text for text in shown.notices)
    added = gccost("add", str(old.folder))
    assert added.exit_code == 1
    assert why in added.stderr


# --- every kind of file under data/ ---------------------------------------------------


def flipped(data: bytes, at: float) -> bytes:
    place = int(at * (len(data) - 1))
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a byte at the start": lambda data: flipped(data, 0),
    "a byte in the middle": lambda data: flipped(data, 0.5),
    "the last byte": lambda data: flipped(data, 1),
    "truncated": lambda data: data[: len(data) // 2 + (data[len(data) // 2 - 1] == 10)],
    "the last newline": lambda data: data[:-1],
    "empty": lambda data: b"",
}
PUBLISHED = sorted(path.name for path in paths.PUBLISHED.glob("*.[ct][sx][vt]"))


def error_of(read: Callable[[], object]) -> str:
    """The error that reading raises."""
    with pytest.raises(GccostError) as damaged:
        read()
    return str(damaged.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_damaged_published_file_is_named(name, tmp_path, monkeypatch):
    data = (paths.PUBLISHED / name).read_bytes()
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    read = published.table if name.endswith(".csv") else published.text
    for damage in DAMAGES.values():
        (tmp_path / name).write_bytes(damage(data))
        said = error_of(lambda: read(name.removesuffix(".csv")))
        assert said.startswith(f"{tmp_path / name}: ")
        assert "To fix it: restore it: git checkout" in said


def test_a_published_table_with_a_letter_in_a_number_or_without_a_claim_is_named(
    tmp_path, monkeypatch
):
    data = (paths.PUBLISHED / "claims.csv").read_text()
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    for old, new in (("8.667", "8.b67"), ("\nL1,", "\nl1,"), ("\nL2a,", "\nL1,"), (data, "")):
        (tmp_path / "claims.csv").write_text(data.replace(old, new))
        assert "claims.csv" in error_of(lambda: ledger.rows({}, [LEMIRE]))
    (tmp_path / "claims.csv").write_text(f"{data}Z1,lemire,\n")
    said = error_of(lambda: ledger.rows({}, [LEMIRE]))
    assert f"line {data.count(chr(10)) + 1} has 3 columns, not 9: id, document, claim" in said


@pytest.mark.parametrize("name", ["releases.csv", "reference.json"])
def test_a_damaged_table_of_ours_is_named(name, tmp_path, monkeypatch):
    original = {"releases.csv": paths.RELEASES}.get(name, paths.reference() / name).read_bytes()
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    monkeypatch.setattr(paths, "RELEASES", tmp_path / name)
    readers: dict[str, Callable[[], object]] = {
        "releases.csv": versions._pinned,
        "reference.json": recorded_runs.recorded,
    }
    for damage in DAMAGES.values():
        (tmp_path / name).write_bytes(damage(original))
        assert name in error_of(readers[name])


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> runs.Run:
    """A run with every kind of file."""
    run = recordings.record(tmp_path_factory.mktemp("whole"), rounds=2)
    trace = gzip.compress("\n".join([recordings.TRACE] * 9).encode(), mtime=0)
    path = run.gctrace("a")
    path.parent.mkdir()
    path.write_bytes(trace)
    run.finish("standard", "it was made up", [])
    return run


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["run.json", "samples.txt", "profiles", "gctraces"])
def test_a_damaged_file_of_a_recorded_run_is_named_and_the_others_are_shown(
    whole, kind, damage, tmp_path, monkeypatch
):
    if (kind, damage) == ("run.json", "the last newline"):
        return  # it is still the same JSON
    run = runs.Run(shutil.copytree(whole.folder, tmp_path / whole.name))
    path = run.folder / kind
    path = path if path.is_file() else min(path.iterdir())
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    said = " ".join(runs.skipped(tmp_path))
    if kind != "run.json":
        shown = opening.shown(STUDIES["lemire"], Settings("replay"))
        said = notice.notice([shown]).text  # of the page
        assert ledger.shown({"lemire": shown}, STUDIES.values())
    assert (kind if path.suffix == ".gz" else path.relative_to(run.folder).as_posix()) in said
    assert run.name in said


@pytest.mark.slow
def test_no_command_ends_in_a_traceback_if_the_releases_are_damaged(tmp_path):
    damaged = tmp_path / "releases.csv"
    damaged.write_bytes(flipped(paths.RELEASES.read_bytes(), 0.5))
    script = (
        "import sys, pathlib\nfrom gccost import paths\n"
        "paths.RELEASES = pathlib.Path(sys.argv[1])\nfrom gccost.cli import main\n"
        "for command in sys.argv[2:]:\n"
        "    try:\n        main([command])\n"
        "    except SystemExit as ended:\n        print(command, 'ended with', ended.code)\n"
    )
    done = processes.run(
        [sys.executable, "-c", script, damaged, "doctor", "measure", "fetch", "replay"],
        env={**os.environ, "GCCOST_RUNS": str(tmp_path), "GCCOST_REPORT": str(tmp_path)},
    )
    assert [line for line in done.stdout.splitlines() if "ended with" in line] == [
        f"{command} ended with {code}"
        for command, code in {"doctor": 0, "measure": 1, "fetch": 1, "replay": 1}.items()
    ], done.stderr
    assert str(damaged) in "".join(done.stdout.split())  # the doctor's
    assert "Fix: restore it: git checkout" in " ".join(done.stdout.split())
    assert done.stderr.count(f"gccost: {damaged}: the file is damaged") == 3
