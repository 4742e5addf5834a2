"""What finalizers, cleanups and weak pointers cost in a Go CPU profile.

A stack belongs to one phase at most, that of its innermost function in `stacks.PHASES`,
so phases add up. All shares are of the CPU time sampled, 0 to 1. What a remedy saves is of
these phases only: freeing at another time changes other costs too, such as page faults. For
slabs it takes the part that they saved in the recorded measurements of chapter 8.
"""

from __future__ import annotations

import gzip
import html
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gccost.errors import GccostError
from gccost.judging import stacks
from gccost.judging.quantities import SavedShare
from gccost.judging.recording import Recording
from gccost.measuring import profiles
from gccost.measuring.cases import AUTO, FREE
from gccost.measuring.toolchains import TODAY_GO
from gccost.opening import reference
from gccost.rounding import percent, plain, rounded
from gccost.studies import STUDIES
from gccost.studies.remedies import SETTLED, slabs

# The letter before a phase stands for it in the bar.
PARTS = {
    "registering": "R registering and removing",
    "walk": "    of it, the walk of the span's list",
    "marking": "M marking",
    "sweeping": "S sweeping",
    "sweep_loop": "    in addition, at most: the sweep's own loop, which visits other objects too",
    "running": "Q queueing and running",
    "functions": "    of it, the program's own functions",
    "resolving": "V weak pointers' Value",
    "rest": ". the rest of the program",
}
_COLOURS = {"R": "#0067a3", "M": "#b34700", "S": "#00765a", "Q": "#97358a", "V": "#1f2328"}
_BAR = 72  # letters
REMEDIES = {
    "no_walk": "a Go runtime without the walk (gosrc/overlay)",
    "slabs": "slabs (gosrc/slab), if they save as much of it as in chapter 8",
    "none": "resources closed explicitly, nothing registered",
}
FEWEST = 10  # samples for an estimate
# Files, connections and keys of Go's own packages register, closed or not.
_OF_GO = re.compile(r"(os|net|crypto|syscall)[./]")
_HINT = (
    "take a CPU profile of a Go program: go test -cpuprofile FILE, or "
    "curl -o FILE http://localhost:PORT/debug/pprof/profile"
)
_FORMATS = {
    rb"JAVA PROFILE": "a heap dump of Java (hprof)",
    rb"FLR\0": "a recording of Java (JFR, which async-profiler writes too)",
    rb"[^\n\0]+;[^\n\0]* \d+\r?\n": "collapsed stacks, such as async-profiler writes for Java",
    rb"\s*<(!DOCTYPE|html)": "an HTML page, such as a flame graph or a server's index",
    rb"\w+ profile: |--- \w+:": "another profile, as text",
    rb"go 1\.\d+ trace": "an execution trace",
}
_JAVA = re.compile(r"(java|javax|jdk)[./]")
# Functions of releases in which the walk is a function of its own (Go 1.21 and later).
_WALK_IS_A_FUNCTION = re.compile(
    r"runtime\.(\(\*mspan\)\.(specialFindSplicePoint|writeHeapBitsSmall)|heapSetType"
    r"|mallocgc[A-Z]|getOrAddWeakHandle|AddCleanup|runFinalizers|runCleanups)"
    r"|(internal/)?weak\.|internal/runtime/"
)
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")
_SHOWN = 10  # call sites
_Site = tuple[str, str]  # a function outside the runtime, and what it calls


class BadInput(GccostError):
    """A source that cannot be read, or is not a CPU profile of a Go program."""

    exit_code = 2


