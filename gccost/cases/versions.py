"""The releases that are measured: their age, their names in samples and in words, their sums.

`gccost.measuring.toolchains` finds and fetches them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gccost import paths
from gccost.errors import GccostError
from gccost.files import read_table, reading

CLOUDFLARE_GO: Final = "1.10.8"  # of Cloudflare's document (late 2017)
DOCUMENT_GO: Final = "1.20.14"  # of Lemire's document and of Siebenmann's
CLEANUP_GO: Final = "1.24.13"  # the first with runtime.AddCleanup
ISSUE_GO: Final = "1.25.14"  # of the issue on AddCleanup
DOCUMENT_JDK: Final = "jdk-11"  # replaces Weimer's 9; the oldest that runs on today's machines
TODAY_JDK: Final = "jdk-25"  # the newest measured

JDK_RELEASES: Final = (DOCUMENT_JDK, "jdk-17", "jdk-21", TODAY_JDK)

_DOCUMENTS = (CLOUDFLARE_GO, DOCUMENT_GO, CLEANUP_GO, ISSUE_GO)
_ROW = re.compile(r"1(\.\d+){1,2},[a-z]+-[a-z0-9]+,h1:[A-Za-z0-9+/]*=?")

Releases = Mapping[str, Mapping[str, str]]


def _pinned() -> Releases:
    """The releases in data/releases.csv. Raises GccostError if it is damaged."""
    releases: dict[str, dict[str, str]] = {}
    lines = read_table(paths.RELEASES)
    with reading(paths.RELEASES):
        for line in lines:
            row = ",".join(line.values())
            if [*line] != ["release", "platform", "sum"] or not _ROW.fullmatch(row):
                raise ValueError(f"this is no release with its sum: {row!a}")
            releases.setdefault(line["release"], {})[line["platform"]] = line["sum"]
        if DOCUMENT_GO not in releases:
            raise ValueError(f"it lacks {DOCUMENT_GO}")
    return releases


def number(version: str) -> tuple[int, ...]:
    """A version as a tuple to compare: "1.27.4" gives (1, 27, 4), "1.28rc1" gives (1, 28)."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()


GO_RELEASES: Releases = {release: {} for release in _DOCUMENTS}
"""The measured releases with the pinned sums of `go mod download`, by platform. For other
platforms only Go's checksum database is used. `pin` adds a release."""
_FAULT: GccostError | None = None
try:
    GO_RELEASES = _pinned()
except GccostError as fault:
    _FAULT = fault

TODAY_GO: Final[str] = max(GO_RELEASES, key=number)
"""The newest measured release."""


def check_releases() -> None:
    """Raise GccostError if data/releases.csv could not be read when this module was imported.

    The module can be imported then, so that commands which need no releases still run.
    """
    if _FAULT:
        raise _FAULT


_JDK = "jdk-"
_LANGUAGES: Final = {"go": ("Go", TODAY_GO), "jdk": ("JDK", TODAY_JDK)}


def key(release: str) -> str:
    """The key of a release in a sample's name: "go" or "jdk"."""
    return "jdk" if release.startswith(_JDK) else "go"


def keyed(release: str) -> dict[str, str]:
    """A release as part of a sample's name: go=1.27.4, jdk=17."""
    return {key(release): release.removeprefix(_JDK)}


def title(release: str) -> str:
    """A release in words: "Go 1.27.4", "JDK 17"."""
    return f"{_LANGUAGES[key(release)][0]} {release.removeprefix(_JDK)}"


def age(release: str) -> tuple[str, tuple[int, ...]]:
    """What sorts releases by age, those of a language together."""
    return key(release), number(release.removeprefix(_JDK))


def titles(releases: Iterable[str]) -> list[str]:
    """The releases in words, oldest first: "Go 1.9.7", "Go 1.27.4", "JDK 11"."""
    return list(map(title, sorted(dict.fromkeys(releases), key=age)))


def today(release: str) -> str:
    """The newest measured release of the same language."""
    return _LANGUAGES[key(release)][1]
