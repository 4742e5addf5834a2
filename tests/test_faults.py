"""Whatever happens, nothing that was recorded is lost, and what happened is said."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recordings
from click.testing import CliRunner, Result
from conftest import EXAMPLES, FakeMachine, tried
from faketools import AT_WORK, FakeTools, wait_for
from hypothesis import given
from hypothesis import strategies as st
from notebooks_fixture import code, write

from gccost import cli, files, paths, study
from gccost.errors import GccostError
from gccost.judging.questions import questions
from gccost.judging.recording import Recording
from gccost.measuring import benchfmt, builds, campaign, frames, runs, toolchains
from gccost.measuring.cases import AUTO, BUDGETS, FREE, Budget
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.samples import run_sample
from gccost.measuring.toolchains import TODAY_GO
from gccost.settings import Settings
from gccost.showing import notice

LEMIRE = EXPERIMENTS["lemire"]
TINY = BUDGETS["tiny"]
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[FakeTools]:
    tools = FakeTools(tmp_path / "machine")
    yield tools
    tools.end()


def planned() -> campaign.Plan:
    """What `gccost measure` measures of lemire at the tiny budget, on the fake machine."""
    return campaign.plan([LEMIRE], TINY, questions([LEMIRE], TINY))


def assert_every_sample_is_there(run: runs.Run) -> None:
    """The run holds every process of every case's first rounds."""
    pool = {case.name: case for case in LEMIRE.within(TINY)}
    plan = campaign.Plan((LEMIRE,), TINY, questions([LEMIRE], TINY), {}, {}, pool, {})
    frame = frames.of_cases(run.reading().frame, pool.values())
    assert len(frame) == len(run.reading().frame)
    assert frame.groupby(["name", "round"]).size().to_dict() == {
        (name, number): case.processes
        for name, case in pool.items()
        for number in range(1, plan.rounds(case) + 1)
    }


def assert_complete(run: runs.Run) -> None:
    """The run holds every sample, and no bad line."""
    assert run.reading().errors == []
    assert_every_sample_is_there(run)
    assert "lemire" in run.manifest()["finished"]["tiny"]["studies"]


def assert_no_process_stays(tools: FakeTools) -> None:
    assert wait_for(lambda: not tools.processes(), seconds=60), tools.processes()


def gccost(*arguments: str) -> Result:
    """Run a command here, on the fake machine."""
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


# --- signals ------------------------------------------------------------------

# Stands still in the middle of writing a result, as a kill may find it.
HALF_A_LINE = """
import os, sys, time
from pathlib import Path

def half(handle, data, write=os.write):
    if data.startswith(b"BenchmarkAllocateDummy"):
        write(handle, data[: len(data) // 2])
        Path(sys.argv[-1]).touch()
        time.sleep(600)
    return write(handle, data)

os.write = half
from gccost.cli import main
main(["measure"])
"""
TO_GO_ON = (
    "gccost: Interrupted. Completed samples are saved; resume with: make {} BUDGET=tiny ONLY=lemire"
)


@pytest.mark.parametrize(
    ("phase", "sent"),
    [
        ("first builds", signal.SIGTERM),
        *(("building", sent) for sent in SIGNALS),
        *(("a sample", sent) for sent in SIGNALS),
        ("a write", signal.SIGKILL),
        ("a write", signal.SIGINT),
    ],
)
def test_measuring_that_a_signal_ends_goes_on_from_there(
    tools: FakeTools, phase: str, sent: signal.Signals
) -> None:
    if phase == "a write":
        started = tools.start(str(tools.folder / "reached"), program=HALF_A_LINE)
    else:
        # Three builds are the first ones; a sample of the second round is the 60th.
        number = {"first builds": 1, "building": 4, "a sample": 60}[phase]
        tools.from_the(number, of="sample" if phase == "a sample" else "build")
        started = tools.start("measure")
    tools.wait_until_at_work(started)
    run = tools.the_run()
    code, said = tools.stop(started, sent)
    assert_no_process_stays(tools)
    if sent != signal.SIGKILL:
        assert code == 128 + sent
        assert said.splitlines()[-1] == TO_GO_ON.format("measure")
    before = run.samples.read_bytes()
    assert before.endswith(b"\n") == (phase != "a write")

    tools.do()
    assert tools.gccost("measure").returncode == 0
    assert tools.the_run() == run
    whole = before[: before.rindex(b"\n") + 1]
    assert run.samples.read_bytes().startswith(whole)
    assert_complete(run)
    assert {p.name for p in tools.runs.iterdir()} == {".lock", run.name}
    assert list((tools.folder / "tmp").iterdir()) == []


