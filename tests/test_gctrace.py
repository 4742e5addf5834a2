"""Parsing gctrace lines of every release, and other lines on stderr."""

from __future__ import annotations

import math

import pytest

from gccost import paths
from gccost.cases import published
from gccost.run import gctrace

# Lines that these releases printed.
GO_1_9 = (
    "gc 1 @0.021s 0%: 0.15+0.37+0.25 ms clock, 3.0+0.19/0.39/0.60+5.0 ms cpu, "
    "4->4->0 MB, 5 MB goal, 48 P"
)
GO_1_16 = (
    "gc 12 @1.204s 2%: 0.040+1.3+0.003 ms clock, 0.16+0.11/0.52/0.83+0.014 ms cpu, "
    "5->6->2 MB, 6 MB goal, 4 P"
)
GO_1_27 = (
    "gc 5 @0.084s 4%: 0.25+3.1+0.033 ms clock, 0.51+0.23/0.20/0.7+0.067 ms cpu, "
    "3->3->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P"
)
OFF = (
    "gc 1 @0.000s 7%: 0.073+0.11+0.20 ms clock, 0.14+0/0.036/0.048+0.41 ms cpu, "
    "0->0->0 MB, 17592186044415 MB goal, 2 P (forced)"
)
SCAVENGER = (
    "scvg0: inuse: 3, idle: 60, sys: 63, released: 0, consumed: 63 (MB)",
    "scav 2 KiB work, 7216 KiB total, 89% util",
)


@pytest.mark.parametrize(
    ("line", "number", "at", "percent", "sizes", "goal"),
    [
        (GO_1_9, 1, 0.021, 0, (4, 0), 5),
        (GO_1_16, 12, 1.204, 2, (5, 2), 6),
        (GO_1_27, 5, 0.084, 4, (3, 1), 4),
        (OFF, 1, 0, 7, (0, 0), math.inf),
    ],
    ids=["1.9", "1.16", "1.27", "off"],
)
def test_lines_of_every_release_are_parsed(line, number, at, percent, sizes, goal):
    trace = gctrace.parse("\n".join([*SCAVENGER, line, *SCAVENGER]))
    (cycle,) = trace.cycles
    assert (cycle.number, cycle.at, cycle.percent) == (number, at, percent)
    assert (cycle.start_mb, cycle.live_mb) == sizes
    assert (cycle.goal_mb, cycle.forced) == (goal, line == OFF)
    assert trace.foreign == ()
    for end in range(len("gc 1 @0"), len(line) - 1):  # a truncated line never gives a wrong cycle
        for cut in gctrace.parse(line[:end]).cycles:
            assert (cut.number, cut.goal_mb) == (number, goal)
            assert " P" in line[:end]


def test_foreign_lines_are_separated_from_cycles():
    text = ("listening", "half a line" + GO_1_9, GO_1_27 + "panic: lost", "", "gc 9 of 10 done")
    trace = gctrace.parse("\n".join(text))
    assert [cycle.number for cycle in trace.cycles] == [1, 5]
    assert list(trace.foreign) == ["listening", "half a line", "panic: lost", "gc 9 of 10 done"]


def test_the_metrics_omit_forced_cycles_and_idle_marking():
    forced = GO_1_27.replace("gc 5", "gc 4") + " (forced)"
    metrics = gctrace.metrics(gctrace.parse("\n".join([forced, GO_1_27, GO_1_16])))
    assert metrics["gctrace-cycles"] == 2
    assert metrics["gctrace-share"] == 0.02
    assert metrics["gctrace-goal-bytes"] == 5 * 2**20
    assert metrics["gctrace-live-bytes"] == 1.5 * 2**20
    cpu = 0.51 + 0.23 + 0.20 + 0.067 + 0.16 + 0.11 + 0.52 + 0.014
    assert metrics["gctrace-cpu-ns"] == pytest.approx(1e6 * cpu)
    assert gctrace.metrics(gctrace.parse(OFF)) == {"gctrace-cycles": 0.0}


def test_the_published_gctrace_is_parsed():
    trace = gctrace.parse((paths.PUBLISHED / "cloudflare-gctrace.txt").read_text())
    assert trace.foreign == ()
    assert [cycle.number for cycle in trace.cycles] == [*range(1, 18), 6789, 6790]
    assert (trace.cycles[-1].at, trace.cycles[-1].percent) == (10.0, 12)


def test_the_published_share_with_the_world_stopped_is_that_of_the_published_lines():
    cycles = gctrace.parse((paths.PUBLISHED / "cloudflare-gctrace.txt").read_text()).cycles
    value = published.by_name("claims", ["X53"])["X53"]["value"]
    assert gctrace.share_of_time(cycles, "stopped_ms") == pytest.approx(value, abs=0.0005)


def test_a_share_of_time_spans_the_cycles_between_the_lines():
    begun, ended = (GO_1_9.replace("gc 1 @0.021s", each) for each in ("gc 1 @1.0s", "gc 11 @2.0s"))
    cycles = gctrace.parse(f"{begun}\n{ended}").cycles
    assert gctrace.share_of_time(cycles, "stopped_ms") == pytest.approx(10 * 0.00040)
    assert gctrace.share_of_time(cycles, "clock_ms") == pytest.approx(10 * 0.00077)
    assert math.isnan(gctrace.share_of_time(cycles[:1], "clock_ms"))
