"""The languages: how each finds its tools, builds its programs and samples them.

A study has one language, that of its document's release. No other code branches on the language.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gccost import paths
from gccost.cases import versions
from gccost.cases.cases import Study
from gccost.cases.jobs import Build
from gccost.errors import DiskFull, GccostError, MissingTool
from gccost.measuring import builds, java, jdks, sampler, toolchains, tools
from gccost.measuring.jdks import Jdk
from gccost.measuring.toolchains import Toolchain
from gccost.measuring.tools import CCompiler
from gccost.progress import Say
from gccost.run.benchfmt import Sample
from gccost.run.jobtable import Job

Run = Callable[..., subprocess.CompletedProcess[str]]


class Compiler(Protocol):
    """A compiler, of C or Java, that builds the programs for every release."""

    @property
    def version(self) -> str: ...


class Language(Protocol):
    """What finds a language's tools, builds its programs and samples them."""

    folder: Path  # of its programs
    compiles_with: str  # the compiler's kind, in words
    layouts: int  # of each program in a pack; with more, a pack of all is over 60 MB

    def find(self, release: str) -> Any | None:
        """The toolchain of a release; None if it is not on this machine."""

    def fetch(self, release: str, say: Say) -> Any:
        """Like `find`, but downloads the release if it is missing. Raises MissingTool."""

    def compiler(self, programs: Iterable[str], say: Say) -> Compiler:
        """What compiles these programs for all releases. Raises MissingTool."""

    def build(
        self, what: Build, toolchain: Any, compiler: Any, layout: int, into: Path, run: Run
    ) -> Path:
        """Build a program with a numbered layout, and return the program of `sampler.sample`.

        `run` runs the command.
        """

    def sample(
        self, job: Job, program: Path, toolchain: Any, scratch: Path, profile: Path | None
    ) -> list[Sample]:
        """Run a job in a fresh process; see `sampler.sample`."""


class Go:
    """Programs in Go, with C."""

    folder = paths.GOSRC
    compiles_with = "C compiler"
    layouts = 3

    def find(self, release: str) -> Toolchain | None:
        return toolchains.find(release)

    def fetch(self, release: str, say: Say) -> Toolchain:
        return toolchains.fetch(release, say)

    def compiler(self, programs: Iterable[str], say: Say) -> Compiler:
        compiler = tools.c_compiler(say)
        builds.fetch_modules(programs)
        if any(map(builds.in_node, programs)):
            tools.node(say)
        return compiler

    def build(
        self,
        what: Build,
        toolchain: Toolchain,
        compiler: CCompiler,
        layout: int,
        into: Path,
        run: Run,
    ) -> Path:
        return builds.build(what.program, toolchain, compiler, layout, into, run, what.runtime)

    def sample(
        self, job: Job, program: Path, toolchain: Toolchain, scratch: Path, profile: Path | None
    ) -> list[Sample]:
        return sampler.sample(job, program, scratch, profile=profile)


class Java:
    """Programs in Java, whose classes have no layout: each JVM compiles them while it runs."""

    folder = paths.JAVASRC
    compiles_with = "javac"
    layouts = 1

    def find(self, release: str) -> Jdk | None:
        return jdks.find(release)

    def fetch(self, release: str, say: Say) -> Jdk:
        return jdks.fetch(release, say)

    def compiler(self, programs: Iterable[str], say: Say) -> Compiler:
        compiler = jdks.javac()
        if java.JMH in programs:
            jdks.jmh(say)
        return compiler

    def build(
        self, what: Build, toolchain: Jdk, compiler: Jdk, layout: int, into: Path, run: Run
    ) -> Path:
        return java.build(what.program, compiler, run)

    def sample(
        self, job: Job, program: Path, toolchain: Jdk, scratch: Path, profile: Path | None
    ) -> list[Sample]:
        return sampler.sample(job, program, scratch, java=toolchain.java, profile=profile)


BENCHES: dict[str, Language] = {"go": Go(), "jdk": Java()}
"""What finds, builds and samples programs, by the key of their releases; tests have their own."""


def of_release(release: str) -> Language:
    """The language of a release."""
    return BENCHES[versions.key(release)]


def of(study: Study) -> Language:
    """The language of a study."""
    return of_release(study.document)


@dataclass(frozen=True)
class Tools:
    """A study's tools: those found, and why others are missing."""

    toolchains: Mapping[str, Any]  # a Toolchain of Go or a Jdk, by release
    compiler: Compiler | None
    missing: Mapping[str, str]  # release -> why


def tools_of(study: Study, releases: Iterable[str], say: Say, *, fetch: bool = True) -> Tools:
    """Find a study's tools for the releases, downloading missing ones if `fetch`.

    A release that cannot be fetched, or whose toolchain is damaged, is left out.
    """
    language = of(study)
    releases = list(releases)
    programs = {job["program"] for job in study.jobs.values()}
    try:
        compiler = language.compiler(programs, say)
    except MissingTool as error:
        return Tools({}, None, dict.fromkeys(releases, str(error)))
    present = {}
    missing = {}
    for release in releases:
        try:
            toolchain = language.fetch(release, say) if fetch else language.find(release)
        except DiskFull:
            raise
        except GccostError as error:
            missing[release] = str(error)
            continue
        if toolchain is not None:
            present[release] = toolchain
    return Tools(present, compiler, missing)