def test_a_second_ctrl_c_changes_nothing(tools: FakeTools) -> None:
    tools.from_the(1, of="sample")
    started = tools.start("measure")
    tools.wait_until_at_work(started)
    started.send_signal(signal.SIGINT)
    code, said = tools.stop(started, signal.SIGINT)
    assert code == 130
    assert "Traceback" not in said
    assert_no_process_stays(tools)


def test_ctrl_c_while_it_loads_ends_it_silently(tools: FakeTools) -> None:
    started = tools.start("measure")
    time.sleep(0.2)
    code, said = tools.stop(started, signal.SIGINT)
    assert code in (-signal.SIGINT, 130)
    assert "Traceback" not in said


# A report of one notebook, whose cell runs a command as a chapter does.
ONE_NOTEBOOK = """
import sys
from pathlib import Path
from gccost import cli

cli._measure = lambda settings: True
cli._notebooks = lambda settings: [Path(sys.argv[1])]
cli.main(["report"])
"""


@pytest.mark.parametrize("sent", SIGNALS)
def test_a_report_that_a_signal_ends_leaves_no_process(
    tools: FakeTools, sent: signal.Signals
) -> None:
    source = f"from gccost import processes\nprocesses.run(['sh', '-c', {tools.here(AT_WORK)!r}])"
    notebook = write(tools.folder / "01-lemire.ipynb", [code(source, "long")])
    started = tools.start(str(notebook), program=ONE_NOTEBOOK)
    tools.wait_until_at_work(started)
    exit_code, said = tools.stop(started, sent)
    assert_no_process_stays(tools)
    if sent != signal.SIGKILL:
        assert exit_code == 128 + sent
        assert said.splitlines()[-1] == TO_GO_ON.format("report")
        assert list((tools.folder / "tmp").iterdir()) == []
    assert not any(tools.report.glob("notebooks/*"))
    if sent == signal.SIGKILL:  # what it left behind, its lock say, is in nobody's way
        tools.do()
        again = tools.start(str(notebook), program=ONE_NOTEBOOK)
        tools.wait_until_at_work(again)
        tools.stop(again, signal.SIGTERM)


BUSY = """
import sys, time
from pathlib import Path
from gccost.measuring.precision import _load

with _load():
    Path(sys.argv[1]).touch()
    time.sleep(600)
"""


def test_what_keeps_a_core_busy_ends_with_the_measuring(tools: FakeTools) -> None:
    started = tools.start(str(tools.folder / "reached"), program=BUSY)
    tools.wait_until_at_work(started)
    assert len(tools.processes()) > 1
    tools.stop(started, signal.SIGKILL)
    assert_no_process_stays(tools)


# --- a whole report -----------------------------------------------------------

