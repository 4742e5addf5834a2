"""Build and run the measured Java programs.

Classes are compiled once for all JDKs. There is no random layout, because each JVM compiles
the program again while it runs, so every sample includes the variation between JVMs. A
sample has the results of one fresh JVM, and the resource usage of its whole process,
including its start.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from gccost import paths, processes
from gccost.errors import failed_build
from gccost.files import make_once, writing
from gccost.measuring import benchfmt, jdks, toolchains
from gccost.measuring.builds import hash_of_code
from gccost.measuring.cases import Case
from gccost.measuring.jdks import Javac, Jdk
from gccost.measuring.samples import SAMPLE_SECONDS, complete, failure, inherited, only, parsed

JMH = "jmh"  # the program that needs JMH, and its folder

# The options of every JVM: allow experimental options (ZGC on 11), exit if any thread runs
# out of memory, and log collections.
_ALWAYS = (
    *("-XX:+UnlockExperimentalVMOptions", "-XX:-UsePerfData"),
    *("-Xlog:disable", "-Xlog:gc,gc+phases:file=gc.log", "-XX:+ExitOnOutOfMemoryError"),
)
OUT_OF_MEMORY = 3  # the exit code for it
# In this JVM only the program allocates, and nothing is collected. The program must continue
# when the heap is full.
_EPSILON = ("-XX:+UseEpsilonGC", "-XX:-UseTLAB", "-Xint", "-XX:-ExitOnOutOfMemoryError")

# The JVM option of each setting of a variant; a numeric setting has a template.
FLAGS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "gc": {
            "G1": ("-XX:+UseG1GC",),
            "Serial": ("-XX:+UseSerialGC",),
            "Parallel": ("-XX:+UseParallelGC",),
            "Z": ("-XX:+UseZGC",),
            "Epsilon": _EPSILON,
        },
        "heap": {"*": ("-Xms{}m", "-Xmx{}m")},
        "escape": {"off": ("-XX:-DoEscapeAnalysis",)},
        "finalization": {"disabled": ("--finalization=disabled",)},
        "gcthreads": {"*": ("-XX:ParallelGCThreads={}",)},
    }
)

_PAUSE = re.compile(r"\bPause\b.*?([\d.]+)ms\s*$")
_CYCLE = re.compile(r"\bGC\((\d+)\)")


def flags(settings: Iterable[tuple[str, str]]) -> list[str]:
    """The JVM's options for a variant's settings."""
    options = [*_ALWAYS]
    for key, value in settings:
        known = FLAGS[key]
        options += [each.format(value) for each in known.get(value) or known["*"]]
    return options


# --- Building -----------------------------------------------------------------


def sources(program: str) -> list[Path]:
    """A program's source files, in order."""
    folder = paths.JAVASRC / program
    return sorted(f for f in folder.iterdir() if f.suffix in (".java", ".xml"))


def source_hash(programs: Iterable[str]) -> str:
    """The hex hash of these programs' code."""
    files = (path for program in sorted(programs) for path in sources(program))
    return hash_of_code(files, paths.JAVASRC)


def build(
    program: str,
    javac: Javac,
    run: Callable[..., subprocess.CompletedProcess[str]] = processes.run,
) -> Path:
    """Compile a program unless that is done, and return the folder of its classes and jars.

    Raises DiskFull (a GccostError) on a nearly full disk; see `builds.build`.
    """
    mark = hashlib.sha256(f"{source_hash([program])} {javac.version}".encode()).hexdigest()[:16]
    folder = paths.CACHE / "java" / f"{program}-{mark}"
    return make_once(folder, lambda into: _compile(program, javac, into, run))


def _compile(
    program: str,
    javac: Javac,
    into: Path,
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    command = [str(javac.command), "--release", jdks.COMPILED_FOR, "-d", str(into)]
    if program == JMH:
        # Next to the classes, so that both are found together.
        with writing(into):
            into.mkdir(parents=True)
            for jar in jdks.jmh().iterdir():
                shutil.copyfile(jar, into / jar.name)
        jars = os.pathsep.join(str(jar) for jar in sorted(into.glob("*.jar")))
        command += ["-classpath", jars, "-processorpath", jars]
    command += [str(path) for path in sources(program) if path.suffix == ".java"]
    done = run(command, env=jdks.environment())
    if done.returncode != 0:
        location = f"javasrc/{program} with javac {javac.version}"
        hint = "make doctor shows the JDKs that were found"
        raise failed_build(done, location, hint, [into.parent])


# --- Running ------------------------------------------------------------------


def run_sample(
    classes: Path,
    jdk: Jdk,
    case: Case,
    scratch: Path,
    *,
    limit: float = SAMPLE_SECONDS,
) -> benchfmt.Sample:
    """Run a case in a fresh JVM, and return its sample, named by the case.

    A JVM that runs out of memory also gives a sample, with `died` 1 and no times. Raises
    SampleFailed if it fails otherwise, hangs (over `limit` seconds), or does not print
    exactly one valid line for the case's N.
    """
    classpath = os.pathsep.join((str(classes), str(classes / "*")))
    command = [str(jdk.java), *flags(case.variant.more), "-classpath", classpath]
    command += [f"{case.program}.Main", case.variant.printed, str(case.n)]
    log = scratch / "gc.log"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    with processes.ProcessGroup() as group:
        # Covers all ended children; only this one ends between the two calls.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = complete(group.run, command, case, limit, cwd=scratch, env=inherited())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    elapsed = round(time.monotonic() - start, 4)
    if done.returncode == OUT_OF_MEMORY:
        lost = benchfmt.Sample(case.variant.benchmark, max(case.n, 1), {}, dict(case.variant.sub))
        names = toolchains.named(case.release) | case.variant.keys()
        return lost.with_keys(names).with_metrics({"died": 1.0, "elapsed-s": elapsed})
    if done.returncode != 0:
        raise failure(done, case)
    sample = only(parsed(done.stdout, [case]), case)
    used = _used(before, after)
    used["cpu-share"] = round(used["cpu-s"] / elapsed, 4)
    return sample.with_metrics({**used, **_collections(log), "died": 0.0, "elapsed-s": elapsed})


def _used(before: resource.struct_rusage, after: resource.struct_rusage) -> dict[str, float]:
    """The resource usage between two readings: CPU seconds and page faults."""
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt
    used = {"user-s": user, "sys-s": system, "cpu-s": user + system, "faults": faults}
    return {unit: round(float(value), 6) for unit, value in used.items()}


def _collections(log: Path) -> dict[str, float]:
    """The number of collections and their total pause (s), from the JVM's log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    cycles = {found[1] for line in lines if (found := _CYCLE.search(line))}
    paused = sum(float(found[1]) for line in lines if (found := _PAUSE.search(line)))
    return {"gc-cycles": float(len(cycles)), "gc-pause-s": round(paused / 1000, 6)}
