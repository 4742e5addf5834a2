"""Measure the patch series: benchmarks, the constants of the index, programs without specials.

    .venv/bin/python gosrc/overlay/upstream/measure.py specials [ROUNDS]   benchstat tables
    .venv/bin/python gosrc/overlay/upstream/measure.py composition [ROUNDS]   fewer allocations
    .venv/bin/python gosrc/overlay/upstream/measure.py constants           other constants
    .venv/bin/python gosrc/overlay/upstream/measure.py programs [ROUNDS]   CPU time and memory
    .venv/bin/python gosrc/overlay/upstream/measure.py instructions [ROUNDS]  instead of CPU time

The runtimes take turns in each round, in an order that is drawn anew. ROUNDS is 10 by default.
Names after it choose among the benchmarks or the programs. `specials` adds the CPU time of the
benchmark's thread to what the benchmarks report: compare that on a busy machine. `constants`
counts instead of timing.
`programs` links every program anew in each round, with another random layout of its functions, and
measures user and system CPU time. It prints the geometric mean of the ratios of a round over all
programs, and that of each program, with 95 % intervals over the rounds. `instructions` counts
with valgrind's cachegrind on one P: what other programs do hardly changes such a count, but it
leaves out caches and the kernel. Its intervals are over programs.
"""

from __future__ import annotations

import bisect
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np
from scipy import stats

from gccost import paths
from gccost.cases import versions
from gccost.measuring import builds, toolchains

UPSTREAM = Path(__file__).parent
RUNTIMES = ("stock", "hint", "index")
BENCHSTAT = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"
PROGRAMS = ("compile", "json", "http", "trees", "text", "gzip")
# What the tests need from package runtime, and the stock runtime lacks.
STOCK = """package runtime

import "unsafe"

func SpecialSteps(unsafe.Pointer) int { return 0 }

func CheckSpecials() string { return "" }
"""
# Edits of the benchmarks that add the CPU time of their thread.
CPU_TIME = {
    "func benchmarkSpecials(": """func threadTime() time.Duration {
	var now syscall.Timespec
	_, _, errno := syscall.Syscall( // of CLOCK_THREAD_CPUTIME_ID of Linux
		syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		panic(errno)
	}
	return time.Duration(now.Nano())
}

func benchmarkSpecials(""",
    "	for done := 0; done < b.N; {\n": """	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := time.Duration(0)
	defer func() { b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op") }()
	for done := 0; done < b.N; {
""",
    "		b.StartTimer()\n": "		b.StartTimer()\n		before := threadTime()\n",
    "		b.StopTimer()\n		done": """		b.StopTimer()
		spent += threadTime() - before
		done""",
    '	"sync"\n': '	"sync"\n	"syscall"\n',
}
# Constants of the index to compare: the records from which a list has one, the records in a bucket
# above which it grows, and the numbers of buckets.
CONSTANTS = [
    (16, 4, (16, 64, 256)),  # as chosen
    *((fewest, 4, (16, 64, 256)) for fewest in (4, 8, 32, 64)),
    *((16, most, (16, 64, 256)) for most in (1, 2, 8, 16)),
    *((16, 4, buckets) for buckets in ((256,), (64, 256), (16, 64), (16, 64, 256, 1024))),
]
SPAN, OBJECT = 8192, 8  # bytes


def replace(file: Path, edits: Mapping[str, str]) -> None:
    """Replace texts that stand in a file once."""
    text = file.read_text()
    for old, new in edits.items():
        if text.count(old) != 1:
            raise ValueError(f"{file.name} has no single {old!r}")
        text = text.replace(old, new)
    file.write_text(text)


