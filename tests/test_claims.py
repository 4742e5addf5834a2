"""The rules of judging, and the claims that they are applied to."""

import math
from dataclasses import replace

import pytest

from gccost.judging import ledger, published
from gccost.judging.claims import CLAIMS
from gccost.judging.claims.quantities import Range, Spread, Valley
from gccost.judging.claims.rules import (
    About,
    Agrees,
    AtLeast,
    Banded,
    Between,
    Exactly,
    Label,
    Same,
    UShaped,
    Verdict,
)
from gccost.measuring.experiments import EXPERIMENTS
from gccost.measuring.experiments.base import Ratio
from gccost.stats import Estimate


def interval(low: float, high: float) -> Estimate:
    return Estimate(math.sqrt(low * high), low, high, 6, 6, 0.95)


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (8.0, 9.0, Label.HOLDS),
        (8.0 / 1.25, 8.0 * 1.25, Label.HOLDS),
        (10.1, 12.0, Label.STRONGER),
        (2.0, 6.0, Label.WEAKER),
        (0.5, 0.9, Label.FAILS),
        (1.005, 1.015, Label.FAILS),  # inside the noise floor
        (6.0, 7.0, Label.UNDECIDED),
        (9.0, 11.0, Label.UNDECIDED),
        (0.9, 3.0, Label.UNDECIDED),
        (0.0, math.inf, Label.UNDECIDED),
    ],
)
def test_a_ratio_of_eight_is_judged_by_its_interval(low: float, high: float, label: Label) -> None:
    assert Banded().judge(interval(low, high), 8.0, floor=0.02).label is label


@pytest.mark.parametrize("floor", [math.inf, 0.5, math.log(1.25)])
def test_a_machine_too_noisy_to_tell_is_no_reason_to_say_that_it_does_not_hold(
    floor: float,
) -> None:
    for measured in (interval(1e-9, math.inf), interval(0.7, 1.4)):
        assert Banded().judge(measured, 8.0, floor).label is Label.UNDECIDED


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (0.45, 0.55, Label.HOLDS),
        (0.1, 0.3, Label.STRONGER),
        (0.7, 0.9, Label.WEAKER),
        (1.1, 1.3, Label.FAILS),
    ],
)
def test_a_ratio_below_one_is_stronger_when_it_is_smaller(
    low: float, high: float, label: Label
) -> None:
    assert Banded().judge(interval(low, high), 0.5, floor=0.02).label is label


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (0.65, 0.75, Label.HOLDS),
        (0.89, 0.95, Label.STRONGER),
        (0.51, 0.55, Label.WEAKER),
        (0.05, 0.15, Label.FAILS),
        (0.45, 0.55, Label.UNDECIDED),
    ],
)
def test_a_share_is_judged_by_whether_it_is_most(low: float, high: float, label: Label) -> None:
    assert Banded(pivot=0.5).judge(interval(low, high), 0.7, floor=0.0).label is label


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (0.9, 1.1, Label.HOLDS),
        (1.3, 1.4, Label.FAILS),
        (0.5, 0.7, Label.FAILS),
        (1.2, 1.3, Label.UNDECIDED),
    ],
)
def test_the_same_means_within_the_band(low: float, high: float, label: Label) -> None:
    assert Same().judge(interval(low, high), 1.0, floor=0.02).label is label


@pytest.mark.parametrize(
    ("spread", "chance", "label"),
    [(1.02, 0.4, Label.HOLDS), (1.05, 0.4, Label.FAILS), (1.02, 0.001, Label.FAILS)],
)
def test_agreement_needs_closeness_and_no_more_than_chance(
    spread: float, chance: float, label: Label
) -> None:
    measured = Spread(spread, spread, spread, 8, 8, 1.0, chance)
    assert Agrees().judge(measured, 1.03, floor=0.0).label is label


def test_a_verdict_carries_how_far_off_the_figure_is() -> None:
    assert Banded().judge(interval(16, 16), 8.0, floor=0.0).factor == pytest.approx(2)


def test_every_claim_has_its_published_row_and_the_other_way_round() -> None:
    assert set(CLAIMS) == set(published.claims().index)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.id)
def test_every_claim_is_measured_by_its_experiment_on_every_release(claim) -> None:
    cases = EXPERIMENTS[claim.experiment].cases
    for quantity in filter(None, (claim.quantity, claim.beside)):
        for arm in quantity.arms:
            measured = {c.release for c in cases if c.arm == arm}
            assert measured >= set(claim.releases), f"{claim.id} needs {arm}"


def test_published_ratios_are_those_of_the_published_figures() -> None:
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


def test_without_a_run_every_claim_is_not_measured() -> None:
    rows = ledger.rows({})
    assert len(rows) == ledger.judged_claims() > ledger.judged_claims(cpus=2)
    assert {row.verdict.label for row in rows} == {Label.UNMEASURED}


