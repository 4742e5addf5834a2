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

from gccost import stats
from gccost.cases import jobs, published, versions
from gccost.costs import costs
from gccost.costs.recording import Recording
from gccost.judging import rounding
from gccost.judging.claims import Claim, Study
from gccost.judging.rules import Agrees, Label, Verdict
from gccost.stats import FEWEST, JUDGED, Estimate

# By how much the number of rounds or sittings is multiplied to see whether more decide a verdict.
_ROUNDS, _SITTINGS = (1.5, 2, 3, 5, 10), (2, 3, 5, 10)


@dataclass(frozen=True)
class Row:
    """A claim on one release: the published value, the estimate, and the verdict.

    `estimate` has the 95 % interval of all samples. The verdict is based on `judged`, the 99 %
    interval. `needed` is the number of further rounds that would decide it if the estimate stays
    the same; infinite if none would. `is_recorded` says that the row is the recorded run's, next
    to rows of another run.
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

    @property
    def toolchain(self) -> str:
        return versions.title(self.release)

    @property
    def factor(self) -> float:
        """Measured over published; NaN if either is missing."""
        return math.nan if self.is_bar else self.estimate.value / self.published

    @property
    def sized(self) -> bool:
        """Whether there is a factor to show."""
        return math.isfinite(self.factor)

    @property
    def why(self) -> str:
        """The verdict's reason; if undecided, its interval and what could decide it."""
        is_wide = self.judged.low < self.judged.high < math.inf
        if self.verdict.label is not Label.UNDECIDED or not is_wide:
            return self.verdict.reason
        low, high = (rounding.value(x, self.unit) for x in (self.judged.low, self.judged.high))
        if math.isinf(self.needed):
            more = f"; {self._sittings()}"
        elif math.isnan(self.needed):
            more = ""
        else:
            more = f"; {self.needed:.0f} more rounds could decide it"
        return f"99 %: {low} to {high}{more}"

    def _sittings(self) -> str:
        """How many more sittings decide it if the estimate stays the same, in words."""
        for factor in _SITTINGS:
            then = after(self.judged, sittings=factor)
            if self.claim.rule.judge(then, self.published).label.decided:
                return f"{factor} times as many sittings could decide it"
        return f"{_SITTINGS[-1]} times as many sittings would not decide it"

    @property
    def held_to(self) -> str:
        """The published value or our bar, as text."""
        if isinstance(self.claim.rule, Agrees):
            return f"bar {self.claim.rule}"
        return "bar " * self.is_bar + rounding.value(self.published, self.unit)

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
        return f"{self.verdict} (recorded)" if self.is_recorded else str(self.verdict)


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
        return next((row for row in self.rows if not row.is_today), None)

    @property
    def today(self) -> Row | None:
        return next((row for row in self.rows if row.is_today), None)

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
    claims: dict[str, list[Row]] = {}
    for row in ledger:
        claims.setdefault(row.claim.id, []).append(row)
    lines = {claim: Tested(tuple(rows)) for claim, rows in claims.items()}
    named = published.by_name("claims", claims).values()
    documents = []
    for name, known in published.by_name("documents", ()).items():
        own = [line for line in lines.values() if line.latest.document == name]
        others = [each for each in named if each["same_as"] in claims and each["document"] == name]
        chosen = drawn = lines.get(known["headline"])
        if chosen and chosen.latest.verdict.label is Label.UNTESTABLE:
            drawn = lines.get(known["stand_in"], chosen)
        if own:
            more = {"lines": own, "others": others, "chosen": chosen, "drawn": drawn}
            documents.append(SimpleNamespace(**known, **more))
    return documents


def verdict_counts(lines: Iterable[Tested]) -> Counter[Label]:
    """How many claims have each verdict, today if they are tested there; in Label's order.

    Figures that are not scored do not count.
    """
    count = Counter(line.latest.verdict.label for line in lines)
    scored = [label for label in Label if label is not Label.UNSCORED]
    return Counter({label: count[label] for label in scored if count[label]})


def rows(recordings: Mapping[str, Recording], studies: Iterable[Study]) -> list[Row]:
    """The ledger's rows for the studies' claims, from recordings by study name."""
    studies = list(studies)
    known = published.by_name("claims", (claim.id for each in studies for claim in each.claims))
    ledger = []
    for study in studies:
        recording = recordings.get(study.name)
        for claim in study.claims:
            unjudged = [_unjudged(claim, study, go, known) for go in claim.releases]
            ledger += [_judged(row, recording) if recording else row for row in unjudged]
    return ledger


def shown(recordings: Mapping[str, Recording], studies: Iterable[Study]) -> list[Row]:
    """The ledger's rows for a page: the recorded run's where a run has not measured the claim."""
    return [_shown(row, recordings.get(row.study.name)) for row in rows(recordings, studies)]


def _shown(row: Row, recording: Recording | None) -> Row:
    """The row, or that of the recorded run, whole, if this run has not measured the claim."""
    if recording is None or recording.is_aside:
        return replace(row, is_recorded=recording is not None)
    other = recording.recorded
    if row.verdict.label is not Label.UNMEASURED or other is None:
        return row
    recorded = replace(_judged(row, other), is_recorded=True)
    return row if recorded.verdict.label is Label.UNMEASURED else recorded


def _unjudged(claim: Claim, study: Study, release: str, known: Mapping[str, Any]) -> Row:
    """A claim as data/published/claims.csv has it."""
    words = known[claim.id]
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
        also=", ".join(name for name, each in known.items() if each["same_as"] == claim.id),
    )


