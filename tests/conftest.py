"""Shared fixtures: fake programs in place of the measured ones."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from browser import browser  # noqa: F401 - the session's browser, a fixture
from faketools import PATIENCE, PROGRAM, reported, script, tools  # noqa: F401 - fixtures
from hypothesis import HealthCheck, settings
from measured import made  # noqa: F401 - the session's report, a fixture

from gccost.cases import jobs
from gccost.costs.recording import Recording
from gccost.errors import MissingTool
from gccost.measuring import builds, jdks, languages, sampler, toolchains
from gccost.measuring import tools as compilers
from gccost.measuring.languages import Go
from gccost.measuring.planning import Plan
from gccost.measuring.toolchains import Toolchain
from gccost.measuring.tools import CCompiler
from gccost.run.benchfmt import Sample

# A background process ignores Ctrl-C, and one under nohup SIGHUP, and their children inherit
# that, so tests that interrupt a command would wait forever.
for sent, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(sent) is signal.SIG_IGN:
        signal.signal(sent, usual)

# A busy machine takes its time over an example.
settings.register_profile("on any machine", deadline=None)
settings.load_profile("on any machine")


def tried(examples: int) -> settings:
    """Settings for so many examples of a property; GCCOST_EXAMPLES=10 tries ten times as many."""
    return settings(
        max_examples=examples * int(os.environ.get("GCCOST_EXAMPLES", "1")),
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    )


# Modules that share slow fixtures, grouped so that each group runs in one process. Of the
# first four groups, each of two workers takes every other one.
TOGETHER = {
    "test_pipeline": "the report",
    "test_gokernel": "the report",
    "test_working_in_lab": "the report",
    "test_replay": "replay",
    "test_reference": "reference",
    "test_one_figure": "figures",
    "test_report": "pages",
    "test_browser": "pages",
    "test_stopping_in_lab": "stopping",
    "test_interrupting": "reported",
    "test_disks": "reported",
    "test_extending": "extending",
}


@pytest.fixture(autouse=True, scope="session")
def _no_settings(tmp_path_factory) -> Iterator[None]:
    """The tests neither see the settings and runs of whoever starts them, nor write a report."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("GCCOST_", "BINDER_")) and name != "GCCOST_EXAMPLES":
                patch.delenv(name)
        patch.setenv("GCCOST_RUNS", str(tmp_path_factory.mktemp("no-runs")))
        patch.setenv("GCCOST_REPORT", str(tmp_path_factory.mktemp("no-report")))
        patch.setattr(builds, "BUILD_SECONDS", PATIENCE)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(TOGETHER)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


def pytest_make_parametrize_id(val: object) -> str | None:
    # Compressed bytes hold the time, and every worker must collect the same names.
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the modules of a group in one process; distribute other tests one by one."""
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER.get(Path(nodeid.partition("::")[0]).stem, nodeid)

    config.option.loadscopereorder = False  # the longest groups are already first
    return Grouped(config, log)


def due(plan: Plan, number: int) -> dict[str, int]:
    """The number of samples of each case in round `number` of the first rounds."""
    due = [job for job in plan.pool.values() if plan.rounds(job) >= number]
    return {job["name"]: jobs.processes(job) for job in due}


@dataclass
class FakeMachine(Go):
    """Fake Go releases, present or missing, and the behaviour of their programs."""

    behaviour: str = 'line "$name"'
    missing: set[str] = field(default_factory=set)
    built: list[Path] = field(default_factory=list)
    spoil: Callable[[Path], object] = lambda binary: None  # each program that was built

    sampler: Callable[..., list[Sample]] = sampler.sample
    fetch_modules: Callable[[set[str]], None] = lambda programs: None

    def find(self, release: str) -> Toolchain | None:
        return None if release in self.missing else Toolchain(release, Path("/nowhere"), "system")

    def fetch(self, release: str, say: object) -> Toolchain:
        if toolchain := self.find(release):
            return toolchain
        raise MissingTool(f"Go {release} cannot be fetched", hint="go online")

    def compiler(self, programs: set[str], say: Callable[[str], None]) -> CCompiler:
        self.fetch_modules(programs)
        if any(map(builds.in_node, programs)):
            compilers.node(say)
        return CCompiler(("cc",), "cc 1.0", "system")

    def build(self, what, toolchain, compiler, layout, into, run) -> Path:
        program = Path(what.program).name
        binary = into / f"{program}-{toolchain.version}{what.runtime}-{layout}.test"
        self.built.append(binary)
        script(binary, PROGRAM + self.behaviour)
        self.spoil(binary)
        return binary

    def sample(self, job, program, toolchain, scratch, profile) -> list[Sample]:
        return self.sampler(job, program, scratch, profile=profile)


@pytest.fixture
def no_recorded_sittings(monkeypatch) -> None:
    """Made-up samples vary as they say, and not from run to run as the recorded machine does."""
    monkeypatch.setattr(Recording, "relatives", [])


@pytest.fixture
def bare(monkeypatch, tmp_path) -> Iterator[Path]:
    """A machine without compilers, caches or network; returns its PATH folder."""

    def forget() -> None:
        for module in (toolchains, compilers):
            for look in vars(module).values():
                if hasattr(look, "cache_clear"):
                    look.cache_clear()

    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "mod"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name in ("PIP_FIND_LINKS", "CC", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compilers, "FOLDER", tmp_path / "standins")
    forget()
    yield path
    forget()


@pytest.fixture
def jvms(bare, monkeypatch, tmp_path) -> Path:
    """The folder for the JDKs of a machine that has none."""
    for command in ("sh", "mkdir"):
        (bare / command).symlink_to(str(shutil.which(command, path=os.defpath)))
    monkeypatch.setattr(jdks, "_KEPT_IN", (f"{tmp_path}/jvm/*",))
    return tmp_path / "jvm"


@pytest.fixture
def machine(monkeypatch, tmp_path) -> FakeMachine:
    """A machine on which every sample takes milliseconds; its runs are in tmp_path."""
    fake = FakeMachine()
    monkeypatch.setitem(languages.BENCHES, "go", fake)
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("GCCOST_BUDGET", "tiny")
    return fake
