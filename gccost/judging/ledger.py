"""The ledger: each claim on each release, with published value, estimate and verdict."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from gccost import rounding, stats
from gccost.judging import costs, metrics, published
from gccost.judging.claims import Claim, Study
from gccost.judging.metrics import QUIET
from gccost.judging.quantities import Quantity, Ratio
from gccost.judging.recording import Recording
from gccost.judging.rules import Agrees, Label, Verdict
from gccost.measuring import toolchains
from gccost.measuring.cases import Variant
from gccost.stats import JUDGED, LOOKS, Estimate

_FEW = LOOKS[3]  # rounds
OURS = "gccost"  # the document of our own claims


@dataclass(frozen=True)
class Row:
    """A claim on one release: the published value, the estimate, and the verdict.

    `estimate` has the 95 % interval of all samples. The verdict is based on `judged`, the
    99 % interval of the deciding look, or of the last one. `needed` is the number of further
    rounds that would decide it if the estimate stays the same. `others` are the least and the
    largest ratio that other estimators give for a ratio of two times; NaN for anything else.
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
    others: tuple[float, float] = (math.nan, math.nan)

    @property
    def toolchain(self) -> str:
        return toolchains.title(self.release)

    @property
    def factor(self) -> float:
        """Measured over published; NaN if either is missing, or if two values were measured."""
        two = len(self.estimate.shown) > 1
        return math.nan if self.is_bar or two else self.estimate.value / self.published

    @property
    def sized(self) -> bool:
        """Whether there is a factor to show."""
        return math.isfinite(self.factor)

    @property
    def why(self) -> str:
        """The verdict's reason; if undecided, also its interval and the rounds that could
        decide it."""
        reason = self.verdict.reason
        if self.verdict.label is not Label.UNDECIDED or not math.isfinite(self.judged.high):
            return reason
        low, high = (rounding.value(x, self.unit) for x in (self.judged.low, self.judged.high))
        more = ""
        if math.isinf(self.needed):
            more = f"; {LOOKS[-1]} rounds would not decide it"
        elif not math.isnan(self.needed):
            more = f"; {self.needed:.0f} more rounds could decide it"
        return f"{reason} (99 %: {low} to {high}){more}"

    @property
    def held_to(self) -> str:
        """The published value or our bar, as text."""
        if isinstance(self.claim.rule, Agrees):
            return f"bar {self.claim.rule}"
        return ("bar " if self.is_bar else "") + rounding.value(self.published, self.unit)

    @property
    def bounds(self) -> tuple[float, float]:
        """The range in which the claim holds; either end may be infinite, both NaN if none."""
        return self.claim.rule.bounds(self.published)

    @property
    def ours(self) -> bool:
        """Whether the claim is this package's own."""
        return self.document == OURS

    @property
    def is_today(self) -> bool:
        """Whether the release is the newest measured."""
        return self.release == toolchains.today(self.release)

    @property
    def said(self) -> str:
        """The verdict in a word or two."""
        if self.verdict.label is Label.UNTESTABLE:
            return f"needs {self.claim.cpus} CPUs"
        return str(self.verdict)


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


@dataclass(frozen=True)
class Document:
    """A document, as data/published/documents.csv describes it, and the lines of its claims.

    `secondary` are the lines of causes and changes that chapters state; no count includes them.
    """

    document: str
    chapter: str
    author: str
    title: str
    date: str
    toolchain: str
    short: str
    address: str
    headline: str  # the id of its headline claim; empty if it has none
    words: str  # the headline claim
    lines: tuple[Tested, ...]
    secondary: tuple[Tested, ...]

    @property
    def chosen(self) -> Tested | None:
        """The line of the headline claim, if it is on the ledger."""
        return next((line for line in self.lines if line.claim.id == self.headline), None)


def by_document(ledger: Iterable[Row]) -> list[Document]:
    """The ledger's lines by document, in the ledger's order."""
    claims: dict[str, dict[str, list[Row]]] = {}
    for row in ledger:
        claims.setdefault(row.document, {}).setdefault(row.claim.id, []).append(row)
    known = published.by_name("documents", claims)
    made = []
    for name, found in claims.items():
        lines = [Tested(tuple(each)) for each in found.values()]
        own, secondary = (
            tuple(line for line in lines if line.claim.secondary is wanted)
            for wanted in (False, True)
        )
        made.append(Document(**known[name], lines=own, secondary=secondary))
    return made


