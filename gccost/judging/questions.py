"""The open questions of a campaign: undecided verdicts, and imprecise figures.

Below the standard budget, an undecided verdict that the recorded run could not decide with far
more rounds is no question, unless this run shows that its machine is another one (`_is_hopeless`).
The recorded run never affects a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

from gccost.cases import jobs
from gccost.cases.cases import Budget, OpenQuestion, Rank, Standing
from gccost.costs import method
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging import ledger
from gccost.judging.claims import Claim, Study
from gccost.judging.ledger import Row
from gccost.judging.rules import Label
from gccost.run.runs import Run
from gccost.stats import Estimate

# An interval is narrow enough at this many times the width that no further round can reduce.
_NEARLY = 1.25
_WIDER = 2  # how many times as wide as a headline's the interval of any other case may be


def questions(studies: Sequence[Study], limit: Budget) -> Callable[[Run], Standing]:
    """What finds the open questions of studies at a budget in a run, for a campaign."""
    return _OpenQuestions(studies, limit).of


class _OpenQuestions:
    """The state of a run, judged from all of its samples."""

    def __init__(self, studies: Sequence[Study], limit: Budget) -> None:
        self.studies, self.limit = studies, limit
        self.recorded = cache(self._recorded)

    def of(self, run: Run) -> Standing:
        """The open questions of a run, and how many verdicts are decided."""
        open_questions: list[OpenQuestion] = []
        decided = verdicts = left = 0
        for row, recording in self._rows(run):
            verdicts += 1
            decided += row.verdict.label.decided
            if self._is_hopeless(run, row):
                left += 1
            else:
                open_questions += _open_question(row, recording, self.limit)
        for study in self.studies:
            for recording in _loaded(study, run):
                open_questions += _figures(recording, self.limit)
        return Standing(tuple(open_questions), decided, verdicts, left)

    def _rows(self, run: Run) -> Iterator[tuple[Row, Recording]]:
        for study in self.studies:
            for recording in _loaded(study, run):
                for row in ledger.rows({study.name: recording}, [study]):
                    if row.verdict.label not in (Label.UNTESTABLE, Label.UNSCORED):
                        yield row, recording

    def _is_hopeless(self, run: Run, row: Row) -> bool:
        """Whether the recorded run could not decide an undecided verdict with all its rounds.

        This run's own interval counts for more: False if its value lies outside the recorded one,
        or if its interval is already narrower, because the recorded machine was noisier.
        """
        own = row.judged
        if row.verdict.label is not Label.UNDECIDED or not math.isfinite(own.high):
            return False
        recorded = self.recorded(run, row.claim, row.release)
        if recorded is None or not math.isinf(recorded.needed):  # too few rounds
            return False
        others = recorded.judged
        return others.contains(own.value) and own.half_width >= others.half_width

    def _recorded(self, run: Run, claim: Claim, release: str) -> Row | None:
        """A claim's row in the recorded run, if it was undecided there."""
        if self.limit.reaches("standard"):
            return None
        study = next(study for study in self.studies if claim in study.claims)
        only = replace(study, claims=(replace(claim, releases=(release,)),))
        with suppress(GccostError):  # a damaged one decides nothing
            for recording in _loaded(study, run):
                if recording.recorded is not None:
                    (row,) = ledger.rows({study.name: recording.recorded}, [only])
                    return row if row.verdict.label is Label.UNDECIDED else None
        return None


def _loaded(study: Study, run: Run) -> Iterator[Recording]:
    try:
        yield Recording(study, run)
    except GccostError:  # nothing of it is measured yet
        return


def _open_question(row: Row, recording: Recording, limit: Budget) -> Iterator[OpenQuestion]:
    cases = tuple(ledger.needed_cases(row.claim, row.release, recording))
    if row.verdict.label is Label.UNDECIDED and math.isfinite(row.needed):
        yield OpenQuestion(cases, max(1, int(row.needed)))
    elif row.claim.headline and row.verdict.label.decided:
        yield from narrower(row.estimate, cases, limit.half_width)


def _figures(recording: Recording, limit: Budget) -> Iterator[OpenQuestion]:
    """The questions of how large the figures of a study are: those of its `figures`, then costs."""
    study = recording.study
    for quantity in study.figures:
        cases = tuple(jobs.name(case, study.document) for case in quantity.cases)
        estimate = quantity.on(recording, study.document)
        yield from narrower(estimate, cases, limit.half_width)
    target = _WIDER * limit.half_width
    for job in study.within(limit):
        name = job["name"]
        cost = method.estimate(recording.cost(name, study.metric))
        yield from narrower(cost, (name,), target, Rank.COST)


def narrower(
    estimate: Estimate, cases: tuple[str, ...], target: float, rank: Rank = Rank.FIGURE
) -> Iterator[OpenQuestion]:
    """The question whether more rounds narrow a figure's interval to the target half-width.

    Rounds of one sitting reduce only the part of its variance that their own scatter explains.
    """
    width, lasting = estimate.half_width, estimate.lasting
    if not 0 < width < math.inf:
        return
    least = _NEARLY * math.sqrt(lasting)
    # In steps of a half at most, so that a wide interval is not last.
    goal = max(target / width, least, 0.5)
    if goal >= 1:
        return
    rounds = estimate.rounds * (1 - lasting) / (goal**2 - lasting)
    more = math.ceil(rounds - estimate.rounds)
    yield OpenQuestion(cases, max(more, 1), rank, width)