Reported = tuple[FakeTools, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """A report, and what became of another that was started while it was made."""
    tools = FakeTools(tmp_path_factory.mktemp("reported") / "machine")
    hold = tools.folder / "hold"
    hold.touch()
    wait = f'while [ -e "{hold}" ]; do sleep 0.05; done'
    tools.from_the(1, of="shell", what=f': > "{tools.folder}/reached"; {wait}')
    first = tools.start("report")
    tools.wait_until_at_work(first)
    second = tools.gccost("report")
    hold.unlink()
    said, complaint = first.communicate(timeout=60)
    assert first.returncode == 0, complaint
    assert "the report is" in said
    return tools, second


def test_a_second_report_at_once_says_so_and_leaves_the_first_alone(reported: Reported) -> None:
    tools, second = reported
    assert second.returncode == 1
    assert second.stderr.startswith("gccost: ")
    assert "another gccost is writing the report here; this one leaves it alone" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    assert (tools.report / "index.html").read_text().rstrip().endswith("</html>")


def test_nothing_is_written_outside_the_clone_and_the_tools_caches(reported: Reported) -> None:
    tools, _ = reported
    assert list((tools.folder / "tmp").iterdir()) == []
    home = tools.folder / "home"
    written = {p.relative_to(home).as_posix() for p in home.rglob("*") if not p.is_dir()}
    assert all(name.startswith(".cache/matplotlib/") for name in written), written


# --- disks --------------------------------------------------------------------


def no_larger_than(kilobytes: int) -> tuple[str, ...]:
    """A command whose programs cannot make a file larger than this: a disk that is full."""
    return ("sh", "-c", f'ulimit -f {2 * kilobytes}; exec "$@"', "sh")


def not_writable(folder: Path) -> tuple[str, ...]:
    """A command whose programs cannot write to a folder, not even as root."""
    folder.chmod(0o555)
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv is not here to take that away")
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def test_a_full_disk_ends_measuring_and_it_goes_on_when_there_is_room(tools: FakeTools) -> None:
    full = tools.gccost("measure", under=no_larger_than(20))
    assert full.returncode == 1
    said = full.stderr.splitlines()[-1]
    path = tools.the_run().samples
    assert said == (
        f"gccost: {path}: cannot be written: File too large. To fix it: raise the limit on "
        "the size of files (ulimit -f) and start again: what was measured is kept"
    )
    before = path.read_bytes()
    assert before.endswith(b"\n")
    assert tools.gccost("measure").returncode == 0
    assert path.read_bytes().startswith(before)
    assert_complete(tools.the_run())


def test_on_a_small_disk_that_fills_up_the_same(tools: FakeTools) -> None:
    tools.runs.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(tools.runs)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here: it takes root")
    try:
        tools.from_the(50, of="sample", what=f'cat /dev/zero > "{tools.runs}/filler" 2> /dev/null')
        full = tools.gccost("measure")
        assert full.returncode == 1
        assert "cannot be written: No space left on device" in full.stderr
        assert "free some disk space and start again: what was measured is kept" in full.stderr
        assert "Traceback" not in full.stderr
        path = tools.the_run().samples
        before = path.read_bytes()
        assert before.endswith(b"\n")
        (tools.runs / "filler").unlink()
        tools.do()
        assert tools.gccost("measure").returncode == 0
        assert path.read_bytes().startswith(before)
        assert_complete(tools.the_run())
    finally:
        subprocess.run(["umount", str(tools.runs)], check=True)


def test_a_disk_that_cannot_be_written_is_named_with_the_mend(tools: FakeTools) -> None:
    tools.runs.mkdir()
    done = tools.gccost("measure", under=not_writable(tools.runs))
    assert done.returncode == 1
    assert done.stderr == (
        f"gccost: {tools.runs}: cannot be written: Permission denied. To fix it: make it "
        "writable, or name another folder (GCCOST_RUNS for runs, GCCOST_REPORT)\n"
    )


def test_a_finished_run_can_be_used_from_a_disk_that_cannot_be_written(reported: Reported) -> None:
    tools, _ = reported
    under = not_writable(tools.runs)
    try:
        done = tools.gccost("measure", under=under)
    finally:
        tools.runs.chmod(0o755)
    assert done.returncode == 0, done.stderr


def test_a_full_disk_leaves_the_report_that_was_there(reported: Reported, tmp_path: Path) -> None:
    tools, _ = reported
    report = shutil.copytree(tools.report, tmp_path / "report")
    before = {p: p.read_bytes() for p in report.rglob("*") if p.is_file()}
    done = tools.gccost("html", under=no_larger_than(40), GCCOST_REPORT=str(report))
    assert done.returncode == 1
    assert f"{report}/index.html: cannot be written: File too large. To fix it" in done.stderr
    assert "Traceback" not in done.stderr
    assert {p: p.read_bytes() for p in report.rglob("*") if p.is_file()} == before


def test_what_is_written_whole_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "profiles" / "cpu.pb.gz"
    files.write_whole(path, b"one")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(GccostError, match="free some disk space"):
        files.write_whole(path, b"another")
    assert path.read_bytes() == b"one"
    assert list(path.parent.iterdir()) == [path]


# --- what stands in a run's files ---------------------------------------------


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    run = recordings.record(tmp_path_factory.mktemp("recorded"), rounds=3)
    return Recording.load(LEMIRE, run)


@pytest.fixture
def copy(recorded: Recording, tmp_path: Path) -> runs.Run:
    """A copy of the recorded run, to be spoilt."""
    return runs.Run(shutil.copytree(recorded.run.folder, tmp_path / recorded.run.name))


def page_of(recording: Recording) -> str:
    """What a chapter says of the run that it shows."""
    return notice.notice([recording], "replay").text


def same_samples(one: Recording, other: Recording) -> bool:
    left, right = (
        r.frame.drop(columns="line", errors="ignore").reset_index(drop=True) for r in (one, other)
    )
    return left.equals(right[left.columns])


NAME = "BenchmarkAllocateFree/go=1.27.4/gogc=100/setting=published-2\t1600000"


@pytest.mark.parametrize(
    "line",
    [
        f"{NAME}\tNaN ns/op\t4 round".encode(),
        f"{NAME}\t-3 ns/op\t4 round".encode(),
        f"{NAME}\t1e99 ns/op\t4 round".encode(),
        f"{NAME}\t80 ns/op\t4 ro".encode() + NAME.encode(),
        b"\x00\xff\xfe\x00 garbage \x80",
        "cpu: Intel®".encode("latin-1"),
    ],
)
def test_a_bad_line_is_told_on_the_page_and_the_rest_is_used(
    recorded: Recording, copy: runs.Run, line: bytes
) -> None:
    path = copy.samples
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:50], line, b"\n", *whole[50:]]))
    spoilt = Recording.load(LEMIRE, copy)
    assert same_samples(spoilt, recorded)
    assert len(spoilt.problems) == 1
    assert "A line could not be used" in page_of(spoilt)
    assert "samples.txt:51" in page_of(spoilt)


