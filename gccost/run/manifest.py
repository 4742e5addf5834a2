"""The fields of a run's manifest, `run.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from gccost.run.schema import Field, columns

Manifest = dict[str, Any]

# An older run also has turbo, container and huge pages.
MACHINE: dict[str, Any] = columns(
    "cpu:line cpu_family:count? cpu_model:count? cpu_stepping:count? physical_cores:count? "
    "logical_cpus:count? cpu_quota:amount? smt:flag governor:line turbo:flag? "
    "virtualisation:line container:line memory:count memory_available:count? "
    "memory_limit:count? swap:count? swap_used:count transparent_huge_pages:line system:line "
    "release:line kernel:line libc:line c_compiler:line c_compiler_source:line python:line "
    "commit:line dirty:flag caches:count{} load:amount[]"
)
"""What `machine.describe` returns."""
MACHINE["architecture"] = Field("x86_64, aarch64 or arm64", (str,), pattern="|x86_64|aarch64|arm64")
MACHINE["allowed_cpus"] = Field("a number of CPUs", (int,), 1, 100_000)

FINISHED = columns(
    "because:line date?:date rounds?:count samples?:count seconds?:amount studies:line[] "
    "share_in_loops?:amount"
)
"""Why measuring at a budget ended, and what it measured."""

SITTING = columns("began:date budget:line because:text studies:line[]")
"""A call of `make report`: what it measured, and why it ended; empty if it was interrupted."""

# `digests` is by file (see `Run.altered`); runs have `done` in which the study `precision` was
# measured apart. An older run also has warnings, which pages now make from `machine`.
MANIFEST: dict[str, Any] = columns(
    "format:count created:date method:line seed:count warnings?:text[] programs:line{} "
    "compilers:line{} random_layout:flag{} missing:text{} failed:text[]{} troubles:text[]{} "
    "digests?:hash{} done?:line[] recorded?:count"
)
MANIFEST["fingerprint"] = Field("12 hex digits", (str,), pattern="[0-9a-f]{12}")
MANIFEST["scale"] = Field("a number above 0, up to 1", (int, float), 1e-9, 1)
MANIFEST["machine"] = {f"{name}?": field for name, field in MACHINE.items()}
MANIFEST["finished"] = {"*": FINISHED}  # by budget
MANIFEST["sittings"] = [SITTING]
MANIFEST["shell?"] = {"*": columns("command:text output:text date:date")}


# The facts that must be equal for two runs to be comparable.
COMPARABLE: Final = (
    "cpu",
    "cpu_family",
    "cpu_model",
    "cpu_stepping",
    "caches",
    "architecture",
    "logical_cpus",
    "allowed_cpus",
    "cpu_quota",
    "system",
    "virtualisation",
)


Description = Mapping[str, Any]  # of a machine; see `describe`


def fingerprint(description: Description) -> str:
    """A hash of 12 hex digits that is equal for comparable machines.

    It covers the processor, its usable part, and the kinds of system and hypervisor, but
    not patch levels, load or free memory, which change often.
    """
    comparable = {name: description.get(name) for name in COMPARABLE}
    text = json.dumps(comparable, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
