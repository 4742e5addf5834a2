"""Cloudflare: signing on many goroutines, and the effect of GOGC."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gccost.cases.versions import CLOUDFLARE_GO, TODAY_GO
from gccost.costs.stacks import GC_AND_LOCKS
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import (
    Amount,
    CyclesWithin,
    Ratio,
    SavedOverPrinted,
    Share,
    ShareOfTime,
)
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
    often = "how-often-a-cycle-runs"
    off = "with-the-gc-off"
    one = "Sign/goroutines=1"
    two = "Sign/goroutines=2"
    alone = "SignInTurns/goroutines=1"
    many = "SignInTurns/goroutines=48"
    without = "SignInTurns/goroutines=48/gogc=off"
    profile = Share("SignInTurns/goroutines=48/profile=cpu", GC_AND_LOCKS)
    most = Between(low=0.5, margin=1.0)
    yield claim("C4a", heap, CyclesWithin((many,), _HEAP), most)
    yield claim("C4b", often, Amount(many, "gc_cycle_op"), About())
    yield claim("C9", "does-it-scale", Ratio(one, two), Effect(), cores=2)
    yield claim("C11", heap, CyclesWithin((one, two, many), (_LIVE,)), most)
    yield claim("C13", often, Ratio(alone, many, "gc_cycle_op"), AtLeast())
    left = Shown("48 Ps that take turns on one CPU hardly ever contend for a lock")
    yield claim("X22", "the-profile-of-the-collapse", profile, left)
    yield claim("X23", off, Ratio(many, without, "cpu_ns"), left)
    larger = partial(Ratio, without, metric="cpu_ns")
    yield claim("X24a", off, larger("SignInTurns/goroutines=48/gogc=2400"), left)
    yield claim("X24b", off, larger("SignInTurns/goroutines=48/gogc=11300"), left)
    yield claim("X25", "48-ps-on-one-cpu", Ratio(many, alone, "cpu_ns"), left)
    smaller = Shown("gctrace divides by the time of 48 Ps, which share one CPU")
    yield claim("X30", off, SavedOverPrinted(many, without), smaller)
    slower = Shown("one CPU stops all 48 threads")
    yield claim("X53", off, ShareOfTime(many, "stopped_ms"), slower)


def _many_cpus() -> Iterator[Claim]:
    """The document's claims about many cores."""
    claim = partial(Claim, releases=RELEASES, cpus=LEAST_CPUS)
    scales = "does-it-scale"
    off = "with-the-gc-off"
    one = "Sign/goroutines=1"
    every = "Sign/goroutines=48"
    without = "Sign/goroutines=48/gogc=off"
    best = "Sign/goroutines=48/gogc=11300"
    half = "Sign/goroutines=24/gogc=11300"
    profile = Share("Sign/goroutines=48/profile=cpu", GC_AND_LOCKS)
    often = Amount(every, "gc_cycles_per_s")
    about = AtLeast(within=ABOUT)
    at_most = AtMost(within=ABOUT)
    yield claim("C1", scales, Ratio(every, "Sign/goroutines=17"), Effect())
    yield claim("C2", scales, Ratio(every, one, "cpu_ns"), about)
    yield claim("C3", "the-profile-of-the-collapse", profile, about)
    yield claim("C4", "how-often-a-cycle-runs", often, about)
    yield claim("C5", off, Ratio(every, without), Effect())
    yield claim("C6", off, Ratio(without, "Sign/goroutines=48/gogc=2400"), Effect())
    yield claim("C7", off, Ratio(one, best), Effect())
    yield claim("C8", scales, Ratio(half, best), AtLeast())
    yield claim("C10", off, SavedOverPrinted(every, without), Between(low=3.0))
    yield claim("C12", scales, Ratio(every, "Sign/goroutines=4"), Effect())
    yield claim("C14", scales, Ratio(one, every), at_most)


STUDY = Study(
    name="cloudflare",
    chapter="04-cloudflare",
    question="Does signing scale, and what does GOGC do for it?",
    cases=CASES,
    document=CLOUDFLARE_GO,
    claims=(*_many_cpus(), *_any_machine()),
    metric="cpu_ns",
)