def explain(profile: profiles.Profile) -> dict[str, Any]:
    """Divide the time of a profile by phase and by who registers, as JSON has it.

    `share` is the sum of the phases; `parts` are these and what PARTS says of them. The
    walk is an upper bound unless `walk_is_separate`. `remedies` has those of REMEDIES whose
    part of registering is FEWEST samples or more: what each saves, and what remains of `share`.
    `registered_anyway` is what registers weak pointers and the types of Go's own packages.
    """
    total = profile.total + profile.unnamed
    one_sample = min(time for _, time in profile.stacks if time > 0)
    separate = any(map(_WALK_IS_A_FUNCTION.match, profile.names))
    times, sites, walks = Counter[str](), Counter[_Site](), Counter[_Site]()
    for phase, stack, at, time in stacks.classified(profile):
        if phase != "sweep_loop" or stacks.MARK_BITS.issuperset(stack[at + 1 :]):
            times[phase] += time
        if phase == "registering":
            site = _site(stack, at)
            sites[site] += time
            walking = stacks.SPLICE_POINT[0] in stack if separate else stack[-1] in stacks.WALKING
            walks[site] += time * walking
        elif phase == "running" and any(map(stacks.is_outside, stack[at:])):
            times["functions"] += time
    times["walk"] = walks.total()
    life = sum(times[phase] for phase in stacks.PHASES)
    times["rest"] = total - life
    avoidable = sum(
        time
        for (function, call), time in sites.items()
        if call.startswith("runtime.") and not _OF_GO.match(function)
    )
    saves: dict[str, float] = {}
    if times["walk"] >= FEWEST * one_sample:
        saves["no_walk"] = times["walk"]
    if avoidable >= FEWEST * one_sample:
        # Who registers what says whose marking, sweeping and running it is.
        own = avoidable / times["registering"]
        saves["none"] = (life - times["resolving"] - times["functions"]) * own
        saves["slabs"] = saves["none"] * slabs_save()
    return {
        "cpu_seconds": total / 1e9,
        "one_sample": rounded(one_sample / total),
        "share": rounded(life / total),
        "walk_is_separate": separate,
        "slabs_save": rounded(slabs_save()),
        "parts": {part: rounded(times[part] / total) for part in PARTS},
        "registered_anyway": rounded((times["registering"] - avoidable) / total),
        "remedies": {
            remedy: {
                "saves": rounded(saves[remedy] / total),
                "remains": rounded((life - saves[remedy]) / total),
            }
            for remedy in REMEDIES
            if remedy in saves
        },
        "call_sites": [
            {
                "function": site[0],
                "calls": site[1],
                "share": rounded(time / total),
                "walk": rounded(walks[site] / total),
            }
            for site, time in sites.most_common()
        ],
    }


@cache
def slabs_save() -> float:
    """The share (0 to 1) of a finalizer's cost that slabs save, in the recorded reference."""
    remedies = STUDIES["remedies"]
    recording = Recording.load(remedies, reference(remedies))
    saved = SavedShare(AUTO, slabs("Slab"), FREE, SETTLED)
    return recording.estimate(saved, TODAY_GO).value


def lines(answer: dict[str, Any], bar: bool = True) -> Iterator[str]:
    """Write what `explain` found for reading."""
    sample = percent(answer["one_sample"])
    yield f"{plain(answer['cpu_seconds'])} s of CPU time; one sample is {sample} of it."
    if not answer["share"]:
        yield "No finalizers, cleanups or weak pointers: no sample is in their code."
        return
    yield f"Finalizers, cleanups and weak pointers: {percent(answer['share'])} of the CPU time."
    if bar:
        letters = [letter * math.ceil(_BAR * share) for letter, share in _shares(answer)]
        yield f"[{''.join(letters)[:_BAR]}]"
    yield from (f"{percent(answer['parts'][part]):>10}  {PARTS[part]}" for part in PARTS)
    if answer["walk_is_separate"] and not answer["parts"]["walk"]:
        yield "No sample is in the walk."
    elif answer["parts"]["walk"] and not answer["walk_is_separate"]:
        yield "The walk takes less: this profile does not separate it from the rest of registering."
    if not answer["call_sites"]:
        yield "No sample registers one, so nothing is proposed. Heap profiles take time here too."
        return
    yield "Who registers or removes them:"
    for site in answer["call_sites"][:_SHOWN]:
        walk = f", the walk {percent(site['walk'])}" if site["walk"] else ""
        yield f"{percent(site['share']):>10}  {site['function']} ({site['calls']}{walk})"
    if others := answer["call_sites"][_SHOWN:]:
        yield f"{percent(sum(site['share'] for site in others)):>10}  {len(others)} others"
    if anyway := answer["registered_anyway"]:
        yield f"Closing and slabs save none of the {percent(anyway)} of weak pointers and Go's own"
        yield "types, such as os.File and net.Conn, which register even if they are closed."
    if not answer["remedies"]:
        yield f"Nothing is proposed: what could be saved has fewer than {FEWEST} samples."
        return
    yield "What would help: the share of the CPU time saved, and what would remain of these phases:"
    for remedy, shares in answer["remedies"].items():
        part = f": {percent(answer['slabs_save'])}" if remedy == "slabs" else ""
        saved, rest = percent(shares["saves"]), percent(shares["remains"])
        yield f"{saved:>10}{rest:>10}  {REMEDIES[remedy]}{part}"
    yield "No remedy saves the program's own functions, which have to free in any case."
    yield "The figures do not show what freeing later costs, such as page faults and cold memory."


