"""Build the measured programs, again for every round.

The layout of code and data in a binary changes a benchmark's time by about 1 %, equally
for all samples of the binary. Each round therefore links its own binaries with a random
layout, so that the spread between rounds includes the effect.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple, TypeVar

from filelock import FileLock

from gccost import paths, processes
from gccost.cases.benchmarks import EXPERIMENTS
from gccost.cases.cases import OVERLAY, writes_runtime
from gccost.cases.jobs import Build
from gccost.cases.sources import DIFF, NATIVE, hash_of_go, module, sources
from gccost.cases.versions import number, title
from gccost.errors import GccostError, MissingTool, failed_build
from gccost.files import writing
from gccost.measuring import machine, tools
from gccost.measuring.toolchains import OLDEST_WITH_MODULES, Toolchain, find_driver
from gccost.measuring.tools import CCompiler
from gccost.processes import Environment
from gccost.progress import Progress, until_done

T = TypeVar("T")
Run = Callable[..., subprocess.CompletedProcess[str]]
_OVERLAY = "overlay.json"  # it is written last: if it exists, so does the rest
_GOROOT = "goroot"  # the name of the link to the toolchain
_LIBRARY = "library"  # and to a library in the module cache
RUNNER = "run.js"  # starts a program; in its folder it means that it is built for WebAssembly
_WASM = {"GOOS": "js", "GOARCH": "wasm", "CGO_ENABLED": "0"}
# Both a shell and Node.js run it. Then what wasm_exec.js expects, which a page has by itself.
_HEAD = """#!/bin/sh
":" //; exec "$(command -v {node} || echo node)" "$0" "$@"
Object.assign(globalThis, {require, fs: require("fs"), path: require("path")});
globalThis.crypto ??= require("crypto").webcrypto;
"""
BUILD_SECONDS = 600  # after which a build counts as hung


def fetch_modules(programs: Iterable[str], run: Run = processes.run) -> None:
    """Have Go download the libraries that programs import, as go.mod and go.sum pin them.

    Raises MissingTool if it cannot, for example offline.
    """
    folders = {module(program) for program in programs}
    for folder in folders - {paths.GOSRC}:
        place = f"gosrc/{folder.name}"
        driver = find_driver()
        if driver is None:
            raise MissingTool("there is no Go to fetch libraries with", place)
        command = [str(driver.go), "mod", "download"]
        done = run(command, cwd=folder, env=driver.environment())
        if done.returncode:
            first_line = "".join(done.stderr.strip().splitlines()[:1])
            raise MissingTool(
                f"the libraries cannot be fetched from the Go module proxy ({first_line})",
                place,
                "run `make measure` when online",
            )


def in_node(program: str) -> bool:
    """Whether a program is built for WebAssembly, and run by Node.js."""
    return (paths.GOSRC / program / RUNNER).exists()


class _Overlay(NamedTuple):
    """What a Go command of a module writes: an overlay.json, next to a link to `linked`."""

    name: str
    module: Path
    package: str
    arguments: list[str]
    linked: Path | None
    where: str
    hint: str

    @property
    def folder(self) -> Path:
        # An overlay names files by their absolute paths: through a link, or after a move, it
        # would replace nothing, and Go would not say so.
        overlays = (paths.CACHE / "overlays").resolve()
        places = f"{overlays}\0{self.module.resolve()}"
        place = hashlib.sha256(places.encode()).hexdigest()[:8]
        return overlays / f"{self.name}-{place}"

    def is_whole(self) -> bool:
        """Whether it is there, and what it links has not moved since."""
        link = self.folder / (_GOROOT if self.linked else _LIBRARY)
        if not (self.folder / _OVERLAY).exists() or not link.exists():
            return False
        return link.resolve() == (self.linked or link).resolve()


def overlay(toolchain: Toolchain, variant: str, run: Run = processes.run) -> Path:
    """The -overlay file that gives a toolchain another runtime, written if it is missing.

    Next to it is a link to the toolchain, through which Go runs; see gosrc/overlay and
    gosrc/counting. Raises GccostError if the package does not know the toolchain's source.
    """
    package = writes_runtime(variant)
    wanted = _Overlay(
        name=f"go{toolchain.version}-{variant}-{hash_of_go([package])[:12]}",
        module=paths.GOSRC,
        package=f"./{package}",
        arguments=["-variant", variant] if package == OVERLAY else [],
        linked=toolchain.goroot,
        where=f"gosrc/{package} with Go {toolchain.version}",
        hint=f"gosrc/{package} names the releases whose runtime it knows",
    )
    return _written(wanted, toolchain, run)


def with_slabs(program: str, toolchain: Toolchain, run: Run = processes.run) -> Path:
    """The -overlay file that gives a program's library slabs of its own, written if missing.

    Next to it is the go.work to build with; see gosrc/libraries/native. Raises GccostError
    if the library's source is not the one that the program's slabs.diff was written for.
    """
    folder = module(program)
    package = (paths.GOSRC / program).relative_to(folder)
    wanted = _Overlay(
        name=f"{package.name}-{hash_of_go([program])[:12]}",
        module=folder,
        package=f"./{NATIVE}",
        arguments=[package.as_posix()],
        linked=None,
        where=f"gosrc/{program}",
        hint=f"gosrc/{program}/{DIFF} names the library's file",
    )
    return _written(wanted, toolchain, run)


def _written(wanted: _Overlay, toolchain: Toolchain, run: Run) -> Path:
    folder = wanted.folder
    written = folder / _OVERLAY
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        if not wanted.is_whole():
            command = ["run", wanted.package, "-o", str(folder), *wanted.arguments]
            environment = toolchain.environment()
            place, hint = wanted.where, wanted.hint
            _go(run, toolchain.go, command, environment, written, place, hint, wanted.module)
    return written


def _go(
    run: Run,
    go: Path,
    arguments: list[str],
    environment: Environment,
    result: Path,
    where: str,
    hint: str,
    folder: Path = paths.GOSRC,
) -> None:
    """Make `result` with Go. Raises GccostError if Go fails or hangs; see `failed_build`."""
    try:
        done = run([str(go), *arguments], cwd=folder, env=environment, limit=BUILD_SECONDS)
    except subprocess.TimeoutExpired:
        raise GccostError(
            f"the build took over {BUILD_SECONDS} s and was ended",
            where,
            "see whether Go builds it in a shell: cd gosrc && go build ./...",
        ) from None
    if done.returncode != 0 or not result.exists():
        folders = [result.parent]
        if cache := environment.get("GOCACHE"):
            folders.append(Path(cache))
        raise failed_build(done, where, hint, folders)


def build(
    program: str,
    toolchain: Toolchain,
    compiler: CCompiler,
    layout: int,
    into: Path,
    run: Run = processes.run,
    runtime: str = "",
) -> Path:
    """Build a program's test binary with the given layout, and return its path.

    `runtime` is that of a `jobs.Build`; `run` runs the command. A binary has no symbols, which
    would be two thirds of a pack; profiles name functions without them.
    Before Go 1.23 the linker has no random layout, so only the C code is shifted, by padding.
    A release that cannot build the module builds a copy of the packages in a GOPATH.
    A program for Node.js becomes an executable script; see `make_executable`.

    Raises DiskFull (a GccostError) on a nearly full disk. This is not a fault of the program or
    the toolchain, so callers that record faults must not catch it.
    """
    folder = module(program)
    package = (paths.GOSRC / program).relative_to(folder)
    environment, arguments = _options(toolchain, layout, into)
    if in_node(program):
        environment |= _WASM
    if number(toolchain.version) < OLDEST_WITH_MODULES:
        # For each release its own, because releases build at the same time.
        folder = _gopath_copy(program, into / f"{program}-go{toolchain.version}-{layout}-gopath")
        environment |= {"GO111MODULE": "off", "GOPATH": str(folder.parent.parent)}
    else:
        arguments.append("-trimpath")
    arguments += _replaced(program, toolchain, runtime, run, environment)
    hint = f"make doctor shows the toolchains that were found; C is compiled by {compiler.version}"
    if runtime in EXPERIMENTS:
        hint = f"GOEXPERIMENT={runtime} needs a release that has this experiment"
    suffix = f"-{runtime}" if runtime else ""
    binary = into / f"{package.name}-go{toolchain.version}{suffix}-{layout}.test"
    arguments += ["-o", str(binary), f"./{package}"]
    where = f"gosrc/{program} with Go {toolchain.version}"
    _go(run, toolchain.go, arguments, environment, binary, where, hint, folder)
    if in_node(program):
        runner = paths.GOSRC / program / RUNNER
        make_executable(binary, toolchain.goroot, runner)
    return binary


def make_executable(binary: Path, goroot: Path, runner: Path) -> None:
    """Replace a program's WebAssembly by a script that runs it in Node.js.

    The script has the release's wasm_exec.js, the program, and what starts it. Where the Node.js
    that was found is not there, that on PATH runs it.
    """
    # Go 1.24 moved the file.
    places = [goroot / folder / "wasm" / "wasm_exec.js" for folder in ("lib", "misc")]
    support = next(filter(Path.is_file, places), None)
    if support is None:
        raise MissingTool(
            "this Go has no wasm_exec.js",
            str(goroot),
            "name Go 1.24 or later: downloads of older releases lack it",
        )
    node = tools.find_node()
    program = f'const program = "{base64.b64encode(binary.read_bytes()).decode()}";\n'
    with writing(binary):
        scripts = (each.read_text(encoding="utf-8") for each in (support, runner))
        head = _HEAD.replace("{node}", shlex.quote(node.command if node else "node"))
        binary.write_text(head + program + "\n".join(scripts), encoding="utf-8")
        binary.chmod(0o755)


def _options(toolchain: Toolchain, layout: int, into: Path) -> tuple[Environment, list[str]]:
    """The environment and the arguments of Go that build with a layout."""
    # The compilers' temporary files are removed with `into`, even if they are killed.
    environment = {**toolchain.environment(), "GOTMPDIR": str(into), "TMPDIR": str(into)}
    ldflags = ["-s", "-w"]
    if toolchain.shuffles_layout:
        ldflags.append(f"-randlayout={layout}")
    else:
        environment["CGO_CFLAGS"] = f"-O2 -g -DGCCOST_PADDING={layout % 64}"
    if number(toolchain.version)[:2] == (1, 19):  # cannot index itself in the module cache
        environment["GODEBUG"] = "goindex=0"
    return environment, ["test", "-c", f"-ldflags={' '.join(ldflags)}"]


def _replaced(
    program: str, toolchain: Toolchain, runtime: str, run: Run, environment: Environment
) -> list[str]:
    """The arguments that replace a program's runtime or library; adds to the environment."""
    if runtime in EXPERIMENTS:
        environment["GOEXPERIMENT"] = runtime
        return []
    if runtime:
        replaced = overlay(toolchain, runtime, run)
        environment["GOROOT"] = str(replaced.with_name(_GOROOT))
    elif (paths.GOSRC / program / DIFF).exists():
        replaced = with_slabs(program, toolchain, run)
        environment["GOWORK"] = str(replaced.with_name("go.work"))
    else:
        return []
    return [f"-overlay={replaced}"]


