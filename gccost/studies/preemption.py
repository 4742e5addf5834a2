"""What Go 1.26 changed for Ps that share a CPU: where a preempted goroutine goes on."""

from __future__ import annotations

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtLeast

# Go 1.26 keeps a goroutine that was preempted to stop the world on its P. The runtime "requeue"
# is today's without this. The release of the issue is the last one before the change.
CASES = """
    tiny SignInTurns/goroutines=1|48/go=issue|today
    tiny SignInTurns/goroutines=48/runtime=requeue/go=today
"""
_MANY = "SignInTurns/goroutines=48"
_REQUEUED = Ratio(_MANY, f"{_MANY}/runtime=requeue", "cpu_ns")
_WHERE = "a-goroutine-that-stays-on-its-p"

STUDY = Study(
    name="preemption",
    report="standard",
    chapter="04-cloudflare",
    question="Why does a signature on 48 Ps take more CPU time since Go 1.26?",
    cases=CASES,
    document=TODAY_GO,
    claims=(Claim("X26", _WHERE, _REQUEUED, AtLeast(), (TODAY_GO,)),),
    metric="cpu_ns",
)
