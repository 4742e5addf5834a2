"""The open questions of a campaign: undecided verdicts, and imprecise headline figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from gccost.errors import GccostError
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.judging.recording import Recording
from gccost.judging.rules import Label
from gccost.measuring.campaign import Questions, Standing, Want
from gccost.measuring.cases import Budget
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
        wants = tuple(want for row in rows for want in _wants(*row, limit))
        for row, _ in rows:
            if decided[row.claim.id] == len(row.claim.releases) and not row.claim.headline:
                settled[row.claim.id] = decided[row.claim.id]
        return Standing(wants, before + decided.total(), before + len(rows))

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
