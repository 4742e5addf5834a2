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

from gccost.cases import published
from gccost.cases.versions import TODAY_GO
from gccost.costs import stacks
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging.opening import reference
from gccost.judging.quantities import SavedShare
from gccost.judging.rounding import percent, plain, rounded
from gccost.run import profiles
from gccost.studies import remedies

PARTS = {
    "registering": "registering and removing",
    "walk": "    of it, the walk of the span's list",
    "marking": "marking",
    "sweeping": "sweeping",
    "running": "queueing and running",
    "functions": "    of it, the program's own functions",
    "resolving": "weak pointers' Value",
    "sampling": "the heap profiler's records in these lists; a larger MemProfileRate makes fewer",
    "rest": "the rest of the program",
}
# In the order in which to try them, as in chapter 8.
REMEDIES = {
    "net": "the net left in place by Close: pool what has the finalizer, as gosrc/guardian does",
    "none": "resources closed explicitly, nothing registered (≥: it also saves page faults)",
    "larger_handles": "handles of 64 bytes, if they have 8 now: a field `_ [56]byte`",
    "slabs": "slabs (gosrc/slab), if they save as much of it as in chapter 8",
    "no_walk": "a Go runtime without the walk (gosrc/overlay)",
}
# What a CPU profile cannot show, and a command that does.
NOT_SHOWN = {
    "page faults and resident memory, such as that of objects freed late": (
        "/usr/bin/time -v PROGRAM"
    ),
    "a queue of finalizers and cleanups that a blocked one stops (Go 1.25 and later)": (
        "GODEBUG=checkfinalizers=1 PROGRAM"
    ),
    "the finalizer or cleanup that blocks": (
        "curl 'http://localhost:PORT/debug/pprof/goroutine?debug=2'"
    ),
}
# What programs of data/published/kinds.csv register, by claim: lines of "CALL FUNCTION", sorted.
_REGISTERS = {
    "X13a": r"SetFinalizer .*sqlite",
    "X13b": r"SetFinalizer .*tree-?sitter",
    "X13c": r"SetFinalizer .*zstd",
    "X15a": r"AddCleanup (.|\n)*\bweak\.Make",
    "X15b": r"\bunique\.Make",
    "X15c": r"\bweak\.Make",
}
_REMOVING = re.compile(r"runtime\.(removefinalizer|(\(\*Cleanup\)|Cleanup)\.Stop)")
_SHORTER = 1 - 8 / 64  # the part of a walk that is saved if a span has so many fewer handles
FEWEST = 10  # samples for an estimate
DEEPEST = 64  # functions of a stack that Go's profiler keeps, the innermost ones
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
_SITE = ["function", "calls", "caller", "own"]
_TIMES = ["share", "walk", "removing"]


class BadInput(GccostError):
    """A file that cannot be read, or is not a CPU profile of a Go program."""

    exit_code = 2


def load(path: str) -> profiles.Profile:
    """Read a profile from a file; BadInput says why it cannot be explained."""
    try:
        profile = profiles.read(Path(path))
    except GccostError as error:
        raise BadInput(error.message, path, _HINT) from None
    if not any(name.startswith("runtime.") for name in profile.names):
        raise BadInput(
            "no sample is in Go's runtime: it is of another language, was stripped, or used no CPU",
            path,
            _HINT,
        )
    return profile


