"""`gccost.read` reads what benchstat reads, and never merges what differs."""

from __future__ import annotations

import json

import pytest
import recordings
from pandas import NA
from pandas.api.types import is_numeric_dtype

import gccost
from gccost import paths
from gccost.errors import GccostError
from gccost.run import benchfmt

TWO = """goos: linux
pkg: example.org/one
BenchmarkPlain-8 \t 100 \t 60 ns/op
PASS
pkg: example.org/two
BenchmarkPlain-8 \t 100 \t 70 ns/op
"""
OWN = """goos: linux
pkg: gccost/cstr
BenchmarkMine/size=8-4   1000000   60.5 ns/op   3.5 furlongs/op   8 B/op   1 allocs/op
BenchmarkAllocateFree-4   20000000   55.1 ns/op
PASS
"""
LINE = "BenchmarkMine-8 100 60 ns/op\n"
SAID = [  # the packages run at the same time
    ("one", "BenchmarkMine-8   \t"),
    ("two", "BenchmarkMine-8   \t"),
    ("one", "     100\t        60.5 ns/op\n"),
    ("two", "     100\t        70.5 ns/op\n"),
]
JSON = "go: downloading example.org\n" + "".join(
    json.dumps({"Action": "output", "Package": package, "Output": text}) + "\n"
    for package, text in SAID
)
READ: list[tuple[str, dict[str, list[object]]]] = [
    (OWN, {"variant": ["Mine", "manual free"], "ns": [60.5, 55.1], "procs": [4, 4]}),
    (OWN.replace("\n", "\r\n"), {"furlongs_per_op": [3.5, NA], "size": [8, NA]}),
    (TWO, {"pkg": ["example.org/one", "example.org/two"], "variant": ["Plain", "Plain"]}),
    (TWO.replace("example.org/one", "gccost/finalization"), {"variant": ["plain", "Plain"]}),
    (
        "BenchmarkMine/procs=3-8 1 5 ns/op 7 p99-ns 8 p99-ns/op 9 procs\n",
        {"ns": [5], "p99-ns": [7], "p99-ns/op": [8], "/procs": [3], "procs": [8]}
        | {"procs (unit)": [9]},
    ),
    (JSON, {"pkg": ["one", "two"], "ns": [60.5, 70.5]}),
    (  # configuration holds until it is changed
        f"commit: abc\npkg: one\n{LINE}commit: def\n{LINE}pkg: two\n{LINE}",
        {"commit": ["abc", "def", "def"], "pkg": ["one", "one", "two"]},
    ),
    (  # what benchstat reads
        "commit: abc\nUnit ns/op better=lower\n"
        "BenchmarkBase64/std/size=8/fast-8   100  -1.5 delta  NaN rate  1e30 B/s\n"
        "commit:\nBenchmarkMine 100  2 ns/op\n",
        {"benchmark": ["Base64/std/fast", "Mine"], "delta": [-1.5, NA], "commit": ["abc", NA]}
        | {"size": [8, NA], "B_per_s": [1e30, NA]},
    ),
]


@pytest.mark.parametrize(("text", "columns"), READ)
def test_what_is_read(tmp_path, text, columns):
    path = tmp_path / "bench.txt"
    path.write_bytes(text.encode())
    for frame in (gccost.read(path), gccost.read(text)):
        assert frame.columns.is_unique
        assert "goos" not in frame  # it is the same for all
        read_columns = {
            name: frame[name].astype(object).where(frame[name].notna(), NA) for name in columns
        }
        assert {name: list(values) for name, values in read_columns.items()} == columns


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ("8 64", [8, 64]),
        ("0.5 1e3", [0.5, 1000]),
        ("8 max", None),
        ("1KB 2KB", None),
        ("off 100", None),
        ("1.9 1.20", None),  # versions
        ("007 8", None),
    ],
)
def test_a_key_is_a_number_if_all_its_values_are(values, numbers):
    lines = (f"BenchmarkMine/size={value}-8 1 5 ns/op\n" for value in values.split())
    frame = gccost.read("".join(lines))
    assert is_numeric_dtype(frame["size"]) == bool(numbers)
    assert list(frame["size"]) == (numbers or values.split())


def test_the_samples_of_a_run_are_read_with_all_keys_and_what_they_lack_is_told(tmp_path, capsys):
    run = recordings.record(tmp_path, rounds=3)
    run.samples_txt.write_text(f"gccost-format: 4\n{run.samples_txt.read_text()}")
    samples = benchfmt.read(run.samples_txt).samples.values()
    frame = gccost.read(run.samples_txt)
    assert len(frame) == len(samples)
    assert {key for sample in samples for key in sample.keys} <= {*frame}
    assert "manual free" in set(frame.variant)
    printed = capsys.readouterr().out
    assert "the samples of a run" in printed
    # The folder is none of the known runs.
    assert f'gccost.open(study, run="{run.folder}")' in printed
    opened = gccost.open("lemire", run=str(run.folder))
    assert opened.run == run.name
    assert len(opened.samples()) <= len(frame)


def test_lines_that_are_left_out_are_told(capsys):
    text = f"BenchmarkMine\n{LINE}BenchmarkMine-8 100 1 ns/op 2 ns/op\nBenchmarkMine-8 100 cut"
    assert len(gccost.read(text)) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in printed] == ["the text:3", "the text:4"]
    assert "the unit ns/op is there twice" in printed[0]
    gccost.read(f"BenchmarkSplit-2 \t\n  5\t  6 ns/op\n{LINE}")
    assert capsys.readouterr().out.startswith("the text:1: it is not a name")
    gccost.read(LINE + "BenchmarkX cut\n" * 9)
    assert capsys.readouterr().out.endswith("4 more lines are left out\n")


