"""What Go's runtime, and a JVM, do where a good guess is wrong, counted on each release.

The claims say what is documented or believed; a page shows what was seen next to it. All but the
two loops of malloc and free count, so that their figures are the same on every machine.
"""

from __future__ import annotations

from functools import partial

from gccost.cases.versions import (
    CLEANUP_GO,
    DOCUMENT_JDK,
    GO_RELEASES,
    TODAY_GO,
    TODAY_JDK,
    number,
)
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio
from gccost.judging.rules import AtLeast, AtMost

RELEASES = tuple(
    sorted((each for each in GO_RELEASES if number(each) >= number(CLEANUP_GO)), key=number)
)
"""The measured releases that have AddCleanup, the oldest first."""
_COUNTING = tuple(each for each in RELEASES if number(each) >= (1, 26))  # have metrics of queues
_ALL = "|".join(RELEASES)

# `neighbour` is what becomes of the value that was allocated after a handle; `owns` what the
# object has that leads back to it (a builder does not); `then` is what follows a loop.
CASES = f"""
    quick TinyFinalizer|TinyCleanup/neighbour=dropped|kept/go={_ALL}
    quick Neighbour|Inlined|InlinedLoop/go={_ALL}
    quick OwnerFinalizer|OwnerCleanup/owns=cond|list|writer|once|builder/go={_ALL}
    quick Argument/of=int|pointer|empty|string|closure/go={_ALL}
    quick BlockingFinalizer|BlockingCleanup/go={_ALL}
    quick RecordsPlain|RecordsFinalizer|RecordsCleanup|RecordsAdopted/go={_ALL}
    quick RecordsGuardian|RecordsClosed/go={_ALL}
    quick Registers/call=stat|readfile|readdir|run|output/go={_ALL}
    quick Registers/call=dial|handshake|unique|ed25519|ecdsa/go={_ALL}
    quick Loop/then=sleep|clock|gosched|collect/go={CLEANUP_GO}|today
    quick Pass/annotations=none|noescape|nocallback|both/go={_ALL}
    quick PairPlain|PairAnnotated/go={_ALL}
"""

_TINY, _CYCLE, _STAYS = "handles-without-pointers", "cycles", "memory-that-stays"
_PRICE = "08a-details#what-addcleanup-allocates-itself"
_SEE, _OWN = "how-to-see-it", "your-own-benchmarks"
_UNASKED = "10-in-real-programs#registered-without-being-asked"
_WASM, _CGO = "10a-without-c#in-webassembly", "08-instead#noescape-and-nocallback"
_claim = partial(Claim, releases=RELEASES)
_both = partial(Claim, releases=(CLEANUP_GO, TODAY_GO))  # the same on those in between
_today = partial(Claim, releases=(TODAY_GO,))
_counted = partial(Claim, releases=_COUNTING)
# Counts and shares, without noise that is proportional to them.
_AT_LEAST, _AT_MOST = AtLeast(margin=1.0), AtMost(margin=1.0)


def _ran(case: str) -> Amount:
    """The share of forgotten objects whose finalizer or cleanup runs."""
    return Amount(case, "ran_share")


def _stays(way: str) -> Amount:
    """The bytes off the heap that stay of an object that was freed."""
    return Amount(f"Records{way}", "off_heap_bytes")


def _shown(what: str, means: str) -> Amount:
    """Whether that means shows one that blocks: 1, or 0."""
    return Amount(f"Blocking{what}", f"by_{means}")


def _registers(kind: str, call: str) -> Amount:
    """The finalizers or cleanups that a call of the standard library registers."""
    return Amount(f"Registers/call={call}", kind)


def _allocations(case: str) -> Amount:
    return Amount(case, "allocs_per_op")


_YIELDED = Amount("Loop/then=gosched", "ran_share_yielded")
_ANNOTATED = Ratio("PairAnnotated", "PairPlain")

