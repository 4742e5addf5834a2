"""Functions that classify the stacks of a CPU profile.

A share counts the stacks that contain any of its functions, so shares overlap; only those of
PHASES do not. Function names changed between releases; all of them are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from gccost import paths
from gccost.files import read_text
from gccost.run.profiles import Profile

SETTING = ("runtime.SetFinalizer",)
LINKING_IN = ("runtime.addspecial",)
SPLICE_POINT = ("runtime.(*mspan).specialFindSplicePoint",)
SWEEPING = (
    "runtime.(*sweepLocked).sweep",
    "runtime.(*mspan).sweep",
    "runtime.sweepone",
    "runtime.bgsweep",
    "runtime.deductSweepCredit",
)
MARKING = (
    "runtime.gcBgMarkWorker",
    "runtime.gcAssistAlloc",
    "runtime.gcAssistAlloc1",
    "runtime.gcStart",
    "runtime.gcMarkDone",
    "runtime.gcMarkTermination",
    "runtime.gcDrain",
)
# Finding objects with a finalizer, queueing finalizers, and running them.
FINALIZING = (
    "runtime.freeSpecial",
    "runtime.freespecial",
    "runtime.queuefinalizer",
    "runtime.markrootSpans",
    "runtime.gcScanFinalizer",
    "runtime.gcScanCleanup",
    "runtime.runfinq",
    "runtime.runFinalizers",
    "runtime.runCleanups",
)
COLLECTING = (*SWEEPING, *MARKING, *FINALIZING)
ALLOCATING = ("runtime.mallocgc*", "runtime.newobject")
LOCKING = ("runtime.lock2", "runtime.unlock2")
CALLING_C = ("runtime.cgocall",)
# Waiting for the GC's locks, and stopping and starting the world.
WAITING = (
    *LOCKING,
    "runtime.lock",
    "runtime.unlock",
    "runtime.futex",
    "runtime.procyield*",
    "runtime.osyield*",
    "runtime.stopTheWorldWithSema",
    "runtime.startTheWorldWithSema",
)
# Further functions of the document's profile, which predates those above.
COLLECTING_THEN = (
    "runtime.gcmarknewobject",
    "runtime.(*lfstack).pop",
    "runtime.(*gcSweepBuf).push",
)
GC_AND_LOCKS = (*COLLECTING, *COLLECTING_THEN, *WAITING)

# The phases of a special's life: finalizers, cleanups and weak pointers. The innermost function
# of a stack that is here or in OTHER_WORK decides the phase, so no time counts twice. These are
# regular expressions for the whole name, as a closure of AddCleanup[...] runs the cleanup.
PHASES = {
    "registering": (
        r"runtime\.SetFinalizer",
        r"runtime\.AddCleanup(\[.*\])?",
        r"runtime\.(\(\*Cleanup\)|Cleanup)\.Stop",
        r"runtime\.(addfinalizer|removefinalizer|addCleanup)",
        r"(internal/)?weak\.(Make(\[.*\])?|runtime_registerWeakPointer)",
        r"runtime\.(getOrAddWeakHandle|getWeakHandle)",
    ),
    "marking": (r"runtime\.(markrootSpans|gcScanFinalizer|gcScanCleanup)",),
    "sweeping": (
        r"runtime\.free[sS]pecial",
        r"runtime\.(newSpecialsIter|\(\*specialsIter\)\..*)",
    ),
    "running": (
        r"runtime\.(queuefinalizer|wakefing|runfinq|runFinalizers|runCleanups)",
        r"runtime\.\(\*cleanupQueue\)\.(enqueue|flush|needsWake|wake)",
        r"unique\.runtime_registerUniqueMapCleanup.*",  # of Go 1.23 and 1.24
    ),
    "resolving": (
        r"(internal/)?weak\.(Pointer(\[.*\])?\.Value|runtime_makeStrongFromWeak)",
        r"runtime\.gcParkStrongFromWeak",
    ),
}
# The goroutines that run finalizers and cleanups.
RUNNERS = re.compile(r"runtime\.(runfinq|runFinalizers|runCleanups)")
# The part of running that is in the program's own finalizers and cleanups.
FUNCTIONS = "functions"
# Work of no phase: the sweep of a span, whose loop over the specials is not a function
# of its own; and a heap profile's records, which are in the same lists.
OTHER_WORK = {
    "sweep_loop": (r"runtime\.\(\*(sweepLocked|mspan)\)\.sweep",),
    "sampling": (r"runtime\.(setprofilebucket|mProf_Free)",),
}
_GROUPS = [f"(?P<{name}>{'|'.join(of)})" for name, of in (PHASES | OTHER_WORK).items()]
_PHASE = re.compile("|".join(_GROUPS))
# In older releases, such as Go 1.20, the walk is part of these, not a function of its own.
WALKING = (*LINKING_IN, "runtime.removespecial")
# The runtime and Go's packages that register for their callers, by how names begin.
RUNTIME = ("runtime.", "runtime/", "internal/", "weak.", "unique.")
# Packages that Go's own packages have for themselves, also in toolchains of vendors.
_VENDORED = re.compile(r"vendor/|crypto/internal/backend(/|\Z)")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[/\\]")
# gosrc/slab, wherever a copy of it was published, and what waits for a lock.
SLAB = re.compile(r"(.*/)?slab\.(\(\*(core|started|Pool)|Handle|Use|as)\[.*")
SLOW_LOCK = ("sync.(*Mutex).lockSlow", "internal/sync.(*Mutex).lockSlow", "runtime.Gosched")


def classified(profile: Profile) -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """The stacks with a phase: it, the stack, the place of the function that decides, the time."""
    phase_of = {}
    for name in profile.names:
        match = _PHASE.fullmatch(name)
        if match:
            phase_of[name] = str(match.lastgroup)
    for stack, time in profile.stacks:
        for place in reversed(range(len(stack))):
            phase = phase_of.get(stack[place])
            if phase:
                yield phase, stack, place, time
                break


@cache
def _go_packages() -> frozenset[str]:
    return frozenset(read_text(paths.GO_PACKAGES).split())


def package(function: str) -> str:
    """The import path of a function's package."""
    return re.sub(r"\.[^/]*$", "", function.partition("[")[0])