@pytest.mark.parametrize(
    "more", ["\t80 ms/op\t4 round", "\t80 ns/op", "\t80 ns/op\t1e18 round", "\t80 ns/op\t0 round"]
)
def test_a_sample_in_a_wrong_unit_or_of_no_round_changes_no_estimate(
    recorded: Recording, copy: runs.Run, more: str
) -> None:
    copy.append([NAME + more])
    spoilt = Recording.load(LEMIRE, copy)
    for arm in (FREE, AUTO):
        assert spoilt.level(arm, TODAY_GO) == recorded.level(arm, TODAY_GO)


def test_lines_that_a_program_for_windows_rewrote_are_used(
    recorded: Recording, copy: runs.Run
) -> None:
    path = copy.samples
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    rewritten = Recording.load(LEMIRE, copy)
    assert same_samples(rewritten, recorded)
    assert rewritten.problems == ()


def test_a_spoilt_file_does_not_fill_the_page(copy: runs.Run) -> None:
    with copy.samples.open("ab") as file:
        file.write(b"BenchmarkX\n" * 1000)
    shown = page_of(Recording.load(LEMIRE, copy))
    assert shown.count("A line could not be used") == notice.SHOWN_PROBLEMS
    assert f"{1000 - notice.SHOWN_PROBLEMS} more lines" in shown


def test_garbage_that_comes_while_measuring_goes_on_loses_no_sample(machine: FakeMachine) -> None:
    plan = planned()
    told = 0

    def spoil(done: float, total: float, what: str) -> None:
        nonlocal told
        told += 1
        if told % 20 == 0:
            with campaign.find(plan).samples.open("ab") as file:  # type: ignore[union-attr]
                file.write(b"\xff\x00 no text\nBenchmarkAllocateFree 3\n")

    run = campaign.measure(plan, spoil)
    assert len(run.reading().errors) >= 8
    assert_every_sample_is_there(run)


def test_a_results_file_that_lost_its_head_is_gone_on_with(machine: FakeMachine) -> None:
    plan = planned()
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(plan, after(30))
    run = campaign.find(plan)
    assert run is not None
    run.samples.write_bytes(b"\x00" * 4096)
    assert campaign.measure(plan) == run
    assert_complete(run)


def after(calls: int) -> campaign.Progress:
    """A progress that breaks measuring off."""
    left = itertools.count(calls, -1)

    def progress(done: float, total: float, what: str) -> None:
        if next(left) == 0:
            raise KeyboardInterrupt

    return progress


