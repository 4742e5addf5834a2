"""A machine whose compilers are scripts, for tests that run `gccost` as a subprocess.

They are where gccost looks for real ones: a Go on PATH, which finds the releases, and
the C compiler in CC. Their behaviour can be changed between runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from recordings import STACKS, write_profile

from gccost import paths
from gccost.cases.versions import GO_RELEASES
from gccost.run.runs import Run, all_runs

# A program that answers like a Go test binary: one line for the requested benchmark
# and N. `$ns` is the time per operation, `$delay` the share of it that its threads
# spent waiting for a CPU.
PROGRAM = """#!/bin/sh
n=1000
ns=10
delay=0.01
for arg; do
  case $arg in
    -test.benchtime=*) n=${arg#*=}; n=${n%x} ;;
    -test.bench=*) name=${arg#*(}; name=Benchmark${name%)*} ;;
    -test.cpuprofile=*) profile=${arg#*=}; : > "$profile" ;;
  esac
done
line() {
  printf '%s-2\\t%s\\t%s ns/op\\t%s cpu-ns/op' "$1" "$n" "$ns" "$ns"
  printf '\\t%s run-delay-share\\t%s settled-ns/op' "$delay" "$ns"
  printf '\\t%s settled-cpu-ns/op\\t0 gc-cycles' "$ns"
  printf '\\t1e6 peak-rss-bytes\\t0 faults\\t%s c-freed\\t0 c-unfreed-loop' "$n"
  printf '\\t%s c-allocated\\t0 c-misfreed\\t0 c-unfreed-drained\\t0 B/op\\t0 allocs/op\\n' "$n"
}
"""
GO = """#!/bin/sh
here='{folder}'
if [ "$1 $2" = 'test -c' ]; then
  while [ $# -gt 0 ]; do
    [ "$1" = -o ] && binary=$2
    shift
  done
  . "$here/build"
  cp "$here/program" "$binary"
else
  . "$here/shell"
  echo 'BenchmarkAllocateAuto-2 1000 70 ns/op 8 B/op 1 allocs/op'
fi
"""
DRIVER = """
case "$*" in
  'env GOVERSION GOROOT') printf 'go1.99\\n{folder}\\n' ;;
  'env GOROOT')
    [ -d "{folder}/$GOTOOLCHAIN" ] || [ "$GOPROXY" = file:///nowhere ] || . "{folder}/shell"
    cd "{folder}/$GOTOOLCHAIN" && pwd ;;
  *) echo '{}' ;;
esac
"""
SAMPLE = """
here='{folder}'
[ -z "$profile" ] || cp "$here/cpu.pb.gz" "$profile"
case $name in *Auto | *Dummy) ns=70 ;; esac
. "$here/sample"
line "$name"
"""
# Seconds after which anything in a test counts as hung. A busy machine takes its time.
PATIENCE = 1800
# Runs a child process for minutes, as real compilers do.
AT_WORK = 'sleep 9999 & : > "{folder}/reached"; wait'


def script(path: Path, text: str) -> Path:
    """Make a file a script of these shell commands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text.removeprefix("#!/bin/sh\n") + "\n")
    path.chmod(0o755)
    return path


