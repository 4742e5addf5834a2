"""Large files are read in columns, as line by line; and no line takes more than its length."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import gccost
from gccost import paths
from gccost.costs.costs import VALUES
from gccost.costs.method import Figure
from gccost.errors import GccostError
from gccost.showing import benchtable, reading

PLAIN = "".join(
    f"BenchmarkMine{n % 7}/size={2 ** (n % 5)}-{1 + n % 3}\t{n + 1}\t{60 + n / 7} ns/op\t{n} B/op\n"
    for n in range(200)
)
# Lines within results, and what no tokenizer reads as the format's definition does.
AMONG = [
    "",
    "pkg: example.org/one\nPASS\nok  \tpkg\t1.2s\n",
    "cpu: one\n\n",
    "BenchmarkMine1/size=2-4\t5\t1.5 ns/op\n",  # other units
    "BenchmarkMine1/size=x\t5\t1e+06 ns/op\t1 B/op\n",  # a key that is no number
    "BenchmarkMine1 +5 1.5 ns/op 1 B/op\n",
    "BenchmarkMine1 0 1.5 ns/op 1 B/op\n",
    "BenchmarkMine1 1e3 1.5 ns/op 1 B/op\n",
    "BenchmarkMine1 1000000000000000000 1.5 ns/op 1 B/op\n",
    "BenchmarkMine1 7 1_5 ns/op 1 B/op\n",
    "BenchmarkMine1 7 0x1p3 ns/op 1 B/op\n",
    "BenchmarkMine1 7 NaN ns/op 1 B/op\n",
    "BenchmarkMine1 7 +Inf ns/op 1 B/op\n",
    "BenchmarkMine1 7 -0 ns/op +1 B/op\n",
    "BenchmarkMine1 7 1.5 ns/op 1 ns/op\n",
    "BenchmarkMine1 7 1.5 ns/op 1\n",
    "BenchmarkMine1 7 1.5 ns/op\n",
    "BenchmarkMine1 7\n",
    "BenchmarkMine1\n",
    "Benchmark 7 1.5 ns/op 1 B/op\n",
    'BenchmarkMine1 7 1.5 "ns/op" 1 B/op\n',
    "  BenchmarkMine1 7 1.5 ns/op 1 B/op\n",
    "BenchmarkMine1 7 1.5 ns/op 1 B/op \n",
    "BenchmarkMine1 7 1.5 ns/op 1 B/op\r\n",
    "BenchmarkMine1 7 1.5 ns/op 1 B/op\x01\n",
    "BenchmarkMüller 7 1.5 ns/op 1 B/op\n",
    f"BenchmarkMine1 7 1.5 ns/op{' ' * 100_000}1 B/op\n",
    "round: 5\nBenchmarkMine1 7 1.5 ns/op 1 B/op 5 round\n",
]


@pytest.mark.parametrize("among", AMONG)
@pytest.mark.parametrize("after", [PLAIN, "BenchmarkLast 1 2 ns/op"])
def test_lines_are_read_together_as_one_by_one(among, after, monkeypatch, capsys):
    text = f"goos: linux\n{PLAIN}{among}{after}"
    found = {}
    for long in (1, 1 << 30):
        monkeypatch.setattr(benchtable, "LONG", long)
        monkeypatch.setattr(benchtable, "_BLOCK", 1000)
        found[long] = gccost.read(text), capsys.readouterr().out
    (together, said), (apart, said_apart) = found.values()
    pd.testing.assert_frame_equal(together, apart, check_exact=True)
    assert together.attrs == apart.attrs
    assert said == said_apart


def test_lines_of_the_same_units_are_tokenized(monkeypatch):
    monkeypatch.setattr(benchtable, "LONG", 1)
    monkeypatch.setattr(reading, "_one_by_one", None)
    assert len(gccost.read(PLAIN)) == 200


def test_numbers_are_read_exactly(monkeypatch):
    chance = random.Random(3)
    texts = [repr(chance.random() * 10 ** chance.randint(-30, 30)) for _ in range(2000)]
    texts += [f"{chance.lognormvariate(5, 5):.4g}" for _ in range(2000)]
    texts += ["0." + "".join(chance.choices("0123456789", k=30)) for _ in range(2000)]
    monkeypatch.setattr(benchtable, "LONG", 1)
    read = gccost.read("".join(f"BenchmarkOne 1 {text} ns/op\n" for text in texts))
    assert list(read.ns) == [*map(float, texts)]


def test_a_recorded_run_is_read_together_as_one_by_one(monkeypatch, capsys):
    run = min(paths.reference().glob("*/samples.txt"), key=lambda path: path.stat().st_size)
    monkeypatch.setattr(benchtable, "LONG", 1 << 30)
    apart = gccost.read(run)
    monkeypatch.setattr(benchtable, "LONG", 1)
    pd.testing.assert_frame_equal(gccost.read(run), apart, check_exact=True)


def parts(figure: Figure) -> str:
    """What a figure has; NaN is equal to itself in words."""
    return str([figure.sittings, figure.n, figure.alone, figure.shared, figure.run])


def results(values: list[float], unit: str, times: int = 1) -> str:
    lines = (
        f"BenchmarkOne/case={case} 10 {value * (1 + case)} {unit}\n"
        for case in range(4)
        for value in values[: len(values) - case * times]
    )
    return "".join(lines)


@pytest.mark.parametrize("unit", ["ns/op", "p99-ns", "op/s", "B/op", "peak-rss-bytes", "furlongs"])
@pytest.mark.parametrize("values", [[5.0, 6, 5.5, 7, 9, 4.5], [3.0, 3], [1.0, 0, 2], [1.0, -1, 2]])
def test_costs_at_once_are_those_of_each_case(unit, values, capsys):
    read = gccost.read(results(values, unit))
    column = read.columns[-1]
    apart = read.groupby(read.attrs["keys"], dropna=False, sort=False).apply(
        lambda samples: gccost.cost(samples, column)
    )
    said = capsys.readouterr().out
    together = reading.costs(read, column)
    assert capsys.readouterr().out == said
    pd.testing.assert_frame_equal(
        together[VALUES].astype(float), apart[VALUES].astype(float), check_exact=True
    )
    assert [*map(parts, together["figure"])] == [*map(parts, apart["figure"])]
    assert list(together.columns) == list(apart.columns)


def test_costs_of_what_is_not_finite_or_of_a_run_are_those_of_each_case(capsys):
    read = gccost.read(results([5.0, np.nan, 6, 7], "ns/op"))
    assert reading.costs(read)["n"].tolist() == [3, 2, 1, 1]
    with pytest.raises(GccostError, match="no column 'nss'"):
        reading.costs(read, "nss")


LINES: dict[str, Callable[[int], str]] = {
    "bars": lambda n: "Benchmark" + "|" * n,
    "bars after a word": lambda n: "x Benchmark " + "| " * (n // 2),
    "numbers between bars": lambda n: "x Benchmark 1|1|" + "1|" * (n // 2),
    "a name of numbers": lambda n: "x " + "Benchmark|1" * (n // 11),
    "results": lambda n: "x " + "Benchmark 1 " * (n // 12),
    "JMH's words": lambda n: "Benchmark " + "Mode " * (n // 5),
    "one word": lambda n: "x Benchmark" * (n // 11),
    "JSON": lambda n: '"Action":' + "[" * n,
    "spaces": lambda n: "ab: " + " " * n + "x",
    "keys": lambda n: "a:" * (n // 2),
    "units": lambda n: "BenchmarkX 1" + " 1 u" * (n // 4),
    "unseen characters": lambda n: "\x01" * n,
}


def seconds(text: str) -> float:
    """The CPU time of reading a text without results: the least of three."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        with pytest.raises(GccostError):
            gccost.read(text)
        spent.append(time.process_time() - began)
    return min(spent)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_takes_time_by_its_length(line):
    """A quadratic pattern would take 256 times as long for 16 times the length."""
    short, long = (seconds(line(size) + "\n") for size in (1 << 13, 1 << 17))
    assert long < 64 * max(short, 1e-3)
