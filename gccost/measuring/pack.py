"""Packs: the programs, built, and the sampler, for machines without any tools.

A pack is an archive with the programs, those in Go in several random layouts, the modules that take
samples, and the script `run`. The target needs Linux, glibc, and Python 3.11 or later; no
compiler, package, network or root. Java programs are measured on the JDKs that it has. The
Go programs are linked dynamically, as in a local recording, because a static C library has
another malloc, whose time is part of the figures. So the target's glibc must not be older
than the one that they were linked against. With `old_libc`, or for another processor, Zig
links them against glibc 2.17 (of 2012).
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import lzma
import random
import re
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from gccost import paths
from gccost.errors import MissingTool
from gccost.files import temporary, writing
from gccost.measuring import ccompilers, languages, machine, planning, toolchains
from gccost.measuring.cases import Budget, Build, Study, named
from gccost.measuring.machine import GOARCH
from gccost.measuring.packed import FORMAT, PROGRAMS, build_name, digest, study_json
from gccost.measuring.planning import Questions
from gccost.processes import ProcessGroup

OLD_LIBC = "2.17"
_ARCHES = {goarch: kernel for kernel, goarch in GOARCH.items()}
_BELOW = ("__init__", "errors", "files", "paths", "processes")
_ALONG = "filelock"  # the only package that the sampler imports: pure Python
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]
_RUN = """#!/bin/sh
# Measures, and writes the run as an archive. It resumes an interrupted run.
# GCCOST_RUNS names another folder for runs, PYTHON another Python (3.11 or later).
here=$(cd "$(dirname "$0")" && pwd) || exit
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "gccost: $python is missing or older than Python 3.11. To fix it: PYTHON=... ./run" >&2
    exit 1
}
PYTHONPATH=$here exec "$python" -sPB -m gccost.measuring.packed "$@"
"""


def make(
    studies: Sequence[Study],
    budget: Budget,
    questions: Questions,
    claims: Sequence[Sequence[str]],
    output: Path,
    goarch: str = "",
    old_libc: bool = False,
    say: Callable[[str], None] = toolchains.silent,
) -> None:
    """Write a pack of the studies at a budget for Linux on `goarch` (this machine's if empty).

    `claims` are the names of the cases of each claim on each release. Raises GccostError if a
    program cannot be built.
    """
    described = machine.describe()
    here = GOARCH.get(described["architecture"], described["architecture"])
    goarch = goarch or here
    named(_ARCHES, goarch, "target")
    anywhere = {**described, "allowed_cpus": sys.maxsize}
    plan = planning.plan(studies, budget, questions, say, description=anywhere)
    if not plan.pool:
        raise MissingTool(f"nothing can be packed: {'; '.join(plan.missing.values())}")
    compilers: dict[str, Any] = {
        languages.of(study).compiles_with: plan.tools[study.name].compiler
        for study in plan.owners.values()
    }
    if "C compiler" in compilers and (old_libc or goarch != here):
        target = f"{_ARCHES[goarch]}-linux-gnu.{OLD_LIBC}"
        compilers["C compiler"] = ccompilers.zig(target, say)
    wanted: dict[Build, tuple[int, Callable[..., Path]]] = {}
    for case in plan.pool.values():
        owner = plan.owners[case.name]
        language, tool = languages.of(owner), plan.tools[owner.name].found[case.release]
        own = compilers[language.compiles_with]
        build = partial(language.build_packed, case.build, tool, own, goarch)
        wanted[case.build] = language.layouts, build
    with temporary(output.resolve().with_name(f".{output.name}.parts")) as folder:
        built = _build(wanted, folder, say)
        made = {"commit": described["commit"], "dirty": described["dirty"]}
        if compiler := compilers.get("C compiler"):
            made |= {"c_compiler": compiler.version, "c_compiler_source": compiler.source}
        manifest = {
            "format": FORMAT,
            "goarch": goarch,
            "glibc": _needed_libc(folder.glob("*.test")),
            "budget": budget.name,
            "made": made,
            "studies": [
                study_json(study, tuple(c for c in study.cases if c.name in plan.pool))
                for study in studies
            ],
            "claims": [list(claim) for claim in claims],
            "programs": plan.programs,
            "compilers": {kind: own.version for kind, own in compilers.items()},
            "random_layout": plan.random_layouts,
            "missing": plan.missing,
            "binaries": {
                name: {file: digest(path) for file, path in files.items()}
                for name, files in built.items()
            },
        }
        say("compressing")
        with writing(output):
            _write(output, manifest, built.values())
    needs = f", needs glibc {manifest['glibc']}" if manifest["glibc"] else ""
    say(f"{output}: {output.stat().st_size / 1e6:.1f} MB{needs}")


def _build(
    wanted: Mapping[Build, tuple[int, Callable[..., Path]]],
    folder: Path,
    say: Callable[[str], None],
) -> dict[str, dict[str, Path]]:
    """Build each program in its number of layouts; return its files by name, by build."""
    chance = random.SystemRandom()
    made: dict[str, dict[str, Path]] = {}

    def build(what: Build, number: int) -> dict[str, Path]:
        with tempfile.TemporaryDirectory(dir=folder) as into:
            built = wanted[what][1](chance.randrange(1, 2**31), Path(into), group.run)
            if built.is_file():  # a Go program; a Java program is a folder
                built = built.replace(folder / f"{build_name(what)}-{number}.test")
                return {built.name: built}
        files = (path for path in built.rglob("*") if path.is_file())
        return {f"{what.program}/{path.relative_to(built)}": path for path in files}

    with ThreadPoolExecutor(machine.allowed_cpus()) as pool, ProcessGroup() as group:
        jobs = {
            what: [pool.submit(build, what, number) for number in range(1, wanted[what][0] + 1)]
            for what in sorted(wanted)
        }
        for i, (what, started) in enumerate(jobs.items(), 1):
            made[build_name(what)] = {
                name: path for job in started for name, path in job.result().items()
            }
            say(f"built {build_name(what)} ({i} of {len(jobs)})")
    return made


def _needed_libc(binaries: Iterator[Path]) -> str:
    """The oldest glibc that has every symbol version that the binaries need; "" for none."""
    found = {
        (int(major), int(minor))
        for path in binaries
        for major, minor in _GLIBC.findall(path.read_bytes())
    }
    return ".".join(map(str, max(found, default=())))


def _write(output: Path, manifest: Mapping[str, Any], built: Iterable[Mapping[str, Path]]) -> None:
    package = paths.ROOT / "gccost"
    modules = [package / f"{name}.py" for name in _BELOW] + sorted(package.glob("measuring/*.py"))
    files = {path.relative_to(paths.ROOT).as_posix(): path.read_bytes() for path in modules}
    for file in importlib.metadata.files(_ALONG) or ():
        if file.suffix == ".py" or file.name.startswith("LICENSE"):
            files[file.as_posix()] = Path(str(file.locate())).read_bytes()
    for name in ("LICENSE", "data/releases.csv", "data/benchmarks.csv"):
        files[name] = (paths.ROOT / name).read_bytes()
    with (
        lzma.open(output, "wb", filters=_FILTERS) as stream,
        tarfile.TarFile(mode="w", fileobj=stream) as tar,
    ):
        _add(tar, "pack.json", json.dumps(manifest, indent=1).encode(), 0o644)
        _add(tar, "run", _RUN.encode(), 0o755)
        for name, data in files.items():
            _add(tar, name, data, 0o644)
        # Layouts of one program, and programs of one release, share most of their code. The
        # compressor finds that if they are side by side.
        programs = {name: path for each in built for name, path in each.items()}
        for name in sorted(programs, key=lambda name: (name.split("-")[1:2], name)):
            _add(tar, f"{PROGRAMS}/{name}", programs[name].read_bytes(), 0o755)


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(f"gccost-pack/{name}")
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
