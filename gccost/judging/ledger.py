"""The ledger: each claim on each release, with published value, estimate and verdict."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pandas as pd

from gccost import paths, stats
from gccost.cases import jobs, published, versions
from gccost.costs import costs
from gccost.costs.recording import Recording
from gccost.judging import rounding
from gccost.judging.claims import Claim, Study
from gccost.judging.rules import Agrees, Label, Verdict
from gccost.run.runs import Run, cached
from gccost.stats import FEWEST, JUDGED, Estimate

# By how much the number of rounds or sittings is multiplied to see whether more decide a verdict.
_ROUNDS, _SITTINGS = (1.5, 2, 3, 5, 10), (2, 3, 5, 10)


@dataclass(frozen=True)
class Row:
    """A claim on one release: the published value, the estimate, and the verdict.

    `estimate` has the 95 % interval of all samples. The verdict is based on `judged`, the 99 %
    interval. `needed` is the number of further rounds that would decide it if the estimate stays
    the same; infinite if none would, NaN if that was not asked. `is_recorded` says that the row is
    the recorded run's, next to rows of another run.
    """

    claim: Claim
    study: Study
    document: str
    words: str
    figure: str
    is_bar: bool  # `published` is our bar, because no value is published
    unit: str
    release: str
    published: float
    estimate: Estimate
    judged: Estimate
    verdict: Verdict
    needed: float = math.nan
    is_recorded: bool = False
    run: str = ""  # that it is judged from
    machine: str = ""
    date: str = ""  # on which that run was begun
    also: str = ""  # the ids of other claims that this row tests
    others: tuple[Row, ...] = ()  # the claim's rows on the other recorded machines

    @property
    def toolchain(self) -> str:
        return versions.title(self.release)

    @property
    def factor(self) -> float:
        """Measured over published; NaN if either is missing."""
        return math.nan if self.is_bar else self.estimate.value / self.published

    @property
    def other(self) -> Row | None:
        """Of the other machines' rows, the one whose figure is the farthest from this one."""
        return max(self.others, key=self._distance, default=None)

    def _distance(self, other: Row) -> float:
        factor = over(other.estimate.value, self.estimate.value)
        return abs(math.log(factor)) if factor > 0 else 0.0

    @property
    def other_over_this(self) -> float:
        """The farthest figure of another machine over this one; NaN if there is none."""
        if self.other is None:
            return math.nan
        return over(self.other.estimate.value, self.estimate.value)

    @property
    def sized(self) -> bool:
        """Whether there is a factor to show."""
        return math.isfinite(self.factor)

    @property
    def why(self) -> str:
        """The verdict's reason; if undecided, its interval and what could decide it."""
        judged = self.judged
        is_wide = judged.low < judged.high < math.inf
        if self.verdict.label is not Label.UNDECIDED or not is_wide:
            return self.verdict.reason
        low = rounding.value(judged.low, self.unit)
        high = rounding.value(judged.high, self.unit)
        interval = f"99 %: {low} to {high}"
        if math.isnan(self.needed):
            return interval
        if math.isinf(self.needed):
            return f"{interval}; {self._sittings()}"
        return f"{interval}; {self.needed:.0f} more rounds could decide it"

    def _sittings(self) -> str:
        """How many more sittings decide it if the estimate stays the same, in words."""
        for factor in _SITTINGS:
            later = after(self.judged, sittings=factor)
            then = self.claim.rule.judge(later, self.published)
            if then.label.decided:
                return f"{factor} times as many sittings could decide it"
        return f"{_SITTINGS[-1]} times as many sittings would not decide it"

    @property
    def held_to(self) -> str:
        """The published value or our bar, as text."""
        if isinstance(self.claim.rule, Agrees):
            return f"bar {self.claim.rule}"
        value = rounding.value(self.published, self.unit)
        return f"bar {value}" if self.is_bar else value

    @property
    def bounds(self) -> tuple[float, float]:
        """The range in which the claim holds; either end may be infinite, both NaN if none."""
        return self.claim.rule.bounds(self.published)

    @property
    def is_today(self) -> bool:
        """Whether the release is the newest measured."""
        return self.release == versions.today(self.release)

    @property
    def said(self) -> str:
        """The verdict in a word or two."""
        if self.verdict.label is Label.UNTESTABLE:
            return f"needs {self.claim.needs}"
        verdict = str(self.verdict)
        return f"{verdict} (recorded)" if self.is_recorded else verdict


