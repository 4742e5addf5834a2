"""`gccost.read` reads what benchstat reads, and never merges what differs."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import json
import lzma
import math
import sys
import zipfile

import pandas as pd
import pytest
import recordings
from click.testing import CliRunner
from pandas import NA
from pandas.api.types import is_numeric_dtype

import gccost
from gccost import cli, paths
from gccost.errors import GccostError
from gccost.run import benchfmt
from gccost.showing import reading

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
        (paths.ROOT / "docs/examples/intern.pb.gz", "it is a profile"),
    ],
)
def test_what_is_taken_for_results_is_named(text, what):
    with pytest.raises(GccostError, match=what):
        gccost.read(text)


def test_a_file_that_is_named_twice_is_refused(tmp_path):
    path = tmp_path / "bench.txt"
    path.write_text(LINE)
    linked = tmp_path / "linked.txt"
    linked.symlink_to(path)
    for names in ([path, path], [path, linked]):
        done = CliRunner().invoke(cli.main, ["read", *map(str, names)])
        assert done.exit_code == 2
        assert "a file is named twice: its results would count twice" in done.output
    path.write_text(LINE * 3)
    assert CliRunner().invoke(cli.main, ["read", str(path)]).exit_code == 0


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


def zipped(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:  # stored, as by some tools
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


SIX = "".join(f"BenchmarkFree-8 \t 100 \t {ns} ns/op\n" for ns in (61, 59, 60, 62, 58, 60)).encode()
ZSTD = b"\x28\xb5\x2f\xfd" + bytes(20)


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(SIX),
        bz2.compress(SIX),
        lzma.compress(SIX),
        zipped(bench=SIX),
        zipped(bench=SIX, profile=bytes(99), readme=b"no results"),
        zipped(bench=gzip.compress(SIX)),
        zipped(bench=SIX.decode().encode("utf-16")),
        gzip.compress(SIX.decode().encode("utf-16")),
    ],
)
def test_a_compressed_file_with_one_text_is_read(content, tmp_path):
    path = tmp_path / "bench"
    path.write_bytes(content)
    assert list(gccost.read(path).ns) == list(gccost.read(SIX).ns)


@pytest.mark.parametrize(
    ("content", "what", "hint"),
    [
        (zipped(old=SIX, new=SIX), "a zip file with 2 texts: old, new", "name the files"),
        (zipped(a=b"x"), "a zip file with no output of a benchmark", "unpack it"),
        (zipped(a=SIX)[:60], "cannot be unpacked", "unpack it first"),
        (gzip.compress(SIX)[:-9], "cannot be unpacked", "unpack it first"),
        (gzip.compress(bytes(3 << 20)), "unpacks to more than 2 MiB", "unpack it first"),
        (zipped(a=gzip.compress(bytes(3 << 20))), "more than 2 MiB", "unpack it first"),
        (zipped(a=bytes(3 << 20)), "more than 2 MiB", "unpack it first"),
    ],
)
def test_a_compressed_file_that_cannot_be_read_is_named(content, what, hint, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_UNPACKED", 2 << 20)
    path = tmp_path / "bench"
    path.write_bytes(content)
    with pytest.raises(GccostError) as raised:
        gccost.read(path)
    assert what in raised.value.message
    assert hint in raised.value.hint
    assert raised.value.location == str(path)


@pytest.mark.parametrize("content", [ZSTD, zipped(bench=ZSTD)])
def test_a_file_of_zstd_is_named_where_python_cannot_read_it(content, tmp_path, monkeypatch):
    """Python reads zstd since 3.14; here it does not."""
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    path = tmp_path / "bench.txt.zst"
    path.write_bytes(content)
    with pytest.raises(GccostError) as raised:
        gccost.read(path)
    assert raised.value.message == "it is compressed by zstd"
    assert raised.value.hint == f"unpack it: zstd -d {path}"


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python reads zstd since 3.14")
def test_a_file_of_zstd_is_read_where_python_can(tmp_path):
    path = tmp_path / "bench.txt.zst"
    path.write_bytes(importlib.import_module("compression.zstd").compress(SIX))
    assert list(gccost.read(path).ns) == list(gccost.read(SIX).ns)


def test_lists_and_open_files_are_read(tmp_path):
    files = [tmp_path / name for name in ("old.txt", "new.txt")]
    for file in files:
        file.write_bytes(SIX)
    both = gccost.read(*files)
    for sources in (files, tuple(map(str, files)), iter(files)):
        pd.testing.assert_frame_equal(gccost.read(sources), both)
    lines = SIX.decode().split("\n")
    one = gccost.read(SIX.decode())
    for source in (lines, ["goos: linux", *lines, "PASS"], SIX, io.StringIO(SIX.decode())):
        pd.testing.assert_frame_equal(gccost.read(source), one)
    for mode in ("r", "rb"):
        with files[0].open(mode) as file:
            pd.testing.assert_frame_equal(gccost.read(file), one)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ([], "the list is empty"),
        (None, "a NoneType is neither"),
        (5, "a int is neither"),
        ({"a": 1}, "a dict is neither"),
        (pd.DataFrame(), "a DataFrame is neither"),
        ([5], "a int is neither"),
        (b"", "it is empty"),
        (io.StringIO(""), "it is empty"),
        (["PASS", "ok  \tpkg\t1.2s"], "it holds no result"),
        (["missing.txt"], "cannot be read"),
    ],
)
def test_what_is_neither_a_file_nor_a_text_is_named(source, what):
    with pytest.raises(GccostError, match=what):
        gccost.read(source)


@pytest.mark.parametrize("name", ["round", "sitting"])
@pytest.mark.parametrize("kind", ["unit", "key"])
def test_metrics_and_keys_named_like_ours_change_no_cost(name, kind):
    plain = "".join(f"BenchmarkAgree-8 1 {100 + i} ns/op\n" for i in range(8))
    if kind == "unit":
        text = plain.replace("ns/op", f"ns/op 3 {name}", 4).replace("op\n", f"op 4 {name}\n")
    else:
        text = (
            plain.replace("Agree-8", f"Agree/{name}=1-8") + f"BenchmarkAgree/{name}=2-8 1 5 ns/op\n"
        )
    frame = gccost.read(text)
    frame = frame[frame["ns"] > 5]
    wanted, cost = gccost.cost(gccost.read(plain)), gccost.cost(frame)
    assert cost["rounds"] == 8
    assert list(cost[:5]) == list(wanted[:5])
    assert name in frame


def test_the_rounds_of_a_run_that_was_read_are_used(tmp_path):
    run = recordings.record(tmp_path, rounds=3)
    run.samples_txt.write_text(f"gccost-format: 4\n{run.samples_txt.read_text()}")
    frame = gccost.read(run.samples_txt)
    assert frame.attrs["of_a_run"]
    one = frame[frame.benchmark == "AllocateFree"]
    one = one.groupby([*frame.attrs["keys"]], dropna=False).apply(gccost.cost).iloc[0]
    assert one["rounds"] == 3


def test_values_that_are_not_finite_are_kept_and_told(capsys):
    values = [100, 101, "NaN", "+Inf", 104, 105, "-Inf"]
    text = "".join(f"BenchmarkX-8 1 {value} ns/op\n" for value in values)
    frame = gccost.read(text)
    assert len(frame) == 7
    assert math.isinf(frame["ns"][3])
    told = capsys.readouterr().out.splitlines()
    assert told == [
        f"the text:{line}: ns/op is {value} (kept; gccost.cost leaves it out)"
        for line, value in ((3, "nan"), (4, "inf"), (7, "-inf"))
    ]
    cost = gccost.cost(frame)
    assert cost["n"] == 4
    assert cost["value"] == gccost.cost(frame[frame["ns"].between(100, 105)])["value"]
    assert "ns: 3 of 7 values are NaN or infinite, and are left out" in capsys.readouterr().out
    gccost.read("BenchmarkX-8 1 NaN ns/op\n" * 9)
    assert capsys.readouterr().out.endswith("the text: 4 more values are not finite\n")


def test_what_the_go_command_and_a_linker_say_is_no_key(tmp_path):
    said = "go: downloading golang.org/x/sys v0.1.0\nld: warning: object file is newer\n"
    for name, before in (("old.txt", said), ("new.txt", "")):
        (tmp_path / name).write_text(f"goos: linux\n{before}BenchmarkX-2 100 60.6 ns/op\n" * 3)
    frame = gccost.read(tmp_path / "old.txt", tmp_path / "new.txt")
    assert frame.attrs["keys"] == ["benchmark", "file"]
    assert not {"go", "ld"} & {*frame}
