"""Measure the patch series: benchmarks, the constants of the index, programs without specials.

    .venv/bin/python gosrc/overlay/upstream/measure.py specials [ROUNDS]   benchstat tables
    .venv/bin/python gosrc/overlay/upstream/measure.py constants [ROUNDS]  other constants
    .venv/bin/python gosrc/overlay/upstream/measure.py programs [ROUNDS]   CPU time and memory

The runtimes take turns in each round, in an order that is drawn anew. ROUNDS is 10 by default.
Names after it choose among the benchmarks or the programs. `specials` and `constants` add the CPU
time of the benchmark's thread to what the benchmarks report: compare that on a busy machine.
`programs` links every program anew in each round, with another random layout of its functions, and
measures user and system CPU time. It prints the geometric mean of the ratios of a round over all
programs, and that of each program, with 95 % intervals over the rounds.
"""

from __future__ import annotations

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
from gccost.measuring import toolchains

UPSTREAM = Path(__file__).parent
RUNTIMES = ("stock", "hint", "index")
BENCHSTAT = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"
PROGRAMS = ("compile", "json", "http", "trees", "text", "gzip")
# What the tests need from package runtime, where the stock runtime lacks it.
STOCK = """package runtime

import "unsafe"

func SpecialSteps(unsafe.Pointer) int { return 0 }

func CheckSpecials() string { return "" }
"""
# Edits of the benchmarks that add the CPU time of their thread.
CPU_TIME = {
    "func benchmarkSpecials(": """func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(1, &usage); err != nil { // RUSAGE_THREAD of Linux
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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
# The constants of the index, and other values for each.
CONSTANTS = {
    "minIndexedSpecials = 16": ("8", "32", "64"),
    "specialsPerBucket  = 4": ("1", "2", "8", "16"),
}
LEVELS = {
    "from 64 buckets": "\t{logBuckets: 4, most: specialsPerBucket << 4},\n",
    "256 at once": (
        "\t{logBuckets: 4, most: specialsPerBucket << 4},\n"
        "\t{logBuckets: 6, most: specialsPerBucket << 6},\n"
    ),
}


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
        self.scratch, self.toolchain = scratch, toolchains.fetch(toolchains.TODAY_GO)
        self.series = scratch / "series"
        series = ["-goroot", str(self.toolchain.goroot), "-series", str(self.series)]
        self.go(self.toolchain.goroot, "run", "./overlay", *series, cwd=paths.ROOT / "gosrc")

    def go(self, goroot: Path, *arguments: str, cwd: Path) -> None:
        go = {"GOROOT": str(goroot), "PWD": str(cwd)}
        environment = self.toolchain.environment() | go
        command = [str(goroot / "bin" / "go"), *arguments]
        subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.DEVNULL)

    def tree(self, runtime: str, edits: Mapping[str, str] | None = None, name: str = "") -> Path:
        """A GOROOT whose package runtime has the patches, and no tests but theirs."""
        goroot = self.scratch / "tree" / (name or runtime).replace(" ", "-")
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
        if edits:
            replace(source / "mspecialindex.go", edits)
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
    files = []
    for name in RUNTIMES:
        (trees.scratch / name).write_text(said[name])
        files.append(f"{name}={trees.scratch / name}")
    command = [str(trees.toolchain.go), "run", BENCHSTAT, *files]
    subprocess.run(command, check=True, env=trees.toolchain.environment(), cwd=trees.scratch)


def constants(trees: Trees, rounds: int, names: Sequence[str]) -> None:
    """Print what other constants of the index cost, relative to the chosen ones."""
    edits = {
        f"{line.split()[0]} = {value}": {line: line.replace(line.split()[-1], value)}
        for line, values in CONSTANTS.items()
        for value in values
    } | {name: {lines: ""} for name, lines in LEVELS.items()}
    chosen = "as chosen"
    programs = {chosen: trees.tests(trees.tree("index"))}
    for name, edit in edits.items():
        programs[name] = trees.tests(trees.tree("index", edit, name))
    pattern = "|".join(names) or "Specials(AddCleanup|Stop)"
    flags = (f"-test.bench={pattern}", "-test.benchtime=20000x")
    said = alternate(programs, rounds, *flags)
    costs = {name: benchmarks(text) for name, text in said.items()}
    print("median cpu-ns/op", *costs[chosen], sep="\t")
    for name, found in costs.items():
        print(name, *(f"{median(times):.0f}" for times in found.values()), sep="\t")


def benchmarks(text: str) -> dict[str, list[float]]:
    """The CPU ns of each benchmark in an output."""
    found = defaultdict(list)
    for line in text.splitlines():
        if line.startswith("Benchmark"):
            words = line.split()
            cpu = float(words[words.index("cpu-ns/op") - 1])
            found[words[0].removeprefix("BenchmarkSpecials")].append(cpu)
    return found


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
    tasks = {"specials": specials, "constants": constants, "programs": programs}
    if len(sys.argv) < 2 or sys.argv[1] not in tasks:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
        tasks[sys.argv[1]](Trees(Path(scratch)), rounds, sys.argv[3:])


if __name__ == "__main__":
    main()
