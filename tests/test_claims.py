"""The rules for verdicts, and the claims that use them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from recordings import labels, recorded, study_of

from gccost import stats
from gccost.judging import ledger, published
from gccost.judging.quantities import Ratio
from gccost.judging.rules import (
    About,
    AgainstBoth,
    Agrees,
    AtLeast,
    AtMost,
    AtMostCount,
    Between,
    Bounded,
    Effect,
    Label,
    Occurs,
    Rule,
    Same,
    UShaped,
    Verdict,
    WithinTolerance,
)
from gccost.measuring import toolchains
from gccost.stats import Estimate
from gccost.studies import CLAIMS, STUDIES, Claim

HOLDS, FAILS, UNDECIDED = Label.HOLDS, Label.FAILS, Label.UNDECIDED
EVERY = math.inf


def interval(low: float, high: float) -> Estimate:
    middle = math.sqrt(low * high) if low > 0 and high < math.inf else (low + high) / 2
    return Estimate(middle, low, high, 6, 6, 0.99)


# A rule, the published value, and the bounds within which the rule holds.
RULES = [
    (Effect(), 8.667, 4.8335, EVERY),
    (Effect(), 1.882, 1.441, EVERY),
    (Effect(), 1.0, 1.0, EVERY),
    (Effect(), 0.1138, -EVERY, 2 / (1 + 1 / 0.1138)),
    (Same(), 0.892, 0.8, 1.25),
    (About(), 0.27, 0.18, 0.405),
    (AtLeast(), 0.5, 0.5, EVERY),
    (AtMost(), 1.4, -EVERY, 1.4),
    (Between(low=0.5), 0.7017, 0.5, EVERY),
    (Between(low=0.4, high=0.6), 0.5, 0.4, 0.6),
    (WithinTolerance(), 2.0, 1.9, 2.1),
    (AtMostCount(), 64.0, -EVERY, 64.1),
    (AtMost(margin=1.0), 1.05, -EVERY, 1.05),
]


@pytest.mark.parametrize(("rule", "figure", "low", "high"), RULES, ids=str)
def test_each_rule_applies_its_bounds_and_margin(
    rule: Bounded, figure: float, low: float, high: float
) -> None:
    assert rule.bounds(figure) == pytest.approx((low, high))
    bounds = rule.bounds(figure)
    inside = [bounds[0] * rule.margin, bounds[1] / rule.margin]  # the limits of a deciding interval
    outside = [bounds[0] / rule.margin, bounds[1] * rule.margin]

    def judged(low: float, high: float) -> Label:
        return rule.judge(interval(low, high), figure).label

    lowest, highest = max(inside[0], 0.0), min(inside[1], 100.0)
    assert judged(lowest, highest) is HOLDS  # at the bounds
    if low > 0:
        assert judged(inside[0] * 0.999, highest) is UNDECIDED
        assert judged(outside[0] * 0.9, outside[0] * 0.999) is FAILS
        assert judged(outside[0] * 0.9, outside[0] * 1.001) is UNDECIDED
    if high < EVERY:
        assert judged(lowest, inside[1] * 1.001) is UNDECIDED
        assert judged(outside[1] * 1.001, outside[1] * 2) is FAILS
        assert judged(outside[1] * 0.999, outside[1] * 2) is UNDECIDED
    assert judged(0.0, EVERY) is UNDECIDED


def test_ratio_rules_use_the_documented_margin() -> None:
    assert {rule.margin for rule, *_ in RULES[:-3]} == {stats.MARGIN} == {1.05}
    assert WithinTolerance().margin == AtMostCount().margin == 1


def of(estimate: Estimate, *parts: Estimate) -> Estimate:
    return replace(estimate, parts=parts)


def exactly(value: float, samples: int = 8) -> Estimate:
    return Estimate(value, value, value, samples, 4, 1.0)


@pytest.mark.parametrize(
    ("rule", "figure", "measured", "label"),
    [
        # Ours must agree, the others must not.
        (Agrees(), 1.0, of(exactly(1.02), exactly(0.4), exactly(1e-4)), HOLDS),
        (Agrees(), 1.0, of(exactly(1.02), exactly(0.4), exactly(0.4)), FAILS),
        (Agrees(), 1.0, of(exactly(1.02), exactly(1e-4), exactly(1e-4)), FAILS),
        # Both ends rise.
        (UShaped(), 4.25, of(interval(4.0, 4.5), interval(1.3, 1.6)), HOLDS),
        (UShaped(), 4.25, of(interval(4.0, 4.5), interval(1.04, 1.6)), UNDECIDED),
        (UShaped(), 4.25, of(interval(0.9, 4.5), interval(1.3, 1.6)), UNDECIDED),
        (UShaped(), 4.25, of(interval(1.0, 1.0), interval(2.0, 2.5)), FAILS),
        (UShaped(), 4.25, of(interval(4.0, 4.5), interval(0.7, 0.9)), FAILS),
        (UShaped(), 4.25, of(interval(4.0, 4.5), interval(0.7, 0.96)), UNDECIDED),
        # A random event is rejected only after many runs.
        (Occurs(), 1.0, of(exactly(1, 1), exactly(0)), HOLDS),
        (Occurs(), 1.0, of(exactly(0, 1), exactly(0)), FAILS),
        (Occurs(0.1), 1.0, of(exactly(0, 20), exactly(0)), UNDECIDED),  # 21 % could still show it
        (Occurs(0.1), 1.0, of(exactly(0, 60), exactly(0)), FAILS),
        # An effect holds against both baselines.
        *(
            (AgainstBoth(), 8.667, of(interval(*one), interval(*one), interval(*other)), label)
            for one, other, label in (
                ((8.0, 9.0), (6.0, 7.0), HOLDS),
                ((8.0, 9.0), (3.0, 7.0), UNDECIDED),
                ((8.0, 9.0), (1.0, 2.0), FAILS),
                ((1.0, 2.0), (3.0, 7.0), FAILS),
            )
        ),
    ],
    ids=str,
)
def test_rules_that_need_more_than_one_interval(
    rule: Rule, figure: float, measured: Estimate, label: Label
) -> None:
    assert rule.judge(measured, figure).label is label


# --- the claims -----------------------------------------------------------------------

every_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.id)


def test_claims_match_the_published_rows() -> None:
    assert set(CLAIMS) == set(published.claims().index)


@every_claim
def test_every_experiment_measures_what_its_claims_need(claim: Claim) -> None:
    of = study_of(claim)
    assert len(claim.releases) <= 2  # chapter 06 covers the releases in between
    assert claim.releases[-1] == toolchains.today(of.document)
    for variant in claim.quantity.variants:
        measured = {c.release for c in of.cases if c.variant == variant}
        assert measured >= set(claim.releases), f"{claim.id} needs {variant}"
    if not claim.quantity.at_once:  # judged repeatedly
        assert not {c.variant for c in of.cases if c.once} & {*claim.quantity.variants}


def test_published_claims_match_the_published_tables() -> None:
    rows = published.table("lemire-timings").set_index(["variant", "gogc"])["ns_per_op"]
    claims = published.claims()["value"]
    for claim, gogc in (("L1", "100"), ("L2b", "off")):
        ratio = rows["AllocateAuto", gogc] / rows["AllocateFree", gogc]
        assert claims[claim] == pytest.approx(ratio, abs=5e-4)
    profile = published.table("lemire-profile").set_index("function")
    assert claims["L3"] == profile.loc["runtime.cgocall", "cum_percent"] / 100
    issue = published.table("addcleanup-timings").set_index(["machine", "variant"])["ns_per_op"]
    laptop, server = issue["MacBook Pro M1"], issue["Linux VM"]
    for claim, ratio in (
        ("M1", laptop["AllocateCleanup"] / laptop["AllocateFree"]),
        ("M2", laptop["AllocateAuto"] / laptop["AllocateCleanup"]),
        ("M3", laptop["AllocateDefer"] / laptop["AllocateFree"]),
        ("M4", server["AllocateCleanup"] / server["AllocateFree"]),
    ):
        assert claims[claim] == pytest.approx(ratio, abs=5e-4)
    sizes = published.table("siebenmann-sizes").pivot(
        index="words", columns="variant", values="ns_per_op"
    )
    added = sizes["Finalize"] - sizes["Allocate"]
    assert claims["S8"] == pytest.approx(added[1] / added.min(), abs=5e-4)
    assert 8 * added.idxmin() == 256
    shares = published.table("siebenmann-profile").set_index("share")["percent"] / 100
    assert claims["S3"] == shares["SetFinalizer"]
    assert claims["S4"] == shares["GC"]
    assert claims["S5"] == shares["processing and running finalizers"]
    assert claims["S6"] == shares["runtime.lock2"] + shares["runtime.unlock2"]


def test_claims_without_a_run_are_unmeasured() -> None:
    rows = ledger.rows({}, STUDIES.values())
    assert len(rows) == sum(len(claim.releases) for claim in CLAIMS.values())
    assert {row.verdict.label for row in rows} == {Label.UNMEASURED}


def test_document_claims_use_wall_clock_time() -> None:
    # Weimer measured whole processes; our own claims have no document.
    documents = ("lemire", "siebenmann", "addcleanup", "cloudflare")
    ratios = {
        claim.id: claim.quantity
        for claim in CLAIMS.values()
        if study_of(claim).name in documents and isinstance(claim.quantity, Ratio)
    }
    per_core = {name for name, ratio in ratios.items() if ratio.metric != "ns/op"}
    assert per_core == {"C2"}  # the claim about CPU usage
    assert {ratio.numerator.setting for ratio in ratios.values()} == {"published"}


# --- perturb a metric, the verdict follows ---------------------------------------------

AS_PUBLISHED = {"L1": HOLDS, "L2a": HOLDS, "L2b": HOLDS, "L3": FAILS, "L4": HOLDS}
WHY = {"M8a": FAILS} | dict.fromkeys(("M8b", "X1a", "X1b", "X1c", "X5", "X10"), HOLDS)
RUNTIME = dict.fromkeys(
    [
        *("M7", "X2a", "X2b", "X2c", "X2d", "X3", "X4"),
        *(*(f"X11{x}" for x in "abcd"), *(f"X12{x}" for x in "abc")),
    ],
    HOLDS,
)


@pytest.mark.parametrize(
    ("study", "ns", "verdicts"),
    [
        ("lemire", {}, AS_PUBLISHED),
        ("lemire", {"AllocateDummy": 1400}, AS_PUBLISHED | {"L4": FAILS}),
        ("lemire", {"AllocateAuto": 1600}, {"L1": HOLDS}),
        ("lemire", {"AllocateAuto": 280}, {"L1": FAILS}),
        ("lemire", {"AllocateAuto": 40}, {"L1": FAILS}),
        ("lemire", {"AllocateAuto": 385}, {"L1": UNDECIDED}),
        ("why", {}, WHY),
        ("why", {"AttachFinalizer shuffled": 0.8}, WHY | {"X1b": FAILS}),
        ("runtime", {}, RUNTIME),
        (
            "runtime",  # the index walks
            {"AttachCleanup shuffled index": 0.1, "Stop shuffled index": 0.15},
            RUNTIME | {"X2b": FAILS, "X2d": FAILS},
        ),
        ("runtime", {"special plus": 25.0}, RUNTIME | {"X11d": FAILS}),  # marking is not halved
    ],
)
def test_a_verdict_follows_the_samples(
    tmp_path: Path, study: str, ns: Mapping[str, float], verdicts: Mapping[str, Label]
) -> None:
    found = labels(recorded(tmp_path, study, ns=ns, rounds=12 if study != "lemire" else 8))
    assert found.items() >= verdicts.items()


# --- what an undecided verdict says ----------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "unit", "reason"),
    [
        (AtLeast(), "share", "the interval does not lie above 50.0 %"),
        (AtMost(), "ratio", "the interval lies below 0.500×"),
        (Between(low=0.1, high=0.25), "ns", "the interval lies between 0.100 ns and 0.250 ns"),
    ],
)
def test_a_reason_has_the_bounds_with_their_unit(rule: Rule, unit: str, reason: str) -> None:
    assert rule.judge(interval(0.15, 0.2), 0.5, unit).reason == reason


@pytest.mark.parametrize(
    ("needed", "told"),
    [
        (6, " (99 %: 1.00× to 4.00×); 6 more rounds could decide it"),
        (math.inf, " (99 %: 1.00× to 4.00×); 40 rounds would not decide it"),
        (math.nan, " (99 %: 1.00× to 4.00×)"),
    ],
)
def test_the_reason_says_how_many_more_rounds_are_needed(needed: float, told: str) -> None:
    row, *_ = ledger.rows({}, [replace(STUDIES["remedies"], claims=(CLAIMS["L6"],))])
    verdict = Verdict(UNDECIDED, "the interval holds the bar")
    row = replace(row, verdict=verdict, judged=interval(1, 4), needed=needed, unit="ratio")
    assert row.why == f"the interval holds the bar{told}"
