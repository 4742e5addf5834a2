"""Release by release: the ways to free C memory, and their parts, on every Go release."""

from __future__ import annotations

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast
from gccost.measuring.toolchains import TODAY_GO

# Go 1.26 keeps a goroutine that was preempted to stop the world on its P. The runtime "requeue"
# is today's without this.
_SIGN = "SignInTurns/goroutines=48"
_REQUEUED = Ratio(_SIGN, f"{_SIGN}/runtime=requeue", "cpu_ns")
_WHERE = "04-cloudflare#a-goroutine-that-stays-on-its-p"
# The sizes (pointer words) are the ends of sean's table. An interval of less than 5 % needs
# the rounds.
STUDY = Study(
    name="releases",
    chapter="06-release-by-release",
    question="Which release changed what cleanup costs?",
    cases="""
    tiny AcrossFree|AcrossCall|AcrossMalloc|AcrossHeapFree|AcrossFinalizer|AcrossCleanup/go=all
    tiny AcrossSlab/go=all
    tiny AcrossAllocate|AcrossFinalize/words=1|512/go=all
    tiny AcrossAttach|AcrossLive/go=all
    tiny SignInTurns/goroutines=1|48/gogc=100|400/go=all
    tiny SignInTurns/goroutines=48/runtime=requeue/go=today
    """,
    report="",
    document=TODAY_GO,
    claims=(Claim("X26", _WHERE, _REQUEUED, AtLeast(), (TODAY_GO,)),),
    rounds=8,
)
