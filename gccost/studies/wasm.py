"""Go in WebAssembly, which makes an object with a finalizer for each JavaScript object or
string that it receives."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtMost, Same
from gccost.measuring.cases import Case, Variant, each
from gccost.measuring.toolchains import TODAY_GO
from gccost.studies.runtime import HINT, INDEX, patched

# === Cases ===========================================================================

PROGRAM = "wasm"
OBJECT, NUMBER = Variant("WasmObject"), Variant("WasmNumber")
TREE, NUMBERED, INSIDE = (Variant(f"WasmTree{how}") for how in ("", "Numbers", "Inside"))
_CALLS = 400_000  # a second or two on stock


def _cases() -> Iterator[Case]:
    for variant in (OBJECT, TREE):
        for runtime in ("", HINT, INDEX):
            yield Case(PROGRAM, patched(variant, runtime), TODAY_GO, _CALLS)
    yield from each(PROGRAM, (NUMBER, NUMBERED, INSIDE), TODAY_GO, _CALLS, "standard")


# === Claims ==========================================================================


def _claims() -> Iterator[Claim]:
    for name, over, under, rule in (
        ("X14a", patched(OBJECT), OBJECT, AtMost()),
        ("X14b", patched(TREE), TREE, AtMost()),
        ("X14c", patched(OBJECT, HINT), patched(OBJECT), Same()),
        ("X14d", NUMBERED, TREE, AtMost()),
    ):
        yield Claim(name, "in-webassembly", Ratio(over, under, "cpu_ns"), rule, (TODAY_GO,))


# === The study =======================================================================

STUDY = Study(
    name="wasm",
    quick=False,
    chapter="10a-without-c",
    question="How much of the time of Go in WebAssembly is the walk?",
    cases=tuple(_cases()),
    document=TODAY_GO,
    claims=tuple(_claims()),
)