class Trees:
    """Copies of today's GOROOT with the patches, in a scratch folder."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.toolchain = scratch, toolchains.fetch(versions.TODAY_GO)
        self.series = scratch / "series"
        series = ["-goroot", str(self.toolchain.goroot), "-series", str(self.series)]
        self.go(self.toolchain.goroot, "run", "./overlay", *series, cwd=paths.ROOT / "gosrc")

    def go(self, goroot: Path, *arguments: str, cwd: Path) -> None:
        go = {"GOROOT": str(goroot), "PWD": str(cwd)}
        environment = self.toolchain.environment() | go
        command = [str(goroot / "bin" / "go"), *arguments]
        subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.DEVNULL)

    def tree(self, runtime: str) -> Path:
        """A GOROOT whose package runtime has the patches, and no tests but theirs."""
        goroot = self.scratch / "tree" / runtime
        shutil.copytree(self.toolchain.goroot, goroot, copy_function=os.symlink)
        for path in (goroot, *(path for path in goroot.rglob("*") if path.is_dir())):
            path.chmod(0o755)  # copies of the module cache's folders are read-only
        source = goroot / "src" / "runtime"
        shutil.rmtree(source)
        shutil.copytree(self.toolchain.goroot / "src" / "runtime", source)
        for path in (source, *source.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        for path in source.glob("*_test.go"):
            if not path.name.startswith("export_"):
                path.unlink()
        if runtime == "stock":
            test = (UPSTREAM / "hint" / "mspecial_test.go.txt").read_text()
            (source / "mspecial_test.go").write_text(test + "\nconst maxSpecialSteps = 0\n")
            (source / "export_mspecial_test.go").write_text(STOCK)
        for patch in sorted(self.series.iterdir())[: RUNTIMES.index(runtime)]:
            subprocess.run(["git", "apply", "-p1", str(patch)], cwd=goroot, check=True)
        return goroot

    def tests(self, goroot: Path) -> Path:
        """The test program of a tree's package runtime."""
        file = goroot / "src" / "runtime" / "mspecial_test.go"
        replace(file, CPU_TIME)
        program = self.scratch / f"{goroot.name}.test"
        test = ("test", "-c", "-vet=off", "-o", str(program), "runtime")
        self.go(goroot, *test, cwd=goroot / "src")
        return program


def alternate(programs: Mapping[str, Path], rounds: int, *flags: str) -> dict[str, str]:
    """The outputs of test programs that take turns."""
    said: dict[str, str] = defaultdict(str)
    for _ in range(rounds):
        for name in random.sample(list(programs), len(programs)):
            command = [str(programs[name]), "-test.run=^$", *flags]
            answer = subprocess.run(command, check=True, capture_output=True, text=True)
            said[name] += answer.stdout
    return said


def specials(trees: Trees, rounds: int, names: Sequence[str]) -> None:
    """Print benchstat tables of the patches' benchmarks."""
    programs = {name: trees.tests(trees.tree(name)) for name in RUNTIMES}
    chosen = "|".join(names) or "Specials"
    said = alternate(programs, rounds, f"-test.bench={chosen}", "-test.benchtime=20000x")
    benchstat(trees, {name: said[name] for name in RUNTIMES})


def benchstat(trees: Trees, said: Mapping[str, str], *flags: str) -> None:
    """Print benchstat tables of the outputs of test programs; the first is the baseline."""
    files = []
    for name, text in said.items():
        (trees.scratch / f"{name}.txt").write_text(text)
        files.append(f"{name}={trees.scratch / name}.txt")
    command = [str(trees.toolchain.go), "run", BENCHSTAT, *flags, *files]
    subprocess.run(command, check=True, env=trees.toolchain.environment(), cwd=trees.scratch)


def composition(trees: Trees, rounds: int, names: Sequence[str]) -> None:
    """Print how the issue's loop does without AddCleanup's allocations, with the index, and both.

    `walking` is the variant plus, which allocates less, edited so that no list gets an index.
    """
    overlays = {name: builds.overlay(trees.toolchain, name) for name in ("index", "plus")}
    goroots = {name: overlay.with_name("goroot") for name, overlay in overlays.items()}
    replaced = json.loads(overlays["plus"].read_text())["Replace"]
    source = next(name for name in replaced if name.endswith("mspecialindex.go"))
    edited = trees.scratch / "mspecialindex.go"
    shutil.copyfile(replaced[source], edited)
    replace(edited, {"at := span.specials; at != nil; at": "at := span.specials; false; at"})
    overlays["walking"], goroots["walking"] = trees.scratch / "walking.json", goroots["plus"]
    overlays["walking"].write_text(json.dumps({"Replace": {**replaced, source: str(edited)}}))
    programs = {}
    for name in ("stock", "walking", "index", "plus"):
        programs[name] = trees.scratch / f"{name}.test"
        flags = [f"-overlay={overlays[name]}"] if name in overlays else []
        build = ("test", "-c", "-trimpath", *flags, "-o", str(programs[name]), "./cstr")
        goroot = goroots.get(name, trees.toolchain.goroot)
        trees.go(goroot, *build, cwd=paths.ROOT / "gosrc")
    loop = "-test.bench=^BenchmarkAllocateCleanup$", "-test.benchtime=800000x"
    said = alternate(programs, rounds, *loop)
    benchstat(trees, {name: said[name] for name in programs}, "-filter", ".unit:cpu-sec/op")


