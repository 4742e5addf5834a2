"""Reading and writing the Go benchmark format."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import tried
from hypothesis import given
from hypothesis import strategies as st

from gccost.errors import GccostError
from gccost.run.benchfmt import Sample, format_line, implausible, parse, read

GOOD = "BenchmarkAllocateFree/go=1.27.4/gogc=100/setting=default\t1600000\t60.61 ns/op\t3 round"


def one(line: str) -> Sample:
    """The only sample of a text without a fault."""
    reading = parse(line)
    assert not reading.errors
    [sample] = reading.samples.values()
    return sample


@pytest.fixture
def reading(tmp_path):
    """A function that reads a file with this text."""

    def reading(text: str | bytes):
        path = tmp_path / "lemire.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path)

    return reading


def test_a_parsed_line_can_be_extended_and_written():
    own = one("BenchmarkAllocateAuto-2 \t 1600000\t      1100 ns/op\t       8 B/op\n")
    assert own == Sample("AllocateAuto", 1_600_000, {"ns/op": 1100.0, "B/op": 8.0}, procs=2)
    extended = replace(own, keys={**own.keys, "go": "1.27.4"}).with_metrics({"round": 3.0})
    assert format_line(extended) == (
        "BenchmarkAllocateAuto/go=1.27.4-2\t1600000\t1100 ns/op\t8 B/op\t3 round"
    )
    sample = one("BenchmarkSign/P256/k=a=b/empty=/=odd/k=c-8 5 1 ns/op")
    assert sample == Sample("Sign/P256/=odd/k=c", 5, {"ns/op": 1.0}, {"k": "a=b", "empty": ""}, 8)


@pytest.mark.parametrize("end", ["published-2", "x-0", "2024-01", "-"])
@pytest.mark.parametrize("procs", [1, 166])
def test_a_name_suffix_is_not_mistaken_for_procs(end, procs):
    sample = Sample("X", 1, {"ns/op": 1.0}, {"setting": end}, procs)
    assert one(format_line(sample)) == sample


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Benchmark 1 2 ns/op", "no name"),
        ("BenchmarkX", "it is not a name, a count of iterations, and values with units"),
        ("BenchmarkX 100 60.6 ns/op 3", "it is not a name"),
        ("BenchmarkX 100 60.6 62.4", "a number is where a unit should be: 62.4"),
        ("BenchmarkX 100 1_5 ns/op", "the value is not a number: 1_5"),
        ("BenchmarkX 100 -1 ns/op", "not between 0 and 1e+18: -1"),
        ("BenchmarkX 100 NaN ns/op", "not between 0 and 1e+18: nan"),
        ("BenchmarkX 1 1 ns/op 2 ns/op", "the unit ns/op is there twice"),
        ("BenchmarkX 1e6 1 ns/op", "count of iterations is not a whole number from 1: 1e6"),
        (f"BenchmarkX {'9' * 5000} 1 ns/op", "count of iterations is not a whole number"),
        ("BenchmarkX 0 1 ns/op", "the count of iterations is 0"),
        ("BenchmarkZeroNs 100", "it has no value"),
        ("Benchmark\x00X 1 1 ns/op", "not text"),
        ("\x00\x00\x00", "not text"),
        (GOOD[:-6] + GOOD, "a number is where a unit should be: 1600000"),  # an interrupted write
    ],
)
def test_a_bad_line_is_reported_and_the_rest_is_used(line, why):
    found = parse(f"goos: linux\r\n{GOOD}\r\n{line}\nPASS\n\n\ufeff{GOOD}", "lemire.txt")
    assert found.samples == {2: one(GOOD), 6: one(GOOD)}
    [problem] = found.errors
    assert why in problem.why
    assert str(problem).startswith("lemire.txt:3: ")
    assert len(str(problem).encode()) < 250  # so it can be printed


@pytest.mark.parametrize(
    ("n", "metrics", "plausible"),
    [
        (36, {"ns/op": 100e9}, True),  # an hour
        (37, {"ns/op": 100e9}, False),
        (1, {"ns/op": 3600e9}, True),
        (1, {"ns/op": 3601e9}, False),
        (1, {"ns/op": 100, "elapsed-s": 3600}, True),
        (1, {"ns/op": 100, "elapsed-s": 3601}, False),
        (1, {"ns/op": 0.1}, True),
        (1, {"ns/op": 0.09}, False),
        (1, {"ns/op": 100, "round": 0}, False),
        (1, {"ns/op": 100, "round": 1.5}, False),
        (1, {"ns/op": 100, "c-allocated": 3, "c-freed": 2, "c-unfreed-loop": 1}, True),
        (1, {"ns/op": 100, "c-allocated": 3, "c-freed": 3, "c-unfreed-loop": 1}, False),
        (1, {"ns/op": 100, "c-unfreed-drained": 1}, False),
        (1, {"ns/op": 100, "c-misfreed": 1}, False),
    ],
)
def test_what_no_measurement_can_be_is_rejected(n, metrics, plausible):
    sample = Sample("X", n, {"round": 1.0, **metrics})
    assert (implausible(sample) == "") == plausible


def test_a_loop_may_leave_fewer_blocks_than_it_found():
    assert one("BenchmarkX 100 1 ns/op -3 c-unfreed-loop").metrics["c-unfreed-loop"] == -3
    assert parse("BenchmarkX 100 1 ns/op -2e18 c-unfreed-loop").errors


def test_what_others_measured_may_be_any_number_and_has_its_configuration():
    text = f"pkg: a\nBenchmarkX\ncpu:\n{GOOD.replace('60.61', '-Inf')}\n"
    found = parse(text, measured=False)
    assert not found.errors  # -v announces a benchmark
    assert found.samples[4].metrics["ns/op"] == -float("inf")
    assert found.samples[4].config == {"pkg": "a", "cpu": None}


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
).filter(lambda s: not parse(f"BenchmarkX 1 1 {' 1 '.join(s.metrics)}").errors)
garbage = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=40).map(lambda text: f"Benchmark{text}".encode()),
    st.sampled_from([GOOD.replace("60.61", x).encode() for x in ("-1", "inf", "1e99", "", "1_0")]),
).map(lambda junk: junk.replace(b"\n", b" "))


@tried(100)
@given(lines=st.lists(samples | garbage, max_size=8))
def test_written_samples_among_arbitrary_lines_are_read_as_they_were(reading, lines):
    texts = [line if isinstance(line, bytes) else format_line(line).encode() for line in lines]
    contents = reading(b"".join(text + b"\n" for text in texts))
    for number, line in enumerate(lines, 1):
        if isinstance(line, Sample):
            assert contents.samples[number] == line
    assert all(str(problem).encode() for problem in contents.errors)


@pytest.mark.parametrize("text", ["", "goos: linux\n", "\ufeff"])
def test_a_file_without_results_has_no_samples(reading, text):
    assert (dict(reading(text).samples), reading(text).errors) == ({}, [])


def test_an_unfinished_line_is_reported(reading):
    contents = reading(f"goos: linux\n{GOOD}\n{GOOD}")
    assert [*contents.samples] == [2]
    assert [(each.line, each.why) for each in contents.errors] == [
        (3, "an unfinished line: its end is missing")
    ]


def test_a_file_that_cannot_be_opened_is_reported_with_the_fix(tmp_path):
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(GccostError, match=r"cannot be read .*To fix it"):
            read(path)