@dataclass(frozen=True)
class Tested:
    """A claim's rows on all its releases, the document's and today's among them."""

    rows: tuple[Row, ...]

    @property
    def claim(self) -> Claim:
        return self.rows[0].claim

    @property
    def then(self) -> Row | None:
        """The row of the document's release, or of the nearest that was measured."""
        for row in self.rows:
            if not row.is_today:
                return row
        return None

    @property
    def today(self) -> Row | None:
        for row in self.rows:
            if row.is_today:
                return row
        return None

    @property
    def latest(self) -> Row:
        """The row whose verdict counts: today's, if there is one."""
        return self.today or self.rows[-1]


def by_document(ledger: Iterable[Row]) -> list[SimpleNamespace]:
    """The documents of a ledger: the columns of documents.csv, in its order, and more.

    `lines` has the lines of a document's claims, and `others` the rows of claims.csv that a line
    of another document tests. `chosen` is the line of its headline claim, None if the ledger lacks
    it, and `drawn` the line shown for it: that of `stand_in` if this machine cannot test it.
    """
    by_claim: dict[str, list[Row]] = {}
    for row in ledger:
        by_claim.setdefault(row.claim.id, []).append(row)
    lines = {claim: Tested(tuple(rows)) for claim, rows in by_claim.items()}
    claims = published.by_name("claims", by_claim).values()
    documents = []
    for name, columns in published.by_name("documents", ()).items():
        own = [line for line in lines.values() if line.latest.document == name]
        if not own:
            continue
        others = []
        for claim in claims:
            if claim["document"] == name and claim["same_as"] in by_claim:
                others.append(claim)
        chosen = drawn = lines.get(columns["headline"])
        if chosen and chosen.latest.verdict.label is Label.UNTESTABLE:
            drawn = lines.get(columns["stand_in"], chosen)
        more = {"lines": own, "others": others, "chosen": chosen, "drawn": drawn}
        documents.append(SimpleNamespace(**columns, **more))
    return documents


def verdict_counts(lines: Iterable[Tested]) -> Counter[Label]:
    """How many claims have each verdict, today if they are tested there; in Label's order.

    Figures that are not scored do not count.
    """
    labels = [line.latest.verdict.label for line in lines]
    count = Counter(labels)
    del count[Label.UNSCORED]
    return Counter({label: count[label] for label in Label if count[label]})


def rows(recordings: Mapping[str, Recording], studies: Iterable[Study]) -> list[Row]:
    """The ledger's rows for the studies' claims, from recordings by study name."""
    ledger = []
    for study in studies:
        ledger += _of_study(study, recordings.get(study.name))
    return ledger


def _of_study(study: Study, recording: Recording | None) -> list[Row]:
    """The rows of a study's claims; those of a recorded run are judged once."""
    if recording is None or recording.run.folder.parent != paths.reference():
        return _judged_now(study, recording)
    known = _of_recorded(recording.run)
    if study not in known:
        known[study] = _judged_now(study, recording)
    return known[study]


@cached
def _of_recorded(run: Run) -> dict[Study, list[Row]]:
    """The rows of a recorded run that were judged so far. They rest on no other run."""
    return {}


def _judged_now(study: Study, recording: Recording | None) -> list[Row]:
    words = published.by_name("claims", (claim.id for claim in study.claims))
    ledger = []
    for claim in study.claims:
        for release in claim.releases:
            row = _unjudged(claim, study, release, words)
            ledger.append(_judged(row, recording) if recording else row)
    return ledger


def shown(recordings: Mapping[str, Recording], studies: Iterable[Study]) -> list[Row]:
    """The ledger's rows for a page: the recorded run's where a run has not measured the claim."""
    ledger = []
    for row in rows(recordings, studies):
        recording = recordings.get(row.study.name)
        ledger.append(_shown(row, recording))
    return ledger


def _shown(row: Row, recording: Recording | None) -> Row:
    """The row, or that of the recorded run, whole, if this run has not measured the claim."""
    if recording is None or recording.is_aside:
        return replace(row, is_recorded=recording is not None)
    other = recording.recorded
    if row.verdict.label is not Label.UNMEASURED or other is None:
        return row
    recorded = replace(_judged(row, other), is_recorded=True)
    return row if recorded.verdict.label is Label.UNMEASURED else recorded


