"""What measuring asks of a language: its tools, its programs, a sample.

An experiment is of one language, that of its document's release. Nothing else
branches on it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from gccost import places
from gccost.errors import MissingTool
from gccost.measuring import benchfmt, builds, java, jdks, samples, toolchains
from gccost.measuring.experiments.base import Build, Case, Experiment

Run = Callable[..., subprocess.CompletedProcess[str]]
Say = Callable[[str], None]


class Compiler(Protocol):
    """A compiler that builds the programs for every release: C's, or Java's."""

    @property
    def version(self) -> str: ...


@dataclass(frozen=True)
class Tools:
    """What an experiment needs: what was found, and why the rest cannot be had."""

    found: Mapping[str, Any]  # a Toolchain by release
    compiler: Compiler | None
    missing: Mapping[str, str]  # release -> why


class Language(Protocol):
    """How programs of a language are found, built and run."""

    folder: Path  # of its programs
    compiles_with: str  # the compiler's kind, in words

    def environment(self, toolchain: Any) -> dict[str, str]:
        """The environment to type a command of a release in."""

    def fetch(self, release: str, say: Say) -> Any:
        """The toolchain of a release; MissingTool if it cannot be had."""

    def compiler(self, programs: Iterable[str], say: Say) -> Compiler:
        """What all releases need to build the programs; MissingTool if it cannot be had."""

    def source_hash(self, programs: list[str]) -> str:
        """A hash over the programs' sources."""

    def random_layout(self, toolchain: Any) -> bool:
        """Whether what it builds is laid out anew each time."""

    def build(
        self, what: Build, toolchain: Any, compiler: Any, layout: int, into: Path, run: Run
    ) -> Path:
        """Build a program; returns what `run_sample` runs."""

    def run_sample(
        self, built: Path, toolchain: Any, case: Case, scratch: Path, profile: Path | None
    ) -> benchfmt.Sample:
        """One fresh process of a case."""


class _Go:
    folder = places.GOSRC
    compiles_with = "C compiler"

    def environment(self, toolchain: toolchains.Toolchain) -> dict[str, str]:
        return toolchain.environment()

    def fetch(self, release: str, say: Say) -> toolchains.Toolchain:
        return toolchains.fetch(release, say)

    def compiler(self, programs: Iterable[str], say: Say) -> toolchains.CCompiler:
        return toolchains.c_compiler(say)

    def source_hash(self, programs: list[str]) -> str:
        return builds.source_hash(programs)

    def random_layout(self, toolchain: toolchains.Toolchain) -> bool:
        return builds.shuffles_layout(toolchain)

    def build(
        self,
        what: Build,
        toolchain: toolchains.Toolchain,
        compiler: toolchains.CCompiler,
        layout: int,
        into: Path,
        run: Run,
    ) -> Path:
        place = (toolchain, compiler, layout, into, run)
        return builds.build(what.program, *place, runtime=what.runtime)

    def run_sample(
        self,
        built: Path,
        toolchain: toolchains.Toolchain,
        case: Case,
        scratch: Path,
        profile: Path | None,
    ) -> benchfmt.Sample:
        return samples.run_sample(built, case, scratch, profile=profile)


class _Java:
    folder = places.JAVASRC
    compiles_with = "javac"

    def environment(self, toolchain: jdks.Jdk) -> dict[str, str]:
        # The compiler is not always the release's own: a wheel has none.
        tools = [toolchain.java.parent, jdks.javac().command.parent]
        path = [*map(str, tools), os.environ.get("PATH", os.defpath)]
        return {**jdks.environment(), "PATH": os.pathsep.join(path)}

    def fetch(self, release: str, say: Say) -> jdks.Jdk:
        return jdks.fetch(release, say)

    def compiler(self, programs: Iterable[str], say: Say) -> jdks.Javac:
        found = jdks.javac()
        if java.JMH in programs:
            jdks.jmh(say)
        return found

    def source_hash(self, programs: list[str]) -> str:
        return java.source_hash(programs)

    def random_layout(self, toolchain: jdks.Jdk) -> bool:
        return True  # each JVM compiles the program anew while it runs

    def build(
        self,
        what: Build,
        toolchain: jdks.Jdk,
        compiler: jdks.Javac,
        layout: int,
        into: Path,
        run: Run,
    ) -> Path:
        return java.build(what.program, compiler, run)

    def run_sample(
        self,
        built: Path,
        toolchain: jdks.Jdk,
        case: Case,
        scratch: Path,
        profile: Path | None,
    ) -> benchfmt.Sample:
        return java.run_sample(built, toolchain, case, scratch)


_BY_KEY: Mapping[str, Language] = MappingProxyType({"go": _Go(), "jdk": _Java()})


def of(experiment: Experiment) -> Language:
    """The language of an experiment."""
    return _BY_KEY[toolchains.key(experiment.document)]


def source_hashes(experiment: Experiment) -> dict[str, str]:
    """A hash over the sources of each of an experiment's programs."""
    return {program: of(experiment).source_hash([program]) for program in experiment.packages}


def tools(experiment: Experiment, releases: Iterable[str], say: Say) -> Tools:
    """Look for what an experiment needs on the releases, fetching what can be fetched."""
    spoken, found, missing = of(experiment), {}, {}
    releases = list(releases)
    try:
        compiler = spoken.compiler({case.program for case in experiment.cases}, say)
    except MissingTool as error:
        return Tools({}, None, dict.fromkeys(releases, str(error)))
    for release in releases:
        try:
            found[release] = spoken.fetch(release, say)
        except MissingTool as error:
            missing[release] = str(error)
    return Tools(found, compiler, missing)
