"""What finalizers, cleanups and weak pointers cost in a Go CPU profile.

A stack belongs to one phase at most, that of its innermost function in `stacks.PHASES`,
so phases add up. All shares are of the CPU time sampled, 0 to 1. What a remedy saves is of
these phases only: freeing at another time changes other costs too, such as page faults. For
slabs it takes the part that they saved in the recorded measurements of chapter 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from gccost.errors import GccostError
from gccost.judging import published, stacks
from gccost.judging.quantities import SavedShare
from gccost.judging.recording import Recording
from gccost.judging.rounding import percent, plain, rounded
from gccost.measuring import profiles
from gccost.measuring.toolchains import TODAY_GO
from gccost.opening import reference
from gccost.studies import handles

PARTS = {
    "registering": "registering and removing",
    "walk": "    of it, the walk of the span's list",
    "marking": "marking",
    "sweeping": "sweeping",
    "running": "queueing and running",
    "functions": "    of it, the program's own functions",
    "resolving": "weak pointers' Value",
    "sampling": "the heap profiler's records, which are in the same lists",
    "rest": "the rest of the program",
}
# In the order in which to try them, as in chapter 8.
REMEDIES = {
    "none": "resources closed explicitly, nothing registered",
    "larger_handles": "handles of 64 bytes, if they have 8 now: a field `_ [56]byte`",
    "slabs": "slabs (gosrc/slab), if they save as much of it as in chapter 8",
    "no_walk": "a Go runtime without the walk (gosrc/overlay)",
}
# The functions that give an object what the column `special` of data/published/kinds.csv names.
_SPECIALS = {
    "finalizer": r"runtime\.SetFinalizer",
    "cleanup": r"runtime\.(AddCleanup|Cleanup\.Stop)",
    "weak handle": r"(internal/)?weak\.|unique\.|runtime\.get(OrAdd)?WeakHandle",
}
_SHORTER = 1 - 8 / 64  # the part of a walk that is saved if a span has so many fewer handles
FEWEST = 10  # samples for an estimate
# Files, connections and keys of Go's own packages register, closed or not.
_OF_GO = re.compile(r"(os|net|crypto|syscall)[./]")
_HINT = (
    "take a CPU profile of a Go program: go test -cpuprofile FILE, or "
    "curl -o FILE http://localhost:PORT/debug/pprof/profile"
)
# Functions of releases in which the walk is a function of its own (Go 1.21 and later).
_WALK_IS_A_FUNCTION = re.compile(
    r"runtime\.(\(\*mspan\)\.(specialFindSplicePoint|writeHeapBitsSmall)|heapSetType"
    r"|mallocgc[A-Z]|getOrAddWeakHandle|AddCleanup|runFinalizers|runCleanups)"
    r"|(internal/)?weak\.|internal/runtime/"
)
_SHOWN = 10  # call sites


class BadInput(GccostError):
    """A file that cannot be read, or is not a CPU profile of a Go program."""

    exit_code = 2


def load(path: str) -> profiles.Profile:
    """Read a profile from a file; BadInput says why it cannot be explained."""
    try:
        profile = profiles.read(Path(path))
    except GccostError as error:
        raise BadInput(error.message, path, _HINT) from None
    if profile.unnamed and not profile.stacks:
        raise BadInput("it has no function names: the program was stripped", path, _HINT)
    if profile.total <= 0:
        raise BadInput("it has no samples: the program used no CPU meanwhile", path, _HINT)
    return profile


def explain(profile: profiles.Profile) -> dict[str, Any]:
    """Divide the time of a profile by phase and by who registers, as JSON has it.

    `share` is the sum of the phases; `parts` are these and what PARTS says of them. The
    walk is an upper bound unless `walk_is_separate`. `remedies` has those of REMEDIES whose
    part of registering is FEWEST samples or more: what each saves, and what remains of `share`.
    `registered_anyway` is what registers weak pointers and the types of Go's own packages.
    `kinds` has the programs of chapter 10 that register the same.
    """
    total = profile.total + profile.unnamed
    one_sample = min(time for _, time in profile.stacks if time > 0)
    separate = any(map(_WALK_IS_A_FUNCTION.match, profile.names))
    work = _work(profile, separate)
    registering = work[work["phase"] == "registering"]
    sites = registering.groupby(["function", "calls"], sort=False)[["share", "walk"]].sum()
    sites = sites.sort_values("share", ascending=False, kind="stable").reset_index()
    others = ~sites["calls"].str.startswith("runtime.") | sites["function"].str.match(_OF_GO)
    avoidable = sites.loc[~others, ["share", "walk"]].sum()
    parts = work.groupby("phase")["share"].sum().reindex([*PARTS], fill_value=0)
    life = parts[[*stacks.PHASES]].sum()
    parts["walk"] = sites["walk"].sum()
    parts["functions"] = work.loc[work["phase"].eq("running") & work["own"], "share"].sum()
    parts["rest"] = total - life - parts["sampling"]
    # Who registers what says whose marking, sweeping and running it is.
    own = avoidable["share"] / max(parts["registering"], 1)
    closing = (life - parts["resolving"] - parts["functions"]) * own
    # What a remedy saves, and the time that this is estimated from.
    remedies = {
        "none": (closing, avoidable["share"]),
        "larger_handles": (avoidable["walk"] * _SHORTER, avoidable["walk"]),
        "slabs": (closing * slabs_save(), avoidable["share"]),
        "no_walk": (parts["walk"], parts["walk"]),
    }

    def share(time: float) -> float:
        return rounded(float(time / total))

    sites[["share", "walk"]] = sites[["share", "walk"]].map(share)
    return {
        "cpu_seconds": total / 1e9,
        "one_sample": share(one_sample),
        "share": share(life),
        "walk_is_separate": separate,
        "slabs_save": rounded(slabs_save()),
        "parts": parts.map(share).to_dict(),
        "registered_anyway": share(parts["registering"] - avoidable["share"]),
        "remedies": {
            remedy: {"saves": share(saved), "remains": share(life - saved)}
            for remedy, (saved, estimated_from) in remedies.items()
            if estimated_from >= FEWEST * one_sample
        },
        "call_sites": sites.to_dict("records"),
        "kinds": _kinds(sites["calls"], sampling=parts["sampling"] > 0),
    }


def _work(profile: profiles.Profile, separate: bool) -> pd.DataFrame:
    """A row per stack of a phase: its time (ns), and what the phase's function calls and is for.

    `function` and `calls` are the nearest function outside the runtime, and what it calls.
    `own` is whether the program's own function runs. `share` is the time (ns), `walk` that in
    the walk.
    """
    rows = []
    for phase, stack, at, time in stacks.classified(profile):
        outside = [i for i in range(at + 1) if stacks.is_outside(stack[i])]
        function = stack[outside[-1]] if outside else "(unknown)"
        calls = stack[outside[-1] + 1 if outside else 0].split("[")[0]
        own = any(map(stacks.is_outside, stack[at:]))
        walks = stacks.SPLICE_POINT[0] in stack if separate else stack[-1] in stacks.WALKING
        rows.append((phase, function, calls, own, time, walks * time))
    return pd.DataFrame(rows, columns=["phase", "function", "calls", "own", "share", "walk"])


def _kinds(calls: pd.Series, sampling: bool) -> list[dict[Any, Any]]:
    """The kinds of program in chapter 10 whose objects get what these calls register."""
    specials = [name for name, function in _SPECIALS.items() if calls.str.match(function).any()]
    specials += ["profile sample"] * int(sampling)
    kinds = published.table("kinds")
    alike = kinds["special"].str.contains("|".join(specials) or "none")
    return kinds.loc[alike, ["special", "object_bytes", "program", "remedy"]].to_dict("records")


@cache
def slabs_save() -> float:
    """The share (0 to 1) of a finalizer's cost that adopting slabs save, in the reference."""
    recording = Recording(handles.STUDY, reference(handles.STUDY))
    saved = SavedShare("HandleFinalizer/bytes=8", "HandleAdopted", "HandleFree", "settled_ns")
    return recording.estimate(saved, TODAY_GO).value


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """Write what `explain` found for reading."""
    sample, parts, sites = percent(answer["one_sample"]), answer["parts"], answer["call_sites"]
    yield f"{plain(answer['cpu_seconds'])} s of CPU time; one sample is {sample} of it."
    if not answer["share"] and not parts["sampling"]:
        yield "No finalizers, cleanups or weak pointers: no sample is in their code."
        return
    yield f"Finalizers, cleanups and weak pointers: {percent(answer['share'])} of the CPU time."
    yield from (_line(parts[part], words) for part, words in PARTS.items())
    if not answer["walk_is_separate"]:
        yield "The walk takes less: this profile does not separate it from the rest of registering."
    if sites:
        yield "Who registers or removes them:"
    for site in sites[:_SHOWN]:
        walk = f", the walk {percent(site['walk'])}" if site["walk"] else ""
        yield _line(site["share"], f"{site['function']} ({site['calls']}{walk})")
    if others := sites[_SHOWN:]:
        yield _line(sum(site["share"] for site in others), f"{len(others)} others")
    if answer["kinds"]:
        yield "Programs of chapter 10 that register the same, and their remedies:"
    for kind in answer["kinds"]:
        what = f"{kind['special']}, {kind['object_bytes']} bytes"
        yield f"    {kind['program']} ({what}): {kind['remedy']}"
    yield from _remedies(answer)


def _remedies(answer: dict[str, Any]) -> Iterator[str]:
    """What would help, for reading."""
    if not answer["call_sites"]:
        yield "No sample registers one, so nothing is proposed."
        return
    if anyway := answer["registered_anyway"]:
        yield f"Closing and slabs save none of the {percent(anyway)} of weak pointers and Go's own"
        yield "types, such as os.File and net.Conn, which register even if they are closed."
    if not answer["remedies"]:
        yield f"Nothing is proposed: what could be saved has fewer than {FEWEST} samples."
        return
    yield "What would help: the share of the CPU time saved, and what would remain of these phases:"
    part = f": {percent(answer['slabs_save'])}"
    for remedy, shares in answer["remedies"].items():
        words = REMEDIES[remedy] + part * (remedy == "slabs")
        yield _line(shares["saves"], f"{percent(shares['remains']):>8}  {words}")
    yield "No remedy saves the program's own functions, which have to free in any case."
    yield "The figures do not show what freeing later costs, such as page faults and cold memory."


def _line(share: float, words: str) -> str:
    return f"{percent(share):>10}  {words}"
