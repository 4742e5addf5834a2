"""What finalizers, cleanups and weak pointers cost in a Go CPU profile.

A stack belongs to one phase at most, that of its innermost function in `stacks.PHASES`,
so phases add up. All shares are of the CPU time sampled, 0 to 1. What a remedy saves is of
these phases only: freeing at another time changes other costs too, such as page faults. For
slabs and the recycled net it takes the part that they saved in the recorded measurements of
chapter 8, if objects end there as they do in the profile: closed, or forgotten.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gccost import paths, saved
from gccost.cases import published
from gccost.costs import stacks
from gccost.errors import GccostError
from gccost.judging.rounding import percent, plain, rounded
from gccost.run import profiles, schema

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
    "slabs": "slabs (gosrc/slab), for small C objects; they take memory",
    "no_walk": "a Go runtime without the walk (gosrc/overlay)",
}
# What a profile shows of how objects end; each proposal names it.
CLOSED, FORGOTTEN, EITHER = "closed", "forgotten", "either"
_UNSEEN = "no caller's close is seen"
_ENDS = {
    CLOSED: "callers close most objects",
    FORGOTTEN: "the collector frees most objects",
    EITHER: "it is open whether most objects are closed or forgotten",
}
# By how many standard deviations, and times, the samples of the one must exceed the other's.
_SIGMAS, _TIMES_AS_MANY = 2.5, 4
# What a CPU profile cannot show, and a command that does.
NOT_SHOWN = {
    "page faults, and the peak of resident memory. C keeps much of it after all is freed, which is "
    "no leak: count the live objects, too (chapter 8b)": ("/usr/bin/time -v PROGRAM"),
    "a queue of finalizers and cleanups that a blocked one stops (Go 1.25 and later; it ends the "
    "program at an object that seems never to be freed, and at a pool of slabs in its owner)": (
        "GODEBUG=checkfinalizers=1 PROGRAM"
    ),
    "the finalizer or cleanup that blocks": (
        "curl -f 'http://localhost:PORT/debug/pprof/goroutine?debug=2'"
    ),
    "objects that are never freed, because a global or a cgo.Handle leads to them": (
        "curl -f -o heap.pb.gz http://localhost:PORT/debug/pprof/heap"
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
# What a program calls to register for itself; Go's own types call it for their users.
_REGISTERING = re.compile(
    r"runtime\.(SetFinalizer|AddCleanup|addfinalizer|removefinalizer|addCleanup"
    r"|(\(\*Cleanup\)|Cleanup)\.Stop)"
)
_SHORTER = 1 - 8 / 64  # the part of a walk that is saved if a span has so many fewer handles
FEWEST = 10  # samples for an estimate
# The share of registering that a walk takes at least in handles of 8 bytes (0.75 and more in
# docs/tried.md). Where it takes less, padding them makes some programs slower.
_LONG_WALK = 0.5
DEEPEST = 64  # functions of a stack that Go's profiler keeps, the innermost ones
_HINT = (
    "take a CPU profile of a Go program: go test -cpuprofile FILE, or "
    "curl -f -o FILE http://localhost:PORT/debug/pprof/profile"
)
# What only Go programs have; a profile need not have a function of the runtime.
_OF_GO = re.compile(r"runtime\..*|main\.main|testing\.tRunner")
_GO_BUILD = re.compile(r"[\w-]{10,}(/[\w-]{10,}){3}")  # the ID of a program that Go linked
# Functions of releases in which the walk is a function of its own (Go 1.21 and later).
_WALK_IS_A_FUNCTION = re.compile(
    r"runtime\.(\(\*mspan\)\.(specialFindSplicePoint|writeHeapBitsSmall)|heapSetType"
    r"|mallocgc[A-Z]|getOrAddWeakHandle|AddCleanup|runFinalizers|runCleanups)"
    r"|(internal/)?weak\.|internal/runtime/"
)
_SHOWN = 10  # call sites
_LONG = 120  # characters of a function's name
_ARGUMENTS = re.compile(r"\[(?!\.\.\.)(?:[^\[\]]|\[\.\.\.\])*\]")
_BOUNDS = {"lower": "≥ ", "upper": "≤ ", "": ""}
_OF_A_KIND = ("special", "object_bytes", "program", "remedy")
_PINNER = "runtime.(*Pinner).Pin"
_OF_THE_WALK = ("larger_handles", "no_walk")


class BadInput(GccostError):
    """A file that cannot be read, or is not a CPU profile of a Go program."""

    exit_code = 2


def load(path: str) -> profiles.Profile:
    """Read a profile from a file; BadInput says why it cannot be explained."""
    try:
        profile = profiles.read(Path(path))
    except GccostError as error:
        raise BadInput(error.message, path, _HINT) from None
    if not _is_of_go(profile):
        raise BadInput(
            "no sample is in Go's runtime or in a Go file: it is of another language, was "
            "stripped, or used no CPU",
            path,
            _HINT,
        )
    return profile


def _is_of_go(profile: profiles.Profile) -> bool:
    if profile.build_ids and not (profile.stacks or profile.unnamed):
        return True  # a program that used no CPU has no function that could tell
    for name in profile.names:
        if _OF_GO.fullmatch(name) or profile.files.get(name, "").endswith(".go"):
            return True
    return any(map(_GO_BUILD.fullmatch, profile.build_ids))


@dataclass(slots=True)
class _Site:
    """A call site that registers or removes, and times (ns) of its stacks.

    `function` and `calls` are the nearest function outside the runtime, and what it calls; `own`
    is whether it is neither of Go's packages nor of slabs. `caller` is the program's function
    that calls it, and that function's caller if it is of the same package; or what runs
    finalizers. `walk` is what of the time is in the walk, `removing` in removing a special for a
    caller, and `in_finalizers` below a finalizer or cleanup, whose own Close is no caller's.
    """

    function: str
    calls: str
    caller: str
    own: bool
    share: int = 0
    walk: int = 0
    removing: int = 0
    in_finalizers: int = 0

    def is_users(self) -> bool:
        """Whether the program registers for itself."""
        return self.own and bool(_REGISTERING.fullmatch(self.calls))

    def add(self, other: _Site) -> None:
        """Add the times of another site."""
        self.share += other.share
        self.walk += other.walk
        self.removing += other.removing
        self.in_finalizers += other.in_finalizers

    def row(self, share: Callable[[float], float]) -> dict[str, Any]:
        """The site with its shares, for JSON."""
        row = asdict(self)
        del row["in_finalizers"]
        for name in ("share", "walk", "removing"):
            row[name] = share(row[name])
        return row


@dataclass(slots=True)
class _Work:
    """The time (ns) of a profile by phase, by call site, and by what of Go's packages registers.

    The sites are in the order of their time. `functions` is the time of the program's own
    finalizers and cleanups. `avoidable` is the sum of the sites where the program registers.
    """

    parts: Counter[str] = field(default_factory=Counter)
    functions: int = 0
    go: Counter[str] = field(default_factory=Counter)
    sites: list[_Site] = field(default_factory=list)
    avoidable: _Site = field(default_factory=lambda: _Site("", "", "", own=True))


def explain(profile: profiles.Profile) -> dict[str, Any]:
    """Divide the time of a profile by phase and by who registers, as JSON has it.

    `cut` is the share of stacks that are so deep that their beginning may be missing, and with it
    the function that runs finalizers. `share` is the sum of the phases; `parts` are these and what
    PARTS says of them. The walk is an upper bound unless `walk_is_separate`. `objects_are` is how
    they end, as far as samples of a caller's removing and of finalizing tell: CLOSED, FORGOTTEN or
    EITHER.

    `remedies` has those of REMEDIES whose part of registering is FEWEST samples or more: what
    each `saves`, and what `remains` of `share`, or None where chapter 8 did not measure that
    change; the `bound` of these figures, "lower", "upper" or ""; and the `evidence`.
    `registered_anyway` is what registers weak pointers, slabs and the types of Go's own packages,
    and `go_registers` has what can be done about those of FEWEST samples. `kinds` has the
    programs of chapter 10 that register the same as a call site of FEWEST samples that is not
    Go's. A profile that counts samples without their time has no `cpu_seconds`.
    """
    total = profile.total + profile.unnamed
    fewest = (FEWEST - 1e-6) * profile.one_sample
    separate = _is_walk_separate(profile)
    work = _work(profile, separate)
    parts = _parts(work, total)
    life = sum(map(parts.__getitem__, stacks.PHASES))
    ends, evidence = _evidence(work, parts, profile.one_sample)

    def share(time: float) -> float:
        if not total:
            return 0.0
        return rounded(float(time / total))

    remedies = {}
    for remedy, (saves, estimated_from) in _saved(parts, work.avoidable, life, ends).items():
        if estimated_from < fewest:
            continue
        said: dict[str, Any] = {"saves": None, "remains": None}
        said["bound"] = _bound(remedy, separate)
        if saves is not None:
            said["saves"] = share(saves)
            said["remains"] = share(life - saves)
        said["evidence"] = evidence[remedy]
        remedies[remedy] = said
    go_registers = []
    for what, time in work.go.most_common():
        if time >= fewest:
            go_registers.append({"what": what, "share": share(time)} | _advice(what))
    slabs, waiting = _slabs(profile)
    anyway = parts["registering"] - work.avoidable.share
    return {
        "cpu_seconds": total / 1e9 if profile.timed else None,
        "one_sample": share(profile.one_sample),
        "cut": share(_cut(profile)),
        "share": share(life),
        "walk_is_separate": separate,
        "objects_are": ends,
        "parts": {part: share(time) for part, time in parts.items()},
        "slabs": slabs,
        "slabs_waiting": waiting,
        "registered_anyway": share(anyway),
        "go_registers": go_registers,
        "remedies": remedies,
        "call_sites": [site.row(share) for site in work.sites],
        "kinds": _kinds(work.sites, fewest),
        "not_shown": NOT_SHOWN,
    }


def _slabs(profile: profiles.Profile) -> tuple[float, float]:
    """The share of slabs, and what of it waits."""
    if not profile.stacks:
        return 0.0, 0.0
    slabs = [*filter(stacks.SLAB.fullmatch, profile.names)]
    waiting = profile.share(stacks.SLOW_LOCK, within=[*slabs, "-"])
    return rounded(profile.share(slabs)), rounded(waiting)


def _parts(work: _Work, total: int) -> dict[str, int]:
    """The time (ns) of each of PARTS."""
    parts = {}
    for part in PARTS:
        parts[part] = work.parts[part]
    parts["rest"] = total - sum(parts.values())
    parts["functions"] = work.functions
    for site in work.sites:
        parts["walk"] += site.walk
    return parts


def _evidence(
    work: _Work, parts: Mapping[str, int], one_sample: float
) -> tuple[str, dict[str, str]]:
    """How objects end, and what each remedy rests on, in numbers of samples."""

    def samples(time: float) -> int:
        if not one_sample:
            return 0
        return round(time / one_sample)

    own = work.avoidable
    closing = samples(own.removing)
    finalizing = samples(parts["running"] - parts["functions"] + own.in_finalizers)
    ends = _ends(closing, finalizing)
    seen = _ENDS[ends] if closing else _UNSEEN
    closed = f"{closing} samples of callers that remove a finalizer or cleanup"
    evidence = dict.fromkeys(REMEDIES, f"{seen}: {closed}, {finalizing} of running them")
    walk, registering = samples(own.walk), samples(own.share)
    own_walk = f"{walk} of {registering} samples of the program's own registering are in the walk"
    evidence["larger_handles"] = own_walk
    evidence["no_walk"] = f"{samples(parts['walk'])} samples in the walk"
    return ends, evidence


def _is_walk_separate(profile: profiles.Profile) -> bool:
    """Whether the profile shows the walk as a function.

    It is one in Go 1.21 and later, but inlined: profiles of who does not expand inlined calls
    have its callers only. Where other calls are expanded, a walk that is not there took no time.
    """
    registers = (
        stack[-1] in stacks.WALKING
        for phase, stack, _, _ in stacks.classified(profile)
        if phase == "registering"
    )
    if stacks.SPLICE_POINT[0] in profile.names:
        return True
    if not any(map(_WALK_IS_A_FUNCTION.match, profile.names)):
        return False
    return profile.inlined or not any(registers)


def _ends(removing: float, finalizing: float) -> str:
    """How most objects end, from samples of callers' removing and of finalizing."""
    apart = (removing - finalizing) / math.sqrt(max(removing + finalizing, 1))
    if apart > _SIGMAS and removing > _TIMES_AS_MANY * finalizing:
        return CLOSED
    if removing < 0.5 or (apart < -_SIGMAS and finalizing > _TIMES_AS_MANY * removing):
        return FORGOTTEN
    return EITHER


