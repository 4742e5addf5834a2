"""Reading and writing the Go benchmark format."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import tried
from hypothesis import given
from hypothesis import strategies as st

from gccost.errors import GccostError
from gccost.measuring.benchfmt import Sample, SyntaxProblem, format_line, parse_line, read, results

GOOD = "BenchmarkAllocateFree/go=1.27.4/gogc=100/setting=default\t1600000\t60.61 ns/op\t3 round"


@pytest.fixture
def reading(tmp_path):
    """A function that reads a file with this text."""

    def reading(text: str | bytes):
        path = tmp_path / "lemire.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path)

    return reading


# Single lines.


def test_a_parsed_line_can_be_extended_and_written():
    own = parse_line("BenchmarkAllocateAuto-2 \t 1600000\t      1100 ns/op\t       8 B/op\n")
    assert own == Sample("AllocateAuto", 1_600_000, {"ns/op": 1100.0, "B/op": 8.0}, procs=2)
    extended = replace(own.with_keys({"go": "1.27.4"}), procs=1).with_metrics({"round": 3.0})
    assert format_line(extended) == (
        "BenchmarkAllocateAuto/go=1.27.4\t1600000\t1100 ns/op\t8 B/op\t3 round"
    )
    sample = parse_line("BenchmarkSign/P256/k=a=b/empty=/=odd-8 5 1 ns/op")
    assert sample == Sample("Sign/P256/=odd", 5, {"ns/op": 1.0}, {"k": "a=b", "empty": ""}, 8)


@pytest.mark.parametrize("end", ["published-2", "x-0", "2024-01", "-"])
@pytest.mark.parametrize("procs", [1, 166])
def test_a_name_suffix_is_not_mistaken_for_procs(end, procs):
    sample = Sample("X", 1, {"ns/op": 1.0}, {"setting": end}, procs)
    assert parse_line(format_line(sample)) == sample


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Benchmark 1 2 ns/op", "no name"),
        ("BenchmarkX", "it is not a name, a count of iterations, and values with units"),
        ("BenchmarkX 100", "it is not a name"),
        ("BenchmarkX 100 60.6 ns/op 3", "it is not a name"),
        ("BenchmarkX 100 60.6 62.4", "a number is where a unit should be: 62.4"),
        ("BenchmarkX 100 1_5 ns/op", "the value is not a number: 1_5"),
        ("BenchmarkX 100 -1 ns/op", "not between 0 and 1e+18: -1"),
        ("BenchmarkX 100 1.1e18 ns/op", "not between 0 and 1e+18: 1.1e18"),
        ("BenchmarkX 1 1 ns/op 2 ns/op", "the unit ns/op is there twice"),
        ("BenchmarkX/k=1/k=2 1 1 ns/op", "the key k is there twice"),
        ("BenchmarkX 1e6 1 ns/op", "count of iterations is not a whole number from 1: 1e6"),
        (f"BenchmarkX {'9' * 5000} 1 ns/op", "count of iterations is not a whole number"),
        ("BenchmarkX 0 1 ns/op", "not a whole number from 1: 0"),
        ("Benchmark\x00X 1 1 ns/op", "not text"),
    ],
)
def test_a_malformed_line_is_reported_with_its_reason(line, why):
    problem = parse_line(line, "lemire.txt", 7)
    assert isinstance(problem, SyntaxProblem)
    assert why in problem.why
    assert str(problem).startswith("lemire.txt:7: ")
    assert len(str(problem).encode()) < 250  # so it can be printed


def test_results_are_extracted_from_program_output():
    output = f"goos: linux\r\n{GOOD}\r\nBenchmarkCrash \nsome noise\nPASS\nok  \tcstr\t1.2s\n"
    sample, crash = results(output)
    assert sample == parse_line(GOOD)
    assert isinstance(crash, SyntaxProblem)
    assert crash.line == 3


word = st.text(
    st.characters(exclude_categories=["Z", "C"], exclude_characters="/="), min_size=1, max_size=8
)
unit = st.sampled_from(["ns/op", "B/op", "round", "n", "line", "go", "k"]) | st.text(
    st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=8
)
# Samples that can be written: no unit looks like a number.
samples = st.builds(
    Sample,
    name=word,
    n=st.integers(1, 10**18 - 1),
    metrics=st.dictionaries(unit, st.floats(0, 1e18), min_size=1, max_size=5),
    keys=st.dictionaries(st.sampled_from(["go", "k", "n", "round"]) | word, word),
    procs=st.integers(1, 10**9 - 1),
).filter(lambda s: isinstance(parse_line(f"BenchmarkX 1 1 {' 1 '.join(s.metrics)}"), Sample))


@tried(100)
@given(samples)
def test_a_sample_round_trips_exactly(sample):
    assert parse_line(format_line(sample)) == sample


# Files.


def test_a_file_has_its_samples_by_line(reading):
    contents = reading(
        "\ufeffgoos: linux\r\n"
        "Unit ns/op better=lower\n"
        "\n"
        "goos: linux\n"
        "BenchmarkAllocateFree/go=1.27.4-2  100  60.61 ns/op  0 B/op\r\n"
        "\ufeffBenchmarkAllocateAuto/go=1.20.14/gogc=off  200  650 ns/op  3 round\n"
        "PASS\n"
        "ok  \tgccost/cstr\t1.2s\n",
    )
    assert contents.samples == {
        5: Sample("AllocateFree", 100, {"ns/op": 60.61, "B/op": 0.0}, {"go": "1.27.4"}, 2),
        6: Sample(
            "AllocateAuto",
            200,
            {"ns/op": 650.0, "round": 3.0},
            {"go": "1.20.14", "gogc": "off"},
        ),
    }
    assert contents.errors == []


@pytest.mark.parametrize("text", ["", "goos: linux\n", "\ufeff"])
def test_a_file_without_results_has_no_samples(reading, text):
    assert not reading(text).samples


# Faults; the good lines around them are kept.


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (GOOD.replace("60.61", "NaN").encode() + b"\n", "not between"),
        (GOOD[:-6].encode() + GOOD.encode() + b"\n", "is not a number"),  # an interrupted write
        (b"\x00\x00\x00\x00\n", "not text"),
        (b"BenchmarkCaf\xe9 1 1 ns/op\n", "not text"),
        (GOOD.encode(), "an unfinished line: its end is missing"),
    ],
)
def test_a_bad_line_is_reported_and_the_rest_is_used(reading, tmp_path, bad, why):
    contents = reading(f"goos: linux\n{GOOD}\n".encode() + bad)
    assert list(contents.samples) == [2]
    [problem] = contents.errors
    assert (problem.file, problem.line) == (str(tmp_path / "lemire.txt"), 3)
    assert why in problem.why


def test_a_file_that_cannot_be_opened_is_reported_with_the_fix(tmp_path):
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(GccostError, match=r"cannot be read .*To fix it"):
            read(path)


garbage = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(lambda text: f"Benchmark{text}".encode()),
    st.sampled_from([GOOD.replace("60.61", x).encode() for x in ("-1", "inf", "1e99", "", "1_0")]),
).map(lambda junk: junk.replace(b"\n", b" "))


@tried(60)
@given(lines=st.lists(samples | garbage, max_size=8))
def test_good_lines_among_arbitrary_ones_are_kept(reading, lines):
    texts = [line if isinstance(line, bytes) else format_line(line).encode() for line in lines]
    contents = reading(b"".join(text + b"\n" for text in texts))
    for number, line in enumerate(lines, 1):
        if isinstance(line, Sample):
            assert contents.samples[number] == line
    assert all(str(problem).encode() for problem in contents.errors)