# --- run folders --------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text[: len(text) // 2], "this is not JSON"),
        (lambda text: text.replace('"format": 2', '"format": 3'), "the run has format 3"),
        (lambda text: text.replace('"format": 2', '"format": 1'), "remove the folder and measure"),
    ],
    ids=["truncated", "newer", "older"],
)
def test_a_run_that_cannot_be_read_is_named_and_passed_over(
    machine: FakeMachine, spoil: Any, why: str
) -> None:
    old = campaign.measure(planned())
    description = old.folder / "run.json"
    description.write_text(spoil(description.read_text()))
    before = old.samples.read_bytes()

    done = gccost("measure", "--only=lemire")
    assert done.exit_code == 0
    assert f"The run {old.name} is skipped: " in done.stderr
    assert why in done.stderr
    assert "To fix it: " in done.stderr
    (new,) = runs.all_runs(paths.runs())
    assert new != old
    assert_complete(new)
    assert old.samples.read_bytes() == before
    opened = study.open_study("lemire")
    assert old.name in opened.notice().text

    compared = gccost("compare", str(new.folder), str(old.folder))
    assert compared.exit_code == 1
    assert why in compared.stderr


def test_a_run_of_another_machine_is_never_gone_on_with(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned()
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(plan, after(30))
    old = campaign.find(plan)
    assert old is not None
    before = {p: p.read_bytes() for p in old.folder.rglob("*") if p.is_file()}
    monkeypatch.setattr(campaign.machine, "fingerprint", lambda description: "another")
    new = campaign.measure(planned())
    assert new != old
    assert_complete(new)
    assert {p: p.read_bytes() for p in old.folder.rglob("*") if p.is_file()} == before


# --- programs -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("sleep 60", "the program hung: it was ended after 0.3 s"),
        ("true", "the program printed 0 results, not one"),
        ('line "$name"; line "$name"', "the program printed 2 results, not one"),
        ('line "$name" | sed "s/ ns.op/ ms\\/op/"', "the program printed no ns/op"),
        ("kill -40 $$", "the program was ended by signal 40"),
    ],
    ids=["hangs", "prints nothing", "prints twice", "prints another unit", "a signal of its own"],
)
def test_a_program_that_fails_is_left_out_and_the_rest_goes_on(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, behaviour: str, why: str
) -> None:
    monkeypatch.setitem(run_sample.__kwdefaults__, "limit", 0.3)
    machine.behaviour = (
        f'[ $name = BenchmarkAllocateDummy ] && {{ {behaviour}; exit 0; }}; line "$name"'
    )
    run = campaign.measure(planned())
    assert not run.reading().errors
    names = set(Recording.load(LEMIRE, run).frame["benchmark"])
    assert "AllocateDummy" not in names
    assert "AllocateAuto" in names
    troubles = run.manifest()["troubles"]
    assert any(why in t for case, ts in troubles.items() if "AllocateDummy" in case for t in ts)
    assert why in page_of(Recording.load(LEMIRE, run))


