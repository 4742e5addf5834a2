"""Chapter 04: its claims on few CPUs, its traces, and Go 1.10."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from measured import run_sample
from recordings import TRACE, job, recorded
from test_campaign import program

from gccost import processes
from gccost.cases.versions import CLOUDFLARE_GO, TODAY_GO
from gccost.judging import ledger, opening
from gccost.judging.rules import Label
from gccost.measuring import builds, sampler, toolchains, tools
from gccost.measuring.sampler import SampleFailed
from gccost.notebook import OpenedStudy
from gccost.run.profiles import read
from gccost.studies import STUDIES

CLOUDFLARE = STUDIES["cloudflare"]


def test_claims_on_few_cpus_say_why_they_are_untestable(tmp_path):
    recording = recorded(tmp_path, "cloudflare", rounds=1)
    recording.manifest["machine"] |= {"allowed_cpus": 48, "cpu_quota": 2.5}
    rows = ledger.rows({"cloudflare": recording}, [CLOUDFLARE])
    reasons = {row.verdict.reason for row in rows if row.verdict.label is Label.UNTESTABLE}
    assert reasons == {"it needs 16 CPUs; the machine has 2 CPUs on 2 cores, and Test OS"}


# --- Samples ---------------------------------------------------------------------------

TRACED = job("SignInTurns/goroutines=48/gogc=400")
SHOW = 'name=BenchmarkSignInTurns/goroutines=48; line "$name"'


def test_a_traced_sample_records_its_gctrace(tmp_path):
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


# --- Go 1.10 ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old_program(tmp_path_factory) -> Path:
    toolchain = toolchains.find(CLOUDFLARE_GO)
    if toolchain is None:
        pytest.skip(f"Go {CLOUDFLARE_GO} is not on this machine: make measure fetches it")
    compiler = tools.c_compiler(print)
    return builds.build("signing", toolchain, compiler, 1, tmp_path_factory.mktemp("go1.10"))


@pytest.mark.slow
def test_go_1_10_prints_the_metrics_of_the_current_release(old_program, tmp_path):
    new = toolchains.find(TODAY_GO)
    if new is None:
        pytest.skip(f"Go {TODAY_GO} is not on this machine: make measure fetches it")
    today = builds.build("signing", new, tools.c_compiler(print), 1, tmp_path)
    printed = []
    for release, binary in ((CLOUDFLARE_GO, old_program), (TODAY_GO, today)):
        sample = run_sample(binary, job("SignInTurns/goroutines=4", release, 2500), tmp_path)
        assert (sample.n, sample.procs) == (2500, 4)
        assert sample.metrics["gc-cycles"] >= 1
        assert sample.metrics["gctrace-cycles"] >= sample.metrics["gc-cycles"]
        printed.append(set(sample.metrics))
    assert printed[1] - printed[0] == {"gc-share-classes"}  # runtime/metrics is newer
    assert printed[0] <= printed[1]


@pytest.mark.slow
def test_go_1_10_writes_a_profile_passes_its_tests_and_refuses_an_invalid_count(
    old_program, tmp_path, monkeypatch
):
    profiled = job("SignInTurns/goroutines=1/profile=cpu", CLOUDFLARE_GO, 6000)
    run_sample(old_program, profiled, tmp_path, profile=tmp_path / "cpu.pb.gz")
    names = read(tmp_path / "cpu.pb.gz").names
    assert any(name.endswith("gccost/rates.Measure.func1") for name in names)

    monkeypatch.setenv("GOGC", "")
    assert processes.run([old_program]).stdout.endswith("PASS\n")
    wrong = processes.run([old_program, "-test.bench=Sign", "-test.benchtime=manyx"])
    assert wrong.returncode == 2
    assert "want a number of operations" in wrong.stderr


@pytest.mark.parametrize(("aside", "source"), [(True, "recorded"), (False, "")])
def test_traces_say_whether_they_are_recorded(aside, source):
    recording = replace(opening.replayed(CLOUDFLARE), is_aside=aside)
    traces = OpenedStudy(recording).traces
    assert set(traces["source"]) == {source}
    assert set(traces["run"]) == {recording.run.name}
