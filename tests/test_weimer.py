"""Java: a fresh JVM per sample, and out-of-memory exits as data."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from campaigns import assert_only_lost
from fakejdks import make
from measured import run_sample
from recordings import job

from gccost import paths
from gccost.cases import jobs, sources
from gccost.cases.cases import BUDGETS
from gccost.cases.versions import TODAY_JDK
from gccost.costs.recording import Recording
from gccost.errors import MissingTool
from gccost.measuring import campaign, java, jdks, planning
from gccost.measuring.jdks import Jdk
from gccost.measuring.sampler import SampleFailed
from gccost.run import benchfmt
from gccost.run.jobtable import Job
from gccost.studies import STUDIES

WEIMER, TINY = STUDIES["weimer"], BUDGETS["tiny"]
CASE = job("Cleaner", "jdk-17")


def sample(folder: Path, behaviour: str, job: Job = CASE) -> benchfmt.Sample:
    """The output of a fake JVM."""
    home = make(folder / "jdk", "17.0.15", behaviour)
    return run_sample(folder, job, folder, java=home / "bin" / "java")


# --- one sample -------------------------------------------------------------------


LOG = """\
[0.1s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 23M->1M(256M) 1.250ms
[0.1s][info][gc,phases] GC(0)   Evacuate Collection Set: 0.9ms
[0.2s][info][gc] GC(1) Concurrent Mark Cycle
[0.2s][info][gc] GC(1) Pause Remark 30M->30M(100M) 0.750ms
[0.3s][info][gc,phases] GC(2) y: Pause Mark Start 0.004ms
"""


def test_a_sample_has_its_keys_and_process_metrics(tmp_path, monkeypatch):
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH"):
        monkeypatch.setenv(name, "bent")
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "gc.log").write_text("GC(0) Pause Young 1->1(1) 9.000ms\n")  # of another process
    burn = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; "
    taken = sample(tmp_path, burn + 'env > env; cp log gc.log; line "$name"')
    assert "bent" not in (tmp_path / "env").read_text()
    metrics = taken.metrics
    assert (taken.full_name, taken.n) == ("Cleaner/jdk=17/setting=published/gc=G1", 1000)
    known = {"died": 0, "gc-cycles": 3, "gc-pause-s": 0.002004, "peak-rss-bytes": 40_000_000}
    assert {name: metrics[name] for name in known} == pytest.approx(known)
    assert min(metrics["user-s"], metrics["faults"]) > 0
    assert metrics["cpu-s"] == pytest.approx(metrics["user-s"] + metrics["sys-s"], abs=2e-6)


def test_running_out_of_memory_is_recorded_as_data(tmp_path):
    small = job("Finalize/heap=8", "jdk-17")
    taken = sample(tmp_path, "echo 'Terminating due to java.lang.OutOfMemoryError'; exit 3", small)
    assert taken.metrics["died"] == 1
    assert {"cpu-s", "ns/op", "peak-rss-bytes"}.isdisjoint(taken.metrics)


def test_settings_are_options_of_the_jvm():
    case = "Cleaner/gc=Parallel/heap=16/escape=off/gcthreads=1"
    options = shlex.split(job(case, "jdk-17")["argv"])
    assert {"-XX:+UseParallelGC", "-Xms16m", "-Xmx16m"} <= set(options)
    assert {"-XX:-DoEscapeAnalysis", "-XX:ParallelGCThreads=1"} <= set(options)
    assert options[-3:] == ["finalization.Main", "Cleaner", "1000"]
    # Leak cases fill the heap, so their JVM must continue after an OutOfMemoryError.
    options = shlex.split(jobs.job("LeakNaive/remaining=48", "jdk-17")["argv"])
    ends, continues = (f"-XX:{sign}ExitOnOutOfMemoryError" for sign in "+-")
    assert options.index(continues) > options.index(ends)


# --- measuring --------------------------------------------------------------------


@pytest.fixture
def machine(jvms, monkeypatch, tmp_path) -> Callable[..., None]:
    """Make identical fake JDKs of the given releases, with runs in tmp_path."""
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")

    def fake(*releases: str, behaviour: str = 'line "$name"') -> None:
        for release in releases:
            make(jvms / release, f"{jdks.number(release)}.0.1", behaviour)

    return fake


def test_a_java_study_is_measured_until_its_sources_change(machine, monkeypatch):
    machine("jdk-11", "jdk-25")
    plan = planning.plan([WEIMER], TINY)
    run = campaign.measure(plan)
    recording = Recording(WEIMER, run)
    assert (recording.problems, recording.releases) == ((), ("jdk-11", "jdk-25"))
    assert run.manifest()["troubles"] == {}
    rounds = recording.frame.groupby("name")["round"].nunique().to_dict()
    assert rounds == {name: plan.rounds(job) for name, job in plan.pool.items()}
    assert campaign.measure(plan) == run
    monkeypatch.setattr(sources, "hash_of_java", lambda programs: "another")
    assert campaign.find(planning.plan([WEIMER], TINY)) is None


def test_what_is_missing_skips_only_what_needs_it(machine):
    with pytest.raises(MissingTool, match=r"nothing can be measured: Java: no JDK .* with javac"):
        campaign.measure(planning.plan([WEIMER], TINY))
    machine("jdk-25")
    plan = planning.plan([WEIMER], TINY)
    assert {job["release"] for job in plan.pool.values()} == {"jdk-25"}
    assert "when online" in plan.missing["jdk-11"]
    with pytest.raises(MissingTool, match=r"JMH: .* cannot be fetched"):
        campaign.measure(planning.plan([STUDIES["jmh"]], TINY))


def test_unsupported_jvm_options_skip_only_their_cases(machine):
    why = "Option UseEpsilonGC not supported"
    refuse = f'case "$*" in *Epsilon*) echo "{why}"; exit 1;; esac; line "$name"'
    machine("jdk-11", "jdk-25", behaviour=refuse)
    run = campaign.measure(planning.plan([WEIMER], TINY))
    assert_only_lost(WEIMER, run, "Epsilon", why)


# --- the programs themselves --------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Iterator[tuple[Path, Callable[[str], Path]]]:
    """The system's JDK, and a function that compiles a program with it."""
    compiler = jdks.find_javac()
    if compiler is None:
        pytest.skip("no JDK with javac was found: apt-get install default-jdk-headless")
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "CACHE", cache)
        yield compiler.home, lambda program: java.build(program, compiler)


