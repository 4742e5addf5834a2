"""Chapter 04: its claims by number of CPUs, its models and cases, and Go 1.10."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import FakeMachine
from measured import run_sample
from recordings import TRACE, recorded
from test_campaign import program

from gccost.judging import ledger
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring import builds, campaign, ccompilers, planning, runs, sampler, toolchains
from gccost.measuring import machine as described
from gccost.measuring.cases import BUDGETS, Case
from gccost.measuring.profiles import read
from gccost.measuring.sampler import SampleFailed
from gccost.measuring.toolchains import CLOUDFLARE_GO, TODAY_GO
from gccost.studies import STUDIES
from gccost.studies.cloudflare import (
    AUTOMEMLIMIT,
    DOCUMENT_CPUS,
    LEAST_CPUS,
    MOST_PROCS,
    SERVE,
    signing,
    turns,
)

CLOUDFLARE = STUDIES["cloudflare"]


@pytest.mark.parametrize("machine", [{"allowed_cpus": 2}, {"allowed_cpus": 48, "cpu_quota": 2.5}])
def test_claims_on_few_cpus_say_why_they_are_untestable(
    machine: dict[str, float], tmp_path: Path
) -> None:
    recording = recorded(tmp_path, "cloudflare", rounds=1)
    run = runs.create(tmp_path, machine=machine, fingerprint="0" * 12, warnings=[])
    rows = ledger.rows({"cloudflare": replace(recording, run=run)}, [CLOUDFLARE])
    assert {row.verdict.label for row in rows} == {Label.UNTESTABLE}
    assert {row.verdict.reason for row in rows} == {"it needs 16 CPUs, there were 2"}


# --- Samples and plans -----------------------------------------------------------------

TRACED = Case("signing", turns(48, "400"), TODAY_GO, n=1000, traced=True)
SHOW = 'name=BenchmarkSignInTurns/goroutines=48; line "$name"'


def test_a_traced_sample_records_its_gctrace(tmp_path: Path) -> None:
    path = program(tmp_path, f'echo "$GODEBUG" >&2; echo "{TRACE}" >&2; {SHOW}')
    sample = run_sample(path, TRACED, tmp_path)
    assert sample.metrics["gctrace-cycles"] == 1
    kept = (tmp_path / sampler.TRACE).read_text()
    assert TRACE in kept
    assert "gctrace=1" in kept
    # A trace does not hide that memory ran out.
    path = program(tmp_path, f'echo "{TRACE}" >&2; echo "fatal error: out of memory" >&2; exit 2')
    with pytest.raises(SampleFailed, match="out of memory"):
        run_sample(path, TRACED, tmp_path)


ANSWER = """
for arg; do case $arg in -test.bench=*) bench=${arg#*=} ;; esac; done
name=$(printf '%s' "$bench" | tr -d '^$()')
"""


def test_a_program_killed_with_the_gc_off_is_recorded_as_failed(machine: FakeMachine) -> None:
    kill = 'if [ "$GOGC$GOMEMLIMIT" = off ]; then kill -KILL $$; fi\n'
    machine.behaviour = ANSWER + kill + f'echo "{TRACE}" >&2; line "$name"'
    run = campaign.measure(planning.plan([CLOUDFLARE], BUDGETS["tiny"]))
    recording = Recording.load(CLOUDFLARE, run)
    ended = recording.failures(turns(MOST_PROCS, "off"), TODAY_GO)
    assert ended
    assert all("SIGKILL" in how for how in ended)
    assert recording.failures(turns(MOST_PROCS, "400"), TODAY_GO) == []
    assert len(recording.processes(turns(MOST_PROCS, "400"), TODAY_GO))
    assert not len(recording.processes(turns(MOST_PROCS, "off"), TODAY_GO))


@pytest.fixture
def quick(
    request: pytest.FixtureRequest, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> planning.Plan:
    """The plan at the quick budget of a machine that differs from this one."""
    description = {**described.describe(), **request.param}
    monkeypatch.setattr(described, "describe", lambda: description)
    return planning.plan([CLOUDFLARE], BUDGETS["quick"])


@pytest.mark.parametrize("quick", [{"allowed_cpus": n} for n in (2, 16)], indirect=True)
def test_a_plan_omits_cases_that_need_more_cpus(quick: planning.Plan) -> None:
    variants = {case.variant for case in quick.pool.values()}
    enough = quick.description["allowed_cpus"] >= LEAST_CPUS
    assert (signing(DOCUMENT_CPUS) in variants) == enough
    assert {signing(1), turns(1), turns(MOST_PROCS), SERVE} <= variants


LIMIT = 64 * 2**20


@pytest.mark.parametrize("quick", [{"memory_limit": LIMIT}], indirect=True)
def test_a_memory_limit_caps_operations_with_the_gc_off(quick: planning.Plan) -> None:
    whole = {case.name: case.n for case in CLOUDFLARE.cases}
    capped = {name: case for name, case in quick.pool.items() if case.n < whole[name]}
    variants = {case.variant for case in capped.values()}
    assert {turns(MOST_PROCS, "off"), replace(SERVE, gogc="off")} <= variants
    assert not variants & {turns(MOST_PROCS), SERVE, AUTOMEMLIMIT}
    assert all(case.n * case.retained_bytes <= LIMIT / 2 for case in quick.pool.values())
    assert campaign.begin(quick).manifest()["troubles"].keys() == capped.keys()


# --- Go 1.10 ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toolchain = toolchains.find(CLOUDFLARE_GO)
    if toolchain is None:
        pytest.skip(f"Go {CLOUDFLARE_GO} is not on this machine: make measure fetches it")
    compiler = ccompilers.fetch(print)
    return builds.build("signing", toolchain, compiler, 1, tmp_path_factory.mktemp("go1.10"))


def test_go_1_10_prints_the_metrics_of_the_current_release(
    old_program: Path, tmp_path: Path
) -> None:
    new = toolchains.find(TODAY_GO)
    if new is None:
        pytest.skip(f"Go {TODAY_GO} is not on this machine: make measure fetches it")
    today = builds.build("signing", new, ccompilers.fetch(print), 1, tmp_path)
    printed = []
    for release, binary in ((CLOUDFLARE_GO, old_program), (TODAY_GO, today)):
        case = Case("signing", turns(4), release, n=2500, traced=True)
        sample = run_sample(binary, case, tmp_path)
        assert (sample.n, sample.procs) == (2500, 4)
        assert sample.metrics["gc-cycles"] >= 1
        assert sample.metrics["gctrace-cycles"] >= sample.metrics["gc-cycles"]
        printed.append(set(sample.metrics))
    assert printed[1] - printed[0] == {"gc-share-classes"}  # runtime/metrics is newer
    assert printed[0] <= printed[1]


def test_go_1_10_writes_a_profile_passes_its_tests_and_refuses_an_invalid_count(
    old_program: Path, tmp_path: Path
) -> None:
    case = Case("signing", turns(1, profile="cpu"), CLOUDFLARE_GO, n=6000)
    run_sample(old_program, case, tmp_path, profile=tmp_path / "cpu.pb.gz")
    names = read(tmp_path / "cpu.pb.gz").names
    assert any(name.endswith("gccost/rates.Measure.func1") for name in names)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [old_program, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "GOGC": ""},
        )

    assert run().stdout.endswith("PASS\n")
    wrong = run("-test.bench=Sign", "-test.benchtime=manyx")
    assert wrong.returncode == 2
    assert "want a number of operations" in wrong.stderr