@pytest.mark.parametrize(
    ("lines", "cases"),
    [  # go test -cpu 1,2; sub-benchmarks that end in a number, with GOMAXPROCS=1
        ("BenchmarkServe 1 82 ns/op\nBenchmarkServe-2 1 150 ns/op\n", [82, 150]),
        ("BenchmarkAlloc/b-10 1 14 ns/op\nBenchmarkAlloc/b-100 1 44 ns/op\n", [14, 44]),
    ],
)
def test_what_follows_a_name_tells_cases_apart(lines, cases):
    frame = gccost.read(lines)
    costs = frame.groupby(frame.attrs["keys"]).apply(gccost.cost)
    assert list(costs["value"]) == pytest.approx(cases)
    with pytest.raises(GccostError, match="several values of procs"):
        gccost.cost(frame)


@pytest.mark.parametrize(
    "prefix", ["2024-05-01T10:00:01Z ", "// ", "    ", "> ", "x_test.go:12: ", "| ", "\x1b[1m"]
)
def test_a_result_with_something_before_it_is_named(prefix, capsys):
    line = f"{prefix}BenchmarkX-4 \t 100 \t 60 ns/op\n"
    shown = prefix.strip().replace("\x1b", "\\x1b") or "white space"
    why = f"remove what stands before the result: {shown}"
    with pytest.raises(GccostError) as raised:
        gccost.read(line)
    assert raised.value.message.endswith(f"line 1: {why}")
    assert len(gccost.read(LINE + line)) == 1
    assert capsys.readouterr().out.startswith(f"the text:2: {why}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Benchmark  Mode Cnt Score Error Units\nA.b avgt 5 52.1 ± 0.5 ns/op\n", "JMH"),
        ("name   old time/op  new time/op  delta\nX-4  60ns  50ns  -16%\n", "benchstat"),
        (LINE.encode("utf-16-le").decode(), "UTF-16"),
    ],
)
def test_what_is_taken_for_results_is_named(text, what):
    with pytest.raises(GccostError, match=what):
        gccost.read(text)


def test_hidden_characters_of_other_files_are_escaped(tmp_path):
    frame = gccost.read(f"note: \x1b[1m\n{LINE}note: \u202eb\nBenchmark\u200b\u00ad 1 5 ns/op\n")
    assert list(frame.benchmark) == ["Mine", "\\u200b\\xad"]
    assert list(frame.note) == ["\\x1b[1m", "\\u202eb"]
    with pytest.raises(GccostError, match="more than 100,000 characters"):
        gccost.read(f"Benchmark{'x' * 1_000_000} 1 5 ns/op\n")
    with pytest.raises(GccostError, match=r"a\\x00b: it cannot be read"):
        gccost.read("a\0b")


def test_configuration_named_like_our_columns_is_told_apart():
    given = [f"{name}: {n}" for n, name in enumerate(("variant", "procs", "ns", "round", "file"))]
    other = [f"{each}0" for each in given]
    frame = gccost.read("\n".join([*given, LINE.strip(), *other, LINE]))
    assert frame.columns.is_unique
    assert list(frame["ns/op"]) == [60, 60]
    assert list(frame["ns:"]) == [2, 20]


def test_a_file_of_powershell_is_read(tmp_path):
    path = tmp_path / "bench.txt"
    path.write_bytes(LINE.encode("utf-16"))
    assert list(gccost.read(path).ns) == [60]


@pytest.mark.parametrize("content", [b"", b"nothing here\n", b"\xff\xfe\x00 Benchmark", None])
def test_a_file_that_is_no_benchmark_is_named(tmp_path, content):
    path = tmp_path / "bench.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(GccostError) as raised:
        gccost.read(path)
    assert raised.value.location == str(path)
    assert raised.value.hint


@pytest.mark.parametrize("sources", [(), ('{"Action":"start","Package":"one"}\n',)])
def test_nothing_to_read_is_an_error(sources):
    with pytest.raises(GccostError) as raised:
        gccost.read(*sources)
    assert raised.value.hint


@pytest.mark.parametrize("other", [f"pkg: two\n{LINE}", "BenchmarkMine/size=9-8 100 70 ns/op\n"])
def test_a_cost_of_two_cases_that_were_read_is_refused(other):
    frame = gccost.read(f"pkg: one\n{LINE}{other}")
    with pytest.raises(GccostError, match="the samples have several values of"):
        gccost.cost(frame)
    costs = frame.groupby(frame.attrs["keys"], dropna=False).apply(gccost.cost)
    assert list(costs["n"]) == [1, 1]


def test_two_files_are_two_cases_unless_their_column_is_dropped(tmp_path):
    files = [tmp_path / name for name in ("old.txt", "new.txt")]
    for file in files:
        file.write_text(LINE)
    frame = gccost.read(*files)
    costs = frame.groupby(frame.attrs["keys"], dropna=False).apply(gccost.cost)
    assert costs["n"].to_dict() == {("Mine", str(file)): 1 for file in sorted(files)}
    with pytest.raises(GccostError, match="several values of file"):
        gccost.cost(frame)
    assert gccost.cost(frame.drop(columns="file"))["n"] == 2


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
    assert "\n0.201× (" in capsys.readouterr().out


def test_what_the_go_command_and_a_linker_say_is_no_key(tmp_path):
    said = "go: downloading golang.org/x/sys v0.1.0\nld: warning: object file is newer\n"
    for name, before in (("old.txt", said), ("new.txt", "")):
        (tmp_path / name).write_text(f"goos: linux\n{before}BenchmarkX-2 100 60.6 ns/op\n" * 3)
    frame = gccost.read(tmp_path / "old.txt", tmp_path / "new.txt")
    assert frame.attrs["keys"] == ["benchmark", "file"]
    assert not {"go", "ld"} & {*frame}
