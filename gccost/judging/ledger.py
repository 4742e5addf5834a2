"""The ledger: every claim on every release, its published figure, ours, the verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gccost import rounding, stats
from gccost.judging import published
from gccost.judging.claims import CLAIMS
from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import Range
from gccost.judging.claims.rules import Label, Rule, Verdict
from gccost.judging.recording import Recording
from gccost.measuring import toolchains
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.experiments.base import BUDGETS, Ratio
from gccost.stats import Estimate

OURS = "gccost"  # the document of our own claims


@dataclass(frozen=True)
class Row:
    """A claim on one release: what was published, what was measured, the verdict.

    `estimate` carries the 95 % interval; the verdict is judged on `judged`, whose
    interval is corrected for the number of claims on the ledger.
    """

    claim: Claim
    document: str
    words: str
    figure: str
    is_bar: bool  # no figure is published: `published` is a bar of ours
    unit: str
    release: str
    published: float
    estimate: Estimate
    judged: Estimate
    beside: Estimate
    verdict: Verdict
    procs: int
    longer: float = math.nan  # see `times_as_long`

    @property
    def toolchain(self) -> str:
        return toolchains.title(self.release)

    @property
    def why(self) -> str:
        """The verdict's reason; where it is undecided, with the wider interval it rests on,
        and how much longer to measure."""
        if self.verdict.label is not Label.UNDECIDED:
            return self.verdict.reason
        low, high = (rounding.value(x, self.unit) for x in (self.judged.low, self.judged.high))
        return f"{self.verdict.reason}: judged on {low} to {high}{self._mend}"

    @property
    def _mend(self) -> str:
        if math.isnan(self.longer):
            return ""
        if math.isinf(self.longer):
            return f", so near a bound that {_OUT_OF_REACH} times as long could not decide it"
        return f"; about {max(2, math.ceil(self.longer))} times as long could decide it"

    @property
    def held_to(self) -> str:
        """The published figure, or the bar in its place."""
        return ("bar " if self.is_bar else "") + rounding.value(self.published, self.unit)

    @property
    def ours(self) -> bool:
        """Whether the claim is this package's own."""
        return self.document == OURS

    @property
    def whose(self) -> str:
        """Whether the release is the document's or today's; empty for one between."""
        documents = EXPERIMENTS[self.claim.experiment].document
        return {documents: "the document's", toolchains.today(documents): "today's"}.get(
            self.release, ""
        )


def judged_claims(cpus: float = math.inf) -> int:
    """How many verdicts the ledger gives on so many CPUs: what the intervals are corrected for.

    What cannot be tested there is not judged.
    """
    return sum(len(claim.releases) for claim in CLAIMS.values() if claim.cpus <= cpus)


def rows(recordings: Mapping[str, Recording], claims: Iterable[Claim] | None = None) -> list[Row]:
    """The ledger's rows for the claims (all, if not given), from the experiments recorded."""
    words = published.claims().to_dict("index")
    return [
        _row(claim, release, words[claim.id], recordings.get(claim.experiment))
        for claim in (CLAIMS.values() if claims is None else claims)
        for release in claim.releases
    ]


def _row(
    claim: Claim, release: str, words: Mapping[Hashable, Any], recording: Recording | None
) -> Row:
    nothing = stats.amount([], [])
    estimate = judged = beside = nothing
    value, procs, longer = float(words["value"]), 0, math.nan
    if recording is None:
        verdict = Verdict(Label.UNMEASURED, "no run holds it")
    else:
        estimate = recording.estimate(claim.quantity, release)
        confidence = stats.corrected(0.95, judged_claims(recording.cpus))
        judged = recording.judged(claim.quantity, release, confidence)
        if claim.beside is not None:
            beside = recording.estimate(claim.beside, release)
        floor = _floor(claim, judged, recording)
        verdict = _judge(claim, release, judged, value, recording, floor)
        procs = _procs(recording, release)
        if verdict.label is Label.UNDECIDED:
            longer = times_as_long(claim.rule, judged, value, floor)
    return Row(
        claim=claim,
        document=str(words["document"]),
        words=str(words["claim"]),
        figure=str(words["figure"]),
        is_bar=str(words["kind"]) == "bar",
        unit=str(words["unit"]),
        release=release,
        published=value,
        estimate=estimate,
        judged=judged,
        beside=beside,
        verdict=verdict,
        procs=procs,
        longer=longer,
    )