def standing(lines: Iterable[Tested]) -> Counter[Label]:
    """How many claims have each verdict, today if they are tested there; in Label's order."""
    count = Counter(line.latest.verdict.label for line in lines)
    return Counter({label: count[label] for label in Label if count[label]})


def rows(
    recordings: Mapping[str, Recording], studies: Iterable[Study], without: Container[str] = ()
) -> list[Row]:
    """The ledger's rows for the studies' claims, from recordings by study name.

    `without` names claims to omit.
    """
    studies = list(studies)
    words = published.by_name("claims", (claim.id for each in studies for claim in each.claims))
    return [
        _row(claim, study, release, words[claim.id], recordings.get(study.name))
        for study in studies
        for claim in study.claims
        if claim.id not in without
        for release in claim.releases
    ]


def _row(
    claim: Claim,
    study: Study,
    release: str,
    words: Mapping[str, Any],
    recording: Recording | None,
) -> Row:
    value, unit = float(words["value"]), str(words["unit"])
    estimate = judged = stats.nothing()
    verdict, needed = Verdict(Label.UNMEASURED, "no run holds it"), math.nan
    others = math.nan, math.nan
    if recording is not None:
        estimate = recording.estimate(claim.quantity, release)
        judged, verdict, needed = _judge(claim, release, value, unit, recording)
        others = _by_others(claim.quantity, release, recording)
    document, claimed, figure = (str(words[name]) for name in ("document", "claim", "figure"))
    bar = words["kind"] == "bar"
    of = (claim, study, document, claimed, figure, bar, unit, release, value)
    return Row(*of, estimate, judged, verdict, needed, others)


def _by_others(quantity: Quantity, release: str, recording: Recording) -> tuple[float, float]:
    """The range of a ratio of two times by other estimators: means, medians, and low quantiles."""
    if not (isinstance(quantity, Ratio) and quantity.metric in QUIET):
        return math.nan, math.nan
    over, under = (
        recording.accepted(variant, release).get(QUIET[quantity.metric], pd.Series(dtype=float))
        for variant in quantity.variants
    )
    estimators = (pd.Series.mean, pd.Series.median, pd.Series.min, _lower_quartile)
    found = [estimator(over) / estimator(under) for estimator in estimators]
    return min(found), max(found)


def _lower_quartile(times: pd.Series) -> float:
    return float(times.quantile(0.25))


def _judge(
    claim: Claim,
    release: str,
    published_value: float,
    unit: str,
    recording: Recording,
) -> tuple[Estimate, Verdict, float]:
    """The deciding estimate (or the last one), the verdict, and the rounds still needed."""
    nothing, quantity = stats.nothing(), claim.quantity
    if claim.cpus > recording.cpus:
        needs = f"it needs {claim.cpus} CPUs, there were {recording.cpus}"
        return nothing, Verdict(Label.UNTESTABLE, needs), math.nan
    variants = needed_variants(claim, release, recording)
    rounds = [recording.rounds(variant, release) for variant in variants]
    fewest = min(map(len, rounds), default=0)
    if math.isnan(recording.estimate(quantity, release).value):
        missing = recording.manifest["missing"].get(release)
        failed = [f for variant in variants for f in recording.failures(variant, release)]
        why = missing or "; ".join(dict.fromkeys(failed)) or "the run holds no samples of it"
        return nothing, Verdict(Label.UNMEASURED, why), math.nan
    if quantity.at_once:
        judged = recording.estimate(quantity, release, JUDGED)
        return judged, claim.rule.judge(judged, published_value, unit), math.nan
    if fewest < LOOKS[0]:
        few = f"it has {fewest} of the {LOOKS[0]} rounds that a verdict needs"
        return nothing, Verdict(Label.UNDECIDED, few), LOOKS[0] - fewest
    for look in (look for look in LOOKS if look <= fewest):
        last = max(numbers[look - 1] for numbers in rounds)
        judged = recording.until(last).estimate(quantity, release, JUDGED)
        verdict = claim.rule.judge(judged, published_value, unit)
        if verdict.label.decided:
            return judged, verdict, math.nan
    return judged, verdict, _needed(claim, judged, published_value, look) - (fewest - look)


