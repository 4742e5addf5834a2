"""What changed since your last sitting: the newest sitting of a run against those before it.

A run of one sitting is compared with your run before it on this machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gccost import paths
from gccost.judging import agreement
from gccost.judging.agreement import Pair
from gccost.judging.claims import Study
from gccost.run import runs
from gccost.run.runs import Run


@dataclass(frozen=True)
class Since:
    """Claims that were measured before and now; `before` and `now` say when, in words."""

    before: str
    now: str
    pairs: tuple[Pair, ...]


def since_last(run: Run, studies: Iterable[Study]) -> Since | None:
    """The last sitting of your run against the earlier ones, or against your run before it.

    None if there is neither.
    """
    sittings = run.manifest()["sittings"]
    last = len(sittings)
    now = f"the sitting of {_minute(run.last_measured)}"
    if last > 1:
        earlier = "sitting" if last == 2 else f"{last - 1} sittings"
        before = f"the {earlier} until {_minute(sittings[-2]['began'])}"
        with TemporaryDirectory() as folder:
            own = _part(run, Path(folder, "now"), [last])
            other = _part(run, Path(folder, "before"), range(1, last))
            return Since(before, now, _measured(own, other, studies))
    previous = _previous(run)
    if previous is None:
        return None
    before = f"your run of {_minute(previous.last_measured)}"
    return Since(before, now, _measured(run, previous, studies))


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _measured(run: Run, other: Run, studies: Iterable[Study]) -> tuple[Pair, ...]:
    """The claims of which both runs have a figure."""
    found = agreement.pairs(run, other, studies)
    return tuple(pair for pair in found if pair.ours.judged.n)


def _previous(run: Run) -> Run | None:
    """Your run before a run, of the same machine and with loops of the same length."""
    manifest = run.manifest()
    for other in reversed(runs.all_runs(paths.runs())):
        theirs = other.manifest()
        is_alike = all(theirs[field] == manifest[field] for field in ("fingerprint", "scale"))
        if other.name < run.name and is_alike and other.samples_txt.exists():
            return other
    return None


def _part(run: Run, folder: Path, sittings: Collection[int]) -> Run:
    """A copy of a run with some of its sittings, without gctraces, which no sitting has alone."""
    folder.mkdir()
    for path in (run.folder / "run.json", run.jobs_csv, run.ratios_csv):
        if path.exists():
            shutil.copy(path, folder)
    samples = run.reading().samples
    kept, rounds = [], set()
    lines = run.samples_txt.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if number not in samples:  # of the configuration
            kept.append(line)
        elif (metrics := samples[number].metrics).get("sitting", 1.0) in sittings:
            kept.append(line)
            rounds.add(f"{metrics.get('round', 0):03.0f}")
    part = Run(folder)
    part.samples_txt.write_text("\n".join(kept), encoding="utf-8")
    (folder / "profiles").mkdir()
    for path in run.folder.glob("profiles/*.pb.gz"):
        _, _, of_round = path.name.removesuffix(".pb.gz").rpartition("-")
        if of_round in rounds:
            shutil.copy(path, folder / "profiles")
    return part
