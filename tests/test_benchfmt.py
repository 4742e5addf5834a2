"""Reading and writing the Go benchmark format."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pandas as pd
import pytest
from conftest import tried
from hypothesis import given
from hypothesis import strategies as st

from gccost.errors import GccostError
from gccost.measuring.benchfmt import (
    Reading,
    Sample,
    SyntaxProblem,
    format_line,
    parse_line,
    read,
    results,
)

GOOD = "BenchmarkAllocateFree/go=1.27.4/gogc=100/setting=default\t1600000\t60.61 ns/op\t3 round"


def read_text(folder: Path, text: str | bytes) -> Reading:
    """The reading of a file with this text."""
    path = folder / "lemire.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path)


def told(reading: Reading) -> list[tuple[int, str]]:
    """The line and reason of each problem."""
    return [(problem.line, problem.why) for problem in reading.errors]


# Single lines.


def test_a_parsed_line_can_be_extended_and_written() -> None:
    own = parse_line("BenchmarkAllocateAuto-2 \t 1600000\t      1100 ns/op\t       8 B/op\n")
    assert own == Sample("AllocateAuto", 1_600_000, {"ns/op": 1100.0, "B/op": 8.0}, procs=2)
    assert isinstance(own, Sample)
    named = replace(own.with_keys({"go": "1.27.4"}), procs=1).with_metrics({"round": 3.0})
    assert format_line(named) == (
        "BenchmarkAllocateAuto/go=1.27.4\t1600000\t1100 ns/op\t8 B/op\t3 round"
    )


def test_keys_procs_and_name_parts_are_distinguished() -> None:
    sample = parse_line("BenchmarkSign/P256/k=a=b/empty=/=odd-8 5 1 ns/op")
    assert sample == Sample("Sign/P256/=odd", 5, {"ns/op": 1.0}, {"k": "a=b", "empty": ""}, 8)


@pytest.mark.parametrize("end", ["published-2", "x-0", "2024-01", "-", "a-b"])
@pytest.mark.parametrize("procs", [1, 2, 166])
def test_a_name_suffix_is_not_mistaken_for_procs(end: str, procs: int) -> None:
    sample = Sample("X", 1, {"ns/op": 1.0}, {"setting": end}, procs)
    assert parse_line(format_line(sample)) == sample


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("PASS", "does not begin with Benchmark"),
        ("", "does not begin with Benchmark"),
        ("Benchmark 1 2 ns/op", "no name"),
        ("BenchmarkX", "no count"),
        ("BenchmarkX 100", "no values"),
        ("BenchmarkX 100 60.6", "the value 60.6 has no unit"),
        ("BenchmarkX 100 60.6 ns/op 3", "the value 3 has no unit"),
        ("BenchmarkX 100 60.6 62.4", "a number is where a unit should be: 62.4"),
        ("BenchmarkX 100 ns/op 60.6", "the value is not a number: ns/op"),
        ("BenchmarkX 100 1,5 ns/op", "the value is not a number: 1,5"),
        ("BenchmarkX 100 1_5 ns/op", "the value is not a number: 1_5"),
        ("BenchmarkX 100 ٣ ns/op", "the value is not a number: ٣"),
        ("BenchmarkX 100 NaN ns/op", "not between 0 and 1e+18: NaN"),
        ("BenchmarkX 100 -1 ns/op", "not between 0 and 1e+18: -1"),
        ("BenchmarkX 100 +Inf ns/op", "not between 0 and 1e+18: +Inf"),
        ("BenchmarkX 100 1.1e18 ns/op", "not between 0 and 1e+18: 1.1e18"),
        ("BenchmarkX 1 1 ns/op 2 ns/op", "the unit ns/op is there twice"),
        ("BenchmarkX/k=1/k=2 1 1 ns/op", "the key k is there twice"),
        ("BenchmarkX 1e6 1 ns/op", "count of iterations is not a whole number: 1e6"),
        ("BenchmarkX -5 1 ns/op", "count of iterations is not a whole number: -5"),
        ("BenchmarkX ² 1 ns/op", "count of iterations is not a whole number"),
        (f"BenchmarkX {10**18} 1 ns/op", "count of iterations is not a whole number"),
        (f"BenchmarkX {'9' * 5000} 1 ns/op", "count of iterations is not a whole number"),
        ("BenchmarkX 0 1 ns/op", "no iterations"),
        ("Benchmark\x00X 1 1 ns/op", "not text"),
        ("BenchmarkX 1 1 ns\udce9/op", "not text"),
    ],
)
def test_a_malformed_line_is_reported_with_its_reason(line: str, why: str) -> None:
    problem = parse_line(line, "lemire.txt", 7)
    assert isinstance(problem, SyntaxProblem)
    assert why in problem.why
    assert str(problem).startswith("lemire.txt:7: ")
    str(problem).encode()  # so it can be printed
    assert len(str(problem)) < 250


def test_results_are_extracted_from_program_output() -> None:
    output = f"goos: linux\r\n{GOOD}\r\nBenchmarkCrash \nsome noise\nPASS\nok  \tcstr\t1.2s\n"
    sample, crash = results(output)
    assert sample == parse_line(GOOD)
    assert isinstance(crash, SyntaxProblem)
    assert crash.line == 3


word = st.text(
    st.characters(exclude_categories=["Z", "C"], exclude_characters="/="), min_size=1, max_size=8
)
unit = st.one_of(
    st.sampled_from(["ns/op", "B/op", "round", "n", "line", "file", "go", "k"]),
    st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8),
)
sample_parts = st.builds(
    Sample,
    name=word,
    n=st.integers(1, 10**18 - 1),
    metrics=st.dictionaries(unit, st.floats(0, 1e18), min_size=1, max_size=5),
    keys=st.dictionaries(st.one_of(st.sampled_from(["go", "k", "n", "round"]), word), word),
    procs=st.integers(1, 10**9 - 1),
)


def writable(sample: Sample) -> bool:
    """Whether the sample can be written: no unit looks like a number."""
    return isinstance(
        parse_line(f"BenchmarkX 1 {' '.join(f'1 {u}' for u in sample.metrics)}"), Sample
    )


samples = sample_parts.filter(writable)
# Samples whose units and keys clash neither with each other nor with other columns.
samples_apart = st.builds(
    lambda sample: replace(
        sample,
        metrics={f"{u}/op": value for u, value in sample.metrics.items()},
        keys={f"{k}-key": value for k, value in sample.keys.items()},
    ),
    samples,
)


@tried("a sample")
@given(samples)
def test_a_sample_round_trips_exactly(sample: Sample) -> None:
    assert parse_line(format_line(sample)) == sample


@pytest.mark.parametrize(
    "sample",
    [
        Sample("", 1, {"ns/op": 1.0}),
        Sample("two words", 1, {"ns/op": 1.0}),
        Sample("X/k=v", 1, {"ns/op": 1.0}),
        Sample("X", 0, {"ns/op": 1.0}),
        Sample("X", 1, {}),
        Sample("X", 1, {"ns/op": nan}),
        Sample("X", 1, {"ns per op": 1.0}),
        Sample("X", 1, {"ns/op": 1.0}, {"path": "a/b"}),
        Sample("X", 1, {"ns/op": 1.0}, {"k": "line\nbreak"}),
        Sample("X", 1, {"ns/op": 1.0}, procs=0),
    ],
    ids=str,
)
def test_an_unrepresentable_sample_is_not_written(sample: Sample) -> None:
    with pytest.raises(ValueError, match="cannot be written as a line"):
        format_line(sample)


# The frame.


def test_the_frame_has_a_row_per_sample_and_a_column_per_unit(tmp_path: Path) -> None:
    reading = read_text(
        tmp_path,
        "goos: linux\n"
        "Unit ns/op better=lower\n"
        "\n"
        "BenchmarkAllocateFree/go=1.27.4-2  100  60.61 ns/op  0 B/op\n"
        "BenchmarkAllocateAuto/go=1.20.14/gogc=off  200  650 ns/op  3 round\n"
        "PASS\n"
        "ok  \tgccost/cstr\t1.2s\n",
    )
    pd.testing.assert_frame_equal(
        reading.frame,
        pd.DataFrame(
            {
                "benchmark": ["AllocateFree", "AllocateAuto"],
                "go": ["1.27.4", "1.20.14"],
                "gogc": ["", "off"],
                "procs": [2, 1],
                "n": [100, 200],
                "ns/op": [60.61, 650.0],
                "B/op": [0.0, nan],
                "round": [nan, 3.0],
                "line": [4, 5],
            }
        ),
    )
    assert reading.config == {"goos": "linux"}
    assert reading.errors == []


@pytest.mark.parametrize("text", ["", "\n\n", "goos: linux\n", "PASS\n", "\ufeff"])
def test_a_file_without_results_gives_an_empty_frame(tmp_path: Path, text: str) -> None:
    frame = read_text(tmp_path, text).frame
    assert list(frame.columns) == ["benchmark", "procs", "n", "line"]
    assert frame.empty


# Faults; the good lines around them are kept.


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (GOOD.replace("60.61", "NaN"), "not between"),
        (GOOD[:-6] + GOOD, "is not a number"),  # an interrupted write, then the next one
        ("\x00\x00\x00\x00", "not text"),
        (b"caf\xe9 au lait", "not text"),
        (b"BenchmarkCaf\xe9 1 1 ns/op", "not text"),
        ("goos: plan9", "the file says goos: linux before this"),
    ],
)
def test_a_bad_line_is_reported_and_the_rest_is_used(
    tmp_path: Path, bad: str | bytes, why: str
) -> None:
    middle = bad if isinstance(bad, bytes) else bad.encode()
    good = GOOD.encode()
    reading = read_text(tmp_path, b"\n".join([b"goos: linux", good, middle, good, b""]))
    assert list(reading.frame["line"]) == [2, 4]
    [problem] = reading.errors
    assert (problem.file, problem.line) == (str(tmp_path / "lemire.txt"), 3)
    assert why in problem.why
    str(problem).encode()


def test_a_last_line_without_a_newline_is_reported_as_unfinished(tmp_path: Path) -> None:
    reading = read_text(tmp_path, f"{GOOD}\n{GOOD}")
    assert len(reading.frame) == 1
    assert told(reading) == [(2, "an unfinished line: its end is missing")]


def test_windows_line_ends_and_byte_order_marks_are_accepted(tmp_path: Path) -> None:
    reading = read_text(tmp_path, f"\ufeffgoos: windows\r\n{GOOD}\r\n\ufeff{GOOD}\r\n")
    assert list(reading.frame["line"]) == [2, 3]
    assert reading.config == {"goos": "windows"}
    assert reading.errors == []


def test_repeated_configuration_lines_are_accepted(tmp_path: Path) -> None:
    reading = read_text(tmp_path, "goos: linux\npkg: a\n\ngoos: linux\nGoos: x\na b: c\nd:e\n")
    assert reading.config == {"goos": "linux", "pkg": "a"}
    assert reading.errors == []


def test_a_file_that_cannot_be_opened_is_reported_with_the_fix(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(GccostError, match=r"cannot be read .*To fix it"):
            read(path)


# Arbitrary input.


@tried("a file")
@given(content=st.binary(max_size=400))
def test_arbitrary_bytes_do_not_crash_the_reader(tmp_path: Path, content: bytes) -> None:
    reading = read_text(tmp_path, content)
    for problem in reading.errors:
        str(problem).encode()


@tried("a line")
@given(text=st.text(max_size=40))
def test_arbitrary_text_does_not_crash_the_parser(text: str) -> None:
    found = parse_line(f"Benchmark{text}")
    assert isinstance(found, Sample | SyntaxProblem)
    if isinstance(found, Sample):
        assert all(0 <= value < inf for value in found.metrics.values())


garbage = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(lambda junk: b"BenchmarkJunk " + junk),
    st.sampled_from(
        [GOOD.replace("60.61", x).encode() for x in ("NaN", "-1", "inf", "1e99", "", "x", "1_0")]
    ),
).map(lambda junk: junk.replace(b"\n", b" "))


@tried("good lines among bad ones")
@given(lines=st.lists(st.one_of(samples_apart, garbage), max_size=12))
def test_good_lines_among_bad_ones_are_kept(tmp_path: Path, lines: list[Sample | bytes]) -> None:
    texts = [line if isinstance(line, bytes) else format_line(line).encode() for line in lines]
    frame = read_text(tmp_path, b"".join(text + b"\n" for text in texts)).frame
    rows = {row["line"]: row for row in frame.to_dict("records")}
    for number, line in enumerate(lines, 1):
        if isinstance(line, Sample):
            row = rows[number]
            assert (row["benchmark"], row["n"], row["procs"]) == (line.name, line.n, line.procs)
            for name in frame.columns[frame.columns.str.endswith("-key")]:
                assert row[name] == line.keys.get(name, "")
            for name in frame.columns[frame.columns.str.endswith("/op")]:
                assert row[name] == pytest.approx(line.metrics.get(name, nan), 0, 0, nan_ok=True)
