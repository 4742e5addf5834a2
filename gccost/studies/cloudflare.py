"""Cloudflare: signing on many goroutines, and the effect of GOGC."""

from __future__ import annotations

from functools import partial

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Amount, Ratio, Share
from gccost.judging.rules import About, AtLeast, AtMost, Effect
from gccost.judging.stacks import GC_AND_LOCKS
from gccost.measuring.toolchains import CLOUDFLARE_GO, TODAY_GO

LEAST_CPUS = 16  # the fewest that can test the claims about many cores
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


def _claims() -> tuple[Claim, ...]:
    claim = partial(Claim, releases=(CLOUDFLARE_GO, TODAY_GO), cpus=LEAST_CPUS)
    one, all_cpus = "Sign/goroutines=1", "Sign/goroutines=48"
    best, half = f"{all_cpus}/gogc=11300", "Sign/goroutines=24/gogc=11300"
    off = f"{all_cpus}/gogc=off"
    profile = Share(f"{all_cpus}/profile=cpu", GC_AND_LOCKS)
    return (
        claim("C1", "does-it-scale", Ratio(all_cpus, "Sign/goroutines=17"), Effect()),
        claim("C2", "does-it-scale", Ratio(one, all_cpus, "cpu_ns"), AtMost()),
        claim("C3", "the-profile-of-the-collapse", profile, AtLeast()),
        claim("C4", "a-cycle-every-millisecond", Amount(all_cpus, "gc_cycles_per_s"), About()),
        claim("C5", "with-the-gc-off", Ratio(all_cpus, off), Effect()),
        claim("C6", "with-the-gc-off", Ratio(off, f"{all_cpus}/gogc=2400"), Effect()),
        claim("C7", "with-the-gc-off", Ratio(one, best), Effect()),
        claim("C8", "does-it-scale", Ratio(half, best), AtLeast()),
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
