"""Interrupted commands leave no process, lose no samples, and can be resumed."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import recordings
from campaigns import (
    RESUMES,
    SIGNALS,
    after,
    assert_complete,
    assert_no_process_stays,
    planned,
)
from conftest import FakeMachine
from faketools import AT_WORK, FakeTools, Reported
from notebooks_fixture import code, write

from gccost import paths
from gccost.judging import reference
from gccost.measuring import campaign
from gccost.run import runs
from gccost.showing.charts import STORY
from gccost.studies import STUDIES

pytestmark = pytest.mark.slow

# Stops in the middle of writing a result, where a kill leaves half a line.
HALF_A_LINE = """
import os, sys, time
from pathlib import Path

def half(handle, data, write=os.write):
    if data.startswith(b"BenchmarkAllocateDummy"):
        write(handle, data[: len(data) // 2])
        Path(sys.argv[-1]).touch()
        time.sleep(9999)
    return write(handle, data)

os.write = half
from gccost.cli import main
main(["measure"])
"""


def stopped(tools: FakeTools, started: subprocess.Popen[str], *sent: signal.Signals) -> None:
    """Stop a command that is at work. No process of it stays, and it says how to resume."""
    tools.wait_until_at_work(started)
    code, said = tools.stop(started, *sent)
    assert_no_process_stays(tools)
    if sent[0] != signal.SIGKILL:
        assert code == 128 + sent[0]
        assert RESUMES.startswith(said.splitlines()[-1])
        assert "Traceback" not in said
        assert list((tools.folder / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("phase", "sent"),
    [
        ("first builds", signal.SIGKILL),
        ("last builds", signal.SIGTERM),
        ("a sample", signal.SIGKILL),
        ("a sample", signal.SIGINT),
        ("a sample", signal.SIGHUP),
        ("a write", signal.SIGKILL),
    ],
)
def test_measuring_resumes_after_a_signal(tools: FakeTools, phase, sent):
    if phase == "a write":
        started = tools.start(str(tools.folder / "reached"), program=HALF_A_LINE)
    else:
        # Builds 1 to 3 precede the samples; the 20th sample is in the middle.
        number = {"first builds": 1, "last builds": 3, "a sample": 20}[phase]
        tools.from_the(number, of="sample" if phase == "a sample" else "build")
        started = tools.start("measure")
    stopped(tools, started, sent)
    run = tools.the_run()
    before = run.samples_txt.read_bytes()
    assert before.endswith(b"\n") == (phase != "a write")

    tools.do()
    assert tools.gccost("measure").returncode == 0
    assert tools.the_run() == run
    whole = before[: before.rindex(b"\n") + 1]
    assert run.samples_txt.read_bytes().startswith(whole)
    assert_complete(run)
    assert {p.name for p in tools.runs.iterdir()} == {".lock", run.name}
    assert list((tools.folder / "tmp").iterdir()) == []


def test_an_interrupted_download_says_how_to_resume(tools: FakeTools):
    (tools.folder / "go1.20.14").rename(tools.folder / "gone")
    tools.from_the(1, of="shell")
    stopped(tools, tools.start("measure"), signal.SIGINT)


# A report of one notebook, whose cell runs a command as a chapter does.
ONE_NOTEBOOK = """
import sys
from pathlib import Path
from gccost import cli, sitting

sitting.measure = lambda *given: True
sitting.notebooks = lambda *given: [Path(sys.argv[1])]
cli.main(["report"])
"""


def folders(started: subprocess.Popen[str]) -> list[Path]:
    """The folders of this command's kernels, which hold their sockets."""
    return list(Path("/tmp").glob(f"gccost-kernel-{started.pid}-*"))  # noqa: S108 - not TMPDIR


@pytest.mark.parametrize("sent", SIGNALS)
def test_an_interrupted_report_leaves_no_process(tools: FakeTools, sent):
    source = f"from gccost import processes\nprocesses.run(['sh', '-c', {tools.here(AT_WORK)!r}])"
    notebook = write(tools.folder / "01-lemire.ipynb", [code(source, "long")])
    started = tools.start(str(notebook), program=ONE_NOTEBOOK)
    stopped(tools, started, sent, signal.SIGTERM)  # the second one does not end the cleanup
    (unfinished,) = tools.report.glob("notebooks/*")
    assert '"id": "incomplete"' in unfinished.read_text()
    assert bool(folders(started)) == (sent == signal.SIGKILL)
    if sent == signal.SIGKILL:  # leftovers, such as the lock, do not block the next report
        tools.do()
        stopped(tools, tools.start(str(notebook), program=ONE_NOTEBOOK), signal.SIGTERM)
        assert folders(started) == []


ADD = """
import sys, time
from pathlib import Path
from gccost.judging import reference
def halt(*given):
    Path(sys.argv[1]).touch()
    time.sleep(9999)
reference._moved = halt
from gccost.cli import main
main(["add", sys.argv[2]])
"""


def test_a_killed_add_leaves_no_half_run(tools: FakeTools, tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    run = recordings.record(tmp_path)
    place = {"GCCOST_REFERENCE": str(paths.reference())}
    started = tools.start(str(tools.folder / "reached"), str(run.folder), program=ADD, **place)
    stopped(tools, started, signal.SIGKILL)
    assert runs.all_runs(paths.reference()) == []
    assert (paths.reference() / ".scratch").exists()
    reference.add(run.folder, list(STUDIES.values()))
    assert [each.name for each in runs.all_runs(paths.reference())] == [run.name]
    assert not (paths.reference() / ".scratch").exists()


class Killed(BaseException):
    """Replaces SIGKILL in tests that inspect the process afterwards."""


def killed_at(monkeypatch: pytest.MonkeyPatch, moment: str, number: int) -> None:
    """Simulate a kill in the nth write to disk, before it is synced or right after."""
    owner, name = {"in": (os, "fsync"), "after": (Path, "replace")}[moment]
    real, left = getattr(owner, name), itertools.count(number - 1, -1)

    def write(*arguments: Any) -> Any:
        last = next(left) == 0
        if last and moment == "in":
            raise Killed
        done = real(*arguments)
        if last:
            raise Killed
        return done

    monkeypatch.setattr(owner, name, write)


@pytest.mark.parametrize(("moment", "number"), [("in", 1), ("in", 3), ("after", 1), ("after", 2)])
def test_a_run_killed_at_its_start_resumes(machine: FakeMachine, monkeypatch, moment, number):
    with monkeypatch.context() as patch:
        killed_at(patch, moment, number)
        with pytest.raises(Killed):
            campaign.measure(planned())
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(planned(), after(9))
    (run,) = runs.all_runs(paths.runs())
    reading = run.reading()
    assert reading.errors == []
    assert len(reading.samples) >= 7


# --- concurrent commands ------------------------------------------------------


def test_a_concurrent_report_fails_and_leaves_the_first_alone(reported: Reported):
    tools, second = reported
    assert second.returncode == 1
    assert second.stderr.startswith("gccost: ")
    assert "another gccost is writing the report here" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    assert (tools.report / "index.html").read_text().rstrip().endswith("</html>")


def test_a_report_opens_on_request_and_writes_nothing_elsewhere(reported: Reported):
    tools, _ = reported
    page = (tools.report / "index.html").as_uri()
    assert (tools.folder / "opened").read_text().split() == [page]
    pictures = {path.name for path in (tools.report / "figures").iterdir()}
    assert pictures >= {f"{chart}.{kind}" for chart in STORY[:2] for kind in ("png", "svg")}
    assert list((tools.folder / "tmp").iterdir()) == []
    home = tools.folder / "home"
    written = {p.relative_to(home).as_posix() for p in home.rglob("*") if not p.is_dir()}
    assert all(name.startswith(".cache/matplotlib/") for name in written), written


def test_a_report_does_not_disturb_running_measurements(tools: FakeTools):
    tools.from_the(1, of="sample")
    first = tools.start("measure")
    tools.wait_until_at_work(first)
    second = tools.gccost("report")
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1] == (
        f"gccost: {tools.runs}: another gccost is measuring here. "
        "To fix it: wait until it is done, or stop it, and start again"
    )
    assert first.poll() is None
    tools.stop(first, signal.SIGTERM)
