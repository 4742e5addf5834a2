"""Cloudflare: signing on many goroutines, and the effect of GOGC."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.cases.versions import CLOUDFLARE_GO, TODAY_GO
from gccost.costs.stacks import GC_AND_LOCKS
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, CyclesWithin, Ratio, SavedOverPrinted, Share
from gccost.judging.rules import ABOUT, About, AtLeast, AtMost, Between, Effect, Shown

LEAST_CPUS = 16  # the fewest that can test the claims about many cores
RELEASES = (CLOUDFLARE_GO, TODAY_GO)
# The document's sweeps, with as many Ps as CPUs: its machine has 48. Then the mechanism on any
# number of CPUs: Ps, one goroutine each, take turns on one. 11300 is the document's best GOGC.
CASES = """
    thorough Sign/goroutines=1..96/gogc=100|11300/go=cloudflare|today
    standard Sign/goroutines=1..4|6..96..2/gogc=100|11300/go=cloudflare|today
    tiny Sign/goroutines=1|2|4|8|12|17|24|32|48|64|96/gogc=100|11300/go=cloudflare|today
    thorough Sign/goroutines=48/gogc=100..20000..100|off/go=cloudflare|today
    standard Sign/goroutines=48/gogc=300|600|1200|1600|8000|16000|20000/go=cloudflare|today
    tiny Sign/goroutines=48/gogc=100|200|400|800|2400|4800|11300|off/go=cloudflare|today
    tiny Sign/goroutines=48/gogc=100|11300/profile=cpu/go=cloudflare|today
    standard SignInTurns/goroutines=1|4..40..4|48|64|96/go=cloudflare|today
    tiny SignInTurns/goroutines=1|8|16|24|32|48/go=cloudflare|today
    thorough SignInTurns/goroutines=48/gogc=100..20000..100|off/go=cloudflare|today
    standard SignInTurns/goroutines=48/gogc=300|600|1200|1600|2400|4800/go=cloudflare|today
    standard SignInTurns/goroutines=48/gogc=8000|11300|16000|20000/go=cloudflare|today
    tiny SignInTurns/goroutines=48/gogc=100|200|400|800|off/go=cloudflare|today
    standard SignInTurns/goroutines=48/gogc=100|400/profile=cpu/go=cloudflare|today
    tiny SignInTurns/goroutines=48/control=relinked/go=today
"""


# A ratio of throughputs is the inverse ratio of times per operation.

# Sizes (MB) in the lines of gctrace that the document prints.
_LIVE = ("live_mb", 0, 1)
_HEAP = (("start_mb", 4, 4), _LIVE, ("goal_mb", 5, 6))


def _any_machine() -> Iterator[Claim]:
    """The document's claims that need no 16 CPUs, and what is left of others on one."""
    claim, heap = partial(Claim, releases=RELEASES), "the-heap"
    many, one, two = "SignInTurns/goroutines=48", "Sign/goroutines=1", "Sign/goroutines=2"
    off, alone = f"{many}/gogc=off", "SignInTurns/goroutines=1"
    most = Between(low=0.5, margin=1.0)
    profile = Share(f"{many}/profile=cpu", GC_AND_LOCKS)
    yield claim("C4a", heap, CyclesWithin((many,), _HEAP), most)
    yield claim("C4b", "how-often-a-cycle-runs", Amount(many, "gc_cycle_op"), About())
    yield claim("C9", "does-it-scale", Ratio(one, two), Effect(), cores=2)
    yield claim("C11", heap, CyclesWithin((one, two, many), (_LIVE,)), most)
    oftener = Ratio(alone, many, "gc_cycle_op")
    yield claim("C13", "how-often-a-cycle-runs", oftener, AtLeast())
    left = Shown("48 Ps that take turns on one CPU hardly ever contend for a lock")
    yield claim("X22", "the-profile-of-the-collapse", profile, left)
    yield claim("X23", "with-the-gc-off", Ratio(many, off, "cpu_ns"), left)
    for name, gogc in (("X24a", "2400"), ("X24b", "11300")):
        larger = Ratio(off, f"{many}/gogc={gogc}", "cpu_ns")
        yield claim(name, "with-the-gc-off", larger, left)
    yield claim("X25", "48-ps-on-one-cpu", Ratio(many, alone, "cpu_ns"), left)
    smaller = Shown("gctrace divides by the time of 48 Ps, which share one CPU")
    yield claim("X30", "with-the-gc-off", SavedOverPrinted(many, off), smaller)


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=RELEASES, cpus=LEAST_CPUS)
    one, all_cpus = "Sign/goroutines=1", "Sign/goroutines=48"
    best, half = f"{all_cpus}/gogc=11300", "Sign/goroutines=24/gogc=11300"
    off = f"{all_cpus}/gogc=off"
    profile = Share(f"{all_cpus}/profile=cpu", GC_AND_LOCKS)
    about = AtLeast(within=ABOUT)
    return (
        claim("C1", "does-it-scale", Ratio(all_cpus, "Sign/goroutines=17"), Effect()),
        claim("C2", "does-it-scale", Ratio(all_cpus, one, "cpu_ns"), about),
        claim("C3", "the-profile-of-the-collapse", profile, about),
        claim("C4", "how-often-a-cycle-runs", Amount(all_cpus, "gc_cycles_per_s"), about),
        claim("C5", "with-the-gc-off", Ratio(all_cpus, off), Effect()),
        claim("C6", "with-the-gc-off", Ratio(off, f"{all_cpus}/gogc=2400"), Effect()),
        claim("C7", "with-the-gc-off", Ratio(one, best), Effect()),
        claim("C8", "does-it-scale", Ratio(half, best), AtLeast()),
        claim("C10", "with-the-gc-off", SavedOverPrinted(all_cpus, off), Between(low=3.0)),
        claim("C12", "does-it-scale", Ratio(all_cpus, "Sign/goroutines=4"), Effect()),
        claim("C14", "does-it-scale", Ratio(one, all_cpus), AtMost(within=ABOUT)),
        *_any_machine(),
    )


STUDY = Study(
    name="cloudflare",
    chapter="04-cloudflare",
    question="Does signing scale, and what does GOGC do for it?",
    cases=CASES,
    document=CLOUDFLARE_GO,
    claims=_claims(),
    metric="cpu_ns",
)
