"""What the pages say that runtimes do, where no study counts it: on Go 1.24 to 1.27, JDK 11 to 25.

`gosrc/truths` has the tests of Go's own sentences, `javasrc/truths` counts what a JVM does.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gccost import paths
from gccost.cases.versions import JDK_RELEASES
from gccost.measuring import jdks, toolchains
from gccost.studies import truths

RELEASES = truths.RELEASES
JAVA = paths.ROOT / "javasrc" / "truths"
SLOW = pytest.mark.slow


def test_the_study_has_each_release_with_cleanups():
    minors = [release.split(".")[1] for release in RELEASES]
    assert minors[0] == "24"
    assert minors == [str(minor) for minor in range(24, 24 + len(minors))]
    assert truths.STUDY.packages == ["annotated", "truths", "yields"]


@SLOW
@pytest.mark.parametrize("release", RELEASES)
def test_the_sentences_on_go_hold(release):
    go = toolchains.fetch(release)
    command = [go.go, "test", "-count=1", "./truths"]
    done = subprocess.run(
        command, cwd=paths.GOSRC, env=go.environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


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
    """A function that compiles javasrc/truths for a release, and returns the classes' folder."""

    def compile_for(release: int) -> Path:
        into = tmp_path_factory.mktemp(f"java-{release}")
        command = [jdks.javac().javac, "--release", str(release), "-d", into, JAVA / "Main.java"]
        subprocess.run(command, check=True, capture_output=True)
        return into

    return compile_for


def said(release: str, classes: Path, what: str, *options: str) -> str:
    """What javasrc/truths prints of one thing, on a JDK."""
    java = jdks.fetch(release).java
    command = [java, "-Xmx1g", *options, "-cp", classes, "truths.Main", what]
    done = subprocess.run(command, capture_output=True, text=True, env=jdks.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@SLOW
@pytest.mark.parametrize("release", JDK_RELEASES)
def test_the_sentences_on_java_hold(release, compiled):
    classes = compiled(11)
    assert said(release, classes, "order") == "[2, 1, 0]"  # the newest first
    assert said(release, classes, "throws") == "200 0"  # all ran, no handler saw an exception
    assert said(release, classes, "inner") == "0"  # the handle is kept
    assert said(release, classes, "empty") == "0 1000 2000"  # an empty finalize registers nothing
    # Bytes of a registration with a Cleaner, and of one by finalize.
    assert said(release, classes, "sizes", "-XX:+UseSerialGC") == "48 40 2000"
    assert said(release, classes, "young", "-XX:+UseSerialGC") == "freed"
    assert said(release, classes, "young", "-XX:+UseG1GC") == "freed"


@SLOW
def test_an_inner_class_keeps_its_handle_by_the_release_it_is_compiled_for(compiled):
    if jdks.number(jdks.javac().release) < 18:
        pytest.skip("needs javac 18 or later")
    assert said("jdk-25", compiled(17), "inner") == "0"
    assert said("jdk-25", compiled(21), "inner") == "200"


@SLOW
def test_young_collections_of_zgc_free_nothing(compiled):
    assert said("jdk-25", compiled(11), "young", "-XX:+UseZGC") == "none"
