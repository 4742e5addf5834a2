"""The notice above a chapter: the run shown, how it was measured, and its caveats."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import chain

import pandas as pd

from gccost.cases import versions
from gccost.cases.cases import BUDGETS
from gccost.costs import busy
from gccost.costs.recorded import words
from gccost.costs.recording import Recording
from gccost.judging import rounding
from gccost.measuring import languages
from gccost.run.runs import Run, seconds_of
from gccost.showing import tables
from gccost.showing.tables import Markup

SHOWN_PROBLEMS = 5  # unusable lines to list; a corrupt file has many


def notice(recordings: Sequence[Recording]) -> Markup:
    """One line that opens into how studies of one run were measured, and the run's caveats.

    It is open if the figures of the run cannot be used.
    """
    manifest, noted = recordings[0].manifest, caveats(recordings)
    whose = "Recorded run" if recordings[0].mode == "replay" else "Your run"
    cpu, cpus = words(manifest["machine"].get("cpu")), recordings[0].cpus
    line = f"{whose} of {manifest['created'][:10]}, {cpu}, {cpus} CPUs"
    line += f"; {len(noted)} caveat{'s' * (len(noted) != 1)}" if noted else ""
    facts = tables.table(("what", "which"), list(_facts(recordings, _samples(recordings))))
    inside = tables.stacked([facts, tables.warnings(noted, "Caveats")], gap="\n")
    opened = " open" if manifest["scale"] < 1 else ""
    summary = f"<summary>{html.escape(line)}. How it was measured</summary>"
    return Markup(f"<details{opened}>{summary}{inside.html}</details>", f"{line}\n{inside.text}")


def caveats(recordings: Sequence[Recording]) -> list[str]:
    """What to know before the figures of studies of one run are used, each in a sentence."""
    every = [
        *_busy(_samples(recordings)),
        *chain.from_iterable(recording.notices for recording in recordings),
        *_fixed_layout(recordings),
        *chain.from_iterable(map(_caveats, recordings)),
    ]
    return list(dict.fromkeys(every))


def _samples(recordings: Sequence[Recording]) -> pd.DataFrame:
    """The samples of studies, which share some of the run's; each is a line of its file."""
    return pd.concat([each.frame for each in recordings]).drop_duplicates("line")


def _busy(samples: pd.DataFrame) -> Iterator[str]:
    """Which sittings were busy, and of how many."""
    delays = busy.delays(samples)
    if count := int((delays > busy.BUSY).sum()):
        yield (
            f"{count} of {len(delays)} sittings were busy: half of the processes of "
            f"{delays.name} waited for a CPU for more than {busy.BUSY:.0%} of their time."
        )


def machine(run: Run) -> str:
    """The machine of a run in words."""
    known = run.manifest()["machine"]
    cpu, release = words(known.get("cpu")), words(known.get("release"))
    return f"{cpu}, {known.get('allowed_cpus')} CPUs, {release}"


def _facts(recordings: Sequence[Recording], samples: pd.DataFrame) -> Iterator[tuple[str, str]]:
    run = recordings[0].run
    manifest = run.manifest()
    names = [recording.study.name for recording in recordings]
    whose = "recorded" if recordings[0].mode == "replay" else "your own"
    yield "study" if len(names) == 1 else "studies", ", ".join(names)
    begun = [sitting["began"][:16].replace("T", " ") for sitting in manifest["sittings"]]
    yield "run", f"{run.name}, {whose}, begun {manifest['created'][:10]}"
    if len(begun) > 1:
        yield "sittings", f"{len(begun)}, begun between {begun[0]} and {begun[-1]} (UTC)"
    yield "machine", machine(run)
    measured = chain.from_iterable(each.releases for each in recordings)
    yield "releases", ", ".join(versions.titles(measured))
    spoken = (languages.of(recording.study) for recording in recordings)
    for compiler in dict.fromkeys(language.compiles_with for language in spoken):
        yield compiler, manifest["compilers"].get(compiler, "")
    for release in dict.fromkeys(chain.from_iterable(each.releases for each in recordings)):
        if jvm := manifest["compilers"].get(release):
            yield versions.title(release), jvm
    yield "samples", f"{len(samples)} of {'this study' if len(names) == 1 else 'these studies'}"
    budgets = [budget for budget in dict.fromkeys(map(_finished, recordings)) if budget]
    yield "measured", effort(run)
    for budget in budgets:
        done = manifest["finished"][budget]
        why = f"{budget}, {len(done['studies'])} studies: measuring ended because {done['because']}"
        yield "budget", why


def effort(run: Run) -> str:
    """How many samples a run has, and their time."""
    taken = run.reading().samples.values()
    loops = sum(sample.metrics.get("ns/op", 0.0) * sample.n for sample in taken) / 1e9
    seconds = max(seconds_of(taken), loops)
    return (
        f"{len(taken)} samples in {rounding.plain(round(seconds, 1))} s "
        f"({rounding.percent(loops / seconds if seconds else 0.0)} of it inside timed loops)"
    )


def _finished(recording: Recording) -> str:
    """The largest budget at which a study is complete; empty if there is none."""
    done = recording.manifest["finished"]
    order = [*(name for name in done if name not in BUDGETS), *BUDGETS]
    studied = [n for n in order if n in done and recording.study.name in done[n]["studies"]]
    return studied[-1] if studied else ""


def _fixed_layout(recordings: Sequence[Recording]) -> Iterator[str]:
    fixed = [
        release
        for recording in recordings
        for release in recording.releases
        if not recording.manifest["random_layout"].get(release, True)
    ]
    if fixed:
        yield (
            f"{', '.join(versions.titles(fixed))}: the linker cannot randomize the layout of the "
            "Go code, so the intervals do not cover its effect."
        )


def _caveats(recording: Recording) -> Iterator[str]:
    manifest = recording.manifest
    if len(recording.frame) and not _finished(recording):
        yield "This run was interrupted before its budget was spent, or measured other studies."
    yield from manifest["warnings"]
    due = [name for name in recording.jobs if recording.is_due(name)]
    other = [name for name in due if recording.showing(name) is not recording]
    if other:
        which = ", ".join(other[:SHOWN_PROBLEMS]) + ", …" * (len(other) > SHOWN_PROBLEMS)
        yield (
            f"This run has no process of {len(other)} of its {len(due)} cases. "
            f"They are shown from the recorded run: {which}"
        )
    for name, troubles in manifest["troubles"].items():
        if name in recording.jobs:
            for trouble in troubles:
                yield trouble if trouble.startswith("gosrc/") else f"{name}: {trouble}"
    problems = recording.problems
    for problem in problems[:SHOWN_PROBLEMS]:
        yield f"This could not be used: {problem}"
    if more := len(problems[SHOWN_PROBLEMS:]):
        yield f"{more} more could not be used."
