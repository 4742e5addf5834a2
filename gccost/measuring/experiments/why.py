"""Why: what a call costs by where its object lies, and in which programs that matters."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.measuring.experiments.base import RECORD, Arm, Case, Experiment
from gccost.measuring.toolchains import (
    CLEANUP_GO,
    DOCUMENT_GO,
    GO_RELEASES,
    ISSUE_GO,
    OLDEST_DRIVER,
    TODAY_GO,
    number,
)

ORDERS = ("ascending", "shuffled", "descending")
# The sizes of objects whose spans are one page, in bytes.
BYTES = (8, 16, 32, 48, 64, 128, 256, 512)
_BETWEEN = (32, 128, 256)  # which the quick budget leaves out
SMALL = 8  # bytes of the handles of the documents
CACHED = 16  # bytes of objects the records of whose span fit into a first-level cache
APART = 48  # bytes of a handle that shares no span with what AddCleanup allocates
DUMMIES = (0, 1, 2, 3)
LIVE = (10_000, 100_000, 1_000_000, 10_000_000)
IN_USE = (0, 100_000, 1_000_000)
OTHERS = (0, 1, 3, 9, 31)
# How many live where a claim is judged, and how many objects a handle is mixed with.
MANY, MIXED = 1_000_000, 9
POOL = 100_000

_REGISTERED = 200_000
_LARGER = 100_000  # where a walk is short
_SCATTERED = 10_000
_LOOPED = 800_000
_PROGRAM = 300_000
# What lives for every live object: itself, two pointers to it, half a record.
_LIVING = 60


def attach(benchmark: str, order: str = "ascending", bytes_: int = SMALL, runtime: str = "") -> Arm:
    """An arm that times one call by its place: "AttachCleanup", "Stop", …"""
    sub = (("order", order), ("bytes", str(bytes_)))
    return Arm(benchmark, gogc="off", setting="precise", runtime=runtime, sub=sub)


def scattered(benchmark: str, live: int = MANY, runtime: str = "") -> Arm:
    """An arm that times one call at random over live objects: "ScatteredCleanup", …"""
    sub = (("live", str(live)),)
    return Arm(benchmark, gogc="off", setting="precise", runtime=runtime, sub=sub)


def looped(benchmark: str, bytes_: int = SMALL, dummies: int = 0, runtime: str = "") -> Arm:
    """An arm that allocates and registers: "LoopFinalizer", with dummies, or "LoopCleanup"."""
    sub = [("bytes", str(bytes_))]
    if benchmark == "LoopFinalizer":
        sub.append(("dummies", str(dummies)))
    return Arm(benchmark, setting="precise", runtime=runtime, sub=tuple(sub))


def program(what: str, live: int = 0, others: int = 0, runtime: str = "") -> Arm:
    """An arm of a program that does something else as well: "Plain", "Cleanup", "Lists", …"""
    sub = (("live", str(live)), ("others", str(others)))
    return Arm(f"Program{what}", setting="precise", runtime=runtime, sub=sub)


def registering(arm: Arm, go: str, since: str = "tiny") -> Case:
    """The case of an arm of `attach`."""
    n = _REGISTERED if ("bytes", str(SMALL)) in arm.sub else _LARGER
    return Case("specials", arm, go, n, since, kept=RECORD)


def scattering(benchmark: str, live: int, go: str, since: str, runtime: str = "") -> Case:
    """The case of an arm of `scattered`."""
    n = min(live, _SCATTERED)
    kept = max(RECORD, live * _LIVING // n)
    return Case("specials", scattered(benchmark, live, runtime), go, n, since=since, kept=kept)


def running(arm: Arm, go: str, since: str) -> Case:
    """The case of an arm of `program`."""
    return Case("specials", arm, go, _PROGRAM, since)


def looping(arm: Arm, go: str, since: str = "tiny") -> Case:
    """The case of an arm of `looped`."""
    return Case("specials", arm, go, _LOOPED, since)


def _releases() -> Iterator[Case]:
    """One call by its place, and the loops, on every release that builds the module."""
    for go in (go for go in GO_RELEASES if number(go) >= OLDEST_DRIVER):
        today = go == TODAY_GO
        since = "tiny" if today else "standard"
        kinds = ["Finalizer", "Cleanup"] if number(go) >= number(CLEANUP_GO) else ["Finalizer"]
        for order in ORDERS:
            for kind in kinds:
                yield registering(attach(f"Attach{kind}", order), go, since)
                if kind == "Finalizer":
                    yield registering(attach("AttachFinalizer", order, CACHED), go, since)
            if "Cleanup" in kinds:
                yield registering(attach("Stop", order), go, since)
            if today:
                yield registering(attach("ClearFinalizer", order), go, "standard")
        for kind in kinds:
            yield registering(attach(f"Attach{kind}", bytes_=APART), go, since)
            for bytes_ in (SMALL, APART):
                yield looping(looped(f"Loop{kind}", bytes_), go, since)
        yield looping(looped("LoopFinalizer", dummies=1), go, since)


def _why() -> Iterator[Case]:
    yield from _releases()
    go = TODAY_GO
    for bytes_ in BYTES:
        for benchmark in ("AttachFinalizer", "AttachCleanup"):
            known = (SMALL, APART, CACHED) if benchmark == "AttachFinalizer" else (SMALL, APART)
            if bytes_ not in known:
                since = "standard" if bytes_ in _BETWEEN else "tiny"
                yield registering(attach(benchmark, bytes_=bytes_), go, since)
            between = bytes_ != SMALL and (bytes_, benchmark) != (CACHED, "AttachFinalizer")
            for order in ORDERS[1:] if between else ():
                yield registering(attach(benchmark, order, bytes_), go, "standard")
    for dummies in DUMMIES[2:]:
        yield looping(looped("LoopFinalizer", dummies=dummies), go, "standard")
    for bytes_ in (16, 64):
        for benchmark in ("LoopCleanup", "LoopFinalizer"):
            yield looping(looped(benchmark, bytes_), go, "standard")
    for live in LIVE:
        for benchmark in ("ScatteredFinalizer", "ScatteredCleanup", "ScatteredStop"):
            since = "tiny" if benchmark == "ScatteredCleanup" else "standard"
            since = "thorough" if live > MANY else since
            yield scattering(benchmark, live, go, since)
    yield scattering("ScatteredFinalizer", MANY, DOCUMENT_GO, "standard")
    yield scattering("ScatteredCleanup", MANY, ISSUE_GO, "standard")
    for live in IN_USE:
        for others in OTHERS if live <= POOL else (0, MIXED):
            early = live <= POOL and others in (0, MIXED)
            since = "tiny" if early else "standard"
            for what in ("Plain", "Cleanup", "Lists"):
                yield running(program(what, live, others), go, since)
            if others in (0, MIXED):
                yield running(program("Finalizer", live, others), go, "standard")
    for arm in (program("Lists"), program("Lists", POOL, MIXED)):
        yield running(arm, ISSUE_GO, "standard")


EXPERIMENT = Experiment(
    name="why",
    chapter="07-why",
    question="Why does it cost what it costs, and in which programs?",
    cases=tuple(_why()),
    document=TODAY_GO,
)