def test_the_document_judged_wall_time() -> None:
    # Weimer's is of the whole process; what is our own has no document.
    ours = ("remedies", "weimer", "why", "runtime")
    documents = [c for c in CLAIMS.values() if c.experiment not in ours]
    judged = [c.quantity for c in documents if isinstance(c.quantity, Ratio)]
    assert {q.metric for q in judged} == {"ns/op"}
    assert {q.numerator.setting for q in judged} == {"published"}


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (0.25, 0.30, Label.HOLDS),
        (0.05, 0.15, Label.FAILS),
        (0.40, 0.45, Label.FAILS),
        (0.15, 0.25, Label.UNDECIDED),
    ],
)
def test_a_figure_that_takes_no_side_is_met_or_not(low: float, high: float, label: Label) -> None:
    assert About().judge(interval(low, high), 0.27, floor=0.0).label is label


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (0.51, 0.90, Label.HOLDS),
        (0.10, 0.49, Label.FAILS),
        (0.40, 0.60, Label.UNDECIDED),
    ],
)
def test_a_bound_is_met_by_the_whole_interval(low: float, high: float, label: Label) -> None:
    assert AtLeast().judge(interval(low, high), 0.5, floor=0.0).label is label


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (0.45, 0.55, Label.HOLDS),
        (0.10, 0.39, Label.FAILS),
        (0.61, 0.70, Label.FAILS),
        (0.55, 0.65, Label.UNDECIDED),
    ],
)
def test_a_figure_with_two_bounds_lies_between_them(low: float, high: float, label: Label) -> None:
    assert Between(0.4, 0.6).judge(interval(low, high), 0.5, floor=0.0).label is label


@pytest.mark.parametrize(
    ("low", "high", "label"),
    [
        (2.0, 2.0, Label.HOLDS),
        (1.0, 1.0, Label.FAILS),
        (1.2, 2.3, Label.UNDECIDED),
    ],
)
def test_a_whole_number_is_hit_or_not(low: float, high: float, label: Label) -> None:
    assert Exactly().judge(interval(low, high), 2.0, floor=0.0).label is label


@pytest.mark.parametrize(
    ("measured", "longer"),
    [
        (interval(0.55, 0.65), 1.0),  # decided as it is
        # From the value to the bound is half as far, a third as far as to the end.
        (interval(0.5 * 0.8, 0.5 * 1.25**3), 4.0),
        (Estimate(0.8, -0.1, 1.7, 6, 6, 0.95), 9.0),
        (Estimate(0.501, 0.1, 0.9, 6, 6, 0.95), math.inf),
        (Estimate(0.8, -math.inf, math.inf, 1, 1, 0.95), math.nan),
        (Estimate(math.nan, 0, math.inf, 0, 0, 0.95), math.nan),
        (Valley(2.0, 0.4, 0.8, 6, 6, 0.95, 1.0, 1.0, 3), math.nan),
        (Range(0.8, 0.4, 1.6, 6, 6, 0.95, *[interval(0.4, 1.6)] * 2), 2.17),
    ],
)
def test_an_undecided_verdict_says_how_much_longer_to_measure(
    measured: Estimate, longer: float
) -> None:
    found = ledger.times_as_long(AtLeast(), measured, 0.5, floor=0.0)
    assert found == pytest.approx(longer, rel=0.05, nan_ok=True)


def test_a_machine_too_noisy_may_decide_when_its_noise_floor_is_lower() -> None:
    close = Estimate(1.01, 0.95, 1.07, 6, 6, 0.95)
    assert Banded().judge(close, 8.0, floor=0.3).label is Label.UNDECIDED
    assert ledger.times_as_long(Banded(), close, 8.0, floor=0.3) == pytest.approx(1.8, rel=0.05)
    assert math.isnan(ledger.times_as_long(Banded(), close, 8.0, floor=math.inf))


@pytest.mark.parametrize(
    ("longer", "told"),
    [
        (1.2, "; about 2 times as long could decide it"),
        (31.4, "; about 32 times as long could decide it"),
        (math.inf, ", so near a bound that 100 times as long could not decide it"),
        (math.nan, ""),
    ],
)
def test_how_much_longer_is_told(longer: float, told: str) -> None:
    (row,) = ledger.rows({}, [CLAIMS["L6"]])
    verdict = Verdict(Label.UNDECIDED, "the interval holds the bar")
    row = replace(row, verdict=verdict, judged=interval(1, 4), longer=longer, unit="ratio")
    assert row.why == f"the interval holds the bar: judged on 1.00× to 4.00×{told}"


@pytest.mark.parametrize(
    ("first", "last", "least", "label"),
    [
        ((4.0, 4.5), (1.3, 1.6), 5, Label.HOLDS),
        ((6.0, 7.0), (1.3, 1.6), 5, Label.STRONGER),
        ((2.0, 3.0), (1.3, 1.6), 5, Label.WEAKER),
        ((4.0, 4.5), (0.9, 1.6), 5, Label.UNDECIDED),
        ((0.9, 4.5), (1.3, 1.6), 5, Label.UNDECIDED),
        ((1.0, 1.0), (2.0, 2.5), 0, Label.FAILS),
        ((4.0, 4.5), (0.7, 0.9), 5, Label.FAILS),
    ],
)
def test_a_curve_dips_when_both_its_ends_rise(
    first: tuple[float, float], last: tuple[float, float], least: int, label: Label
) -> None:
    valley = Valley(math.sqrt(first[0] * first[1]), *first, 6, 6, 0.95, *last, least)
    assert UShaped().judge(valley, 4.25, floor=0.0).label is label


def test_what_a_larger_budget_measures_says_so() -> None:
    assert ledger._waiting(CLAIMS["M1"], "1.24.13") == "it is measured from the standard budget on"
    assert ledger._waiting(CLAIMS["M1"], "1.27.4") == "the run holds no samples of it"
