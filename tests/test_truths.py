"""What the pages say that runtimes do, where no study counts it: on Go 1.24 to 1.27, JDK 11 to 25.

`gosrc/truths` and `gosrc/edges` have the tests of Go's own sentences, `javasrc/surprises` counts
what a JVM does.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gccost import paths
from gccost.cases.versions import JDK_RELEASES
from gccost.measuring import builds, jdks, toolchains, tools
from gccost.studies import truths

RELEASES = truths.RELEASES
JAVA = paths.JAVASRC / "surprises"
SLOW = pytest.mark.slow


def test_the_study_has_each_release_with_cleanups():
    minors = [release.split(".")[1] for release in RELEASES]
    assert minors[0] == "24"
    assert minors == [str(minor) for minor in range(24, 24 + len(minors))]
    assert truths.STUDY.packages == [
        *("annotated", "counting", "recycled", "registers", "truths", "yields"),
    ]


@SLOW
@pytest.mark.parametrize("release", RELEASES)
def test_the_sentences_on_go_hold(release):
    go = toolchains.fetch(release)
    command = [go.go, "test", "-count=1", "./truths", "./edges"]
    done = subprocess.run(
        command, cwd=paths.GOSRC, env=go.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@SLOW
@pytest.mark.parametrize("release", RELEASES)
def test_a_runtime_that_counts_counts_what_is_registered(release, tmp_path):
    compiler, toolchain = tools.c_compiler(print), toolchains.fetch(release)
    program = builds.build("registers", toolchain, compiler, 7, tmp_path, runtime="counting")
    command = [program, "-test.run=^$", "-test.bench=Registers/(stat|readfile)"]
    command.append("-test.benchtime=3x")
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in printed.splitlines() if line.startswith("Benchmark")]
    of = {line[0].split("=")[1].split("-")[0]: line for line in lines}
    counts = {call: float(line[line.index("finalizers") - 1]) for call, line in of.items()}
    assert counts == {"stat": 0, "readfile": 1}


@SLOW
def test_without_that_runtime_nothing_is_counted(tmp_path):
    compiler, toolchain = tools.c_compiler(print), toolchains.fetch(RELEASES[-1])
    program = builds.build("registers", toolchain, compiler, 7, tmp_path)
    command = [program, "-test.run=^$", "-test.bench=Registers/readfile", "-test.v"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "needs the runtime that ./counting writes" in printed
    assert "finalizers" not in printed


# The runtime collects when the last collection was so long ago: 120 s, here 20 ms.
IDLE = """
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
	_ "unsafe"
)

//go:linkname forcegcperiod runtime.forcegcperiod
var forcegcperiod int64

func main() {
	forcegcperiod = 20e6
	if len(os.Args) > 1 {
		runtime.GC()
	}
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	before := stats.NumGC
	time.Sleep(500 * time.Millisecond)
	debug.ReadGCStats(&stats)
	fmt.Println(stats.NumGC > before)
}
"""


def idle(program: Path, *arguments: str, **variables: str) -> bool:
    """Whether an idle program collects."""
    done = subprocess.run([program, *arguments], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout == "true\n"


@SLOW
@pytest.mark.parametrize("release", RELEASES)
def test_an_idle_program_collects_only_after_a_first_collection(release, tmp_path):
    go = toolchains.fetch(release)
    (tmp_path / "main.go").write_text(IDLE, encoding="utf-8")
    (tmp_path / "go.mod").write_text("module idle\n\ngo 1.24\n", encoding="utf-8")
    command = [go.go, "build", "-ldflags=-checklinkname=0", "-o", "idle", "."]
    subprocess.run(command, cwd=tmp_path, env=go.environment(), check=True)
    program = tmp_path / "idle"
    assert not idle(program)
    assert idle(program, "collect")
    assert not idle(program, "collect", GOGC="off")
    assert not idle(program, "collect", GOGC="off", GOMEMLIMIT="1GiB")


# --- Java ---------------------------------------------------------------------------------


def test_no_measured_finalizer_is_empty():
    programs = [path for path in paths.JAVASRC.rglob("*.java") if path.parent != JAVA]
    text = "\n".join(path.read_text(encoding="utf-8") for path in programs)
    assert len(re.findall(r"void finalize\(\)", text)) == 3
    assert not re.search(r"void finalize\(\)[^{;]*\{\s*\}", text)  # the JVM registers none of these


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A function that compiles javasrc/surprises for a release, and returns the classes' folder."""

    def compile_for(release: int) -> Path:
        into = tmp_path_factory.mktemp(f"java-{release}")
        command = [jdks.javac().javac, "--release", str(release), "-d", into, JAVA / "Main.java"]
        subprocess.run(command, check=True, capture_output=True)
        return into

    return compile_for


def counted(release: str, classes: Path, benchmark: str, *options: str) -> dict[str, float]:
    """What javasrc/surprises counts in a benchmark on a JDK, by unit."""
    java = jdks.fetch(release).java
    command = [java, "-Xmx1g", *options, "-cp", classes, "surprises.Main", benchmark, "1"]
    done = subprocess.run(command, capture_output=True, text=True, env=jdks.environment())
    assert done.returncode == 0, done.stderr
    _, _, *fields = done.stdout.split()
    return {unit: float(value) for value, unit in zip(fields[::2], fields[1::2], strict=True)}


@SLOW
@pytest.mark.parametrize("release", JDK_RELEASES)
def test_the_sentences_on_java_hold(release, compiled):
    classes = compiled(11)
    assert counted(release, classes, "BlockedCleaner")["oldest-first"] == 0
    thrown = counted(release, classes, "ThrowingAction")
    assert (thrown["ran-share"], thrown["reported-share"]) == (1, 0)
    assert counted(release, classes, "InnerAction")["ran-share"] == 0
    assert counted(release, classes, "EmptyFinalize")["registered/op"] == 0
    assert counted(release, classes, "SuperFinalize")["registered/op"] == 1
    registrations = counted(release, classes, "Registrations", "-XX:+UseSerialGC")
    assert (registrations["cleaner-bytes"], registrations["finalize-bytes"]) == (48, 40)
    for collector in ("Serial", "G1"):
        young = counted(release, classes, "YoungCollections", f"-XX:+Use{collector}GC")
        assert young["ran-share"] > 0.5


@SLOW
def test_an_inner_class_keeps_its_handle_by_the_release_it_is_compiled_for(compiled):
    if jdks.number(jdks.javac().release) < 18:
        pytest.skip("needs javac 18 or later")
    assert counted("jdk-25", compiled(17), "InnerAction")["ran-share"] == 0
    assert counted("jdk-25", compiled(21), "InnerAction")["ran-share"] == 1


@SLOW
@pytest.mark.parametrize("release", ["jdk-21", "jdk-25"])
def test_a_cleaner_may_have_a_virtual_thread_and_the_program_ends(release, compiled):
    assert counted(release, compiled(11), "VirtualCleaner")["ran-share"] == 1


@SLOW
def test_young_collections_of_zgc_free_nothing(compiled):
    assert counted("jdk-25", compiled(11), "YoungCollections", "-XX:+UseZGC")["ran-share"] == 0
