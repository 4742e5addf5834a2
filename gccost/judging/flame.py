"""The frames of a flame graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gccost.measuring.profiles import Profile


@dataclass(frozen=True)
class Frame:
    """A function on a stack; `left` and `width` are shares of the whole time (0 to 1).

    `path` holds the functions from the outermost to this one.
    """

    path: tuple[str, ...]
    left: float
    width: float


def frames(profiles: Iterable[Profile], depth: int, least: float) -> list[Frame]:
    """The frames of all profiles, merged, the most expensive callee first.

    Frames deeper than `depth` or with a share below `least` are omitted.
    """
    times: Counter[tuple[str, ...]] = Counter()
    for stack, time in (entry for profile in profiles for entry in profile.stacks):
        times.update({stack[:end]: time for end in range(min(len(stack), depth) + 1)})
    whole = times.pop((), 0)
    edges: dict[tuple[str, ...], float] = {(): 0.0}  # the left edge of a frame's next callee
    found = []
    for path in sorted(times, key=lambda path: (len(path), -times[path], path)):
        if times[path] >= least * whole > 0:
            left, width = edges[path[:-1]], times[path] / whole
            edges[path[:-1]], edges[path] = left + width, left
            found.append(Frame(path, left, width))
    return sorted(found, key=lambda frame: (frame.left, len(frame.path)))