def page(answer: dict[str, Any]) -> str:
    """The same as an HTML page that needs nothing else and runs no script."""
    title = "Finalizers, cleanups and weak pointers in a CPU profile"
    bar = "".join(
        f'<b style="width:{100 * share:.3f}%;background:{_COLOURS.get(letter, "#6e7781")}">'
        f"{letter}</b>"
        for letter, share in _shares(answer)
        if share
    )
    text = html.escape("\n".join(lines(answer, bar=False)))
    return f"""<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ margin: 1em auto; max-width: 60em; padding: 0 1em; font-family: sans-serif }}
div {{ display: flex; height: 2em; line-height: 2em }}
b {{ color: #ffffff; overflow: hidden; text-align: center; min-width: 2px }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere }}
</style>
<h1>{title}</h1>
<div aria-hidden="true">{bar}</div>
<pre>{text}</pre>
</html>
"""


def _shares(answer: dict[str, Any]) -> list[tuple[str, float]]:
    """The letters of the phases and of the rest, with their shares of the CPU time."""
    return [(PARTS[part][0], answer["parts"][part]) for part in (*stacks.PHASES, "rest")]


def _site(stack: tuple[str, ...], at: int) -> _Site:
    """The nearest function outside the runtime above that place, and what it calls there."""
    caller = next((i for i in range(at, -1, -1) if stacks.is_outside(stack[i])), -1)
    return stack[caller] if caller >= 0 else "(unknown)", stack[caller + 1].split("[")[0]


def load(source: str, say: Callable[[str], None]) -> profiles.Profile:
    """Read a profile from a file or a loopback URL; BadInput says why it cannot be explained."""
    wrong = partial(BadInput, location=source, hint=_HINT)
    try:
        data = profiles.unzipped(_fetch(source, say) if "://" in source else _start(source))
    except EOFError:
        raise wrong("it is truncated: the program ended before the profile did") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise wrong(f"it is damaged: {error}") from None
    except (OSError, ValueError, HTTPException) as error:
        raise wrong(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not data:
        raise wrong("it is empty: the program ended before the profile did")
    for start, kind in _FORMATS.items():
        if re.match(start, data[:4096]):
            raise wrong(f"it is {kind}, not a CPU profile of a Go program")
    try:
        profile = profiles.decode(data)
    except profiles.UNDECODABLE as error:
        raise wrong(f"it is not a CPU profile of a Go program: {error}") from None
    if any(map(_JAVA.match, profile.names)):
        raise wrong("it is a profile of a Java program")
    if profile.unnamed and not profile.stacks:
        raise wrong("it has no function names: the program was stripped")
    if profile.total <= 0:
        raise wrong("it has no samples: the program used no CPU meanwhile")
    return profile


def _start(path: str) -> bytes:
    """A file, or a little more of it than a profile can have."""
    with Path(path).open("rb") as file:
        return file.read(profiles.MOST + 1)


def _fetch(url: str, say: Callable[[str], None]) -> bytes:
    """What a server on this machine answers, without a proxy and without following redirects."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or not _LOOPBACK.fullmatch(host):
        raise ValueError("only http on a loopback address is fetched")
    asked = re.search(r"\bseconds=(\d+)", parts.query)
    seconds = int(asked[1]) if asked else 30
    if parts.path.endswith("/profile"):
        say(f"profiling for {seconds} s")
    with closing(HTTPConnection(host, parts.port, timeout=seconds + 30)) as server:
        server.request("GET", f"{parts.path or '/'}?{parts.query}")
        response = server.getresponse()
        body = response.read(profiles.MOST + 1)
    if response.status != 200:
        said = body.decode(errors="replace").strip()
        raise HTTPException(f"HTTP {response.status}: {said[:200]}")
    return body
