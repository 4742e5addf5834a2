"""Node.js, which runs programs that are built for WebAssembly.

Such a program becomes one executable file: a script with the release's wasm_exec.js, the
program, and what starts it. Node.js itself is only needed to run it.
"""

from __future__ import annotations

import base64
import re
import shutil
from pathlib import Path

from gccost import processes
from gccost.errors import MissingTool
from gccost.files import writing

OLDEST = 18  # the oldest that runs every measured release's programs
RUNNER = "run.js"  # starts a program; in its folder it means that it is built for WebAssembly
ENVIRONMENT = {"GOOS": "js", "GOARCH": "wasm", "CGO_ENABLED": "0"}
# What wasm_exec.js expects, which a page has by itself.
_HEAD = """#!/usr/bin/env node
Object.assign(globalThis, {require, fs: require("fs"), path: require("path")});
globalThis.crypto ??= require("crypto").webcrypto;
"""


def find() -> str | None:
    """The version of the Node.js on PATH; None if there is none. Raises MissingTool if it is
    too old, or does not tell its version."""
    command = shutil.which("node")
    if command is None:
        return None
    answer = processes.ask([command, "--version"], None)
    version = re.fullmatch(r"v((\d+)\.\S+)", answer.stdout.strip()) if answer else None
    if version is None:
        raise MissingTool("does not tell its version", command, _HINT)
    if int(version[2]) < OLDEST:
        raise MissingTool(f"is Node.js {version[1]}, which is too old", command, _HINT)
    return version[1]


_HINT = f"put Node.js {OLDEST} or later on PATH; with apt-get its package is nodejs"


def check() -> None:
    """Raise MissingTool if no Node.js on PATH runs Go's WebAssembly."""
    if find() is None:
        raise MissingTool("there is no Node.js, which runs Go's WebAssembly", "PATH", _HINT)


def make_executable(binary: Path, goroot: Path, runner: Path) -> None:
    """Replace a program's WebAssembly by a script that runs it in Node.js."""
    # Go 1.24 moved the file.
    places = [goroot / folder / "wasm" / "wasm_exec.js" for folder in ("lib", "misc")]
    support = next(filter(Path.is_file, places), None)
    if support is None:
        raise MissingTool("this Go has no wasm_exec.js", str(goroot), "reinstall that Go")
    program = f'const program = "{base64.b64encode(binary.read_bytes()).decode()}";\n'
    with writing(binary):
        scripts = (each.read_text(encoding="utf-8") for each in (support, runner))
        binary.write_text(_HEAD + program + "\n".join(scripts), encoding="utf-8")
        binary.chmod(0o755)
