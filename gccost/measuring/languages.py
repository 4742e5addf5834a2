"""What a language provides for measuring: its tools, its programs, a sample.

An experiment is of one language, that of its document's release. Nothing else
branches on the language.
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
    """What an experiment needs: what was found, and why the rest is missing."""

    found: Mapping[str, Any]  # a Toolchain by release
    compiler: Compiler | None
    missing: Mapping[str, str]  # release -> why


@dataclass(frozen=True)
class Language:
    """How programs of a language are found, built and run.

    A toolchain is a `Toolchain` of Go or a `Jdk`. What is not available raises MissingTool.
    """

    folder: Path  # of its programs
    compiles_with: str  # the compiler's kind, in words
    environment: Callable[[Any], dict[str, str]]  # to type a command of a toolchain in
    fetch: Callable[[str, Say], Any]  # the toolchain of a release
    compiler: Callable[[Iterable[str], Say], Compiler]  # what all releases build the programs with
    source_hash: Callable[[list[str]], str]  # over the sources of programs
    random_layout: Callable[
        [Any], bool
    ]  # whether what a toolchain builds has a new layout each time
    # What to build, with which toolchain and compiler, the layout's number, a folder for it,
    # and what runs the command; the result is what `run_sample` takes first.
    build: Callable[[Build, Any, Any, int, Path, Run], Path]
    # A fresh process of a case: its program, toolchain, case, scratch folder, and where the CPU
    # profile goes.
    run_sample: Callable[[Path, Any, Case, Path, Path | None], benchfmt.Sample]


def _java_environment(jdk: jdks.Jdk) -> dict[str, str]:
    # The compiler is not always the release's own: a wheel has none.
    tools = [jdk.java.parent, jdks.javac().command.parent]
    path = [*map(str, tools), os.environ.get("PATH", os.defpath)]
    return {**jdks.environment(), "PATH": os.pathsep.join(path)}


def _java_compiler(programs: Iterable[str], say: Say) -> Compiler:
    found = jdks.javac()
    if java.JMH in programs:
        jdks.jmh(say)
    return found


_BY_KEY: Mapping[str, Language] = MappingProxyType(
    {
        "go": Language(
            folder=places.GOSRC,
            compiles_with="C compiler",
            environment=lambda go: go.environment(),
            fetch=lambda release, say: toolchains.fetch(release, say),
            compiler=lambda programs, say: toolchains.c_compiler(say),
            source_hash=lambda programs: builds.source_hash(programs),
            random_layout=builds.shuffles_layout,
            build=lambda what, go, compiler, layout, into, run: builds.build(
                what.program, go, compiler, layout, into, run, what.runtime
            ),
            run_sample=lambda built, go, case, scratch, profile: samples.run_sample(
                built, case, scratch, profile=profile
            ),
        ),
        "jdk": Language(
            folder=places.JAVASRC,
            compiles_with="javac",
            environment=_java_environment,
            fetch=lambda release, say: jdks.fetch(release, say),
            compiler=_java_compiler,
            source_hash=lambda programs: java.source_hash(programs),
            random_layout=lambda jdk: True,  # each JVM compiles the program again while it runs
            build=lambda what, jdk, javac, layout, into, run: java.build(what.program, javac, run),
            run_sample=lambda classes, jdk, case, scratch, profile: java.run_sample(
                classes, jdk, case, scratch
            ),
        ),
    }
)


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
