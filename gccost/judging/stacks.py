"""Functions that classify the stacks of a CPU profile.

A share counts the stacks that contain any of its functions, so shares overlap. Function
names changed between releases; all of them are listed.
"""

from __future__ import annotations

SETTING = ("runtime.SetFinalizer",)
LINKING_IN = ("runtime.addspecial",)
SPLICE_POINT = ("runtime.(*mspan).specialFindSplicePoint",)
# From Go 1.27 on the compiler calls a mallocgc variant for the object's size.
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
