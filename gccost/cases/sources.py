"""The sources of the measured programs, and hashes of their code: what a run was measured with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from gccost import paths
from gccost.cases import versions
from gccost.cases.cases import Study

_STRING = re.compile(r'"([^"\n]+)"')


# go.mod's lines on other modules affect only the programs that import them.
_OF_MODULES = re.compile(rb"^(?:require|replace) .*\n", re.MULTILINE)


# Neither directives (//go:embed, // +build) nor C code for cgo (/*).
_COMMENTS = re.compile(rb"^\s*(?://(?: (?!\+build).*)?|/\*\*(?s:.*?)\*/)?\s*\n", re.MULTILINE)


_SUFFIXES = (".go", ".c", ".h", ".js", ".mod", ".sum", ".txt", ".diff")


DIFF = "slabs.diff"  # in a program's folder: its library is built with slabs of its own


NATIVE = "native"  # the command of gosrc/libraries that applies it


def module(program: str) -> Path:
    """The folder of a program's Go module: gosrc/, or one in it with other libraries."""
    folder = paths.GOSRC / program
    return next(f for f in (folder, *folder.parents) if (f / "go.mod").exists())


def sources(program: str) -> list[Path]:
    """A program's source files, in order: its package's, and those of ours that it imports.

    The tests of imported packages are not part of the program.
    """
    ours = _modules()
    folder, main_package = module(program), paths.GOSRC / program
    files = set()
    if folder != paths.GOSRC:
        files |= {folder / "go.mod", folder / "go.sum"}
    if (main_package / DIFF).exists():
        files.add(folder / NATIVE / "main.go")
    packages = [main_package]
    for package in packages:  # grows by the packages that these import
        for file in package.rglob("*"):
            if file.suffix not in _SUFFIXES:
                continue
            if package != main_package and file.name.endswith("_test.go"):
                continue
            files.add(file)
            for path in _STRING.findall(file.read_text(encoding="utf-8")):
                imported = _folder_of(path, ours)
                if imported and imported not in packages:
                    packages.append(imported)
    return [paths.GOSRC / "go.mod", *sorted(files)]


def _modules() -> dict[str, Path]:
    """The folders of our Go modules, gosrc/ and those in it, by name."""
    folders = {}
    for go_mod in (paths.GOSRC / "go.mod", *paths.GOSRC.glob("*/go.mod")):
        name = go_mod.read_text(encoding="utf-8").split()[1]
        folders[name] = go_mod.parent
    return folders


def _folder_of(path: str, ours: Mapping[str, Path]) -> Path | None:
    """The folder of a package of ours with this import path; None if it is none of ours."""
    for name, module_folder in ours.items():
        if path != name and not path.startswith(f"{name}/"):
            continue
        folder = module_folder / path.removeprefix(name).removeprefix("/")
        if any(folder.glob("*.go")):
            return folder
    return None


def hash_of_go(programs: list[str]) -> str:
    """The hex hash of these programs' code."""
    files: list[Path] = []
    for program in sorted(programs):
        files += sources(program)
    return hash_of_code(files, paths.GOSRC)


def hash_of_code(files: Iterable[Path], root: Path) -> str:
    """The hex SHA-256 of source files, in order: their paths below `root`, and their code.

    Comments on lines of their own and empty lines do not count: a comment can be corrected
    without measuring again. Nor do go.mod's lines on other modules, which only affect the
    programs that import them.
    """
    digest = hashlib.sha256()
    for path in files:
        ignored = _OF_MODULES if path.name == "go.mod" else _COMMENTS
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(ignored.sub(b"", path.read_bytes()).rstrip() + b"\0")
    return digest.hexdigest()


def java_sources(program: str) -> list[Path]:
    """A program's source files, in order."""
    folder = paths.JAVASRC / program
    return sorted(f for f in folder.iterdir() if f.suffix in (".java", ".xml"))


def hash_of_java(programs: Iterable[str]) -> str:
    """The hex hash of these programs' code."""
    files: list[Path] = []
    for program in sorted(programs):
        files += java_sources(program)
    return hash_of_code(files, paths.JAVASRC)


def source_hashes(study: Study) -> dict[str, str]:
    """The hash of the sources of each of a study's programs."""
    is_java = versions.key(study.document) == "jdk"
    hash_of = hash_of_java if is_java else hash_of_go
    return {program: hash_of([program]) for program in study.packages}


def changed(study: Study, recorded: Mapping[str, str]) -> bool:
    """Whether a program differs from the recorded hashes; one that they lack does not."""
    hashes = source_hashes(study)
    return any(recorded.get(program, mark) != mark for program, mark in hashes.items())