def build_all(
    wanted: Iterable[Build], build: Callable[[Build, Run], T], progress: Progress
) -> dict[Build, Future[T]]:
    """Build in parallel, and return what each build gave or raised.

    A link uses one core. The first build with a release and a runtime compiles their standard
    library; the others wait for it, because Go would compile it once for each of them.
    """
    wanted = list(wanted)
    firsts: dict[tuple[str, str], Build] = {}  # by release and runtime
    for what in wanted:
        firsts.setdefault((what.release, what.runtime), what)
    built: dict[Build, Future[T]] = {}

    def make(what: Build) -> T:
        first = firsts[what.release, what.runtime]
        if what != first:
            wait([built[first]])
        return build(what, group.run)

    # An interruption ends the builds first, then the threads.
    with ThreadPoolExecutor(machine.allowed_cpus()) as pool, processes.ProcessGroup() as group:
        for what in dict.fromkeys([*firsts.values(), *wanted]):
            built[what] = pool.submit(make, what)
        tasks = {task: f"{what.program} on {title(what.release)}" for what, task in built.items()}
        until_done(tasks, progress, "building", "programs")
    return built


def _gopath_copy(program: str, gopath: Path) -> Path:
    """Copy a program's packages into a GOPATH, and return their folder."""
    module = gopath / "src" / "gccost"
    for path in sources(program):
        copy = module / path.relative_to(paths.GOSRC)
        with writing(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    return module