def explain(profile: profiles.Profile) -> dict[str, Any]:
    """Divide the time of a profile by phase and by who registers, as JSON has it.

    `cut` is the share of stacks that are so deep that their beginning may be missing, and with it
    the function that runs finalizers. `share` is the sum of the phases; `parts` are these and
    what PARTS says of them. The walk is an upper bound unless `walk_is_separate`. `remedies` has
    those of REMEDIES whose part of registering is FEWEST samples or more: what each saves, at
    least if it is a `lower_bound`, and what remains of `share`. `registered_anyway` is what
    registers weak pointers, slabs and the types of Go's own packages. `kinds` has the programs of
    chapter 10 that register the same as a call site of FEWEST samples that is not Go's. A profile
    that counts samples without their time has no `cpu_seconds`.
    """
    total = profile.total + profile.unnamed
    fewest = (FEWEST - 1e-6) * profile.one_sample
    separate = any(map(_WALK_IS_A_FUNCTION.match, profile.names))
    work = _work(profile, separate)
    registering = work[work["phase"] == "registering"]
    sites = registering.groupby(_SITE, sort=False)[_TIMES].sum()
    sites = sites.sort_values("share", ascending=False, kind="stable").reset_index()
    own = sites["own"].eq(True)
    avoidable = sites.loc[own & sites["calls"].str.startswith("runtime."), _TIMES].sum()
    parts = work.groupby("phase")["share"].sum().reindex([*PARTS], fill_value=0.0)
    life = parts[[*stacks.PHASES]].sum()
    parts["rest"] = total - parts.sum()
    parts["walk"] = sites["walk"].sum()
    parts["functions"] = work.loc[work["phase"].eq("running") & work["frees"], "share"].sum()

    def share(time: float) -> float:
        return rounded(float(time / total))

    slabs = [*filter(stacks.SLAB.fullmatch, profile.names)]
    enough = sites[own & (sites["share"] >= fewest)]
    sites[_TIMES] = sites[_TIMES].map(share)
    return {
        "cpu_seconds": total / 1e9 if profile.timed else None,
        "one_sample": share(profile.one_sample),
        "cut": share(_cut(profile)),
        "share": share(life),
        "walk_is_separate": separate,
        "slabs_save": rounded(slabs_save()),
        "parts": parts.map(share).to_dict(),
        "slabs": rounded(profile.share(slabs)),
        "slabs_waiting": rounded(profile.share(stacks.SLOW_LOCK, within=[*slabs, "-"])),
        "registered_anyway": share(parts["registering"] - avoidable["share"]),
        "remedies": {
            remedy: {
                "saves": share(saved),
                "remains": share(life - saved),
                "lower_bound": remedy == "none",  # which also frees earlier
            }
            for remedy, (saved, estimated_from) in _saved(parts, avoidable, life).items()
            if estimated_from >= fewest
        },
        "call_sites": sites.to_dict("records"),
        "kinds": _kinds(enough),
        "not_shown": NOT_SHOWN,
    }


def _saved(parts: pd.Series, avoidable: pd.Series, life: float) -> dict[str, Any]:
    """What each remedy saves, and the time that this is estimated from."""
    # Who registers what says whose marking, sweeping and running it is.
    part = avoidable["share"] / max(parts["registering"], 1)
    closing = (life - parts["resolving"] - parts["functions"]) * part
    # If removing takes longer than finalizing, most objects are closed.
    closed = avoidable["removing"] > parts["running"] - parts["functions"]
    return {
        "net": (avoidable["share"], avoidable["share"] * closed),
        "none": (closing, avoidable["share"] * (not closed)),
        "larger_handles": (avoidable["walk"] * _SHORTER, avoidable["walk"]),
        "slabs": (closing * slabs_save(), avoidable["share"]),
        "no_walk": (parts["walk"], parts["walk"]),
    }


def _work(profile: profiles.Profile, separate: bool) -> pd.DataFrame:
    """A row per stack of a phase: its time (ns), and what the phase's function calls and is for.

    `function` and `calls` are the nearest function outside the runtime, and what it calls; `own`
    is whether it is neither of Go's packages nor of slabs. `caller` is the program's function
    that calls it, and that function's caller if it is of the same package. `frees` is whether
    the program's own function runs. `share` is the time (ns), `walk` and `removing` what of it
    is in the walk, and in removing a special.
    """
    rows = []
    for phase, stack, at, time in stacks.classified(profile):
        outside = [i for i in range(at + 1) if stacks.is_outside(stack[i])]
        function = stack[outside[-1]] if outside else "(unknown)"
        calls = stack[outside[-1] + 1 if outside else 0].split("[")[0]
        own = not stacks.is_go(function) and not stacks.SLAB.fullmatch(function)
        above = [
            f for f in reversed(stack[:at]) if "." in f and not stacks.is_go(f) and f != function
        ]
        helped = above and stacks.package(above[0]) == stacks.package(function)
        caller = ", by ".join(above[: 2 if helped else 1])
        frees = any(map(stacks.is_outside, stack[at:]))
        walks = stacks.SPLICE_POINT[0] in stack if separate else stack[-1] in stacks.WALKING
        removes = any(map(_REMOVING.fullmatch, stack))
        times = [float(time) * each for each in (1, walks, removes)]
        rows.append((phase, function, calls, caller, own, frees, *times))
    return pd.DataFrame(rows, columns=["phase", *_SITE, "frees", *_TIMES])