@cache
def of_go(profile: Profile) -> frozenset[str]:
    """The functions on a profile's stacks that are of Go's own packages.

    The files of the runtime's functions say where the sources of the toolchain are, which may be
    a vendor's with packages of its own. Without such files, as with -trimpath, names decide.
    Names of assembly and of C functions have no dot.
    """
    files = profile.files
    runtime = [file for name, file in files.items() if package(name) == "runtime"]
    folders = {_sources(file) for file in runtime} - {""}
    names = set()
    for name in profile.names:
        if "." in name and _is_go(package(name), files.get(name, ""), tuple(folders)):
            names.add(name)
    return frozenset(names)


def _sources(file: str) -> str:
    """The folder of Go's sources, of a file of package runtime; empty if it is cut off."""
    match = re.fullmatch(r"(.+/)runtime/[^/]+", file)
    return match[1] if match else ""


def _is_go(package: str, file: str, roots: tuple[str, ...]) -> bool:
    if roots and _ABSOLUTE.match(file):
        return file.startswith(roots)
    if "@" in file:  # a module and its version
        return False
    return package in _go_packages() or bool(_VENDORED.match(package))


def is_outside(function: str, go: frozenset[str]) -> bool:
    """Whether it is neither the runtime's nor assembly; `go` has the functions of Go."""
    is_runtime = function.startswith(RUNTIME) and function in go
    return "." in function and not is_runtime


@cache
def phases(profile: Profile) -> Mapping[str, float]:
    """The share (0 to 1) of a profile in each phase, and in FUNCTIONS."""
    times = Counter[str]()
    go = of_go(profile)
    for phase, stack, place, time in classified(profile):
        called = stack[place:]
        if phase == "running" and any(is_outside(function, go) for function in called):
            phase = FUNCTIONS
        times[phase] += time
    return {name: times[name] / profile.total for name in (*PHASES, FUNCTIONS)}
