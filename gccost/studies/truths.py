"""What Go's runtime, and a JVM, do where a good guess is wrong, counted on each release.

The claims say what is documented or believed; a page shows what was seen next to it. All but the
two loops of malloc and free count, so that their figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator

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

_WITH_CLEANUPS = [each for each in GO_RELEASES if number(each) >= number(CLEANUP_GO)]
RELEASES = tuple(sorted(_WITH_CLEANUPS, key=number))
"""The measured releases that have AddCleanup, the oldest first."""
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

# A line for each claim: its releases, its heading (or a word of _ELSEWHERE), its rule, the case and
# the metric. What is the same on the releases in between is judged on the first and the last.
CLAIMS = """
    X41a all   handles-without-pointers  at-least TinyCleanup/neighbour=dropped    ran_share
    X41b both  handles-without-pointers  at-least TinyFinalizer/neighbour=kept     ran_share
    X41c all   handles-without-pointers  at-most  Neighbour                        panic_share
    X42a both  cycles                    at-least OwnerFinalizer/owns=cond         ran_share
    X42b both  cycles                    at-least OwnerCleanup/owns=cond           ran_share
    X43a both  memory-that-stays         at-most  RecordsFinalizer                 off_heap_bytes
    X43b both  memory-that-stays         at-most  RecordsCleanup                   off_heap_bytes
    X43c both  memory-that-stays         at-most  RecordsAdopted                   off_heap_bytes
    X43d both  memory-that-stays         at-most  RecordsClosed                    off_heap_bytes
    X44  both  price                     at-most  Argument/of=int                  allocs_per_op
    X45a queue how-to-see-it             at-least BlockingFinalizer                executed
    X45b queue how-to-see-it             at-least BlockingCleanup                  executed
    X45c both  how-to-see-it             at-least BlockingFinalizer                by_numgoroutine
    X45d both  how-to-see-it             at-least BlockingFinalizer                by_profile_text
    X49a today how-to-see-it             at-least BlockingFinalizer                by_leak_profile
    X49b today how-to-see-it             at-least BlockingCleanup                  by_leak_profile
    X46  all   your-own-benchmarks       at-most  InlinedLoop                      allocs_per_op
    X47a today webassembly               at-least Loop/then=gosched                ran_share
    X47b today webassembly               at-least Loop/then=gosched                ran_share_yielded
    X48a both  annotations               at-most  Pass/annotations=noescape        allocs_per_op
    X48b both  annotations               at-most  Pass/annotations=both            allocs_per_op
    X50a both  unasked                   at-most  Registers/call=readfile          finalizers
    X50b both  unasked                   at-most  Registers/call=run               finalizers
    X50c both  unasked                   at-most  Registers/call=unique            cleanups
    X50d both  unasked                   at-most  Registers/call=ed25519           cleanups
"""
CASES_OF_JAVA = """
    quick BlockedCleaner|ThrowingAction|InnerAction/jdk=all
    quick EmptyFinalize|SuperFinalize|Registrations/jdk=all
    quick YoungCollections/gc=Serial|G1/jdk=all
    quick YoungCollections/gc=Z/jdk=today
"""
CLAIMS_OF_JAVA = """
    X51a jdks  in-java  at-least BlockedCleaner         oldest_first
    X51b jdks  in-java  at-least ThrowingAction         reported_share
    X51c jdks  in-java  at-least ThrowingAction         ran_share
    X51d jdks  in-java  at-least InnerAction            ran_share
    X51e jdks  in-java  at-least EmptyFinalize          registered_per_op
    X52  jdk   in-java  at-least YoungCollections/gc=Z  ran_share
"""
_ELSEWHERE = {
    "price": "08a-details#what-addcleanup-allocates-itself",
    "webassembly": "10a-without-c#in-webassembly",
    "annotations": "08-instead#noescape-and-nocallback",
    "unasked": "10-in-real-programs#registered-without-being-asked",
}


def _releases(word: str) -> tuple[str, ...]:
    """The releases that a line of claims names."""
    if word == "all":
        return RELEASES
    if word == "both":
        return CLEANUP_GO, TODAY_GO
    if word == "queue":  # has metrics
        return tuple(each for each in RELEASES if number(each) >= (1, 26))
    if word == "today":
        return (TODAY_GO,)
    if word == "jdks":
        return DOCUMENT_JDK, TODAY_JDK
    return (TODAY_JDK,)


# Counts and shares, without noise that is proportional to them.
_RULES = {"at-least": AtLeast(margin=1.0), "at-most": AtMost(margin=1.0)}


def _claims(table: str) -> Iterator[Claim]:
    """The claims of a table's lines."""
    for line in filter(None, table.splitlines()):
        claim, releases, heading, rule, case, metric = line.split()
        anchor = _ELSEWHERE.get(heading, heading)
        quantity = Amount(case, metric)
        yield Claim(claim, anchor, quantity, _RULES[rule], _releases(releases))


_TIMED = Ratio("PairAnnotated", "PairPlain")
_CHEAPER = Claim("X48c", _ELSEWHERE["annotations"], _TIMED, AtMost(), _releases("both"))

STUDY = Study(
    name="truths",
    report="standard",
    chapter="08b-late",
    question="Where is a good guess about finalizers and cleanups wrong?",
    cases=CASES,
    document=TODAY_GO,
    claims=(*_claims(CLAIMS), _CHEAPER),
    metric="ran_share",
)


JAVA = Study(
    name="surprises",
    report="standard",
    chapter="08b-late",
    question="Where is a good guess about a Cleaner or finalize wrong?",
    cases=CASES_OF_JAVA,
    document=TODAY_JDK,
    claims=tuple(_claims(CLAIMS_OF_JAVA)),
    metric="ran_share",
)