def test_a_program_that_cannot_be_started_is_left_out(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = builds.build

    def not_executable(*arguments: Any, **more: Any) -> Path:
        binary = build(*arguments, **more)
        if "1.20" in binary.name:
            binary.chmod(0o644)
        return binary

    monkeypatch.setattr(builds, "build", not_executable)
    run = campaign.measure(planned())
    assert set(Recording.load(LEMIRE, run).frame["release"]) == {TODAY_GO}
    old = {t for case, ts in run.manifest()["troubles"].items() if "1.20" in case for t in ts}
    assert any("did not start: Permission denied" in trouble for trouble in old)


# --- clocks -------------------------------------------------------------------


def test_a_clock_that_jumps_bends_neither_budget_nor_resuming(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.cycle([1.7e9, 3e9, -5.0, 0.0, 1.7e9])
    dates = itertools.cycle(["2026-01-02T00:00:00Z", "1970-01-01T00:00:00Z"])
    monkeypatch.setattr(time, "time", lambda: next(clock))
    monkeypatch.setattr(runs, "now", lambda: next(dates))
    # Never decided: the budget alone ends it.
    never = campaign.Standing((campaign.Want((FREE.on(TODAY_GO),), 1, verdict=True),), 0, 1)
    limit = Budget("tiny", 1.5, shown=1, half_width=1.0, scale=TINY.scale)
    plan = campaign.plan([LEMIRE], limit, campaign.Questions(standing=lambda run: never))
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(plan, after(30))
    run = campaign.find(plan)
    assert run is not None
    assert campaign.measure(plan) == run  # it ends
    assert run.reading().errors == []
    done = run.manifest()["finished"]["tiny"]
    assert done["because"] == "the budget is spent"
    assert 0.5 < done["seconds"] < 3


# --- compilers ----------------------------------------------------------------


def test_without_compilers_and_network_each_way_out_is_named(tools: FakeTools) -> None:
    for lacking, hint in (
        ({"CC": "none"}, "a C compiler: is not on this machine"),
        ({"GOMODCACHE": str(tools.folder / "none")}, "Go: is not on this machine"),
    ):
        done = tools.gccost("measure", PATH=str(tools.folder / "none"), **lacking)
        assert done.returncode == 1
        assert hint in done.stderr
        assert "To fix it: install it, or run `make measure` when online" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_go_that_is_too_old_is_as_good_as_none(tools: FakeTools) -> None:
    old = tools.folder / "bin" / "go"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho go version go1.17.13 linux/amd64\n")
    old.chmod(0o755)
    none = str(tools.folder / "none")
    done = tools.gccost("measure", PATH=str(old.parent), GOMODCACHE=none)
    assert done.returncode == 1
    assert "Go: is not on this machine" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_go_on_path_that_is_no_program_is_passed_over(tools: FakeTools) -> None:
    broken = tools.folder / "bin" / "go"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    done = tools.gccost("measure", PATH=f"{broken.parent}:{os.defpath}")
    assert done.returncode == 0, done.stderr


def test_a_release_that_cannot_be_fetched_leaves_the_others(tools: FakeTools) -> None:
    module = toolchains._module_version("1.20.14")
    shutil.rmtree(tools.folder / f"mod/golang.org/toolchain@{module}")
    done = tools.gccost("measure")
    assert done.returncode == 0
    assert "Go 1.20.14 is left out. Go 1.20.14: cannot be fetched" in done.stderr
    assert set(benchfmt.read(tools.the_run().samples).frame["go"]) == {TODAY_GO}


def test_once_all_is_there_measuring_takes_no_network(tmp_path: Path) -> None:
    """The real compilers, in a network of their own where that can be had."""
    try:
        for release in LEMIRE.releases:
            toolchains.fetch(release)
    except GccostError as why:
        pytest.skip(str(why))
    program = """
import sys
from pathlib import Path
from gccost.measuring import builds, campaign, samples
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.cases import BUDGETS
plan = campaign.plan([EXPERIMENTS["lemire"]], BUDGETS["tiny"], say=sys.exit)
assert not plan.missing, plan.missing
case, tools = next(iter(plan.pool.values())), plan.tools["lemire"]
folder = Path(sys.argv[1])
binary = builds.build(case.program, tools.found[case.release], tools.compiler, 7, folder)
print(samples.run_sample(binary, case, folder).n)
"""
    alone = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = []
    done = subprocess.run(
        [*alone, sys.executable, "-c", program, str(tmp_path)],
        cwd=paths.ROOT,
        env={**os.environ, "GOPROXY": "off", "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "8000\n"


# --- names --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "known"),
    [
        (lambda: toolchains.fetch("1.99"), "name one of 1.10.8, "),
        (lambda: toolchains.fetch("; rm"), "name one of 1.10.8, "),
        (lambda: study.open_study("lemur"), "name one of lemire"),
        (lambda: Settings.read({"GCCOST_MODE": "mesure"}), "name one of measure, replay"),
        (lambda: Settings.read({"GCCOST_BUDGET": "quik"}), "name one of tiny, quick, standard"),
    ],
    ids=["release", "no release", "experiment", "mode", "budget"],
)
def test_an_unknown_name_is_answered_with_the_known_ones(ask: Any, known: str) -> None:
    with pytest.raises(GccostError) as error:
        ask()
    assert known in str(error.value)


def test_an_unknown_claim_release_or_chart_is_answered_with_the_known_ones(
    recorded: Recording,
) -> None:
    shown = study.Study("replay", recorded, ())
    with pytest.raises(GccostError, match=f"name one of L1 on .*L4 on {TODAY_GO}"):
        shown.row("L1", "1.99")
    with pytest.raises(GccostError, match=r"name one of .*lemire-cost"):
        shown.chart("lemire-coast")


# --- the command line ---------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "some/file"),
            "gccost: some/file: Permission denied. To fix it: make it writable",
        ),
        (OSError(errno.EIO, "Input/output error", "disk"), "gccost: disk: Input/output error"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text"), "gccost: 'utf-8' codec can't"),
        (
            GccostError("a message", "a location", "a hint"),
            "gccost: a location: a message. To fix it: a hint",
        ),
    ],
)
def test_what_goes_wrong_is_one_paragraph_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli.examination, "examine", fail)
    done = gccost("doctor")
    assert done.exit_code == 1
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_gets_no_traceback(tools: FakeTools) -> None:
    with tools.start("doctor") as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        said = started.stderr.read()
    assert started.returncode == 1
    assert said == ""


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("~nobody-of-that-name/runs", "GCCOST_RUNS=~nobody-of-that-name/runs: "),
        ("/dev/null", "/dev/null: cannot be written: "),
        ("/dev/null/runs", "/dev/null/runs: cannot be written: Not a directory"),
    ],
)
def test_a_place_that_cannot_hold_runs_is_named(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    monkeypatch.setenv("GCCOST_RUNS", place)
    done = gccost("measure", "--only=lemire")
    assert done.exit_code == 1
    assert f"gccost: {said}" in done.stderr
    assert "To fix it: " in done.stderr


# --- anything at all ----------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)


def places_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Every path that leads into a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *rest) for rest in places_in(inner))