def _bound(remedy: str, separate: bool) -> str:
    if remedy == "none":  # which also frees earlier
        return "lower"
    return "" if separate or remedy not in _OF_THE_WALK else "upper"


@cache
def _of_go_registers() -> dict[str, dict[str, str]]:
    """What registers inside Go's own packages, by what it is: see data/go-registers.csv."""
    table = schema.columns("function what registers remedy")
    return {row.pop("what"): row for row in schema.rows(paths.GO_REGISTERS, table)}


def _advice(what: str) -> dict[str, str]:
    row = _of_go_registers()[what]
    return {"registers": row["registers"], "remedy": row["remedy"]}


def _saved(
    parts: Mapping[str, int], avoidable: _Site, life: int, ends: str
) -> dict[str, tuple[float | None, float]]:
    """What each remedy saves, None if it was not measured, and the time that it rests on."""
    registering = avoidable.share
    long = avoidable.walk >= _LONG_WALK * registering
    # Who registers what says whose marking, sweeping and running it is.
    part = registering / max(parts["registering"], 1)
    closing = (life - parts["resolving"] - parts["functions"]) * part
    by_net = by_slabs = None
    if ends == CLOSED:
        by_net = registering * saved.share(saved.NET)
        by_slabs = closing * saved.share(saved.CLOSED_SLABS)
    if ends == FORGOTTEN:
        by_slabs = closing * saved.share(saved.SLABS)
    walk = parts["walk"]
    return {
        "net": (by_net, registering * (ends != FORGOTTEN)),
        "none": (closing, registering * (ends != CLOSED)),
        "larger_handles": (avoidable.walk * _SHORTER, avoidable.walk * long),
        "slabs": (by_slabs, registering),
        "no_walk": (walk, walk),
    }


