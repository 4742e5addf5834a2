"""The languages: how each finds its tools, builds its programs and runs a sample.

An experiment has one language, that of its document's release. No other code branches on
the language.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from gccost import paths
from gccost.errors import DiskFull, GccostError, MissingTool
from gccost.measuring import builds, ccompilers, java, jdks, nodejs, toolchains
from gccost.measuring.cases import Build, Study

Run = Callable[..., subprocess.CompletedProcess[str]]
Say = Callable[[str], None]


class Compiler(Protocol):
    """A compiler, of C or Java, that builds the programs for every release."""

    @property
    def version(self) -> str: ...


@dataclass(frozen=True)
class Tools:
    """An experiment's tools: those found, and why others are missing."""

    found: Mapping[str, Any]  # a Toolchain by release
    compiler: Compiler | None
    missing: Mapping[str, str]  # release -> why


@dataclass(frozen=True)
class Language:
    """The functions that find, build and run a language's programs.

    A toolchain is a `Toolchain` of Go or a `Jdk`. Unavailable tools raise MissingTool.
    """

    folder: Path  # of its programs
    compiles_with: str  # the compiler's kind, in words
    environment: Callable[[Any], dict[str, str]]  # for a toolchain's commands
    find: Callable[[str], Any]  # the toolchain of a release; None if it is not on this machine
    fetch: Callable[[str, Say], Any]  # the same, downloaded if it is not
    compiler: Callable[[Iterable[str], Say], Compiler]  # builds the programs for all releases
    source_hash: Callable[[list[str]], str]  # of programs' sources
    random_layout: Callable[
        [Any], bool
    ]  # whether what a toolchain builds has a new layout each time
    # Takes the program, toolchain, compiler, layout's number, folder, and a function that runs
    # the command; returns the program of `sampler.sample`.
    build: Callable[[Build, Any, Any, int, Path, Run], Path]
    layouts: int  # of each program in a pack; with more, a pack of everything is over 60 MB
    # The same for a pack; also takes the target's GOARCH, before the layout's number.
    build_packed: Callable[[Build, Any, Any, str, int, Path, Run], Path]
    # What a packed program of a release needs on the target; raises MissingTool.
    find_packed: Callable[[str], Any]
    java: Callable[[Any], Path | None]  # the JVM of a toolchain that has one


def _java_environment(jdk: jdks.Jdk) -> dict[str, str]:
    # The compiler may be of another release, because a wheel has none.
    tools = [jdk.java.parent, jdks.javac().command.parent]
    path = [*map(str, tools), os.environ.get("PATH", os.defpath)]
    return {**jdks.environment(), "PATH": os.pathsep.join(path)}


def _java_compiler(programs: Iterable[str], say: Say) -> Compiler:
    found = jdks.javac()
    if java.JMH in programs:
        jdks.jmh(say)
    return found


def _go_compiler(programs: Iterable[str], say: Say) -> Compiler:
    found = ccompilers.fetch(say)
    builds.fetch_modules(programs)
    if any(map(builds.in_node, programs)):
        nodejs.check()
    return found


_BY_KEY: Mapping[str, Language] = MappingProxyType(
    {
        "go": Language(
            folder=paths.GOSRC,
            compiles_with="C compiler",
            environment=lambda go: go.environment(),
            find=lambda release: toolchains.find(release),
            fetch=lambda release, say: toolchains.fetch(release, say),
            compiler=_go_compiler,
            source_hash=lambda programs: builds.source_hash(programs),
            random_layout=builds.shuffles_layout,
            build=lambda what, go, compiler, layout, into, run: builds.build(
                what.program, go, compiler, layout, into, run, what.runtime
            ),
            layouts=3,
            build_packed=lambda what, go, compiler, goarch, layout, into, run: builds.build(
                what.program,
                go,
                compiler,
                layout,
                into,
                run,
                what.runtime,
                environment={"GOARCH": goarch, "GOOS": "linux", "CC": compiler.cc},
                ldflags=("-s", "-w"),  # without symbols: a third of the size
            ),
            find_packed=lambda release: None,
            java=lambda go: None,
        ),
        "jdk": Language(
            folder=paths.JAVASRC,
            compiles_with="javac",
            environment=_java_environment,
            find=lambda release: jdks.find(release),
            fetch=lambda release, say: jdks.fetch(release, say),
            compiler=_java_compiler,
            source_hash=lambda programs: java.source_hash(programs),
            random_layout=lambda jdk: True,  # each JVM compiles the program again while it runs
            build=lambda what, jdk, javac, layout, into, run: java.build(what.program, javac, run),
            layouts=1,
            build_packed=lambda what, jdk, javac, goarch, layout, into, run: java.build(
                what.program, javac, run
            ),
            find_packed=lambda release: jdks.system(release),
            java=lambda jdk: Path(jdk.java),
        ),
    }
)


def of(experiment: Study) -> Language:
    """The language of an experiment."""
    return _BY_KEY[toolchains.key(experiment.document)]


def source_hashes(experiment: Study) -> dict[str, str]:
    """The hash of the sources of each of an experiment's programs."""
    return {program: of(experiment).source_hash([program]) for program in experiment.packages}


def changed(experiment: Study, recorded: Mapping[str, str]) -> bool:
    """Whether a program differs from the recorded hashes; one that they lack does not."""
    hashes = source_hashes(experiment)
    return any(recorded.get(program, mark) != mark for program, mark in hashes.items())


def tools(experiment: Study, releases: Iterable[str], say: Say, *, fetch: bool = True) -> Tools:
    """Find an experiment's tools for the releases, downloading missing ones if `fetch`.

    A release that cannot be fetched, or whose toolchain is damaged, is left out.
    """
    spoken, found, missing = of(experiment), {}, {}
    releases = list(releases)
    try:
        compiler = spoken.compiler({case.program for case in experiment.cases}, say)
    except MissingTool as error:
        return Tools({}, None, dict.fromkeys(releases, str(error)))
    for release in releases:
        try:
            toolchain = spoken.fetch(release, say) if fetch else spoken.find(release)
        except DiskFull:
            raise
        except GccostError as error:
            missing[release] = str(error)
        else:
            if toolchain is not None:
                found[release] = toolchain
    return Tools(found, compiler, missing)
