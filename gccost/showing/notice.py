"""The notice above a chapter: the run shown, how it was measured, and its caveats."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from gccost.cases import versions
from gccost.cases.cases import BUDGETS
from gccost.costs import busy
from gccost.costs.recorded import words
from gccost.costs.recording import Recording
from gccost.judging import rounding
from gccost.measuring import languages
from gccost.measuring.machine import warnings
from gccost.run.runs import Run, seconds_of
from gccost.showing import tables
from gccost.showing.tables import Markup

SHOWN_PROBLEMS = 5  # unusable lines to list; a corrupt file has many


def notice(recordings: Sequence[Recording]) -> Markup:
    """One line that opens into how studies of one run were measured, and the run's caveats.

    It is open if the figures of the run cannot be used.
    """
    noted = caveats(recordings)
    line = _line(recordings[0], noted)
    facts = tables.table(("what", "which"), list(_facts(recordings)))
    box = tables.warnings(noted, "Caveats")
    inside = tables.stacked([facts, box], gap="\n")
    scale = recordings[0].manifest["scale"]
    opened = " open" if scale < 1 else ""
    summary = f"<summary>{html.escape(line)}. How it was measured</summary>"
    page = f"<details{opened}>{summary}{inside.html}</details>"
    return Markup(page, f"{line}\n{inside.text}")


def _line(recording: Recording, noted: Sequence[str]) -> str:
    """A run in one line: whose it is, its date and machine, and the number of its caveats."""
    manifest = recording.manifest
    whose = "Recorded run" if recording.mode == "replay" else "Your run"
    day = manifest["created"][:10]
    cpu = words(manifest["machine"].get("cpu"))
    line = f"{whose} of {day}, {cpu}, {recording.cpus} CPUs"
    if not noted:
        return line
    count = "1 caveat" if len(noted) == 1 else f"{len(noted)} caveats"
    return f"{line}; {count}"


def caveats(recordings: Sequence[Recording]) -> list[str]:
    """What to know before the figures of studies of one run are used, each in a sentence."""
    noted = [*_busy(_samples(recordings))]
    for recording in recordings:
        noted += recording.notices
    noted += _fixed_layout(recordings)
    for recording in recordings:
        noted += _caveats(recording)
    return list(dict.fromkeys(noted))


def _samples(recordings: Sequence[Recording]) -> pd.DataFrame:
    """The samples of studies, which share some of the run's; each is a line of its file."""
    frames = [recording.frame for recording in recordings]
    return pd.concat(frames).drop_duplicates("line")


def _busy(samples: pd.DataFrame) -> Iterator[str]:
    """Which sittings were busy, and of how many."""
    delays = busy.delays(samples)
    count = int((delays > busy.BUSY).sum())
    if not count:
        return
    how = f"half of the processes of {delays.name} waited for a CPU"
    yield (
        f"{count} of {len(delays)} sittings were busy: {how} for more than "
        f"{busy.BUSY:.0%} of their time."
    )


def machine(run: Run) -> str:
    """The machine of a run in words."""
    known = run.manifest()["machine"]
    cpu = words(known.get("cpu"))
    release = words(known.get("release"))
    cpus = known.get("allowed_cpus")
    return f"{cpu}, {cpus} CPUs, {release}"


def _facts(recordings: Sequence[Recording]) -> Iterator[tuple[str, str]]:
    run = recordings[0].run
    manifest = run.manifest()
    names = [recording.study.name for recording in recordings]
    is_one = len(names) == 1
    yield "study" if is_one else "studies", ", ".join(names)
    whose = "recorded" if recordings[0].mode == "replay" else "your own"
    day = manifest["created"][:10]
    yield "run", f"{run.name}, {whose}, begun {day}"
    begun = [sitting["began"][:16].replace("T", " ") for sitting in manifest["sittings"]]
    if len(begun) > 1:
        yield "sittings", f"{len(begun)}, begun between {begun[0]} and {begun[-1]} (UTC)"
    yield "machine", machine(run)
    releases: dict[str, None] = {}
    for recording in recordings:
        releases.update(dict.fromkeys(recording.releases))
    yield "releases", ", ".join(versions.titles(releases))
    yield from _compilers(recordings, releases)
    count = len(_samples(recordings))
    yield "samples", f"{count:,} of {'this study' if is_one else 'these studies'}"
    yield "measured", effort(run)
    budgets = dict.fromkeys(_finished(recording) for recording in recordings)
    for budget in filter(None, budgets):
        done = manifest["finished"][budget]
        studies, why = len(done["studies"]), done["because"]
        yield "budget", f"{budget}, {studies} studies: measuring ended because {why}"


def _compilers(
    recordings: Sequence[Recording], releases: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """The C compilers of the studies' languages, and the JVMs of releases."""
    known = recordings[0].manifest["compilers"]
    spoken = [languages.of(recording.study) for recording in recordings]
    compilers = [language.compiles_with for language in spoken]
    for compiler in dict.fromkeys(compilers):
        yield compiler, known.get(compiler, "")
    for release in releases:
        jvm = known.get(release)
        if jvm:
            yield versions.title(release), jvm


def effort(run: Run) -> str:
    """How many samples a run has, and their time."""
    samples = run.reading().samples.values()
    in_loops = sum(sample.metrics.get("ns/op", 0.0) * sample.n for sample in samples) / 1e9
    seconds = max(seconds_of(samples), in_loops)
    share = in_loops / seconds if seconds else 0.0
    rounded = rounding.plain(round(seconds, 1))
    inside = rounding.percent(share)
    return f"{len(samples):,} samples in {rounded} s ({inside} of it inside timed loops)"


def _finished(recording: Recording) -> str:
    """The largest budget at which a study is complete; empty if there is none."""
    done = recording.manifest["finished"]
    others = [name for name in done if name not in BUDGETS]
    largest = ""
    for name in [*others, *BUDGETS]:
        if name in done and recording.study.name in done[name]["studies"]:
            largest = name
    return largest


def _fixed_layout(recordings: Sequence[Recording]) -> Iterator[str]:
    fixed = []
    for recording in recordings:
        is_random = recording.manifest["random_layout"]
        fixed += [release for release in recording.releases if not is_random.get(release, True)]
    if fixed:
        named = ", ".join(versions.titles(fixed))
        yield (
            f"{named}: the linker cannot randomize the layout of the Go code, so the intervals do "
            "not cover its effect."
        )


def _caveats(recording: Recording) -> Iterator[str]:
    manifest = recording.manifest
    if len(recording.frame) and not _finished(recording):
        yield "This run was interrupted before its budget was spent, or measured other studies."
    yield from warnings(manifest["machine"])
    due = [name for name in recording.jobs if recording.is_due(name)]
    other = [name for name in due if recording.showing(name) is not recording]
    if other:
        few = other[:SHOWN_PROBLEMS]
        if len(other) > SHOWN_PROBLEMS:
            few.append("…")
        yield (
            f"This run has no process of {len(other)} of its {len(due)} cases. "
            f"They are shown from the recorded run: {', '.join(few)}"
        )
    for name, troubles in manifest["troubles"].items():
        if name not in recording.jobs:
            continue
        for trouble in troubles:
            yield trouble if trouble.startswith("gosrc/") else f"{name}: {trouble}"
    problems = recording.problems
    for problem in problems[:SHOWN_PROBLEMS]:
        yield f"This could not be used: {problem}"
    more = len(problems) - SHOWN_PROBLEMS
    if more > 0:
        yield f"{more} more could not be used."
