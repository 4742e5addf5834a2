"""Benchmark output from elsewhere as a frame: whatever benchstat reads, and `go test -json`."""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import json
import lzma
import math
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from gccost.cases import benchmarks
from gccost.costs import method, metrics
from gccost.costs.costs import METRIC, cost, is_signed, row
from gccost.costs.costs import frame as frame_of
from gccost.errors import GccostError
from gccost.run import schema
from gccost.run.benchfmt import Parser, Sample
from gccost.showing import benchtable
from gccost.showing.benchtable import Table
from gccost.showing.tables import printable

# A number in a key; "1.20" is a version, whose last digit counts.
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?([eE][+-]?\d+)?")
_NAME_ONE = "name a file with the output of go test -bench"
_OF_A_RUN = (
    "these are the samples of a run; their settings are keys, as programs print them. "
    'With the run\'s jobs.csv, gccost.open(study, run="{}") shows the run as it is judged'
)
_OTHERS = {  # what may be taken for results: a pattern, what it is, and what to do
    # Begins, after the time, with the names of its values as the first two of its strings.
    r"(?s)\A.{0,24}\n\x04\x08\x01\x10\x02": (
        "; it is a profile",
        "gccost explain shows what cleanup costs in a Go CPU profile",
    ),
    "\0": ("; it is UTF-16 or no text", "write it as UTF-8: iconv -f UTF-16 -t UTF-8"),
    r"(?m)^Benchmark (?>.*?\bMode\b).*\bScore\b": (
        "; it is a table of JMH",
        "write JMH's results as a file (-rf csv), which pandas.read_csv reads",
    ),
    r"(?m)^name +old |vs base": (
        "; it is a comparison by benchstat",
        "name the files that benchstat compared",
    ),
    "": ("", "it should have lines such as BenchmarkFree-8  1000000  60.6 ns/op"),
}
_RESULT = re.compile(r"Benchmark\S*\s+\d")
_HAS_RESULTS = re.compile(r"(?m)^Benchmark\S|Benchmark[^\s\\]{0,1000}+\s*+\\t")  # or their JSON
_LINE = re.compile(r"Benchmark\S*\s+\d|[a-z]+: |PASS\b|ok \s|FAIL|\?? *\t|---|===|\s*$")
_UNPACKED = 256 << 20  # bytes of a compressed file
_ZSTD = b"\x28\xb5\x2f\xfd"
_UNPACK: Mapping[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
_DAMAGED = (
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError),
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TOLD = 5  # lines that are left out, of a file
_PRINTED = ("ns/op", "B/op", "allocs/op", "op/s")  # of a plain command's results
_COLUMNS = ("variant", "benchmark", "procs", "operations")


def read(*sources: Any) -> pd.DataFrame:
    """Read the output of your own benchmarks: files, or the text itself.

    A source may also be a list of files or of lines, an open file, or bytes. A file compressed by
    gzip, bzip2 or xz is read, and a zip file with one text.

    Reads whatever benchstat reads, `go test -json`, and the samples.txt of a run. A row per
    result, in the columns of `samples`: variant (in words, if the program is one of ours),
    benchmark, a column for each key of the names (numbers if all of its values are), procs,
    operations, ns (ns/op), and other metrics with the unit in their name. Where several
    packages or files are read, `pkg` and `file` are columns, as is any other line of
    configuration that differs. Two things of the same name are spelled as in the file: the
    units p99-ns and p99-ns/op, a key /procs=4.

    frame.attrs["keys"] has what tells cases apart, as for benchstat: the file and GOMAXPROCS
    (procs) among them if there are several. `gccost.cost` refuses results of several cases. If the
    files repeat one measurement, drop their column: read(…).drop(columns="file"). benchstat shows
    medians; `gccost.cost` gives the lower quartile of times and rates. Lines that cannot be read
    are printed, and so are values that are not finite, and what the samples of a run lack;
    `gccost.open(study, run=folder)` has it. Columns `round` and `sitting` are those of a run
    (frame.attrs["of_a_run"]) or metrics and keys like others. What a finalizer
    takes and allocates counts in whichever benchmark runs when it is called, so run each benchmark
    in a process of its own: see chapter 8b.
    Raises GccostError if no file is named, or if one is missing or holds no result.
    """
    if not sources:
        raise GccostError("no file is named", "gccost.read", _NAME_ONE)
    table = Table()
    for source in sources:
        for each in _sources(source):
            _add(table, each)
    return _frame(table)


def frame(results: Iterable[Sample], ours: bool = False) -> pd.DataFrame:
    """Results as a frame, see `read`; with `ours` all are from this package's programs."""
    table = Table()
    table.add(results)
    return _frame(table, ours)


def _frame(table: Table, ours: bool = False) -> pd.DataFrame:
    cases = pd.DataFrame(table.cases)
    if cases.empty:
        return pd.DataFrame(columns=[*_COLUMNS, *metrics.REPORTED])
    values = table.frame()
    units = [name for name in map(str, values) if name.startswith(" ")]
    config, keys = [], []
    for name in map(str, cases):
        if name.startswith("/"):
            keys.append(name)
        elif name.endswith(":") and len(cases[name].drop_duplicates()) > 1:
            config.append(name)
    settings = config + keys
    names = _names(settings, units)
    for name in settings:
        cases[name] = _typed(cases[name])
    known = cases.reindex(columns=["gccost-format:", "pkg:"])
    packages = known["pkg:"].astype(str)
    mine = known["gccost-format:"].notna() | packages.str.startswith("gccost/") | ours
    words = cases["benchmark"].map(lambda name: benchmarks.of(name).variant)
    cases["variant"] = cases["benchmark"].mask(mine, words)
    whole = cases.take(values["case"].to_numpy()).reset_index(drop=True)
    columns = ["variant", "benchmark", *settings, *_COLUMNS[2:], *units]
    whole = whole.join(values)[columns].rename(columns=names)
    whole.attrs["of_a_run"] = bool(mine.all()) and " round" in units
    whole.attrs["keys"] = ["benchmark", *map(names.__getitem__, settings)]
    if len({*cases["procs"]}) > 1:
        whole.attrs["keys"].append("procs")
    return whole


def _names(settings: list[str], units: list[str]) -> dict[str, str]:
    """The columns of a frame by the names in its file; those that are there twice stay as there."""
    spelled = {}
    for setting in settings:
        spelled[setting] = setting.strip("/:")
    for unit in units:
        spelled[unit] = metrics.column(unit[1:])
    taken = Counter([*_COLUMNS, *spelled.values()])
    names = {}
    for raw, name in spelled.items():
        names[raw] = raw.strip() if taken[name] > 1 else name
    for name in _COLUMNS:
        names[f" {name}"] = f"{name} (unit)"
    return names


def costs(results: pd.DataFrame, metric: str = METRIC) -> pd.DataFrame:
    """The cost of each case of a frame that `read` gives: `gccost.cost` of each, all at once.

    Its index has the case's keys, its columns are those of `gccost.cost`.
    """
    groups = results.groupby(results.attrs["keys"], dropna=False, sort=False)
    if not _are_plain(results, metric):
        return pd.DataFrame(groups.apply(lambda samples: cost(samples, metric)))
    signed = is_signed(metric)
    column = "value" if signed else metric  # a column that is not known is a count
    values = results[metric].to_numpy(dtype=float)
    if metrics.scale(column) == "rate":
        values = 1 / values
    sitting = np.ones(len(results))
    index = pd.MultiIndex.from_arrays([groups.ngroup(), sitting], names=method.SITTING)
    rounds = pd.Series(values, index)
    scatters = method.scatter(rounds, column, moderated=False)
    rows: list[Any] = []
    for level in method.levels(rounds, column, scatters).itertuples(index=False, name=None):
        n = int(level[-1])
        figure = method.of_levels({1.0: method.Level(*level)}, column, n)
        estimate = method.estimate(figure, signed=signed)
        rows.append([*row(estimate).values(), "", "", figure])
    return frame_of(rows, groups.size().index)


def _are_plain(results: pd.DataFrame, metric: str) -> bool:
    """Whether the samples are of no run, and all have a value that its scale can have."""
    values = results.get(metric)
    if results.attrs["of_a_run"] or values is None or not is_numeric_dtype(values):
        return False
    known = values.to_numpy(dtype=float, na_value=math.nan)
    if not np.isfinite(known).all():
        return False
    return is_signed(metric) or bool((known > 0).all())


def in_columns(printed: str) -> str:
    """What a plain command printed, without the metrics that it does not need."""
    lines = []
    for line in filter(None, printed.splitlines()):
        name, *fields = line.split("\t")
        if any(field.endswith(" ns/op") for field in fields):  # a trace may follow the name
            fields = [f for f in fields if f.strip().isdigit() or f.split()[-1] in _PRINTED]
        lines.append("\t".join([name, *fields]))
    return printable("".join(f"{line}\n" for line in lines))


def _sources(source: Any) -> Iterator[str | Path | bytes]:
    """The files or texts of a source, which may be a list of files, a list of lines, or open."""
    if hasattr(source, "read"):
        source = source.read()
        yield source if isinstance(source, bytes) or "\n" in source else f"{source}\n"
    elif isinstance(source, str | Path | bytes):
        yield source
    elif isinstance(source, dict | pd.DataFrame | pd.Series) or not isinstance(source, Iterable):
        why = f"a {type(source).__name__} is neither a file nor a text"
        raise GccostError(why, "gccost.read", _NAME_ONE)
    else:
        yield from _of_list(list(source))


def _of_list(parts: list[Any]) -> Iterator[str | Path | bytes]:
    if not parts:
        raise GccostError("the list is empty", "gccost.read", _NAME_ONE)
    texts = all(isinstance(each, str) for each in parts)
    if texts and (any(map(_RESULT.match, parts)) or all(map(_LINE.match, parts))):
        yield "\n".join([*parts, ""])  # the lines that a shell command printed
        return
    for each in parts:
        yield from _sources(each)


def _add(table: Table, source: str | Path | bytes) -> None:
    """Add the results of a file, or of a text."""
    place, text = _text_of(source)
    if not text or text.isspace():
        raise GccostError("it is empty", place, _NAME_ONE)
    text = _printed(text)
    parser = Parser(place, measured=False)
    before = len(table.cases)
    samples = _parsed(text, parser, table)
    if len(table.cases) == before:
        raise _without_results(text, parser)
    for problem in parser.errors[:_TOLD]:
        print(f"{problem} (left out)")
    not_finite = _not_finite(samples)
    for line, unit, value in not_finite[:_TOLD]:
        print(f"{place}:{line}: {unit} is {value} (kept; gccost.cost leaves it out)")
    if more := len(not_finite[_TOLD:]):
        print(f"{place}: {more} more values are not finite")
    if more := len(parser.errors[_TOLD:]):
        print(f"{place}: {more} more lines are left out")
    if "gccost-format:" in table.cases[before]:
        folder = Path(place).parent
        print(f"{place}: {_OF_A_RUN.format(folder)}")


def _without_results(text: str, parser: Parser) -> GccostError:
    """What is said of a text without results."""
    what, hint = next(said for has, said in _OTHERS.items() if re.search(has, text))
    if parser.errors and not what:
        first = parser.errors[0]
        what = f"; line {first.line}: {first.why}"
    return GccostError(f"it holds no result of a benchmark{what}", parser.file, hint)


def _text_of(source: str | Path | bytes) -> tuple[str, str]:
    """Where a text is, and it."""
    place = "the text"
    if isinstance(source, bytes):
        return place, _decoded(source, place)
    name = str(source)
    if "\n" in name or _RESULT.match(name) or not name.strip():
        return place, name
    return name, _decoded(_bytes(name), name)


def _parsed(text: str, parser: Parser, table: Table) -> dict[int, Sample]:
    """Add the results of a text; gives those that were read one by one, by line."""
    samples: dict[int, Sample] = {}
    at = 0
    for begin, end in benchtable.runs(text):
        if at < begin:
            samples |= _one_by_one(text[at : begin - 1], parser, table)
        run = text[begin:end]
        if read := table.add_run(run, parser.config, parser.file):
            parser.line += read
        else:
            samples |= _one_by_one(run[:-1], parser, table)
        at = end
    if at < len(text):
        samples |= _one_by_one(text[at:], parser, table)
    return samples


def _one_by_one(text: str, parser: Parser, table: Table) -> dict[int, Sample]:
    samples = parser.read(text)
    table.add(samples.values(), parser.file)
    return samples


def _not_finite(samples: Mapping[int, Sample]) -> list[tuple[int, str, float]]:
    """The values that are NaN or infinite, with their line and unit."""
    found = []
    for line, sample in samples.items():
        for unit, value in sample.metrics.items():
            if not math.isfinite(value):
                found.append((line, unit, value))
    return found


def _bytes(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:  # a name can hold a zero byte
        why = f"it cannot be read: {getattr(error, 'strerror', error)}"
        raise GccostError(why, schema.printable(name, 200), _NAME_ONE) from None


def _decoded(data: bytes, place: str) -> str:
    """The text of a file, which may be compressed, or UTF-16, which PowerShell writes."""
    data = _of_zip(data, place) if data.startswith(b"PK\x03\x04") else _inflated(data, place)
    return _text(data)


def _text(data: bytes) -> str:
    wide = data.startswith(_WIDE)
    return data.decode("utf-16" if wide else "utf-8", errors="replace")


def _inflated(data: bytes, place: str) -> bytes:
    """The content of a file that one compressor has packed, or of one that is not compressed."""
    if data.startswith(_ZSTD):
        try:
            data = importlib.import_module("compression.zstd").decompress(data)  # Python 3.14
        except ModuleNotFoundError:
            hint = f"unpack it: zstd -d {place}"
            raise GccostError("it is compressed by zstd", place, hint) from None
    for begins, opened in _UNPACK.items():
        if data.startswith(begins):
            with _unpacking(place), opened(io.BytesIO(data)) as file:
                data = file.read(_UNPACKED + 1)
    _check_size(len(data), place)
    return data


def _of_zip(data: bytes, place: str) -> bytes:
    """The only text in a zip file, as in the artifacts of GitHub."""
    texts = {}
    with _unpacking(place), zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [each for each in archive.infolist() if not each.is_dir()]
        _check_size(sum(each.file_size for each in files), place)
        for each in files:
            content = _inflated(archive.read(each), place)
            if _HAS_RESULTS.search(_text(content)):
                texts[each.filename] = content
    if len(texts) == 1:
        return next(iter(texts.values()))
    names = ", ".join(schema.printable(name, 60) for name in [*texts][:_TOLD])
    what = f"{len(texts)} texts: {names}" if texts else "no output of a benchmark"
    hint = "unpack it, and name the files: gccost.read(file, file)"
    raise GccostError(f"it is a zip file with {what}", place, hint)


@contextmanager
def _unpacking(place: str) -> Iterator[None]:
    try:
        yield
    except GccostError:
        raise
    except _DAMAGED as error:
        why = f"it is compressed, and cannot be unpacked: {schema.printable(str(error), 100)}"
        raise GccostError(why, place, "copy it again, or unpack it first") from None


def _check_size(size: int, place: str) -> None:
    if size > _UNPACKED:
        why = f"it unpacks to more than {_UNPACKED >> 20} MiB"
        raise GccostError(why, place, "unpack it first")


def _printed(text: str) -> str:
    """What the programs printed, if a text is the output of `go test -json`."""
    if '"' not in text or '"Action":' not in text:
        return text
    printed = defaultdict[str, list[str]](list)  # by package: they run at the same time
    for line in text.splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
            package, output = event.get("Package", ""), event.get("Output", "")
            printed[package].append(output + "")
        except (ValueError, AttributeError, TypeError, RecursionError):
            printed[""].append(f"{line}\n")  # what go itself says
    text = ""
    for package, output in printed.items():
        text += f"pkg: {package}\n{''.join(output)}\n"
    return text.removesuffix("\n")


def _typed(column: pd.Series) -> pd.Series:
    """Numbers if all values are, otherwise text."""
    known = column.dropna()
    if not known.map(lambda value: bool(_NUMBER.fullmatch(value))).all():
        return column
    whole = known.str.fullmatch(r"-?\d{1,18}").all()
    return pd.to_numeric(column).astype("Int64" if whole else float)
