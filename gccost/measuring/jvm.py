"""What the process of a JVM used, and how often it collected."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_PAUSE = re.compile(r"\bPause\b.*?([\d.]+)ms\s*$", re.MULTILINE)
_CYCLE = re.compile(r"\bGC\((\d+)\)")


def used(before: resource.struct_rusage, after: resource.struct_rusage) -> dict[str, float]:
    """The resource usage between two readings: CPU seconds and page faults."""
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt
    used = {"user-s": user, "sys-s": system, "cpu-s": user + system, "faults": faults}
    return {unit: round(float(value), 6) for unit, value in used.items()}


def collections(log: Path) -> dict[str, float]:
    """The number of collections and their total pause (s), from the JVM's log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    paused = sum(map(float, _PAUSE.findall(text)))
    return {
        "gc-cycles": float(len(set(_CYCLE.findall(text)))),
        "gc-pause-s": round(paused / 1000, 6),
    }