def needed_variants(claim: Claim, release: str, recording: Recording) -> list[Variant]:
    """The variants that a claim needs, without optional ones that were not measured."""
    variants = list(dict.fromkeys(claim.quantity.variants))
    if not claim.quantity.partial:
        return variants
    found = {variant: len(recording.rounds(variant, release)) for variant in variants}
    return [
        variant for variant, rounds in found.items() if rounds >= min(LOOKS[0], max(found.values()))
    ]


def _needed(claim: Claim, judged: Estimate, published_value: float, look: int) -> float:
    """The further rounds that decide it if the estimate stays the same; infinite if none do."""
    for more in (later for later in LOOKS if later > look):
        if claim.rule.judge(judged.after(look, more), published_value).label.decided:
            return more - look
    # Few rounds predict the figure and its interval poorly.
    return _FEW - look if look < _FEW else math.inf


def frame(ledger: Iterable[Row]) -> pd.DataFrame:
    """The ledger as a frame of typed columns, with a row per claim and release."""
    rows = [
        {
            "id": row.claim.id,
            "release": row.toolchain,
            "claim": row.words,
            "published": row.published,
            **costs.row(row.estimate),
            "unit": row.unit,
            "verdict": str(row.verdict),
            "reason": row.verdict.reason,
            **dict(zip(("holds_from", "holds_to"), row.bounds, strict=True)),
            "document": row.document,
        }
        for row in ledger
    ]
    # A study without claims has no row, but columns.
    words = ["id", "release", "claim", "published"]
    more = ["unit", "verdict", "reason", "holds_from", "holds_to", "document"]
    return pd.DataFrame(rows, columns=[*words, *costs.VALUES, *more])


def sides(ledger: Iterable[Row], recording: Recording) -> pd.DataFrame:
    """The processes of both sides of each claim that is a ratio of two times per operation.

    A row per claim, release, side ("over" or "under") and process, with its metrics.
    """
    parts = {
        (row.claim.id, row.toolchain, side): recording.accepted(variant, row.release)
        for row in ledger
        if isinstance(quantity := row.claim.quantity, Ratio) and quantity.metric == "quiet_ns"
        for side, variant in zip(("over", "under"), quantity.variants, strict=True)
    }
    names = ["id", "release", "side"]
    if not parts:
        return pd.DataFrame(columns=[*names, "round", "sitting", *metrics.QUIET, "mean_ns"])
    return pd.concat(parts, names=names).reset_index(names).reset_index(drop=True)


COLUMNS: Mapping[str, str] = {
    "id": "the claim's number",
    "toolchain": "the release on which it was tested",
    "published": "the published figure, or the bar where no figure is published",
    "estimate": "the measured figure; the geometric mean if two were measured, as for W2a and L5; "
    "empty if there is none",
    "low": "the lower end of its 95 % confidence interval, which covers both if two were measured",
    "high": "the upper end of that interval",
    "over_published": "estimate over published; empty where no figure is published or two were "
    "measured",
    "samples": "the number of samples that the estimate rests on",
    "unit": "the unit of all figures; data/published/README.md lists them",
    "verdict": "holds, does not hold, undecided, not measured, or cannot be tested on this machine",
    "document": "who makes the claim; data/published/documents.csv describes the documents",
    "claim": "the claim in our words",
    "holds_from": "the lower end of the range in which the claim holds; empty if there is none",
    "holds_to": "the upper end of that range; empty if there is none",
    "reason": "why the verdict is what it is",
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
    found = frame(rows).rename(columns=names).assign(over_published=[row.factor for row in rows])
    found = found.reindex(columns=list(COLUMNS))
    written = [name for name in _NUMBERS if name != "samples"]
    found[written] = found[written].map(rounding.written)
    return found


def as_json(csv: str) -> str:
    """The CSV of `table` as JSON: its rows, and a Table Schema that explains the columns."""
    frame = pd.read_csv(io.StringIO(csv), dtype=str, keep_default_na=False)
    frame[_NUMBERS] = frame[_NUMBERS].apply(pd.to_numeric)
    fields = [
        {"name": name, "type": "number" if name in _NUMBERS else "string", "description": meaning}
        for name, meaning in COLUMNS.items()
    ]
    schema = {"fields": fields, "primaryKey": ["id", "toolchain"], "missingValues": [""]}
    rows = json.loads(frame.to_json(orient="records"))  # null for what is missing
    return json.dumps({"schema": schema, "data": rows}, indent=1, ensure_ascii=False) + "\n"