def _work(profile: profiles.Profile, separate: bool) -> _Work:
    """Where the time of a profile's phases is."""
    work = _Work()
    names = _Names(profile)
    walking = {stacks.SPLICE_POINT[0]} if separate else {*stacks.WALKING}
    sites: dict[tuple[str, str, str, bool], _Site] = {}
    for phase, stack, at, time in stacks.classified(profile):
        work.parts[phase] += time
        if phase == "running" and not names.outer.isdisjoint(stack[at:]):
            work.functions += time
        if phase != "registering":
            continue
        if what := _type_of_go(stack[: at + 1], names.go):
            work.go[what] += time
        key = names.site(stack, at)
        site = sites.setdefault(key, _Site(*key))
        site.share += time
        if not walking.isdisjoint(stack if separate else stack[-1:]):
            site.walk += time
        if not names.runners.isdisjoint(stack[:at]):
            site.in_finalizers += time
        elif not names.removers.isdisjoint(stack):
            site.removing += time
    work.sites = sorted(sites.values(), key=lambda site: -site.share)
    for site in filter(_Site.is_users, work.sites):
        work.avoidable.add(site)
    return work


class _Names:
    """The functions of a profile by what they are: see `_Site`."""

    def __init__(self, profile: profiles.Profile) -> None:
        self.go = stacks.of_go(profile)
        self.outer = set()
        for name in profile.names:
            if stacks.is_outside(name, self.go):
                self.outer.add(name)
        self.removers = {*filter(_REMOVING.fullmatch, profile.names)}
        self.runners = {*filter(stacks.RUNNERS.fullmatch, profile.names)}

    def site(self, stack: tuple[str, ...], at: int) -> tuple[str, str, str, bool]:
        """The function, what it calls, its caller, and whether it is the program's own."""
        outside = at
        while outside >= 0 and stack[outside] not in self.outer:
            outside -= 1
        function = "(unknown)"
        if outside >= 0:
            function = stack[outside]
        calls, _, _ = stack[outside + 1].partition("[")
        caller = self._caller(stack[:at], function)
        others = function in self.go or stacks.SLAB.fullmatch(function)
        own = not others and _PINNER not in stack[: at + 1]
        return function, calls, caller, own

    def _caller(self, stack: tuple[str, ...], function: str) -> str:
        above = []
        for name in reversed(stack):
            if "." in name and name not in self.go and name != function:
                above.append(name)
        if not above:
            return next(filter(self.runners.__contains__, stack), "")
        caller, *helped = above[:2]
        if helped and stacks.package(caller) == stacks.package(function):
            return f"{caller}, by {helped[0]}"
        return caller


