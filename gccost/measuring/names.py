"""The names of benchmarks in words, for frames and charts."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "AllocateFree": "manual free",
    "AllocateDefer": "freed by defer",
    "AllocateHeapFree": "heap handle, manual free",
    "AllocateCleanup": "AddCleanup frees",
    "AllocateAuto": "finalizer frees",
    "AllocateDummy": "finalizer does nothing",
    "AllocateOnly": "allocated, never freed",
    "EmptyFinalizer": "empty finalizer, no C",
    "Allocate": "allocated only",
    "Finalize": "with a finalizer",
    "Cleanup": "with a cleanup",
    "UntilFreePlain": "plain object",
    "UntilFreeCleanup": "with a cleanup",
    "UntilFreeFinalizer": "with a finalizer",
    "ParallelFree": "manual free",
    "ParallelCleanup": "AddCleanup frees",
    "ParallelAuto": "finalizer frees",
    "AttachFinalizer": "SetFinalizer alone",
    "AttachCleanup": "AddCleanup alone",
    "ParallelSlab": "slabs of 64",
    "ParallelSlabCrowded": "slabs, all in C at once",
    "Manual": "manual free, one C heap",
    "Batch": "manual free, batches of 256",
    "Reuse": "slabs, blocks used again",
    "Slab": "slabs",
    "SlabUnseen": "unseen by the GC: slabs",
    "Adopted": "adopted: slabs",
    "AdoptedClose": "adopted and closed: slabs",
    "SlabClose": "closed, with a net: slabs",
    "SlabCloseAtOnce": "freed at each Close: slabs",
    "SlabSurvivors": "slabs",
    "Pinned": "pinned Go memory, no C",
    "Stop": "closed, with a net: Cleanup.Stop",
    "LastFirst": "AddCleanup, last handle first",
    "Padded": "AddCleanup, handle of 64 bytes",
    "Registry": "registry of weak pointers",
    "LiveManual": "manual free",
    "LiveSlab": "slab and Close",
    "LiveCleanup": "Close and Stop",
    "LiveFinalizer": "Close and SetFinalizer(nil)",
    "OneHeapCleanup": "AddCleanup frees, one C heap",
    "OneHeapFinalizer": "finalizer frees, one C heap",
    "HeapManual": "manual free",
    "HeapSlab": "slabs of 64",
    "HeapCleanup": "AddCleanup frees",
    "HeapFinalizer": "finalizer frees",
    "LatencyManual": "manual free",
    "LatencySlab": "slabs of 64",
    "LatencySlabClose": "slabs of 64, closed",
    "LatencyAdopted": "slabs of 64, adopted",
    "LatencyCleanup": "AddCleanup frees",
    "LatencyFinalizer": "finalizer frees",
    "Nothing": "an idle JVM",
    "Plain": "plain",
    "Cleaner": "Cleaner",
    "LeakNaive": "allocate, then register",
    "LeakRegisterFirst": "register first",
    "LeakTryCatch": "free if it fails",
    "Removed": "plain, may be removed",
    "Escaping": "plain, must be allocated",
    "Cleaned": "with a Cleaner",
    "Finalized": "with a finalizer",
    "Sign": "signing, all CPUs",
    "SignInTurns": "signing, Ps in turns",
    "Serve": "a server's garbage",
    "ServeBallast": "with a ballast",
    "ServeTuner": "with a tuner",
}
"""What each benchmark compares, in words: the column `variant`."""

EXPERIMENTS: Mapping[str, str] = {
    benchmark: experiment
    for prefix, experiment in {
        "Allocate": "one by one",
        "Parallel": "shared work",
        "Attach": "registering",
        "UntilFree": "GC cycles until freed",
        "Live": "many live",
        "Heap": "next to a large heap",
        "Latency": "slowest operations",
        "SlabSurvivors": "one in 100 survives",
    }.items()
    for benchmark in NAMES
    if benchmark.startswith(prefix) and benchmark != "Allocate"
}
"""The experiment of benchmarks that share a name; empty for all others."""
