"""Reading what a Go program writes on each GC cycle with GODEBUG=gctrace=1.

    gc 7 @0.034s 1%: 0.18+0.39+0.27 ms clock, 0.18+0.56/2.2/0+0.27 ms cpu, 4->4->0 MB, …, 48 P

From Go 1.18 on the sizes of stacks and globals follow the goal; a cycle that
the program asked for ends in "(forced)". The lines share stderr with whatever else
is written there: those of the scavenger and lines of a cycle that are cut short are
skipped, all else is foreign and kept.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from gccost.errors import GccostError

_NUMBER = r"\d+(?:\.\d+)?"
_CYCLE = re.compile(
    rf"gc (?P<number>\d+) @(?P<at>{_NUMBER})s (?P<percent>\d+)%: "
    rf"{_NUMBER}\+{_NUMBER}\+{_NUMBER} ms clock, "
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


@dataclass(frozen=True, slots=True)
class Cycle:
    """One GC cycle, in the units of its line: s, ms, MB (of 2**20 bytes)."""

    number: int
    at: float  # since the program's start
    percent: int  # of the time of all Ps since then, as the runtime counts it
    cpu: tuple[float, ...]  # sweep termination; marking: assists, background, idle; termination
    start_mb: int
    live_mb: int
    goal_mb: float  # infinite where nothing limits the heap
    forced: bool

    @property
    def cpu_ms(self) -> float:
        """CPU time without what was done on Ps that had nothing else to do."""
        return sum(self.cpu) - self.cpu[3]


@dataclass(frozen=True)
class Trace:
    """What a program's stderr holds: the cycles, and the lines of other origin."""

    cycles: tuple[Cycle, ...]
    foreign: tuple[str, ...]

    @property
    def own(self) -> tuple[Cycle, ...]:
        """The cycles that the program did not ask for."""
        return tuple(cycle for cycle in self.cycles if not cycle.forced)


def read(path: Path) -> Trace:
    """The cycles in a gzipped file that a run kept; GccostError if it cannot be read."""
    try:
        text = gzip.decompress(path.read_bytes()).decode(errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise GccostError(
            f"this gctrace cannot be read: {why}",
            str(path),
            "remove the file; the next measuring makes another",
        ) from None
    return parse(text)


def parse(text: str) -> Trace:
    """The cycles in what a program wrote."""
    cycles: list[Cycle] = []
    foreign: list[str] = []
    for line in text.splitlines():
        begins = _BEGINS.search(line)
        if begins is None:
            foreign += [line] if line.strip() and not _SCAVENGER.match(line) else []
        elif found := _CYCLE.match(line, begins.start()):
            cycles.append(_cycle(found))
            # What wrote no newline of its own shares the line.
            around = (line[: found.start()], line[found.end() :])
            foreign += [part for part in around if part.strip()]
    return Trace(tuple(cycles), tuple(foreign))


def metrics(trace: Trace) -> dict[str, float]:
    """What a trace says of a whole process, in the units of the benchmark format.

    gctrace-cycles      cycles that the program did not ask for
    gctrace-share       the GC's share (0 to 1) by the last of these: of all Ps' time
    gctrace-cpu-ns      the GC's CPU time by its lines, idle marking left out
    gctrace-live-bytes  live heap after a cycle, its median in whole MB
    gctrace-goal-bytes  the goal of a cycle's heap, its median in whole MB
    """
    own = trace.own
    found = {"gctrace-cycles": float(len(own))}
    if own:
        found["gctrace-share"] = own[-1].percent / 100
        found["gctrace-cpu-ns"] = round(1e6 * sum(c.cpu_ms for c in own))
        found["gctrace-live-bytes"] = median(c.live_mb for c in own) * MEGABYTE
    if bounded := [c.goal_mb for c in own if math.isfinite(c.goal_mb)]:
        found["gctrace-goal-bytes"] = median(bounded) * MEGABYTE
    return found


def _cycle(found: re.Match[str]) -> Cycle:
    goal = int(found["goal"])
    return Cycle(
        number=int(found["number"]),
        at=float(found["at"]),
        percent=int(found["percent"]),
        cpu=tuple(map(float, re.split(r"[+/]", found["cpu"]))),
        start_mb=int(found["start"]),
        live_mb=int(found["live"]),
        goal_mb=float(goal) if goal < _UNBOUNDED_MB else math.inf,
        forced=found["forced"] is not None,
    )
