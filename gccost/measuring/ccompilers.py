"""The C compiler that builds the Go programs.

The machine's is used first: $CC, then cc, gcc and clang. The ziglang wheel replaces a
missing one.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gccost import processes
from gccost.errors import MissingTool
from gccost.measuring import standins
from gccost.measuring.progress import Say

_WHEEL = "ziglang"
_ZIG = "a C compiler (ziglang): about 100 MB to download, 410 MB on disk"
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


@functools.cache
def find() -> CCompiler | None:
    """A working C compiler, without the network; None if there is none."""
    chosen: list[str] = []
    with suppress(ValueError):  # CC has an unclosed quote
        chosen = shlex.split(os.environ.get("CC", ""))
    for command in (chosen, ["cc"], ["gcc"], ["clang"]):
        on_path = shutil.which(command[0]) if command else None
        if on_path and (version := _compiles(on_path, *command[1:])):
            return CCompiler((on_path, *command[1:]), version, "system")
    return _zig()


def fetch(say: Say) -> CCompiler:
    """Like `find`, but downloads the ziglang wheel if there is none.

    Raises `MissingTool` if that also fails.
    """
    if not find():
        standins.install(_WHEEL, "a C compiler", _ZIG, say)
        find.cache_clear()
    if compiler := find():
        return compiler
    raise MissingTool(
        "neither cc, gcc, clang nor the ziglang wheel compiles a C program",
        "C compiler",
        "on Debian: apt-get install gcc libc6-dev",
    )


def _zig() -> CCompiler | None:
    """The wheel's compiler; None if it is not installed, or does not compile."""
    folder = standins.FOLDER / _WHEEL
    program = folder / "ziglang" / "zig"
    if not program.is_file():
        return None
    # CC must be a single command.
    script = folder / "zig-cc"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} cc "$@"\n')
    script.chmod(0o755)
    version = _compiles(str(script))
    return CCompiler((str(script),), f"zig cc, {version}", "ziglang wheel") if version else None


def _compiles(*command: str) -> str | None:
    """The version of a compiler if it can build a program with a libc, else None."""
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "try.c")
        source.write_text(_PROGRAM)
        # Zig first builds its libc, which may take minutes.
        built = processes.ask([*command, "-o", source.with_suffix(""), source], limit=None)
    said = processes.ask([*command, "--version"]) if built else None
    return standins.first_line(said.stdout) if said else None
