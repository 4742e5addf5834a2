"""How the stacks of a CPU profile are sorted.

A share is that of the stacks that hold any of the functions anywhere, so shares
overlap and need not add up. Names changed between releases; all are listed.
"""

from __future__ import annotations

SETTING = ("runtime.SetFinalizer",)
LINKING_IN = ("runtime.addspecial",)
SPLICE_POINT = ("runtime.(*mspan).specialFindSplicePoint",)
# What a stack holds that is there because the program allocates.
# From Go 1.27 on the compiler calls a variant for the object's size by itself.
ALLOCATING = ("runtime.mallocgc*", "runtime.newobject")
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
# Finding what has a finalizer, queueing it, and calling it.
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
LOCKING = ("runtime.lock2", "runtime.unlock2")
CALLING_C = ("runtime.cgocall",)
# What the GC costs in addition to its own work: waiting for its locks and for the world.
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
# As the document's profile names them; sweeping and marking are above.
COLLECTING_THEN = (
    "runtime.gcmarknewobject",
    "runtime.(*lfstack).pop",
    "runtime.(*gcSweepBuf).push",
)
GC_AND_LOCKS = (*COLLECTING, *COLLECTING_THEN, *WAITING)
