"""The open questions of a campaign: undecided verdicts, and imprecise headline figures.

Below the standard budget, an undecided verdict that the recorded run could not decide with far
more rounds is no question, unless this run shows that its machine is another one (`_hopeless`).
The recorded run never affects a verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

from gccost.errors import GccostError
from gccost.judging import ledger, reference
from gccost.judging.claims import Claim, Study
from gccost.judging.ledger import Row
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring.cases import Budget
from gccost.measuring.planning import Questions, Standing, Want
from gccost.measuring.runs import Run


def questions(studies: Sequence[Study], limit: Budget) -> Questions:
    """The questions of studies at a budget, for a campaign."""
    claims = [claim for study in studies for claim in study.claims]
    judged, needed = (
        frozenset(
            (variant, go) for c in some for go in c.releases for variant in c.quantity.variants
        )
        for some in (claims, [c for c in claims if not c.quantity.partial])
    )

    settled: dict[str, int] = {}  # claims decided on all their releases, which stay decided

    @cache
    def recorded(claim: Claim, release: str) -> Row | None:
        """A claim's row in the recorded run, if it was undecided there."""
        found = None if limit.reaches("standard") else _recorded(claim, release, studies)
        return found if found and found.verdict.label is Label.UNDECIDED else None

    def standing(run: Run) -> Standing:
        rows = [
            (row, recording)
            for study in studies
            for recording in _loaded(study, run)
            for row in ledger.rows({study.name: recording}, [study], settled)
            if row.verdict.label is not Label.UNTESTABLE
        ]
        before = sum(settled.values())
        decided = Counter(row.claim.id for row, _ in rows if row.verdict.label.decided)
        hopeless = {at for at, (row, _) in enumerate(rows) if _hopeless(row, recorded)}
        wants = tuple(
            want
            for at, row in enumerate(rows)
            if at not in hopeless
            for want in _wants(*row, limit)
        )
        for row, _ in rows:
            if decided[row.claim.id] == len(row.claim.releases) and not row.claim.headline:
                settled[row.claim.id] = decided[row.claim.id]
        return Standing(wants, before + decided.total(), before + len(rows), len(hopeless))

    return Questions(judged, needed, standing)


def asked(studies: Sequence[Study]) -> list[list[str]]:
    """The names of the cases that each claim needs on each of its releases."""
    return [
        [variant.on(go) for variant in dict.fromkeys(claim.quantity.variants)]
        for study in studies
        for claim in study.claims
        for go in claim.releases
    ]


def _loaded(study: Study, run: Run) -> Iterator[Recording]:
    try:
        yield Recording.load(study, run)
    except GccostError:  # nothing of it is measured yet
        return


def _recorded(claim: Claim, release: str, studies: Sequence[Study]) -> Row | None:
    study = next(study for study in studies if claim in study.claims)
    only = replace(study, claims=(replace(claim, releases=(release,)),))
    with suppress(GccostError):  # a damaged one decides nothing
        runs = [run for run in reference.recorded() if run.holds(study.name)]
        for recording in _loaded(study, runs[-1]) if runs else ():
            return ledger.rows({study.name: recording}, [only])[0]
    return None


def _hopeless(row: Row, recorded: Callable[[Claim, str], Row | None]) -> bool:
    """Whether the recorded run could not decide an undecided verdict with all its rounds.

    This run's own interval counts for more: False if its value lies outside the recorded one,
    or if its interval is already narrower, because the recorded machine was noisier.
    """
    own = row.judged
    if row.verdict.label is not Label.UNDECIDED or not math.isfinite(own.high):
        return False
    then = recorded(row.claim, row.release)
    if then is None or not math.isinf(then.needed):  # too few rounds
        return False
    return then.judged.contains(own.value) and own.half_width >= then.judged.half_width


def _wants(row: Row, recording: Recording, limit: Budget) -> Iterator[Want]:
    variants = ledger.needed_variants(row.claim, row.release, recording)
    cases = tuple(variant.on(row.release) for variant in variants)
    if row.verdict.label is Label.UNDECIDED and math.isfinite(row.needed):
        yield Want(cases, max(1, int(row.needed)))
    elif row.claim.headline and row.verdict.label.decided:
        width = row.estimate.half_width
        if limit.half_width < width < math.inf:
            # The interval narrows with the root of the rounds. In steps of a half at most, so
            # that a wide interval is not last.
            more = row.estimate.rounds * ((width / max(limit.half_width, width / 2)) ** 2 - 1)
            yield Want(cases, max(1, math.ceil(more)))