def run_real(real: tuple[Path, Callable[[str], Path]], job: Job, folder: Path) -> benchfmt.Sample:
    home, build = real
    jdk = Jdk(job["release"], "", home, "")
    return run_sample(build(job["program"]), job, folder, java=jdk.java)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "left"), [("Plain", 0), ("Cleaner", 0), ("Finalize", 1)])
def test_only_finalizers_stay_registered_after_close(real, kind, left, tmp_path):
    taken = run_real(real, job(f"Registered{kind}", "jdk-17", 20_000), tmp_path)
    assert taken.metrics["registered/op"] == pytest.approx(left, abs=0.01)
    assert taken.metrics["registered-drained/op"] == pytest.approx(0, abs=0.01)


@pytest.mark.slow
def test_only_the_naive_handle_leaks(real, tmp_path):
    def leaked(kind: str, remaining: int) -> float:
        case = jobs.job(f"Leak{kind}/remaining={remaining}", "jdk-17")
        return run_real(real, case, tmp_path).metrics["leaked"]

    assert [leaked("Naive", remaining) for remaining in (0, 48, 256)] == [0, 1, 0]
    assert [leaked(kind, 48) for kind in ("RegisterFirst", "TryCatch", "Finalize")] == [0, 0, 0]


@pytest.mark.slow
def test_a_real_jvm_out_of_memory_is_recorded_as_data(real, tmp_path):
    # More operations than the heap has memory for: the JVM dies before the first handle.
    many = job("RegisteredFinalize/heap=3", "jdk-17", 2_000_000)
    assert run_real(real, many, tmp_path).metrics["died"] == 1


@pytest.mark.slow
def test_every_case_of_cleaners_is_a_benchmark(real, tmp_path):
    for each in STUDIES["cleaners"].jobs.values():
        if each["release"] != TODAY_JDK:  # JDK 11 has no arenas
            few = jobs.sized(each, min(each["n"], 100))
            assert run_real(real, few, tmp_path).metrics["ns/op"] > 0


@pytest.mark.slow
def test_a_jdk_without_arenas_says_so(real, tmp_path):
    old = jdks.find("jdk-17") or jdks.find("jdk-11")
    if old is None:
        pytest.skip("no JDK before 22 is here")
    case = job("OpenShared", old.release, 100)
    with pytest.raises(SampleFailed, match=r"has no java.lang.foreign.Arena: JDK 22"):
        run_sample(real[1]("cleaners"), case, tmp_path, java=old.java)
