"""The types of a run's manifest, `run.json`, and their check.

Texts have no control characters, and none that reverse or hide what follows them, because
they are shown in terminals and pages, and a run may come from anywhere.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from gccost.measuring import benchfmt
from gccost.measuring.benchfmt import LONGEST, UNSEEN

decode = msgspec.json.decode

Text = Annotated[str, Meta(max_length=LONGEST, pattern=rf"\A[^{UNSEEN}]*\Z")]
Line = Annotated[str, Meta(max_length=1000, pattern=rf"\A[^\t\n{UNSEEN}]*\Z")]
_DAYS = r"(0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|[12]\d)"
Date = Annotated[
    str,
    Meta(pattern=rf"\A(19|20)\d\d-({_DAYS})T([01]\d|2[0-3])(:[0-5]\d){{2}}Z\Z"),
]
Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Amount = Annotated[float, Meta(ge=0, le=1e18)]
Count = Annotated[int, Meta(ge=0, le=10**18)]


class Machine(TypedDict, total=False):
    """A machine's description; see `machine.describe`."""

    cpu: Line
    cpu_family: Count | None
    cpu_model: Count | None
    cpu_stepping: Count | None
    caches: dict[Line, Count]
    architecture: Literal["", "x86_64", "aarch64", "arm64"]
    physical_cores: Count | None
    logical_cpus: Count | None
    allowed_cpus: Annotated[int, Meta(ge=1, le=100_000)]
    cpu_quota: Amount | None
    smt: bool
    governor: Line
    turbo: bool | None
    virtualisation: Line
    container: Line
    load: list[Amount]
    memory: Count
    memory_available: Count | None
    memory_limit: Count | None
    swap: Count | None
    swap_used: Count
    transparent_huge_pages: Line
    system: Line
    release: Line
    kernel: Line
    libc: Line
    c_compiler: Line
    c_compiler_source: Line
    python: Line
    commit: Line
    dirty: bool


class Finished(TypedDict):
    """Why measuring at a budget ended, and the studies that it measured."""

    because: Line
    studies: list[Line]
    date: NotRequired[Date]
    # Earlier versions stored these, which are now derived from the samples.
    rounds: NotRequired[Count]
    samples: NotRequired[Count]
    seconds: NotRequired[Amount]
    share_in_loops: NotRequired[Amount]


class Shell(TypedDict):
    """A command with its output."""

    command: Text
    output: Text
    date: Date


class Manifest(TypedDict):
    """The content of `run.json`; dicts are by program, release, case, budget or command."""

    format: int
    created: Date
    fingerprint: Annotated[str, Meta(pattern=r"\A[0-9a-f]{12}\Z")]
    machine: Machine
    warnings: list[Text]
    scale: Annotated[float, Meta(gt=0, le=1)]
    method: Line
    seed: Count
    programs: dict[Line, Line]
    compilers: dict[Line, Line]
    random_layout: dict[Line, bool]
    missing: dict[Line, Text]
    failed: dict[Line, list[Text]]
    troubles: dict[Line, list[Text]]
    finished: dict[Line, Finished]
    digest: NotRequired[Hash]  # of the samples; of runs without `digests`
    digests: NotRequired[dict[Line, Hash]]  # SHA-256 by file; see `Run.digests`
    done: NotRequired[list[Line]]  # measurements of the precision experiment
    recorded: NotRequired[Count]  # bytes of the samples that they are in
    shell: NotRequired[dict[Text, Shell]]


def fault_of(error: msgspec.ValidationError) -> str:
    """What is wrong, in printable words."""
    why = re.sub(r"Expected `str` matching regex '.*'", "Unexpected text", str(error))
    return benchfmt.printable(why, 300)


def misfit(manifest: Any) -> str:
    """What is wrong with a manifest's fields; empty if they have their types."""
    try:
        msgspec.convert(manifest, Manifest)
    except msgspec.ValidationError as error:
        return fault_of(error)
    return ""


def unknown(manifest: Any) -> bool:
    """Whether a manifest that fits has fields that no gccost writes."""
    return bool(msgspec.convert(manifest, Manifest) != manifest)