@st.composite
def descriptions(draw: st.DrawFn, sound: dict[str, Any]) -> str | bytes:
    """A run's description of which something was lost, added or changed."""
    description = json.loads(json.dumps(sound))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(sorted(places_in(description), key=str)))
        at = description
        for key in way:
            at = at[key]
        if draw(st.booleans()):
            at[last] = draw(json_values)
        else:
            del at[last]
        if not description:
            break
    text = json.dumps(description)
    cut = draw(st.one_of(st.none(), st.integers(0, len(text))))
    return text[:cut]


@tried("a description")
@given(data=st.data())
def test_no_description_of_a_run_brings_anything_down(
    recorded: Recording, data: st.DataObject, tmp_path: Path
) -> None:
    run = runs.Run(tmp_path / "run")
    run.folder.mkdir(exist_ok=True)
    sound = recorded.run.manifest()
    drawn = data.draw(descriptions(sound) | st.binary(max_size=40).map(bytes), label="run.json")
    (run.folder / "run.json").write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())
    (fault,) = runs.passed_over(tmp_path) or ("",)
    assert runs.all_runs(tmp_path) == ([] if fault else [run])
    if not fault:
        plan = campaign.Plan((LEMIRE,), TINY, campaign.Questions(), {}, {}, {}, {})
        assert campaign.finished(run, plan) in (True, False)
        page_of(replace(recorded, run=run)).encode()
        run.update(troubles={"a case": ["another"]})
        assert run.manifest()["troubles"] == {"a case": ["another"]}
    else:
        fault.encode()


good_line = st.builds(
    benchfmt.Sample,
    name=st.sampled_from(["AllocateFree", "AllocateAuto", "Other"]),
    n=st.sampled_from([1_600_000, 8000, 1]),
    metrics=st.dictionaries(
        st.sampled_from(["ns/op", "round", "elapsed-s", "build-s", "c-misfreed", "go", "µs"]),
        st.floats(0, 1e18),
        min_size=1,
    ),
    keys=st.just({"go": TODAY_GO, "gogc": "100", "setting": "published"})
    | st.dictionaries(st.sampled_from(["go", "gogc", "round"]), st.sampled_from(["off", "1.27.4"])),
    procs=st.sampled_from([1, 2]),
).map(lambda sample: benchfmt.format_line(sample).encode())
bad_line = st.binary(max_size=30).map(lambda junk: junk.replace(b"\n", b" "))


@tried("a run")
@given(lines=st.lists(good_line | bad_line, max_size=8), unfinished=good_line | st.just(b""))
def test_no_results_bring_a_run_down_and_no_good_line_is_lost(
    recorded: Recording, lines: list[bytes], unfinished: bytes, tmp_path: Path
) -> None:
    run = runs.Run(tmp_path)
    (run.folder / "run.json").write_bytes((recorded.run.folder / "run.json").read_bytes())
    whole = b"".join(line + b"\n" for line in lines)
    run.samples.write_bytes(whole + unfinished)
    run.drop_unfinished_line()
    assert run.samples.read_bytes() == whole
    good = [line for line in lines if isinstance(benchfmt.parse_line(_text(line)), benchfmt.Sample)]
    assert len(run.reading().frame) == len(good)
    loaded = Recording.load(LEMIRE, run)
    loaded.level(FREE, TODAY_GO)
    page_of(loaded).encode()


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape").lstrip("\ufeff")


def test_ten_thousand_examples_are_tried() -> None:
    assert sum(EXAMPLES.values()) >= 10_000