def constants() -> None:
    """Print what other constants of the index cost, for a span of 8-byte objects.

    It counts the records that calls visit, so the result does not depend on a machine.
    """
    orders = {"ascending": list(range(0, SPAN, OBJECT)), "random": list(range(0, SPAN, OBJECT))}
    random.Random(1).shuffle(orders["random"])
    print("from", "per bucket", "buckets", sep="\t", end="\t")
    print(*(f"{order} {n}" for order in orders for n in (64, 1024)), "bytes at 16, 64, 1024")
    for fewest, most, buckets in CONSTANTS:
        row: list[str] = []
        for places in orders.values():
            for n in (64, 1024):
                visited, sizes = counted(places[:n], fewest, most, buckets)
                row.append(f"{visited / n:.1f}")
        row.append(", ".join(f"{sizes[n]}" for n in (16, 64, 1024)))
        print(fewest, most, "/".join(map(str, buckets)), *row, sep="\t")


def counted(
    places: Sequence[int], fewest: int, most: int, buckets: Sequence[int]
) -> tuple[int, list[int]]:
    """The records visited while records are added at offsets, and the index's bytes by number."""
    records: list[int] = []
    visited, level, sizes = 0, -1, [0]
    for offset in places:
        at = bisect.bisect_left(records, offset)
        width = SPAN // buckets[level]
        visited += at if level < 0 else at - bisect.bisect_left(records, offset // width * width)
        records.insert(at, offset)
        if level < 0:
            visited += len(records)  # linkSpecial counts them
        if (level < 0 and len(records) >= fewest) or (
            0 <= level < len(buckets) - 1 and len(records) > most * buckets[level]
        ):
            level += 1
            visited += len(records)
        sizes.append(40 + 8 * buckets[level] if level >= 0 else 0)
    return visited, sizes


class Builder:
    """Links the programs with a runtime, and runs them."""

    def __init__(self, trees: Trees, names: Sequence[str]) -> None:
        self.names = names
        self.trees, self.goroots = trees, {name: trees.tree(name) for name in RUNTIMES}
        # The compiler's task is package go/types of the stock tree.
        source = self.goroots["stock"] / "src"
        go = [str(self.goroots["stock"] / "bin" / "go"), "list", "-export", "-deps"]
        environment = trees.toolchain.environment() | {
            "GOROOT": str(self.goroots["stock"]),
            "PWD": str(source),
        }
        line = "{{if .Export}}packagefile {{.ImportPath}}={{.Export}}{{end}}"
        self.imports = trees.scratch / "imports"
        with self.imports.open("w") as file:
            command = [*go, "-f", line, "go/types"]
            subprocess.run(command, env=environment, cwd=source, stdout=file, check=True)
        listed = subprocess.run(
            [*go[:2], "-json", "go/types"], env=environment, cwd=source, check=True,
            capture_output=True,
        )  # fmt: skip
        package = json.loads(listed.stdout)
        self.sources = [str(Path(package["Dir"]) / name) for name in package["GoFiles"]]

    def link(self, runtime: str, layout: int) -> dict[str, list[str]]:
        """The commands of the programs, by name, with a random layout."""
        goroot, to = self.goroots[runtime], self.trees.scratch / runtime
        shutil.rmtree(to, ignore_errors=True)
        flags = ("build", f"-ldflags=-randlayout={layout}", "-o", str(to) + "/")
        self.trees.go(goroot, *flags, str(UPSTREAM / "programs"), cwd=paths.ROOT / "gosrc")
        if "compile" in self.names:
            self.trees.go(goroot, *flags, "cmd/compile", cwd=goroot / "src")
        compiler = [str(to / "compile"), "-p", "go/types", "-complete", "-o", os.devnull]
        compiler += ["-importcfg", str(self.imports), *self.sources]
        return {
            name: compiler if name == "compile" else [str(to / "programs"), name]
            for name in self.names
        }


def measured(command: list[str]) -> tuple[float, list[float]]:
    """The CPU seconds of a command, and the figures that it prints."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return usage.ru_utime + usage.ru_stime, [float(word) for word in said.split()]


def instructions(trees: Trees, rounds: int, names: Sequence[str]) -> None:
    """Print how many more instructions the programs execute with the patches, in percent."""
    names = names or PROGRAMS
    builder = Builder(trees, names)
    commands = {name: builder.link(name, 0) for name in RUNTIMES}
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for program in names:
            executed = {name: executions(commands[name][program]) for name in RUNTIMES}
            for name in RUNTIMES[1:]:
                ratio = executed[name] / executed["stock"]
                logs[name, program].append(float(np.log(ratio)))
                print(f"{name}\t{program}\t{100 * (ratio - 1):+.2f} %", flush=True)
    for name in RUNTIMES[1:]:
        print(f"{name}\tall\t{interval([fmean(logs[name, program]) for program in names])}")


def executions(command: list[str]) -> int:
    """The instructions that a command executes in user mode, on one P."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no"]
    settings = {"GOMAXPROCS": "1", "GODEBUG": "asyncpreemptoff=1"}  # signals slow valgrind
    answer = subprocess.run(
        [*valgrind, f"--cachegrind-out-file={os.devnull}", *command],
        env=os.environ | settings, check=True, capture_output=True, text=True,
    )  # fmt: skip
    line = next(line for line in answer.stderr.splitlines() if "refs:" in line)
    return int(line.split()[-1].replace(",", ""))