def _type_of_go(stack: tuple[str, ...], go: frozenset[str]) -> str:
    """What of Go's own packages registers at the end of a stack; empty if nothing does."""
    at = len(stack)
    while at and (stack[at - 1] in go or "." not in stack[at - 1]):
        at -= 1
    return _named(stack[at:])


@cache
def _named(called: tuple[str, ...]) -> str:
    """The first row of data/go-registers.csv that one of these functions of Go matches."""
    *specific, (others, _) = _of_go_registers().items()
    for what, row in specific:
        for each in called:
            if re.fullmatch(row["function"], each):
                return what
    for each in called:
        if not each.startswith(stacks.RUNTIME):
            return others
    return ""


def _kinds(sites: list[_Site], fewest: float) -> list[dict[str, Any]]:
    """The kinds of program in chapter 10 that register the same as call sites of the program."""
    registered = []
    for site in sites:
        if site.own and site.share >= fewest:
            registered.append(f"{site.calls} {site.function}")
    text = "\n".join(sorted(registered))
    alike = []
    for claim, kind in published.by_name("kinds", _REGISTERS).items():
        if claim in _REGISTERS and re.search(_REGISTERS[claim], text):
            alike.append({name: kind[name] for name in _OF_A_KIND})
    return alike


def _cut(profile: profiles.Profile) -> int:
    """The time (ns) of stacks whose outermost functions may be missing."""
    cut = 0
    for stack, time in profile.stacks:
        if len(stack) >= DEEPEST:
            cut += time
    return cut


