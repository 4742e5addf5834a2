"""Build the measured programs, again for every round.

Where code and data come to lie in a binary moves a benchmark by a percent or
so, and it moves all samples of one binary alike. So each round links its own
binaries with a layout of its own, and the spread between rounds holds that
effect too.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from gccost import places, processes
from gccost.errors import GccostError, failed_build
from gccost.files import hash_of, writing
from gccost.measuring.experiments.base import OVERLAY
from gccost.measuring.toolchains import OLDEST_DRIVER, CCompiler, Toolchain, number

Run = Callable[..., subprocess.CompletedProcess[str]]
_GOROOT = "goroot"  # what the link to the toolchain is called
_IMPORT = re.compile(r'^\s*(?:import )?"gccost/([a-z0-9/]+)"$', re.MULTILINE)
_SUFFIXES = (".go", ".c", ".h", ".txt")
BUILD_SECONDS = 600  # after which a build counts as hung


def sources(program: str) -> list[Path]:
    """The files whose content decides what a program measures, in order."""
    files: list[Path] = []
    packages = [program]
    for package in packages:  # grows by what the packages import of this module
        own = [f for f in (places.GOSRC / package).rglob("*") if f.suffix in _SUFFIXES]
        files += own
        text = "".join(f.read_text(encoding="utf-8") for f in sorted(own))
        packages += [p for p in dict.fromkeys(_IMPORT.findall(text)) if p not in packages]
    return [places.GOSRC / "go.mod", *sorted(files)]


def source_hash(programs: list[str]) -> str:
    """A hash over the sources of these programs; hex."""
    files = (path for program in sorted(programs) for path in sources(program))
    return hash_of(files, places.GOSRC)


def shuffles_layout(toolchain: Toolchain) -> bool:
    """Whether its linker can place functions in random order (Go 1.22 and later)."""
    return number(toolchain.version) >= (1, 22)


def overlay(toolchain: Toolchain, variant: str, run: Run = processes.run) -> Path:
    """The -overlay file that gives a toolchain another runtime, written if it is not there.

    Next to it is a link to the toolchain: Go runs with it under that name, see
    gosrc/overlay. Raises GccostError where the toolchain's source is not known there, and
    DiskFull where there is no room for it.
    """
    name = f"go{toolchain.version}-{variant}-{source_hash([OVERLAY])[:12]}"
    folder = places.CACHE / "overlays" / name
    written, link = folder / "overlay.json", folder / _GOROOT
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{name}.lock")):
        # It is written last: if it exists, the rest does, unless Go was moved since.
        if written.exists() and link.resolve() == toolchain.goroot.resolve():
            return written
        arguments = ["run", f"./{OVERLAY}", "-o", str(folder), "-variant", variant]
        where = f"gosrc/{OVERLAY} with Go {toolchain.version}"
        mend = "gosrc/overlay names the releases whose runtime it knows"
        _go(run, toolchain.go, arguments, toolchain.environment(), written, where, mend)
    return written


def _go(
    run: Run,
    go: Path,
    arguments: list[str],
    environment: dict[str, str],
    result: Path,
    where: str,
    mend: str,
    folder: Path = places.GOSRC,
) -> None:
    """Have Go make `result`; GccostError if it fails or hangs, DiskFull for want of room."""
    try:
        done = run([str(go), *arguments], cwd=folder, env=environment, limit=BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        raise GccostError(
            f"the build took over {BUILD_SECONDS} s and was ended",
            where,
            "see whether Go builds it in a shell: cd gosrc && go build ./...",
        ) from None
    if done.returncode != 0 or not result.exists():
        done.stderr = done.stderr.replace("$WORK", str(result.parent))
        cache = [Path(environment["GOCACHE"])] if environment.get("GOCACHE") else []
        raise failed_build(done, where, mend, [result.parent, *cache])


def build(
    program: str,
    toolchain: Toolchain,
    compiler: CCompiler,
    layout: int,
    into: Path,
    run: Run = processes.run,
    runtime: str = "",
) -> Path:
    """Build a program's test binary with the given layout; returns its path.

    `runtime` names a variant of the Go runtime to build it with; `run` runs the
    command. Before Go 1.22 the linker has no random layout: there the C code alone
    is shifted, by a padding of the given size. A release that cannot build the module
    builds a copy of the program's packages in a GOPATH.

    Raises DiskFull, which is a GccostError, if there is no room for what it writes: that is
    no fault of the program or the toolchain, and a caller that notes faults lets it through.
    """
    # What the compilers write on their way goes with `into`, also when they are killed.
    environment = {**toolchain.environment(), "GOTMPDIR": str(into), "TMPDIR": str(into)}
    folder, arguments = places.GOSRC, ["test", "-c"]
    if number(toolchain.version) < OLDEST_DRIVER:
        folder = _gopath_copy(program, into / f"{program}-{layout}-gopath")
        environment |= {"GO111MODULE": "off", "GOPATH": str(folder.parent.parent)}
    else:
        arguments.append("-trimpath")
    if shuffles_layout(toolchain):
        arguments.append(f"-ldflags=-randlayout={layout}")
    else:
        environment["CGO_CFLAGS"] = f"-O2 -g -DGCCOST_PADDING={layout % 64}"
    if runtime:
        replaced = overlay(toolchain, runtime, run)
        arguments.append(f"-overlay={replaced}")
        environment["GOROOT"] = str(replaced.with_name(_GOROOT))
    named = f"{program}-go{toolchain.version}" + (f"-{runtime}" if runtime else "")
    binary = into / f"{named}-{layout}.test"
    arguments += ["-o", str(binary), f"./{program}"]
    where = f"gosrc/{program} with Go {toolchain.version}"
    mend = f"make doctor shows the toolchains that were found; C is compiled by {compiler.version}"
    _go(run, toolchain.go, arguments, environment, binary, where, mend, folder)
    return binary


def _gopath_copy(program: str, gopath: Path) -> Path:
    """Copies a program's packages to where a release without modules looks; their folder."""
    module = gopath / "src" / "gccost"
    for path in sources(program):
        copy = module / path.relative_to(places.GOSRC)
        with writing(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return module