def interval(logs: list[float]) -> str:
    """The geometric mean of ratios and its 95 % interval, in percent of change."""
    spread = stats.t.ppf(0.975, len(logs) - 1) * stdev(logs) / len(logs) ** 0.5
    low, middle, high = (100 * np.expm1(fmean(logs) + side * spread) for side in (-1, 0, 1))
    return f"{middle:+.2f} % ({low:+.2f} to {high:+.2f})"


def programs(trees: Trees, rounds: int, names: Sequence[str]) -> None:
    """Print what the patches change for programs with few specials or none."""
    names = names or PROGRAMS
    builder = Builder(trees, names)
    logs: dict[tuple[str, str], list[float]] = defaultdict(list)
    spans: dict[tuple[str, str], list[float]] = defaultdict(list)
    for done in range(1, rounds + 1):
        layout = random.randrange(1, 1 << 30)
        commands = {name: builder.link(name, layout) for name in RUNTIMES}
        for program in names:
            times: dict[str, float] = defaultdict(lambda: np.inf)
            for _ in range(3):  # the least of three: disturbances only slow a program
                for name in random.sample(RUNTIMES, len(RUNTIMES)):
                    seconds, memory = measured(commands[name][program])
                    times[name] = min(times[name], seconds)
                    if memory:
                        spans[name, program].append(memory[0] / memory[1])
            for name in RUNTIMES[1:]:
                logs[name, program].append(float(np.log(times[name] / times["stock"])))
        if done < 3:
            continue
        print(f"\nafter {done} rounds: CPU time relative to stock", flush=True)
        for name in RUNTIMES[1:]:
            every = [fmean(row) for row in zip(*(logs[name, p] for p in names), strict=True)]
            print(f"{name}\tall programs\t{interval(every)}")
            for program in names:
                print(f"{name}\t{program}\t{interval(logs[name, program])}", flush=True)
    print("\nmemory of spans, in percent of the heap in use")
    for (name, program), shares in spans.items():
        print(f"{name}\t{program}\t{100 * median(shares):.3f}")


def main() -> None:
    tasks = {
        "specials": specials,
        "composition": composition,
        "programs": programs,
        "instructions": instructions,
    }
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "constants":
        constants()
    elif what in tasks:
        with tempfile.TemporaryDirectory() as scratch:
            rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
            tasks[what](Trees(Path(scratch)), rounds, sys.argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