def lines(answer: dict[str, Any]) -> Iterator[str]:
    """Write what `explain` found for reading."""
    if seconds := answer["cpu_seconds"]:
        yield f"{plain(seconds)} s of CPU time."
    if not answer["one_sample"]:
        yield "The profile has no samples: the program used no CPU time while it was taken."
        return
    yield f"One sample is {percent(answer['one_sample'])} of the CPU time."
    yield f"Finalizers, cleanups and weak pointers: {percent(answer['share'])}."
    if cut := answer["cut"]:
        yield f"{percent(cut)} is on stacks of which Go's profiler kept the innermost {DEEPEST}"
        yield "functions: what a finalizer or cleanup does there is in the rest of the program."
    for part, words in PARTS.items():
        yield _line(answer["parts"][part], words)
    if answer["parts"]["walk"] and not answer["walk_is_separate"]:
        yield "The walk takes less: this profile does not separate it from the rest of registering."
    if slabs := answer["slabs"]:
        waiting = percent(answer["slabs_waiting"])
        yield f"Slabs (gosrc/slab) and what they call: {percent(slabs)}, of it {waiting} waiting."
    sites = answer["call_sites"]
    if sites:
        yield "Who registers or removes them:"
    yield from map(_site_line, sites[:_SHOWN])
    if others := [site["share"] for site in sites[_SHOWN:]]:
        yield _line(sum(others), f"{len(others)} others")
    for kind in answer["kinds"]:
        what = f"{kind['program']} ({kind['special']}, {kind['object_bytes']} bytes)"
        yield f"The same as in chapter 10: {what}. What helps: {kind['remedy']}."
    yield from _remedies(answer)
    yield "A CPU profile does not show:"
    for what, command in NOT_SHOWN.items():
        yield f"    {what}: {command}"


def _site_line(site: dict[str, Any]) -> str:
    calls = site["calls"]
    if walk := site["walk"]:
        calls += f", the walk {percent(walk)}"
    line = f"{_short(site['function'])} ({calls})"
    if caller := site["caller"]:
        line += f", called by {_short(caller)}"
    return _line(site["share"], line)


def _remedies(answer: dict[str, Any]) -> Iterator[str]:
    """What would help, for reading."""
    if anyway := answer["registered_anyway"]:
        yield f"Closing and slabs save none of the {percent(anyway)} of weak pointers, slabs and"
        yield "Go's own types, such as os.File and net.Conn, which register even if closed."
    for each in answer["go_registers"]:
        yield _line(each["share"], f"{each['what']}: {each['remedy']}")
    if not answer["remedies"]:
        yield f"Nothing is proposed: what could be saved has fewer than {FEWEST} samples."
        return
    yield "What would help: the share of the CPU time saved, and what would remain of these phases:"
    for remedy, shares in answer["remedies"].items():
        saves, remains = "not known", ""
        if shares["saves"] is not None:
            saves = _BOUNDS[shares["bound"]] + percent(shares["saves"])
            remains = percent(shares["remains"])
        yield f"{saves:>10}  {remains:>8}  {REMEDIES[remedy]}"
        yield f"{'':>20}  because: {shares['evidence']}"
    if answer["objects_are"] == EITHER and {"net", "none"} <= answer["remedies"].keys():
        yield "Two profiles of this program may give two answers: take a longer one. If most"
        yield "objects are closed, the net helps; if most are forgotten, it slows the program down."
    yield "Slabs and the net: if they save the part that they save in chapter 8, where all objects"
    yield "are closed, or all forgotten. No remedy saves the program's own functions, which free."


def _short(name: str) -> str:
    """A function without its type arguments, if they are long."""
    while len(name) > _LONG and (short := _ARGUMENTS.sub("[...]", name)) != name:
        name = short
    return f"{name:.300}"


def _line(share: float, words: str) -> str:
    return f"{percent(share):>10}  {words:.600}"