def _unjudged(claim: Claim, study: Study, release: str, claims: Mapping[str, Any]) -> Row:
    """A claim as data/published/claims.csv has it."""
    words = claims[claim.id]
    also = [name for name, other in claims.items() if other["same_as"] == claim.id]
    return Row(
        claim,
        study,
        document=words["document"],
        words=words["claim"],
        figure=words["figure"],
        is_bar=words["kind"] == "bar",
        unit=words["unit"],
        release=release,
        published=float(words["value"]),
        estimate=stats.nothing(),
        judged=stats.nothing(),
        verdict=Verdict(Label.UNMEASURED, "no run holds it"),
        also=", ".join(also),
    )


def _judged(row: Row, recording: Recording) -> Row:
    """The row with what a recording says of its claim."""
    claim, release = row.claim, row.release
    quantity = claim.quantity
    row = replace(
        row,
        estimate=quantity.on(recording, release),
        run=recording.run.name,
        machine=recording.machine,
        date=str(recording.manifest["created"])[:10],
    )
    names = needed_cases(claim, release, recording)
    if not _is_testable(claim, recording):
        cpus = f"{recording.cpus} CPUs on {recording.cores} cores"
        why = f"it needs {claim.needs}; the machine has {cpus}, and {recording.system}"
        return replace(row, verdict=Verdict(Label.UNTESTABLE, why))
    if math.isnan(row.estimate.value):
        why = _missing(names, release, recording)
        return replace(row, verdict=Verdict(Label.UNMEASURED, why))
    counts = [len(recording.rounds(name)) for name in names]
    fewest = min(counts, default=0)
    if fewest < FEWEST and claim.rule.scored and not quantity.at_once:
        why = f"it has {fewest} of the {FEWEST} rounds that a verdict needs"
        return replace(row, verdict=Verdict(Label.UNDECIDED, why), needed=FEWEST - fewest)
    judged = quantity.on(recording, release, JUDGED)
    verdict = claim.rule.judge(judged, row.published, row.unit)
    row = replace(row, judged=judged, verdict=verdict)
    return row if quantity.at_once else replace(row, needed=_needed(row, fewest))


def _is_testable(claim: Claim, recording: Recording) -> bool:
    """Whether the machine of a recording has what a claim needs."""
    has_cpus = claim.cpus <= recording.cpus and claim.cores <= recording.cores
    return has_cpus and recording.system.startswith(claim.system)


def _missing(names: Iterable[str], release: str, recording: Recording) -> str:
    """Why a recording lacks what a claim needs."""
    whole = recording.manifest["missing"].get(release)
    if whole:
        return str(whole)
    reasons: list[str] = []
    for name in names:
        reasons += recording.failures(name)
    return "; ".join(dict.fromkeys(reasons)) or "the run lacks samples that it needs"


def needed_cases(claim: Claim, release: str, recording: Recording) -> list[str]:
    """The names of the cases that a claim needs, without optional ones that were not measured."""
    cases = dict.fromkeys(claim.quantity.cases)
    names = [jobs.name(case, release) for case in cases]
    if not claim.quantity.partial:
        return names
    counts = {name: len(recording.rounds(name)) for name in names}
    most = max(counts.values())
    fewest = min(FEWEST, most)
    return [name for name in names if counts[name] >= fewest]


def _needed(row: Row, rounds: int) -> float:
    """The further rounds that decide it if the estimate stays the same; infinite if none do."""
    for factor in _ROUNDS:
        later = after(row.judged, rounds=factor)
        then = row.claim.rule.judge(later, row.published)
        if then.label.decided:
            return math.ceil((factor - 1) * rounds)
    return math.inf


def after(estimate: Estimate, rounds: float = 1.0, sittings: float = 1.0) -> Estimate:
    """An estimate with so many times the rounds and sittings, if it stayed the same."""
    of_rounds = estimate.lasting + (1 - estimate.lasting) / rounds
    factor = math.sqrt(of_rounds / sittings)
    low = _nearer(estimate, estimate.low, factor)
    high = _nearer(estimate, estimate.high, factor)
    parts = tuple(after(part, rounds, sittings) for part in estimate.parts)
    return replace(estimate, low=low, high=high, parts=parts)


def _nearer(estimate: Estimate, end: float, factor: float) -> float:
    """An end that is so many times as far from the value, in logs if the interval is positive."""
    value = estimate.value
    if estimate.low > 0:
        ratio: float = (end / value) ** factor
        return value * ratio
    return value + (end - value) * factor


