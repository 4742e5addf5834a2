"""The types of a run's manifest, `run.json`, and their check."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

decode = msgspec.json.decode

Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]


class Machine(TypedDict, total=False):
    """The used part of a machine's description; see `machine.describe`."""

    cpu: str
    release: str
    allowed_cpus: int
    cpu_quota: Amount | None
    memory: int
    memory_limit: int | None


class Summary(TypedDict):
    """The summary of a finished budget."""

    because: str
    studies: list[str]
    rounds: int
    samples: int
    seconds: Amount
    share_in_loops: Amount
    date: NotRequired[str]


class Shell(TypedDict):
    """A command with its output."""

    command: str
    output: str
    date: str


class Manifest(TypedDict):
    """The content of `run.json`; dicts are by program, release, case, budget or command."""

    format: int
    created: str
    fingerprint: str
    machine: Machine
    warnings: list[str]
    scale: Amount
    method: str
    seed: int
    programs: dict[str, str]
    compilers: dict[str, str]
    random_layout: dict[str, bool]
    missing: dict[str, str]
    failed: dict[str, list[str]]
    troubles: dict[str, list[str]]
    finished: dict[str, Summary]
    digest: NotRequired[str]  # SHA-256 of the samples when measuring ended
    done: NotRequired[list[str]]  # measurements of the precision experiment
    recorded: NotRequired[int]  # bytes of the samples that they are in
    shell: NotRequired[dict[str, Shell]]


def misfit(manifest: Any) -> str:
    """What is wrong with a manifest's fields; empty if they have their types."""
    try:
        msgspec.convert(manifest, Manifest)
    except msgspec.ValidationError as fault:
        return str(fault)
    return ""