STUDY = Study(
    name="truths",
    report="standard",
    chapter="08b-late",
    question="Where is a good guess about finalizers and cleanups wrong?",
    cases=CASES,
    document=TODAY_GO,
    claims=(
        _claim("X41a", _TINY, _ran("TinyCleanup/neighbour=dropped"), _AT_LEAST),
        _both("X41b", _TINY, _ran("TinyFinalizer/neighbour=kept"), _AT_LEAST),
        _claim("X41c", _TINY, Amount("Neighbour", "panic_share"), _AT_MOST),
        _both("X42a", _CYCLE, _ran("OwnerFinalizer/owns=cond"), _AT_LEAST),
        _both("X42b", _CYCLE, _ran("OwnerCleanup/owns=cond"), _AT_LEAST),
        _both("X43a", _STAYS, _stays("Finalizer"), _AT_MOST),
        _both("X43b", _STAYS, _stays("Cleanup"), _AT_MOST),
        _both("X43c", _STAYS, _stays("Adopted"), _AT_MOST),
        _both("X43d", _STAYS, _stays("Closed"), _AT_MOST),
        _both("X44", _PRICE, _allocations("Argument/of=int"), _AT_MOST),
        _counted("X45a", _SEE, Amount("BlockingFinalizer", "executed"), _AT_LEAST),
        _counted("X45b", _SEE, Amount("BlockingCleanup", "executed"), _AT_LEAST),
        _both("X45c", _SEE, _shown("Finalizer", "numgoroutine"), _AT_LEAST),
        _both("X45d", _SEE, _shown("Finalizer", "profile_text"), _AT_LEAST),
        _today("X49a", _SEE, _shown("Finalizer", "leak_profile"), _AT_LEAST),
        _today("X49b", _SEE, _shown("Cleanup", "leak_profile"), _AT_LEAST),
        _claim("X46", _OWN, _allocations("InlinedLoop"), _AT_MOST),
        _today("X47a", _WASM, _ran("Loop/then=gosched"), _AT_LEAST),
        _today("X47b", _WASM, _YIELDED, _AT_LEAST),
        _both("X48a", _CGO, _allocations("Pass/annotations=noescape"), _AT_MOST),
        _both("X48b", _CGO, _allocations("Pass/annotations=both"), _AT_MOST),
        _both("X48c", _CGO, _ANNOTATED, AtMost()),
        _both("X50a", _UNASKED, _registers("finalizers", "readfile"), _AT_MOST),
        _both("X50b", _UNASKED, _registers("finalizers", "run"), _AT_MOST),
        _both("X50c", _UNASKED, _registers("cleanups", "unique"), _AT_MOST),
        _both("X50d", _UNASKED, _registers("cleanups", "ed25519"), _AT_MOST),
    ),
    metric="ran_share",
)


_JAVA = "in-java"
_jvm = partial(Claim, releases=(DOCUMENT_JDK, TODAY_JDK))

JAVA = Study(
    name="surprises",
    report="standard",
    chapter="08b-late",
    question="Where is a good guess about a Cleaner or finalize wrong?",
    cases="""
    quick BlockedCleaner|ThrowingAction|InnerAction/jdk=all
    quick EmptyFinalize|SuperFinalize|Registrations/jdk=all
    quick YoungCollections/gc=Serial|G1/jdk=all
    quick YoungCollections/gc=Z/jdk=today
""",
    document=TODAY_JDK,
    claims=(
        _jvm("X51a", _JAVA, Amount("BlockedCleaner", "oldest_first"), _AT_LEAST),
        _jvm("X51b", _JAVA, Amount("ThrowingAction", "reported_share"), _AT_LEAST),
        _jvm("X51c", _JAVA, Amount("ThrowingAction", "ran_share"), _AT_LEAST),
        _jvm("X51d", _JAVA, Amount("InnerAction", "ran_share"), _AT_LEAST),
        _jvm("X51e", _JAVA, Amount("EmptyFinalize", "registered_per_op"), _AT_LEAST),
        Claim("X52", _JAVA, Amount("YoungCollections/gc=Z", "ran_share"), _AT_LEAST, (TODAY_JDK,)),
    ),
    metric="ran_share",
)
