"""Progress of downloads, builds and measurements: in a terminal a bar, in a log lines."""

from __future__ import annotations

import io
import re
import sys

import pytest
from faketools import FakeTools

from gccost.progress import MEASURING, PrintedProgress
from gccost.showing import progress

CALLS = [  # at these seconds
    (0, (0, 4, "building a", "programs")),
    (1, (1, 4, "building b", "programs")),
    (29.9, (2, 4, "building c", "programs")),
    (30, (2, 4, "building c", "programs")),
    (50, (0, 480, "round 1: a", MEASURING)),
    (61, (9.6, 480, "round 1: b", MEASURING)),
    (120, (480, 480, "done", MEASURING)),
]


def test_a_log_gets_a_line_at_once_and_then_one_every_30_seconds(capsys):
    times = iter([at for at, _ in CALLS])
    printed = PrintedProgress("measuring: ", clock=lambda: next(times))
    for _, given in CALLS:
        printed(*given)
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d measuring: ", line) for line in lines)
    assert [line.partition(": ")[2] for line in lines] == [
        "building a (0 of 4 programs)",
        "building c (2 of 4 programs, about 30 s left)",
        "round 1: b (10 of 480 s of measuring)",
        "done (480 of 480 s of measuring)",
    ]


def test_a_terminal_gets_one_line_that_moves(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.bar("measuring") as shown:
        for _, given in CALLS:
            shown(*given)
    text = written.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert "measuring:  50 %|" in text
    assert "2 of 4 programs, " in text
    last = text.rstrip().rpartition("\r")[2]
    assert re.fullmatch(r"measuring: 100 %\|[#█]+\| 480 of about 480 s of measuring, done", last)


@pytest.mark.slow
def test_measuring_says_at_once_what_it_builds(tools: FakeTools):
    done = tools.gccost("measure")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    shape = r"\d\d:\d\d:\d\d measuring: .+ \(\d+ of \d+ (programs|s of measuring)(, about .+)?\)"
    assert all(re.fullmatch(shape, line) for line in lines)
    assert "measuring: building cstr on Go " in lines[0]
    assert lines[0].endswith("(0 of 3 programs)")
