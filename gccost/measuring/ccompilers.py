"""The C compiler that builds the Go programs.

The machine's is used first: $CC, then cc, gcc and clang. The ziglang wheel replaces a
missing one.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gccost import processes
from gccost.files import write_whole
from gccost.measuring import standins
from gccost.progress import Say

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


def find(say: Say = _on_stderr) -> CCompiler | None:
    """A working C compiler, without the network; None if there is none.

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


def fetch(say: Say) -> CCompiler:
    """Like `find`, but downloads the ziglang wheel if there is none.

    Raises `MissingTool` if that also fails.
    """
    return standins.fetched(_WHEEL, partial(find, say), say)


def _zig(say: Say) -> CCompiler | None:
    """The wheel's compiler; None if it is not installed, or does not compile."""
    folder = standins.FOLDER / _WHEEL
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
