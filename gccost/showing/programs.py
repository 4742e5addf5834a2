"""The programs under measurement, by hand: their source, and running them."""

from __future__ import annotations

import re
import shlex
import subprocess
import textwrap
from pathlib import Path

from filelock import FileLock

from gccost import paths, processes
from gccost.errors import GccostError, nearest
from gccost.measuring import languages, toolchains
from gccost.showing.tables import Prose

SHELL_SECONDS = 300  # after which a plain command counts as hung


def run(command: str, language: languages.Language, release: str) -> str:
    """Run a shell command in a language's folder with a release; return what it prints on stdout.

    The go command prints on stderr again what the compiler said of a build in its cache, such as
    the collections of one with GODEBUG=gctrace=1. Waits for other such commands of this clone,
    because they time something.
    Raises MissingTool if the release cannot be had, GccostError if the command fails.
    """
    toolchain = language.fetch(release, toolchains.silent)
    place = shlex.join(["sh", "-c", command])
    paths.CACHE.mkdir(exist_ok=True)
    try:
        with FileLock(paths.CACHE / "shell.lock"):
            done = processes.run(
                ["/bin/sh", "-c", command],
                cwd=language.folder,
                env=toolchain.environment(),
                limit=SHELL_SECONDS,
            )
    except subprocess.TimeoutExpired:
        raise GccostError(f"stopped after {SHELL_SECONDS} s", place) from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise GccostError(f"the command failed:\n{said}", place)
    return done.stdout


# A declaration with the comment before it, up to a brace that is indented as its first line is.
_DECLARED = {
    "go": r"(?:^//.*\n)*^func (?:\([^)]*\) )?{}(?:\[.*\])?\(.*(?:\}}|(?:\n(?:[\t ].*)?)+\n\}})$",
    "java": r"(?:^ +/\*\*.*\*/\n)?^( +)[\w ]*class {}\b(?:.*\n)+?\1\}}$",
}
_NAMES = {"go": r"^func (?:\([^)]*\) )?(\w+)[(\[]", "java": r"^ +[\w ]*class (\w+)"}


def source(path: str, *names: str) -> Prose:
    """Show functions of a Go file or classes in a Java file, with their comments, or a file."""
    language = {".go": "go", ".diff": "diff"}.get(Path(path).suffix, "java")
    folder = paths.JAVASRC if language == "java" else paths.GOSRC
    try:
        text = (folder / path).read_text(encoding="utf-8")
    except OSError:
        known = [str(each.relative_to(folder)) for each in folder.rglob(f"*.{language}")]
        hint = nearest(path, known)
        raise GccostError(f"there is no file {path!r}", folder.name, hint) from None
    noise = r"^(?:package|import) .*;\n+|^(?:diff --git|index) .*\n"
    parts = [] if names else [re.sub(noise, "", text, flags=re.MULTILINE).strip()]
    for name in names:
        match = re.search(_DECLARED[language].format(re.escape(name)), text, re.MULTILINE)
        if match is None:
            hint = nearest(name, re.findall(_NAMES[language], text, re.MULTILINE))
            raise GccostError(f"there is no {name}", f"{folder.name}/{path}", hint)
        parts.append(textwrap.dedent(match.group(0)))
    body = "\n\n".join(parts)
    return Prose(f"```{language}\n// {folder.name}/{path}\n\n{body}\n```")