# What would take longer than so many times as long is out of every budget's reach.
_OUT_OF_REACH = 100


def times_as_long(rule: Rule, judged: Estimate, published_value: float, floor: float) -> float:
    """How many times as long to measure for a verdict, if the figure stays where it is.

    A guess: an interval narrows with the square root of the time, as the noise floor does,
    and the figure moves within it meanwhile. Infinite where it lies too near a bound; NaN
    where there is no interval or floor yet, or none that narrows (a count of places, a
    curve's dip).
    """
    parts = (judged.one, judged.other) if isinstance(judged, Range) else (judged,)
    ends = [floor, *(end for part in parts for end in (part.low, part.high))]
    if type(judged) not in (Estimate, Range) or not all(map(math.isfinite, ends)):
        return math.nan
    for longer in np.geomspace(1, _OUT_OF_REACH, 200):
        share = 1 / math.sqrt(longer)
        narrower = _narrowed(judged, share)
        if rule.judge(narrower, published_value, floor * share).label.decided:
            return float(longer)
    return math.inf


def _narrowed(estimate: Estimate, share: float) -> Estimate:
    """An estimate with a share of its interval, on the scale that keeps it positive if it is."""
    if isinstance(estimate, Range):
        one, other = _narrowed(estimate.one, share), _narrowed(estimate.other, share)
        low, high = min(one.low, other.low), max(one.high, other.high)
        return replace(estimate, one=one, other=other, low=low, high=high)
    if estimate.low > 0:
        low, high = (
            estimate.value * (end / estimate.value) ** share
            for end in (estimate.low, estimate.high)
        )
    else:
        low, high = (
            estimate.value + (end - estimate.value) * share for end in (estimate.low, estimate.high)
        )
    return replace(estimate, low=low, high=high)


def _floor(claim: Claim, judged: Estimate, recording: Recording) -> float:
    """The noise floor of a ratio, as sure as the interval that is set beside it."""
    if isinstance(claim.quantity, Ratio) and judged.samples:
        return recording.noise_floor(claim.quantity, judged.confidence)
    return 0.0


def _judge(
    claim: Claim,
    release: str,
    judged: Estimate,
    published_value: float,
    recording: Recording,
    floor: float,
) -> Verdict:
    if claim.cpus > recording.cpus:
        needs = f"it needs {claim.cpus} CPUs, there were {recording.cpus}"
        return Verdict(Label.UNTESTABLE, needs)
    if judged.samples == 0 or math.isnan(judged.value):
        missing = recording.entry.get("missing", {}).get(release)
        return Verdict(Label.UNMEASURED, missing or _waiting(claim, release))
    return claim.rule.judge(judged, published_value, floor)


def _waiting(claim: Claim, release: str) -> str:
    """Why a run holds no samples of a claim: its budget was too small, as far as is known."""
    cases = EXPERIMENTS[claim.experiment].cases
    since = {
        case.since for case in cases if case.release == release and case.arm in claim.quantity.arms
    }
    later = max(since, key=list(BUDGETS).index, default="tiny")
    if later != "tiny":
        return f"it is measured from the {later} budget on"
    return "the run holds no samples of it"


def _procs(recording: Recording, release: str) -> int:
    """The GOMAXPROCS of the release's samples in the published setting."""
    frame = recording.frame
    if not len(frame):  # a run that was begun: it has no columns to choose by
        return 0
    chosen = frame[(frame["release"] == release) & (frame["setting"] == "published")]
    return int(chosen["procs"].max()) if len(chosen) else 0


def table(ledger: Iterable[Row]) -> pd.DataFrame:
    """The ledger for programs: a row per claim and toolchain."""
    return pd.DataFrame(
        [
            {
                "id": row.claim.id,
                "toolchain": row.toolchain,
                "published": rounding.written(row.published),
                "estimate": rounding.written(row.estimate.value),
                "low": rounding.written(row.estimate.low),
                "high": rounding.written(row.estimate.high),
                "samples": row.estimate.samples,
                "unit": row.unit,
                "verdict": str(row.verdict),
            }
            for row in ledger
        ]
    )
