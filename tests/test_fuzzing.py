"""Damaged inputs of every format: an answer or one message, and no sample lost in silence."""

from __future__ import annotations

import gzip
import math
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import recordings

import gccost
from gccost import explain
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.run import benchfmt, gctrace
from gccost.run.runs import Run
from gccost.studies import STUDIES

TRIED = 15 * int(os.environ.get("GCCOST_EXAMPLES", "1"))  # of a format; 500 were tried by hand
BENCHMARKS = b"""pkg: one
goos: linux
BenchmarkMine/size=8-8 \t 100 \t 60.5 ns/op \t 0 B/op \t 3.5 MB/s
BenchmarkMine/size=64-8 \t 100 \t 70 ns/op \t 9 B/op \t 2.5 MB/s
BenchmarkOther
BenchmarkOther-2 \t 2000000000 \t 0.00 ns/op \t 12 p99-ns
PASS
pkg: two
BenchmarkMine/size=8 \t 50 \t 61 ns/op
ok  \ttwo\t1.2s
"""
HOSTILE = (
    *(b"", b"\0", b"\xff", b"\x1b[2J", b"\xe2\x80\xae", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b"-"),
    *(b"9223372036854775807", b"-9223372036854775808", b"1e308", b"NaN", b"-Inf", b"0", b"1e-320"),
    *(b"Benchmark", b"{", b",", b'"', b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"x" * 70_000),
)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The data with one to four changes: other bytes, a part that is lost, doubled or moved."""
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.choices(range(len(data) + 1), k=2))
        part = data[at : min(to, at + 400)]
        replaced = chance.choice((b"", 2 * part, part[::-1], chance.choice(HOSTILE)))
        length = chance.choice((0, 1, len(part)))
        data = data[:at] + replaced + data[at + length :]
    return data


def read(data: bytes, folder: Path) -> None:
    path = folder / "bench.txt"
    path.write_bytes(data)
    found = benchfmt.parse(data.decode(errors="replace"), measured=False)
    with suppress(GccostError):
        frame = gccost.read(path)
        assert len(frame) == len(found.samples) or data.startswith((b"\xff\xfe", b"\xfe\xff"))
        for metric in frame.columns.intersection(["ns", "B_per_op"]):
            costs = frame.groupby(frame.attrs["keys"], dropna=False).apply(gccost.cost, metric)
            assert costs["n"].sum() == (frame[metric].abs() < math.inf).sum()


def measured(data: bytes, folder: Path) -> None:
    """A run's samples: each line is a sample, a configuration, or an error."""
    path = folder / "samples.txt"
    path.write_bytes(data)
    found = benchfmt.read(path)
    lines = data.decode(errors="surrogateescape").split("\n")
    told = {*found.samples, *(each.line for each in found.errors)}
    assert told >= {n for n, line in enumerate(lines, 1) if line.startswith("Benchmark")}


def explained(data: bytes, folder: Path) -> None:
    path = folder / "cpu.pb.gz"
    path.write_bytes(gzip.compress(data))
    with suppress(GccostError):
        answer = explain.explain(explain.load(str(path)))
        assert all(line.isprintable() for line in explain.lines(answer))
        assert 0 <= answer["share"] <= 1


def traced(data: bytes, folder: Path) -> None:
    path = folder / "trace.txt.gz"
    path.write_bytes(gzip.compress(data))
    with suppress(GccostError):
        gctrace.metrics(gctrace.read(path))


def added(data: bytes, folder: Path) -> None:
    archive = folder / "run.tar.gz"
    archive.write_bytes(gzip.compress(data, 1))
    with suppress(GccostError):
        copy, _ = reference.add(archive, [*STUDIES.values()])
        assert not copy.altered()


def in_file(name: str, whole: Run) -> Callable[[bytes, Path], None]:
    """Add a run with this file damaged, whose digests are right."""

    def add(data: bytes, folder: Path) -> None:
        run = Run(folder / whole.name)
        shutil.copytree(whole.folder, run.folder)
        (run.folder / name).write_bytes(data)
        with suppress(GccostError):
            run.finish("standard", "it was made up", [])
            copy, _ = reference.add(run.folder, [*STUDIES.values()])
            assert copy.reading().samples
            assert not copy.unusable()

    return add


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return recordings.record(tmp_path_factory.mktemp("run"), rounds=1)


def inputs(run: Run) -> Iterator[tuple[Callable[[bytes, Path], None], bytes]]:
    profile = next((run.folder / "profiles").iterdir())
    yield read, BENCHMARKS
    yield measured, run.samples_txt.read_bytes()
    yield explained, gzip.decompress(profile.read_bytes())
    yield traced, f"{recordings.TRACE}\n".encode() * 3
    yield added, gzip.decompress(run.archive().read_bytes())
    yield in_file("samples.txt", run), run.samples_txt.read_bytes()
    yield in_file("jobs.csv", run), run.jobs_csv.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(7))
def test_damaged_inputs_are_answered_or_refused(number, run, tmp_path, monkeypatch):
    use, data = [*inputs(run)][number]
    for seed in range(TRIED):
        monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / f"reference-{seed}"))
        folder = tmp_path / str(seed)
        folder.mkdir()
        use(damaged(data, random.Random(seed)), folder)