def _kinds(sites: pd.DataFrame) -> list[dict[Any, Any]]:
    """The kinds of program in chapter 10 that register the same as these call sites."""
    text = "\n".join(sorted(sites["calls"] + " " + sites["function"]))
    kinds = published.table("kinds")
    alike = kinds["claim"].map(lambda claim: bool(re.search(_REGISTERS.get(claim, "(?!)"), text)))
    return kinds.loc[alike, ["special", "object_bytes", "program", "remedy"]].to_dict("records")


def _cut(profile: profiles.Profile) -> int:
    """The time (ns) of stacks whose outermost functions may be missing."""
    return sum(time for stack, time in profile.stacks if len(stack) >= DEEPEST)


@cache
def slabs_save() -> float:
    """The share (0 to 1) of a finalizer's cost that adopting slabs save, in the reference."""
    recording = Recording(remedies.STUDY, reference(remedies.STUDY))
    each, slabs, manual = (f"Turns{way}/goroutines=1" for way in ("Finalizer", "Adopted", "Manual"))
    saved = SavedShare(each, slabs, manual, "settled_ns")
    return saved.on(recording, TODAY_GO).value


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """Write what `explain` found for reading."""
    if seconds := answer["cpu_seconds"]:
        yield f"{plain(seconds)} s of CPU time."
    yield f"One sample is {percent(answer['one_sample'])} of the CPU time."
    yield f"Finalizers, cleanups and weak pointers: {percent(answer['share'])}."
    if cut := answer["cut"]:
        yield f"{percent(cut)} is on stacks of which Go's profiler kept the innermost {DEEPEST}"
        yield "functions: what a finalizer or cleanup does there is in the rest of the program."
    yield from (_line(answer["parts"][part], words) for part, words in PARTS.items())
    if not answer["walk_is_separate"]:
        yield "The walk takes less: this profile does not separate it from the rest of registering."
    if slabs := answer["slabs"]:
        waiting = percent(answer["slabs_waiting"])
        yield f"Slabs (gosrc/slab) and what they call: {percent(slabs)}, of it {waiting} waiting."
    sites = answer["call_sites"]
    if sites:
        yield "Who registers or removes them:"
    for site in sites[:_SHOWN]:
        walk = f", the walk {percent(site['walk'])}" if site["walk"] else ""
        caller = f", called by {site['caller']}" if site["caller"] else ""
        yield _line(site["share"], f"{site['function']} ({site['calls']}{walk}){caller}")
    if others := [site["share"] for site in sites[_SHOWN:]]:
        yield _line(sum(others), f"{len(others)} others")
    for kind in answer["kinds"]:
        what = f"{kind['program']} ({kind['special']}, {kind['object_bytes']} bytes)"
        yield f"The same as in chapter 10: {what}. What helps: {kind['remedy']}."
    yield from _remedies(answer)
    yield "A CPU profile does not show:"
    yield from (f"    {what}: {command}" for what, command in NOT_SHOWN.items())


def _remedies(answer: dict[str, Any]) -> Iterator[str]:
    """What would help, for reading."""
    if anyway := answer["registered_anyway"]:
        yield f"Closing and slabs save none of the {percent(anyway)} of weak pointers, slabs and"
        yield "Go's own types, such as os.File and net.Conn, which register even if closed."
    if not answer["remedies"]:
        yield f"Nothing is proposed: what could be saved has fewer than {FEWEST} samples."
        return
    yield "What would help: the share of the CPU time saved, and what would remain of these phases:"
    part = f": {percent(answer['slabs_save'])}"
    for remedy, shares in answer["remedies"].items():
        saves = "≥ " * shares["lower_bound"] + percent(shares["saves"])
        words = REMEDIES[remedy] + part * (remedy == "slabs")
        yield f"{saves:>10}  {percent(shares['remains']):>8}  {words}"
    yield "No remedy saves the program's own functions, which have to free in any case."


def _line(share: float, words: str) -> str:
    return f"{percent(share):>10}  {words:.300}"