@dataclass(frozen=True)
class FakeTools:
    """The compilers in a folder, and the environment in which gccost finds them."""

    folder: Path

    def __post_init__(self) -> None:
        for name in ("home", "tmp"):
            (self.folder / name).mkdir(parents=True)
        write_profile(self.folder / "cpu.pb.gz", [(stack, ns * 10**6) for stack, ns in STACKS])
        script(self.folder / "cc", '[ "$1" != --version ] || echo "cc 1.0"')
        script(self.folder / "browser", self.here('echo "$1" >> "{folder}/opened"'))
        script(self.folder / "program", PROGRAM + self.here(SAMPLE))
        script(self.folder / "bin/go", self.here(DRIVER))
        for version in GO_RELEASES:
            script(self.folder / f"go{version}/bin/go", self.here(GO))
        self.do()

    def here(self, text: str) -> str:
        """A script, with this folder's path filled in."""
        return text.replace("{folder}", str(self.folder))

    def do(self, *, build: str = "", sample: str = "", shell: str = "") -> None:
        """Shell commands to run first in builds, measured programs and other `go` commands."""
        (self.folder / "reached").unlink(missing_ok=True)
        for name, text in (("build", build), ("sample", sample), ("shell", shell)):
            (self.folder / name).write_text(text)

    def from_the(self, number: int, of: str, what: str = AT_WORK) -> None:
        """Run `what` first in the nth build, sample or other command and in all later ones."""
        count = self.folder / f"{of}-count"
        count.unlink(missing_ok=True)
        this = f'echo >> "{count}"; [ "$(wc -l < "{count}")" -lt {number} ] || {{ {what}; }}'
        self.do(**{of: self.here(this)})

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    def the_run(self) -> Run:
        """The only run."""
        (run,) = all_runs(self.runs)
        return run

    def environment(self) -> dict[str, str]:
        """An environment without the user's settings and without network."""
        home = self.folder / "home"
        return {
            "PATH": f"{self.folder}/bin:{os.defpath}",
            "HOME": str(home),
            "TMPDIR": str(self.folder / "tmp"),
            "CC": str(self.folder / "cc"),
            "BROWSER": f"{self.folder}/browser %s",
            "PIP_NO_INDEX": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GCCOST_RUNS": str(self.runs),
            "GCCOST_REPORT": str(self.report),
            "GCCOST_BUDGET": "tiny",
            "GCCOST_ONLY": "lemire",
        }

    def start(
        self, *arguments: str, program: str = "", under: Sequence[str] = (), **more: str
    ) -> subprocess.Popen[str]:
        """Start gccost, or a Python program, in a process group of its own as a shell does.

        `under` is a command to run it with; `more` adds environment variables.
        """
        python = [sys.executable, *(("-c", program) if program else ("-m", "gccost"))]
        return subprocess.Popen(
            [*under, *python, *arguments],
            cwd=paths.ROOT,
            env={**self.environment(), **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def gccost(
        self, *arguments: str, under: Sequence[str] = (), **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run gccost to its end; see `start`."""
        with self.start(*arguments, under=under, **more) as process:
            said, complaint = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(arguments, process.returncode, said, complaint)

    def wait_until_at_work(self, started: subprocess.Popen[str]) -> None:
        """Wait until the command has reached its long part; fail the test if it ends first."""
        reached = self.folder / "reached"
        wait_for(lambda: reached.exists() or started.poll() is not None)
        if not reached.exists():
            self.end()
            pytest.fail(f"the command ended too early: {started.communicate()}")

    def stop(self, started: subprocess.Popen[str], *sent: signal.Signals) -> tuple[int, str]:
        """Signal its process group, as Ctrl-C does; return its exit code and stderr."""
        for each in sent:
            os.killpg(started.pid, each)
        _, complaint = started.communicate(timeout=PATIENCE)
        return started.returncode, complaint

    def end(self) -> None:
        """Kill processes that a failed test would leave behind."""
        for process in self.processes():
            process.kill()

    def processes(self) -> list[psutil.Process]:
        """Every process started by gccost here, recognized by its HOME."""
        ours = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME") == str(self.folder / "home"):
                    ours.append(process)
            except psutil.Error:
                continue
        return ours


def wait_for(condition: Callable[[], object]) -> bool:
    """Wait for a condition; return whether it became true within PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def tools(tmp_path) -> Iterator[FakeTools]:
    """A machine whose compilers are scripts; kills leftover processes at the end."""
    made = FakeTools(tmp_path / "machine")
    yield made
    made.end()


Reported = tuple[FakeTools, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def reported(tmp_path_factory) -> Reported:
    """The machine of a finished `report --open`, and the result of a report started during it."""
    tools = FakeTools(tmp_path_factory.mktemp("reported") / "machine")
    hold = tools.folder / "hold"
    hold.touch()
    wait = f'while [ -e "{hold}" ]; do sleep 0.05; done'
    tools.from_the(1, of="shell", what=f': > "{tools.folder}/reached"; {wait}')
    first = tools.start("report", "--open")
    tools.wait_until_at_work(first)
    second = tools.gccost("report")
    hold.unlink()
    said, complaint = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, complaint
    assert "the report is" in said
    return tools, second
