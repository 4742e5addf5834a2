"""The Go programs: formatting, vetting, and tests on the releases that differ."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gccost import paths
from gccost.measuring import builds, toolchains
from gccost.measuring.toolchains import CLEANUP_GO, DOCUMENT_GO, TODAY_GO

releases = pytest.mark.parametrize("version", [DOCUMENT_GO, CLEANUP_GO, TODAY_GO])


SLAB = paths.GOSRC / "slab"  # a separate module


def go(version: str, *arguments: str, program: str = "go", folder: Path = paths.GOSRC) -> str:
    toolchain = toolchains.fetch(version)
    done = subprocess.run(
        [str(toolchain.goroot / "bin" / program), *arguments],
        cwd=folder,
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_go_file_is_formatted() -> None:
    assert go(TODAY_GO, "-l", ".", program="gofmt") == ""


@releases
def test_vet_finds_nothing(version: str) -> None:
    go(version, "vet", "./...")
    go(version, "vet", "./...", folder=SLAB)


def test_programs_with_libraries_pass_vet_and_tests() -> None:
    folder = paths.GOSRC / "libraries"
    builds.fetch_modules(["libraries/sqlite"])
    go(TODAY_GO, "vet", "./...", folder=folder)
    print(go(TODAY_GO, "test", "-trimpath", "./...", folder=folder))


# Tests whose result depends on the machine's load: when the collector runs decides where
# objects are placed, and another process can slow the GC cycles that are compared.
LOAD_DEPENDENT = {"specials": "^TestStrides$", "cycles": "^TestFinalizersSlowACycle$"}


@releases
def test_go_tests_pass(version: str) -> None:
    # scripts/runtime-tests runs the runtime's stress test, for longer.
    skipped = "|".join([*LOAD_DEPENDENT.values(), "^TestPromises$"])
    print(go(version, "test", "-skip", skipped, "./..."))
    print(go(version, "test", "./...", folder=SLAB))


@releases
@pytest.mark.parametrize("package", LOAD_DEPENDENT)
def test_a_load_dependent_go_test_passes_in_one_of_four_attempts(
    package: str, version: str
) -> None:
    failures = []
    for _ in range(4):
        try:
            printed = go(
                version, "test", "-count=1", "-run", LOAD_DEPENDENT[package], f"./{package}"
            )
            assert "no tests to run" not in printed
        except AssertionError as failure:
            failures.append(str(failure))
        else:
            return
    pytest.fail("\n".join(failures))


def test_slab_is_race_free() -> None:
    print(go(TODAY_GO, "test", "-race", "-short", "./...", folder=SLAB))
    # Under the race detector, sync.Pool drops items at random and leaves slabs half empty, so
    # the tests that count blocks run without it.
    print(go(TODAY_GO, "test", "-race", "-skip=^Test(Conservation|Lifetimes)$", "./remedies"))


@releases
def test_a_plain_go_test_bench_prints_every_metric(version: str) -> None:
    lines = go(version, "test", "-run=^$", "-bench=.", "-benchtime=1000x", "./cstr").splitlines()
    benchmarks = [line for line in lines if line.startswith("Benchmark")]
    assert len(benchmarks) >= 5
    for line in benchmarks:
        for unit in ("cpu-ns/op", "settled-ns/op", "gc-cycles", "c-unfreed-drained", "allocs/op"):
            assert f" {unit}" in line


def test_sizes_of_the_tiny_allocator_are_refused() -> None:
    benchmark = ("test", "-run=^$", "-bench=FinalizeBytes", "-benchtime=100x", "-v", "./objects")
    said = go(TODAY_GO, *benchmark)
    for size in (8, 16):
        assert f"an object of {size} bytes without pointers may share its block" in said
    assert "BenchmarkFinalizeBytes/bytes=24" in said


@pytest.mark.parametrize("version", [DOCUMENT_GO, TODAY_GO])
def test_the_layout_determines_the_binary(version: str, tmp_path) -> None:
    toolchain, compiler = toolchains.fetch(version), toolchains.c_compiler()
    built = []
    for i, layout in enumerate((7, 7, 8)):
        into = tmp_path / str(i)
        into.mkdir()
        built.append(builds.build("cstr", toolchain, compiler, layout, into).read_bytes())
    one, same, other = built
    assert one == same
    assert one != other
