"""The languages: how each finds its tools and builds its programs.

A study has one language, that of its document's release. No other code branches on the language.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from gccost import paths
from gccost.cases import versions
from gccost.cases.cases import Study
from gccost.cases.jobs import Build
from gccost.errors import DiskFull, GccostError, MissingTool
from gccost.measuring import builds, ccompilers, java, jdks, nodejs, toolchains
from gccost.progress import Say

Run = Callable[..., subprocess.CompletedProcess[str]]


class Compiler(Protocol):
    """A compiler, of C or Java, that builds the programs for every release."""

    @property
    def version(self) -> str: ...


@dataclass(frozen=True)
class Tools:
    """A study's tools: those found, and why others are missing."""

    toolchains: Mapping[str, Any]  # a Toolchain of Go or a Jdk, by release
    compiler: Compiler | None
    missing: Mapping[str, str]  # release -> why


@dataclass(frozen=True)
class Language:
    """What finds a language's tools and builds its programs."""

    folder: Path  # of its programs
    compiles_with: str  # the compiler's kind, in words
    layouts: int  # of each program in a pack; with more, a pack of everything is over 60 MB
    releases: ModuleType  # finds and fetches toolchains
    programs: ModuleType  # hashes and builds them
    compiler: Callable[[Iterable[str], Say], Compiler]  # of these programs, for all releases

    def build(
        self,
        what: Build,
        toolchain: Any,
        compiler: Any,
        layout: int,
        into: Path,
        run: Run,
    ) -> Path:
        """Build a program with a numbered layout, and return the program of `sampler.sample`.

        `run` runs the command.
        """
        if self.programs is java:  # classes have no layout
            return java.build(what.program, compiler, run)
        return builds.build(what.program, toolchain, compiler, layout, into, run, what.runtime)


def _go_compiler(programs: Iterable[str], say: Say) -> Compiler:
    compiler = ccompilers.fetch(say)
    builds.fetch_modules(programs)
    if any(map(builds.in_node, programs)):
        nodejs.fetch(say)
    return compiler


def _java_compiler(programs: Iterable[str], say: Say) -> Compiler:
    compiler = jdks.javac()
    if java.JMH in programs:
        jdks.jmh(say)
    return compiler


_BY_KEY = {
    "go": Language(paths.GOSRC, "C compiler", 3, toolchains, builds, _go_compiler),
    "jdk": Language(paths.JAVASRC, "javac", 1, jdks, java, _java_compiler),
}


def of_release(release: str) -> Language:
    """The language of a release."""
    return _BY_KEY[versions.key(release)]


def of(study: Study) -> Language:
    """The language of a study."""
    return of_release(study.document)


def jvm(toolchain: Any) -> Path | None:
    """The JVM that runs the programs of a toolchain; None for Go."""
    return toolchain.java if isinstance(toolchain, jdks.Jdk) else None


def jvm_build(toolchain: Any) -> str:
    """What a run says of the JVM of a toolchain; empty for Go, whose releases say all."""
    return toolchain.build if isinstance(toolchain, jdks.Jdk) else ""


def tools(study: Study, releases: Iterable[str], say: Say, *, fetch: bool = True) -> Tools:
    """Find a study's tools for the releases, downloading missing ones if `fetch`.

    A release that cannot be fetched, or whose toolchain is damaged, is left out.
    """
    language = of(study)
    releases = list(releases)
    try:
        compiler = language.compiler({job["program"] for job in study.jobs.values()}, say)
    except MissingTool as error:
        return Tools({}, None, dict.fromkeys(releases, str(error)))
    present = {}
    missing = {}
    for release in releases:
        try:
            known = language.releases
            toolchain = known.fetch(release, say) if fetch else known.find(release)
        except DiskFull:
            raise
        except GccostError as error:
            missing[release] = str(error)
            continue
        if toolchain is not None:
            present[release] = toolchain
    return Tools(present, compiler, missing)
