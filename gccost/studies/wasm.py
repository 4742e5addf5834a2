"""Go in WebAssembly, which makes an object with a finalizer for each JavaScript object or
string that it receives."""

from __future__ import annotations

from collections.abc import Iterator

from gccost.cases.versions import TODAY_GO
from gccost.judging.claims import Claim, Study
from gccost.judging.quantities import Ratio
from gccost.judging.rules import AtMost, Same

CASES = """
    tiny WasmObject/runtime=stock|hint|index/go=today
    tiny WasmTree/runtime=stock|hint|index/go=today
    standard WasmNumber|WasmTreeNumbers|WasmTreeInside/go=today
"""


def _claims() -> Iterator[Claim]:
    for name, over, under, rule in (
        ("X14a", "WasmObject/runtime=index", "WasmObject", AtMost()),
        ("X14b", "WasmTree/runtime=index", "WasmTree", AtMost()),
        ("X14c", "WasmObject/runtime=hint", "WasmObject/runtime=index", Same()),
        ("X14d", "WasmTreeNumbers", "WasmTree", AtMost()),
    ):
        yield Claim(name, "in-webassembly", Ratio(over, under, "cpu_ns"), rule, (TODAY_GO,))


STUDY = Study(
    name="wasm",
    report="standard",
    chapter="10a-without-c",
    question="How much of the time of Go in WebAssembly is the walk?",
    cases=CASES,
    document=TODAY_GO,
    claims=tuple(_claims()),
)
