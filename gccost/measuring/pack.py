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
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gccost import paths
from gccost.errors import MissingTool
from gccost.files import temporary, writing
from gccost.measuring import builds, ccompilers, jobs, languages, machine, planning, toolchains
from gccost.measuring.cases import Budget, Study, one_of
from gccost.measuring.jobs import Build
from gccost.measuring.machine import GOARCH
from gccost.measuring.packed import FORMAT, PROGRAMS, build_name, digest
from gccost.measuring.planning import Plan
from gccost.measuring.progress import PrintedProgress, Say

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
    claims: Sequence[Sequence[str]],
    output: Path,
    goarch: str = "",
    old_libc: bool = False,
    say: Say = toolchains.silent,
) -> None:
    """Write a pack of the studies at a budget for Linux on `goarch` (this machine's if empty).

    `claims` are the names of the cases of each claim on each release. Raises GccostError if a
    program cannot be built.
    """
    described = machine.describe()
    here: str = GOARCH.get(described["architecture"]) or described["architecture"]
    goarch = goarch or here
    one_of(_ARCHES, goarch, "target")
    anywhere = {**described, "allowed_cpus": sys.maxsize}
    plan = planning.plan(studies, budget, say=say, description=anywhere)
    if not plan.pool:
        raise MissingTool(f"nothing can be packed: {'; '.join(plan.missing.values())}")
    if "C compiler" in plan.compiler and (old_libc or goarch != here):
        zig = ccompilers.zig(f"{_ARCHES[goarch]}-linux-gnu.{OLD_LIBC}", say)
        plan.compiler["C compiler"] = zig
    with temporary(output.resolve().with_name(f".{output.name}.parts")) as folder:
        built = _build(plan, goarch, folder)
        manifest = _manifest(plan, built)
        manifest |= {"goarch": goarch, "claims": [list(claim) for claim in claims]}
        whole = ChainMap(*(dict(study.jobs) for study in studies))  # with any machine's N
        manifest["jobs"] = [whole[name] for name in plan.pool]
        say("compressing")
        with writing(output):
            _write(output, manifest, built.values())
    needs = f", needs glibc {manifest['glibc']}" if manifest["glibc"] else ""
    say(f"{output}: {output.stat().st_size / 1e6:.1f} MB{needs}")


def _build(plan: Plan, goarch: str, folder: Path) -> dict[str, dict[str, Path]]:
    """Build each program in its number of layouts; return its files by name, by build."""
    wanted = sorted({jobs.build(job) for job in plan.pool.values()})
    chance = random.SystemRandom()

    def build(what: Build, run: builds.Run) -> dict[str, Path]:
        files = {}
        for number in range(1, languages.of_release(what.release).layouts + 1):
            built = plan.build(what, chance.randrange(1, 2**31), folder, run, goarch)
            if built.is_file():  # a Go program; a Java program is a folder
                files[f"{build_name(what)}-{number}.test"] = built
            for path in filter(Path.is_file, built.rglob("*")):
                files[f"{what.program}/{path.relative_to(built)}"] = path
        return files

    made = builds.build_all(wanted, build, PrintedProgress("packing: "))
    return {build_name(what): files.result() for what, files in made.items()}


def _manifest(plan: Plan, built: Mapping[str, Mapping[str, Path]]) -> dict[str, Any]:
    """The content of pack.json, but for the target and the claims."""
    made = {name: plan.description[name] for name in ("commit", "dirty")}
    if compiler := plan.compiler.get("C compiler"):
        made |= {"c_compiler": compiler.version, "c_compiler_source": compiler.source}
    binaries = {
        name: {file: digest(path) for file, path in files.items()} for name, files in built.items()
    }
    programs = [path for files in built.values() for path in files.values()]
    return {
        "format": FORMAT,
        "glibc": _needed_libc(path for path in programs if path.suffix == ".test"),
        "budget": plan.budget.name,
        "made": made,
        "studies": {name: sorted(plan.pool.keys() & own) for name, own in plan.studies.items()},
        "programs": plan.programs,
        "compilers": {kind: compiler.version for kind, compiler in plan.compiler.items()},
        "random_layout": plan.random_layouts,
        "missing": plan.missing,
        "binaries": binaries,
    }


def _needed_libc(binaries: Iterable[Path]) -> str:
    """The oldest glibc that has every symbol version that the binaries need; "" for none."""
    versions = {version for path in binaries for version in _GLIBC.findall(path.read_bytes())}
    newest = max((tuple(map(int, version)) for version in versions), default=())
    return ".".join(map(str, newest))


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
