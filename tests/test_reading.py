"""`gccost.read` reads what benchstat reads, and never merges what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import recordings
from pandas.api.types import is_numeric_dtype

import gccost
from gccost import paths
from gccost.errors import GccostError
from gccost.measuring import benchfmt

TWO = """goos: linux
pkg: example.org/one
BenchmarkPlain-8 \t 100 \t 60 ns/op
PASS
pkg: example.org/two
BenchmarkPlain-8 \t 100 \t 70 ns/op
"""


def test_equal_names_of_two_packages_are_told_apart():
    frame = gccost.read(TWO)
    assert list(frame.pkg) == ["example.org/one", "example.org/two"]
    assert "goos" not in frame  # it is the same for all


def test_only_our_own_programs_are_named_in_our_words():
    ours = TWO.replace("example.org/one", "gccost/finalization")
    assert list(gccost.read(ours).variant) == ["plain", "Plain"]


def test_several_files_are_told_apart(tmp_path: Path):
    paths = [tmp_path / "old.txt", tmp_path / "new.txt"]
    for path in paths:
        path.write_text(TWO)
    frame = gccost.read(*paths)
    assert list(frame.file) == [str(path) for path in paths for _ in range(2)]


def test_two_things_of_one_name_have_a_column_each():
    frame = gccost.read("BenchmarkMine/procs=3-8 1 5 ns/op 7 p99-ns 8 p99-ns/op 9 procs\n")
    expected = {"mean_ns": 5, "p99-ns": 7, "p99-ns/op": 8, "/procs": 3, "procs": 8}
    expected["procs (unit)"] = 9
    found = frame.iloc[0]
    assert {name: found[name] for name in expected} == expected
    assert frame.columns.is_unique


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["8", "64"], [8, 64]),
        (["0.5", "1e3"], [0.5, 1000]),
        (["8", "max"], None),
        (["1KB", "2KB"], None),
        (["off", "100"], None),
        (["1.9", "1.20"], None),  # versions
        (["007", "8"], None),
    ],
)
def test_a_key_is_a_number_if_all_its_values_are(values: list[str], numbers: list[float] | None):
    frame = gccost.read("".join(f"BenchmarkMine/size={value}-8 1 5 ns/op\n" for value in values))
    assert is_numeric_dtype(frame["size"]) == bool(numbers)
    assert list(frame["size"]) == (numbers or values)


def test_the_samples_of_a_run_are_read_with_all_keys(tmp_path: Path):
    run = recordings.record(tmp_path, rounds=1)
    samples = benchfmt.read(run.samples).samples.values()
    frame = gccost.read("gccost-format: 3\n" + run.samples.read_text())
    assert len(frame) == len(samples)
    assert {key for sample in samples for key in sample.keys} <= {*frame}
    assert "manual free" in set(frame.variant)


def test_json_of_go_test_is_read():
    said = [  # the packages run at the same time
        ("one", "BenchmarkMine-8   \t"),
        ("two", "BenchmarkMine-8   \t"),
        ("one", "     100\t        60.5 ns/op\n"),
        ("two", "     100\t        70.5 ns/op\n"),
    ]
    lines = [{"Action": "output", "Package": package, "Output": text} for package, text in said]
    lines.append({"Action": "pass", "Package": "one", "Elapsed": 1.5})
    text = "go: downloading example.org\n" + "".join(f"{json.dumps(line)}\n" for line in lines)
    frame = gccost.read(text)
    assert [*zip(frame.pkg, frame.mean_ns, strict=True)] == [("one", 60.5), ("two", 70.5)]


def test_what_benchstat_reads_is_read():
    text = """commit: abc
Unit ns/op better=lower
BenchmarkBase64/std/size=8/fast-8   100  -1.5 delta  NaN rate  1e30 B/s
commit:
BenchmarkMine 100  2 ns/op
"""
    frame = gccost.read(text)
    assert list(frame.benchmark) == ["Base64/std/fast", "Mine"]
    assert frame.delta[0] == -1.5
    assert frame.commit.isna().tolist() == [False, True]
    assert frame["size"].isna().tolist() == [False, True]


def test_lines_that_are_left_out_are_told(capsys: pytest.CaptureFixture[str]):
    text = "BenchmarkMine\nBenchmarkMine-8 100 60.5 ns/op\nBenchmarkMine-8 100 1 ns/op 2 ns/op\n"
    assert len(gccost.read(f"{text}BenchmarkMine-8 100 cut")) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in told] == ["the text", "the text"]
    assert "a unit is there twice" in told[0]


def test_an_output_without_a_result_is_named():
    with pytest.raises(GccostError) as raised:
        gccost.read('{"Action":"start","Package":"one"}\n')
    assert raised.value.hint


@pytest.mark.parametrize("differing", ["pkg: two\n", ""], ids=["package", "key"])
def test_a_cost_of_two_cases_that_were_read_is_refused(differing: str):
    other = "BenchmarkMine-8" if differing else "BenchmarkMine/size=9-8"
    text = f"pkg: one\nBenchmarkMine-8 100 60 ns/op\n{differing}{other} 100 70 ns/op\n"
    with pytest.raises(GccostError, match="the samples have several values of"):
        gccost.cost(gccost.read(text), "mean_ns")


def test_the_same_case_in_two_files_has_one_cost(tmp_path):
    files = [tmp_path / name for name in ("one.txt", "two.txt")]
    for file, ns in zip(files, (60, 62), strict=True):
        file.write_text(f"BenchmarkMine-8 100 {ns} ns/op\n")
    assert gccost.cost(gccost.read(*files), "mean_ns")["n"] == 2


def test_the_lines_in_the_readme_of_slab_compare_own_benchmarks(tmp_path, monkeypatch, capsys):
    ways = {"Finalizer": 900, "LargerHandle": 400, "Slab": 180}
    lines = [
        f"Benchmark{way}-2 \t 1000000 \t {ns + i} ns/op"
        for way, ns in ways.items()
        for i in range(6)
    ]
    (tmp_path / "bench.txt").write_text("\n".join(lines))
    text = (paths.GOSRC / "slab" / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(text.split("```python\n")[1].split("```")[0], {})  # noqa: S102
    assert "\n0.202×" in capsys.readouterr().out
