"""Parse the lines that GODEBUG=gctrace=1 makes a Go program write per GC cycle.

    gc 7 @0.034s 1%: 0.18+0.39+0.27 ms clock, 0.18+0.56/2.2/0+0.27 ms cpu, 4->4->0 MB, …, 48 P

From Go 1.18 on the sizes of stacks and globals follow the goal. The line of a cycle that
the program requested ends in "(forced)". Stderr may have other lines too: those of the
scavenger and truncated cycles are skipped, and all others are returned as foreign.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from gccost.errors import GccostError

_NUMBER = r"\d+(?:\.\d+)?"
_CYCLE = re.compile(
    rf"gc (?P<number>\d+) @(?P<at>{_NUMBER})s (?P<percent>\d+)%: "
    rf"(?P<clock>{_NUMBER}\+{_NUMBER}\+{_NUMBER}) ms clock, "
    rf"(?P<cpu>{_NUMBER}\+{_NUMBER}/{_NUMBER}/{_NUMBER}\+{_NUMBER}) ms cpu, "
    r"(?P<start>\d+)->\d+->(?P<live>\d+) MB, (?P<goal>\d+) MB goal, "
    r"(?:\d+ MB stacks, \d+ MB globals, )?"
    r"\d+ P(?P<forced> \(forced\))?"
)
_BEGINS = re.compile(r"gc \d+ @\d")
_SCAVENGER = re.compile(r"scvg-?\d*: |scav \d+ ")
# With GOGC=off the goal is about 1e13 MB, larger than any heap.
_UNBOUNDED_MB = 10**9
MEGABYTE = 2**20


class Cycle(NamedTuple):
    """One GC cycle, in the units of its line: s, ms, MB (of 2**20 bytes)."""

    number: int
    at: float  # since the program's start
    percent: int  # the GC's share of the time of all Ps since then, by the runtime
    stopped_ms: float  # of the clock, with the world stopped
    clock_ms: float  # from its start to its end
    cpu_ms: float  # without marking on idle Ps
    start_mb: int
    live_mb: int
    goal_mb: float  # infinite if the heap is unlimited
    forced: bool


VALUES = Cycle._fields
values = Cycle._asdict  # a cycle as a row of a frame


@dataclass(frozen=True)
class Trace:
    """The GC cycles and the foreign lines of a program's stderr."""

    cycles: tuple[Cycle, ...]
    foreign: tuple[str, ...]


def read(path: Path) -> Trace:
    """Parse a run's gzipped gctrace file. Raises GccostError if it cannot be read."""
    try:
        text = gzip.decompress(path.read_bytes() or b"\0").decode(errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise GccostError(
            f"this gctrace cannot be read: {reason}",
            str(path),
            "remove the file; the next measuring makes another",
        ) from None
    return parse(text)


def parse(text: str) -> Trace:
    """Parse a program's stderr."""
    cycles: list[Cycle] = []
    foreign: list[str] = []
    for line in text.splitlines():
        beginning = _BEGINS.search(line)
        if beginning is None:
            if line.strip() and not _SCAVENGER.match(line):
                foreign.append(line)
            continue
        if match := _CYCLE.match(line, beginning.start()):
            cycles.append(_cycle(match))
            # Text without its own newline shares the line.
            for part in (line[: match.start()], line[match.end() :]):
                if part.strip():
                    foreign.append(part)
    return Trace(tuple(cycles), tuple(foreign))


def metrics(trace: Trace) -> dict[str, float]:
    """A process's metrics by its trace, in the units of the benchmark format.

    gctrace-cycles      cycles that the program did not request
    gctrace-share       the GC's share (0 to 1) of all Ps' time, by the last of these
    gctrace-cpu-ns      the GC's CPU time, without idle marking
    gctrace-live-bytes  the median live heap after a cycle, in whole MB
    gctrace-goal-bytes  the median heap goal of a cycle, in whole MB
    """
    cycles = [cycle for cycle in trace.cycles if not cycle.forced]
    by_unit = {"gctrace-cycles": float(len(cycles))}
    if cycles:
        by_unit["gctrace-share"] = cycles[-1].percent / 100
        by_unit["gctrace-cpu-ns"] = round(1e6 * sum(c.cpu_ms for c in cycles))
        by_unit["gctrace-live-bytes"] = median(c.live_mb for c in cycles) * MEGABYTE
    if bounded := [c.goal_mb for c in cycles if math.isfinite(c.goal_mb)]:
        by_unit["gctrace-goal-bytes"] = median(bounded) * MEGABYTE
    return by_unit


def share_of_time(cycles: Sequence[Cycle], name: str) -> float:
    """The share (0 to 1) of the clock's time that goes to a value (ms) of each cycle.

    It is the mean of these cycles, times the cycles a second from the first to the last. Some
    may be missing in between. NaN for less than two.
    """
    first, last = cycles[0], cycles[-1]
    seconds = last.at - first.at
    if not seconds:
        return math.nan
    per_second = (last.number - first.number) / seconds
    mean = fmean(getattr(cycle, name) for cycle in cycles)
    return per_second * mean / 1000


def _cycle(match: re.Match[str]) -> Cycle:
    # The world is stopped before and after marking.
    before, marking, after = map(float, match["clock"].split("+"))
    # Sweep termination; marking by assists, in the background, on idle Ps; mark termination.
    cpu = [float(part) for part in re.split(r"[+/]", match["cpu"])]
    goal = float(match["goal"])
    return Cycle(
        number=int(match["number"]),
        at=float(match["at"]),
        percent=int(match["percent"]),
        stopped_ms=before + after,
        clock_ms=before + marking + after,
        cpu_ms=math.fsum(cpu) - cpu[3],
        start_mb=int(match["start"]),
        live_mb=int(match["live"]),
        goal_mb=goal if goal < _UNBOUNDED_MB else math.inf,
        forced=match["forced"] is not None,
    )