def over(value: float, other: float) -> float:
    """A value over another one: 1 if they are equal, NaN if only one of them is positive."""
    if value == other:
        return 1.0
    if value > 0 and other > 0:
        return value / other
    return math.nan


_FRAME = [
    *("id", "release", "claim", "published", *costs.VALUES),
    *("unit", "verdict", "reason", "holds_from", "holds_to", "is_bar", "document"),
    *("source", "run"),
]


def frame(ledger: Iterable[Row]) -> pd.DataFrame:
    """The ledger as a frame of typed columns, with a row per claim and release."""
    rows = []
    for row in ledger:
        claim = [row.claim.id, row.toolchain, row.words, row.published]
        values = costs.row(row.estimate).values()
        verdict = [row.unit, str(row.verdict), row.verdict.reason, *row.bounds]
        source = costs.RECORDED if row.is_recorded else ""
        rows.append([*claim, *values, *verdict, row.is_bar, row.document, source, row.run])
    return pd.DataFrame(rows, columns=_FRAME)


COLUMNS: Mapping[str, str] = {
    "id": "the claim's number",
    "toolchain": "the release on which it was tested",
    "published": "the published figure, or the bar where no figure is published",
    "estimate": "the measured figure; empty if there is none",
    "low": "the lower end of its 95 % confidence interval",
    "high": "the upper end of that interval",
    "over_published": "estimate over published; empty where no figure is published",
    "samples": "the number of samples that the estimate rests on",
    "unit": "the unit of all figures; data/published/README.md lists them",
    "verdict": "holds, does not hold, undecided, not measured, cannot be tested on this machine, "
    "or not scored: a figure without a rule",
    "document": "who makes the claim; data/published/documents.csv describes the documents",
    "claim": "the claim in our words",
    "holds_from": "the lower end of the range in which the claim holds; empty if there is none",
    "holds_to": "the upper end of that range; empty if there is none",
    "reason": "why the verdict is what it is",
    "also": "other claims of data/published/claims.csv that this row tests, by the same estimate",
    "run": "the run that the row is judged from",
    "machine": "the machine of that run",
    "date": "the day on which that run was begun",
    "other_machine": "of the other recorded machines that have the figure, by the same programs, "
    "the one where it is farthest from the estimate",
    "other_estimate": "the figure there",
    "other_over_estimate": "that figure over the estimate; empty if one of them is not positive",
}
"""The columns of the ledger as data, and their meaning."""
_NUMBERS = [
    *("published", "estimate", "low", "high", "over_published", "samples"),
    *("holds_from", "holds_to", "other_estimate", "other_over_estimate"),
]


def table(ledger: Iterable[Row]) -> pd.DataFrame:
    """The ledger as a frame, with a row per claim and toolchain; COLUMNS explains the columns."""
    rows = list(ledger)
    names = {"release": "toolchain", "value": "estimate", "n": "samples"}
    claims = frame(rows).rename(columns=names)
    claims["over_published"] = [row.factor for row in rows]
    for column in ("also", "run", "machine", "date"):
        claims[column] = [str(getattr(row, column)) for row in rows]
    others = [row.other for row in rows]
    claims["other_machine"] = [other.machine if other else "" for other in others]
    claims["other_estimate"] = [other.estimate.value if other else math.nan for other in others]
    claims["other_over_estimate"] = [row.other_over_this for row in rows]
    claims = claims.reindex(columns=list(COLUMNS))
    written = [name for name in _NUMBERS if name != "samples"]
    claims[written] = claims[written].map(rounding.written)
    return claims


def as_json(csv: str) -> str:
    """The CSV of `table` as JSON: its rows, and a Table Schema that explains the columns."""
    frame = pd.read_csv(io.StringIO(csv), dtype=str, keep_default_na=False)
    frame[_NUMBERS] = frame[_NUMBERS].apply(pd.to_numeric)
    fields = []
    for name, meaning in COLUMNS.items():
        kind = "number" if name in _NUMBERS else "string"
        fields.append({"name": name, "type": kind, "description": meaning})
    schema = {"fields": fields, "primaryKey": ["id", "toolchain"], "missingValues": [""]}
    rows = json.loads(frame.to_json(orient="records"))  # null for what is missing
    return json.dumps({"schema": schema, "data": rows}, indent=1, ensure_ascii=False) + "\n"