def _judged(row: Row, recording: Recording) -> Row:
    """The row with what a recording says of its claim."""
    quantity, release = row.claim.quantity, row.release
    judged = replace(
        row,
        estimate=quantity.on(recording, release),
        run=recording.run.name,
        machine=recording.machine,
        date=str(recording.manifest["created"])[:10],
    )
    names = needed_cases(row.claim, release, recording)
    rounds = list(map(recording.rounds, names))
    fewest = min(map(len, rounds), default=0)
    label, why, needed = Label.UNDECIDED, "", math.nan
    too_small = row.claim.cpus > recording.cpus or row.claim.cores > recording.cores
    if too_small or not recording.system.startswith(row.claim.system):
        label = Label.UNTESTABLE
        cpus = f"{recording.cpus} CPUs on {recording.cores} cores"
        why = f"it needs {row.claim.needs}; the machine has {cpus}, and {recording.system}"
    elif math.isnan(judged.estimate.value):
        label, why = Label.UNMEASURED, _missing(names, release, recording)
    elif fewest < FEWEST and row.claim.rule.scored and not quantity.at_once:
        why = f"it has {fewest} of the {FEWEST} rounds that a verdict needs"
        needed = FEWEST - fewest
    if why:
        return replace(judged, verdict=Verdict(label, why), needed=needed)
    seen = quantity.on(recording, release, JUDGED)
    verdict = row.claim.rule.judge(seen, row.published, row.unit)
    judged = replace(judged, judged=seen, verdict=verdict)
    return judged if quantity.at_once else replace(judged, needed=_needed(judged, fewest))


def _missing(names: Iterable[str], release: str, recording: Recording) -> str:
    """Why a recording lacks what a claim needs."""
    failed = [why for name in names for why in recording.failures(name)]
    whole = recording.manifest["missing"].get(release)
    return whole or "; ".join(dict.fromkeys(failed)) or "the run lacks samples that it needs"


def needed_cases(claim: Claim, release: str, recording: Recording) -> list[str]:
    """The names of the cases that a claim needs, without optional ones that were not measured."""
    names = [jobs.name(case, release) for case in dict.fromkeys(claim.quantity.cases)]
    if not claim.quantity.partial:
        return names
    counts = {name: len(recording.rounds(name)) for name in names}
    fewest = min(FEWEST, max(counts.values()))
    return [name for name, rounds in counts.items() if rounds >= fewest]


def _needed(row: Row, rounds: int) -> float:
    """The further rounds that decide it if the estimate stays the same; infinite if none do."""
    for factor in _ROUNDS:
        then = row.claim.rule.judge(after(row.judged, rounds=factor), row.published)
        if then.label.decided:
            return math.ceil((factor - 1) * rounds)
    return math.inf


def after(estimate: Estimate, rounds: float = 1.0, sittings: float = 1.0) -> Estimate:
    """An estimate with so many times the rounds and sittings, if it stayed the same."""
    lasting, value = estimate.lasting, estimate.value
    share = math.sqrt((lasting + (1 - lasting) / rounds) / sittings)
    if estimate.low > 0:
        low, high = (value * (end / value) ** share for end in (estimate.low, estimate.high))
    else:
        low, high = (value + (end - value) * share for end in (estimate.low, estimate.high))
    parts = tuple(after(part, rounds, sittings) for part in estimate.parts)
    return replace(estimate, low=low, high=high, parts=parts)


_FRAME = [
    *("id", "release", "claim", "published", *costs.VALUES),
    *("unit", "verdict", "reason", "holds_from", "holds_to", "is_bar", "document"),
    *("source", "run"),
]


def frame(ledger: Iterable[Row]) -> pd.DataFrame:
    """The ledger as a frame of typed columns, with a row per claim and release."""
    rows = [
        [
            *(row.claim.id, row.toolchain, row.words, row.published),
            *costs.row(row.estimate).values(),
            *(row.unit, str(row.verdict), row.verdict.reason, *row.bounds),
            *(row.is_bar, row.document, costs.RECORDED * row.is_recorded, row.run),
        ]
        for row in ledger
    ]
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
}
"""The columns of the ledger as data, and their meaning."""
_NUMBERS = [
    *("published", "estimate", "low", "high", "over_published", "samples"),
    *("holds_from", "holds_to"),
]


def table(ledger: Iterable[Row]) -> pd.DataFrame:
    """The ledger as a frame, with a row per claim and toolchain; COLUMNS explains the columns."""
    rows = list(ledger)
    names = {"release": "toolchain", "value": "estimate", "n": "samples"}
    claims = frame(rows).rename(columns=names).assign(over_published=[row.factor for row in rows])
    for column in ("also", "run", "machine", "date"):
        claims[column] = [str(getattr(row, column)) for row in rows]
    claims = claims.reindex(columns=list(COLUMNS))
    written = [name for name in _NUMBERS if name != "samples"]
    claims[written] = claims[written].map(rounding.written)
    return claims


def as_json(csv: str) -> str:
    """The CSV of `table` as JSON: its rows, and a Table Schema that explains the columns."""
    frame = pd.read_csv(io.StringIO(csv), dtype=str, keep_default_na=False)
    frame[_NUMBERS] = frame[_NUMBERS].apply(pd.to_numeric)
    kinds = dict.fromkeys(COLUMNS, "string") | dict.fromkeys(_NUMBERS, "number")
    fields = [
        {"name": name, "type": kinds[name], "description": meaning}
        for name, meaning in COLUMNS.items()
    ]
    schema = {"fields": fields, "primaryKey": ["id", "toolchain"], "missingValues": [""]}
    rows = json.loads(frame.to_json(orient="records"))  # null for what is missing
    return json.dumps({"schema": schema, "data": rows}, indent=1, ensure_ascii=False) + "\n"
