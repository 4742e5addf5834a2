"""The rules for verdicts, and the claims that use them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd
import pytest
from recordings import AS_RECORDED, Change, Metrics, labels, recorded, study_of
from recordings import keys as of_job

from gccost import paths
from gccost.cases import jobs, published, versions
from gccost.cases.benchmarks import ONE_MALLOC
from gccost.costs import models
from gccost.judging import ledger
from gccost.judging.rules import (
    About,
    Agrees,
    AtLeast,
    AtMost,
    Between,
    Effect,
    Label,
    Occurs,
    Same,
    Shown,
    UShaped,
    WithinTolerance,
)
from gccost.run import gctrace
from gccost.run.jobtable import Job
from gccost.stats import Estimate
from gccost.studies import CLAIMS, STUDIES
from gccost.studies.precision import COUNT, OURS

HOLDS, FAILS, UNDECIDED = Label.HOLDS, Label.FAILS, Label.UNDECIDED
UNMEASURED, UNTESTABLE, UNSCORED = Label.UNMEASURED, Label.UNTESTABLE, Label.UNSCORED
EVERY = math.inf


def interval(low: float, high: float) -> Estimate:
    middle = math.sqrt(low * high) if low > 0 and high < math.inf else (low + high) / 2
    return Estimate(middle, low, high, 6, 6, 0.99)


# A rule, the published value, and the bounds within which the rule holds.
RULES = [
    (Effect(), 8.667, 4.8335, EVERY),
    (Effect(), 1.0, 1.0, EVERY),
    (Effect(), 0.1138, -EVERY, 2 / (1 + 1 / 0.1138)),
    (Same(), 0.892, 0.8, 1.25),
    (About(), 0.27, 0.18, 0.405),
    (AtLeast(), 0.5, 0.5, EVERY),
    (AtLeast(within=1.5), 0.4751, 0.4751 / 1.5, EVERY),
    (AtMost(), 1.4, -EVERY, 1.4),
    (Between(low=0.4, high=0.6), 0.5, 0.4, 0.6),
    (WithinTolerance(), 2.0, 1.9, 2.1),
    (AtMost(margin=1.0), 1.05, -EVERY, 1.05),
]


@pytest.mark.parametrize(("rule", "figure", "low", "high"), RULES, ids=str)
def test_each_rule_applies_its_bounds_and_margin(rule, figure, low, high):
    assert rule.bounds(figure) == pytest.approx((low, high))
    low, high = rule.bounds(figure)
    margin = rule.margin
    lowest, highest = max(low * margin, 0.0), min(high / margin, 100.0)
    cases = [(lowest, highest, HOLDS), (0.0, EVERY, UNDECIDED)]
    if low > 0:
        cases += [
            (low * margin * 0.999, highest, UNDECIDED),
            (low / margin * 0.9, low / margin * 0.999, FAILS),
            (low / margin * 0.9, low / margin * 1.001, UNDECIDED),
        ]
    if high < EVERY:
        cases += [
            (lowest, high / margin * 1.001, UNDECIDED),
            (high * margin * 1.001, high * margin * 2, FAILS),
            (high * margin * 0.999, high * margin * 2, UNDECIDED),
        ]
    for *ends, label in cases:
        assert rule.judge(interval(*ends), figure).label is label, ends


@pytest.mark.parametrize(
    ("rule", "value", "label"),
    [
        (AtMost(margin=1.0), 0.0, HOLDS),  # none of none
        (AtLeast(margin=1.0), 1.0, HOLDS),
        (AtMost(margin=1.0), 1.0, HOLDS),
        (AtMost(), 1.05, UNDECIDED),
        (AtLeast(), 1 / 1.05, UNDECIDED),
    ],
    ids=str,
)
def test_a_count_on_its_bound_is_within_it(rule, value, label):
    bound = 0.0 if value == 0 else 1.0
    assert rule.judge(interval(value, value), bound).label is label


LIKELY, UNLIKELY, NO_OTHER = (0.4, 0.4), (1e-4, 1e-4), (math.nan, math.nan)  # p


@pytest.mark.parametrize(
    ("rule", "figure", "intervals", "label"),
    [
        # Ours must agree, the others must not.
        (Agrees("go test"), 1.0, ((1.02, 1.02), LIKELY, UNLIKELY), HOLDS),
        (Agrees("go test"), 1.0, ((1.02, 1.02), LIKELY, LIKELY), FAILS),
        (Agrees("go test"), 1.0, ((1.02, 1.02), UNLIKELY, UNLIKELY), FAILS),
        (Agrees(), 1.0, ((1.02, 1.02), LIKELY, NO_OTHER), HOLDS),
        (Agrees(), 1.0, ((1.02, 1.02), UNLIKELY, NO_OTHER), FAILS),
        # Both ends rise.
        (UShaped(), 4.25, ((4.0, 4.5), (1.3, 1.6)), HOLDS),
        (UShaped(), 4.25, ((4.0, 4.5), (1.04, 1.6)), UNDECIDED),
        (UShaped(), 4.25, ((1.0, 1.0), (2.0, 2.5)), FAILS),
        (UShaped(), 4.25, ((4.0, 4.5), (0.7, 0.9)), FAILS),
    ],
    ids=str,
)
def test_rules_that_need_more_than_one_interval(rule, figure, intervals, label):
    first, *parts = (interval(*ends) for ends in intervals)
    assert rule.judge(replace(first, parts=tuple(parts)), figure).label is label


@pytest.mark.parametrize(
    ("share", "places", "samples", "label"),
    [
        (1.0, 1, 1, HOLDS),
        (1.0, 0, 1, FAILS),
        (0.1, 0, 20, UNDECIDED),  # 21 % could still show it
        (0.1, 0, 43, UNDECIDED),  # 10.2 %, at 99 %; of 95 % 29 would do
        (0.1, 0, 44, FAILS),
        (0.1, 0, 60, FAILS),
    ],
)
def test_a_random_event_is_rejected_only_after_many_runs(share, places, samples, label):
    parts = (interval(0, 0), interval(1, 1))
    measured = Estimate(places, places, places, samples, 4, 1.0, parts=parts)
    assert Occurs(share).judge(measured, 1.0).label is label


@pytest.mark.parametrize(
    ("happened", "samples", "label"),
    [
        (2, 3, UNDECIDED),  # p = 0.4, at two sizes
        (3, 3, UNDECIDED),  # p = 0.1
        (4, 4, UNDECIDED),  # p = 0.03, so 0.06 at two sizes
        (6, 6, HOLDS),
        (7, 36, UNDECIDED),
        (10, 36, HOLDS),
    ],
)
def test_a_random_event_is_accepted_only_if_chance_does_not_explain_it(happened, samples, label):
    chance = 2 * models.never_elsewhere(happened, samples, samples)
    measured = Estimate(1, 1, 1, samples, 2, 1.0, parts=(interval(0, 0), interval(chance, chance)))
    assert Occurs(share=0.1).judge(measured, 1.0).label is label


# --- the claims -----------------------------------------------------------------------


def test_claims_match_the_published_rows():
    table = published.table("claims")
    alone = table["same_as"] == ""  # the others have the row of another claim
    assert set(CLAIMS) == set(table["id"][alone])
    assert set(table["same_as"][~alone]) <= set(CLAIMS)


def test_no_estimate_is_counted_twice():
    documents = ledger.by_document(ledger.rows({}, STUDIES.values()))
    counted = [line.claim for each in documents if each.headline for line in each.lines]
    estimates = [(claim.quantity, claim.releases) for claim in counted]
    assert len(set(estimates)) == len(estimates)
    others = {each["id"]: each["same_as"] for document in documents for each in document.others}
    assert others == {"S1": "L1", "M4": "M1", "M8a": "X10"}
    assert CLAIMS["L5a"] not in counted  # a quotation


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_every_experiment_measures_what_its_claims_need(claim):
    of = study_of(claim)
    # Chapter 06 covers the releases in between, but for counts, which chapter 8b has by release.
    assert len(claim.releases) <= 2 or of.name == "truths"
    assert claim.releases[-1] == versions.today(of.document)
    for case, release in product(claim.quantity.cases, claim.releases):
        needed = of.jobs[jobs.name(case, release)]
        # What is judged repeatedly is measured repeatedly.
        assert claim.quantity.at_once or not jobs.has(needed, "once")


def printed_cycles() -> tuple[gctrace.Cycle, ...]:
    """The GC cycles that Cloudflare's document prints."""
    text = (paths.PUBLISHED / "cloudflare-gctrace.txt").read_text(encoding="utf-8")
    return gctrace.parse(text).cycles


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_an_exact_repetition_of_a_document_holds(claim):
    """Each published figure passes its own rule with the margin, or is no figure of a document."""
    row = published.by_name("claims", [claim.id])[claim.id]
    figure = float(row["value"])
    words_alone = row["kind"] == "bar"  # no figure is published
    if words_alone or isinstance(claim.rule, Shown):
        assert row["figure"]
        return
    sizes = published.table("siebenmann-sizes").set_index(["variant", "words"])["ns_per_op"]
    added = sizes["Finalize"] - sizes["Allocate"]
    end = added.iloc[-1] / added.min()  # the other end of S8's curve
    repeated = replace(interval(0.999 * figure, 1.001 * figure), parts=(interval(end, end),))
    assert claim.rule.judge(repeated, figure).label is HOLDS


def test_the_printed_gc_cycles_are_those_of_the_claim():
    for claim in ("C4a", "C11"):
        assert all(map(CLAIMS[claim].quantity.has, printed_cycles()))


def test_published_claims_match_the_published_tables():
    def table(name: str, column: str, *keys: str) -> pd.Series:
        return published.table(name).set_index(list(keys))[column]

    lemire = table("lemire-timings", "ns_per_op", "variant", "gogc")
    percent = table("lemire-profile", "cum_percent", "function")
    issue = table("addcleanup-timings", "ns_per_op", "machine", "variant")
    laptop, server = issue["MacBook Pro M1"], issue["Linux VM"]
    sizes = table("siebenmann-sizes", "ns_per_op", "variant", "words")
    added = sizes["Finalize"] - sizes["Allocate"]
    shares = table("siebenmann-profile", "percent", "share")
    rates = table("cloudflare-throughput", "op_per_s", "goroutines", "gogc")
    profile = table("cloudflare-profile", "flat_percent", "function")
    last = printed_cycles()[-1]
    expected = {
        "L1": lemire["AllocateAuto", "100"] / lemire["AllocateFree", "100"],
        "L2b": lemire["AllocateAuto", "off"] / lemire["AllocateFree", "off"],
        "L3": percent["runtime.cgocall"] / 100,
        "M1": laptop["AllocateCleanup"] / laptop["AllocateFree"],
        "M2": laptop["AllocateAuto"] / laptop["AllocateCleanup"],
        "M3": laptop["AllocateDefer"] / laptop["AllocateFree"],
        "M4": server["AllocateCleanup"] / server["AllocateFree"],
        "S3": shares["SetFinalizer"] / 100,
        "S4": shares["GC"] / 100,
        "S5": shares["processing and running finalizers"] / 100,
        "S6": (shares["runtime.lock2"] + shares["runtime.unlock2"]) / 100,
        "S8": added[1] / added.min(),
        "C1": rates[17, "100"] / rates[48, "100"],
        "C2": 22.66 / (rates[48, "100"] / rates[1, "100"]),
        "C3": profile.drop("crypto/elliptic.p256OrdSqr").sum() / 100,
        "C4": last.number / last.at,
        "C5": rates[48, "off"] / rates[48, "100"],
        "C6": rates[48, "2400"] / rates[48, "off"],
        "C7": rates[48, "11300"] / rates[1, "100"],
        "C9": rates[2, "100"] / rates[1, "100"],
        "C4b": rates[48, "100"] / 679,
    }
    expected |= {"X22": expected["C3"], "X23": expected["C5"], "X24a": expected["C6"]}
    expected |= {"X24b": rates[48, "11300"] / rates[48, "off"], "X25": expected["C2"]}
    claims = table("claims", "value", "id")[list(expected)].astype(float)
    assert claims.to_dict() == pytest.approx(expected, rel=4e-4)


def test_claims_without_a_run_are_unmeasured():
    rows = ledger.rows({}, STUDIES.values())
    assert len(rows) == sum(len(claim.releases) for claim in CLAIMS.values())
    assert {row.verdict.label for row in rows} == {UNMEASURED}


# --- perturb a metric, the verdict follows ---------------------------------------------


def times(factor: float, benchmarks: str, *metrics: str, **keys: str) -> dict[str, Change]:
    """Multiply metrics of the cases of these benchmarks with these keys; factor 0 drops them."""

    def change(job: Job, number: int, values: Metrics) -> None:
        if job["benchmark"] in benchmarks.split() and of_job(job).items() >= keys.items():
            for metric in values.keys() & metrics:
                values[metric] *= factor
            if not factor:
                values.clear()

    return {"change": change}


def signing(on: float, off: float, printed: float) -> dict[str, Any]:
    """CPU times of a signature on 48 CPUs, with and without the GC, and gctrace's share."""

    def change(job: Job, number: int, values: Metrics) -> None:
        if job["benchmark"] == "Sign":
            values[CPU] = off if of_job(job)["gogc"] == "off" else on
            values["gctrace-share"] = printed

    return {"cpus": 48, "change": change}


def scattered(*measured: tuple[str, str]) -> dict[str, Any]:
    """Repeated measurements that differ by up to 40 %, of these methods under these loads."""

    def change(job: Job, number: int, values: Metrics) -> None:
        keys = of_job(job)
        if keys["method"] == OURS and number > 4:
            values.clear()
        elif job["benchmark"] != "AllocateAuto":
            return
        elif (keys["method"], keys["load"]) in measured:
            values["ns/op"] *= 1 + 0.06 * int(keys["measurement"])

    return {"rounds": 10, "change": change}


def sat(sittings: int, slower: float = 1.0) -> dict[str, Any]:
    """Rounds of so many sittings in turn; a finalizer is this much slower in the last one."""

    def change(job: Job, number: int, values: Metrics) -> None:
        values["sitting"] = 1 + number % sittings
        if values["sitting"] == sittings and job["benchmark"] == "AllocateAuto":
            values[MEAN] *= slower

    return {"rounds": 8, "change": change}


MEAN, CPU, HELD = "ns/op", "cpu-ns/op", "c-held/live"
JVM = (MEAN, "cpu-s", "user-s", "sys-s", "elapsed-s")
AS_PUBLISHED = {"L1": HOLDS, "L2a": HOLDS, "L2b": HOLDS, "L3": UNTESTABLE, "L4": HOLDS}
WHY = dict.fromkeys(("X1a", "X1b", "X1c", "X5"), HOLDS)
RUNTIME = dict.fromkeys(
    [
        *("M7", "X2a", "X2b", "X2c", "X2d", "X4"),
        *(*(f"X11{x}" for x in "abcd"), "X12a", "X12c"),
    ],
    HOLDS,
)
CLOUDFLARE = dict.fromkeys((*(f"C{i}" for i in range(1, 9)), "C10"), HOLDS)
ANYWHERE = {"C4a": FAILS, "X30": UNSCORED} | dict.fromkeys(("C9", "C11"), HOLDS)
MEMORY = {"W4": HOLDS, "W5": UNDECIDED, "W6": HOLDS}
CLEANERS = dict.fromkeys((*(f"X18{x}" for x in "abcd"), "X27a"), HOLDS)
BOTH = (COUNT, "quiet"), (COUNT, "busy")


def test_the_published_readme_lists_every_claim_by_its_rule():
    text = (paths.PUBLISHED / "README.md").read_text(encoding="utf-8")
    rows = text.split("| rule |")[1].split("\n\n")[0].splitlines()[2:]
    listed = [set(re.findall(r"\b[A-Z]+\d+[a-e]?\b", row.rsplit("|", 2)[1])) for row in rows]
    by_rule: dict[str, set[str]] = {}
    for study in STUDIES.values():
        for claim in study.claims:
            by_rule.setdefault(type(claim.rule).__name__, set()).add(claim.id)
    assert sorted(listed, key=sorted) == sorted(by_rule.values(), key=sorted)


@pytest.mark.usefixtures("no_recorded_sittings")
@pytest.mark.parametrize(
    ("study", "changed", "verdicts"),
    [
        ("lemire", {}, AS_PUBLISHED),
        ("lemire", {"ns": {"AllocateDummy": 1400}}, AS_PUBLISHED | {"L4": FAILS}),
        ("lemire", {"ns": {"AllocateAuto": 1600}}, {"L1": HOLDS}),
        ("lemire", {"ns": {"AllocateAuto": 280}}, {"L1": FAILS}),
        ("lemire", {"ns": {"AllocateAuto": 40}}, {"L1": FAILS}),
        ("lemire", {"ns": {"AllocateAuto": 385}}, {"L1": UNDECIDED}),
        ("why", {}, WHY),
        ("why", times(3, "AttachFinalizer", "call-ns"), WHY | {"X5": FAILS}),
        ("conjecture", {}, {"M8b": HOLDS, "X10": HOLDS}),
        ("runtime", {"ns": AS_RECORDED}, RUNTIME | {"X12b": UNDECIDED}),
        (
            "runtime",  # the index does not help
            {"ns": AS_RECORDED, **times(3, "AllocateCleanup", MEAN, runtime="index")},
            RUNTIME | {"M7": FAILS, "M5b": FAILS},
        ),
        (
            "runtime",  # the hint helps in every order
            {"ns": AS_RECORDED, **times(0.01, "ScatteredCleanup", CPU, runtime="hint")},
            RUNTIME | {"X12b": FAILS},
        ),
        ("cloudflare", {"cpus": 2}, dict.fromkeys(CLOUDFLARE, UNTESTABLE) | ANYWHERE),
        ("cloudflare", {"cpus": 1}, ANYWHERE | {"C9": UNTESTABLE, "X25": UNSCORED}),
        ("cloudflare", times(2, "Sign", MEAN, goroutines="2"), ANYWHERE | {"C9": FAILS}),
        ("cloudflare", {"cpus": 2, "rounds": 2}, {"C13": UNDECIDED, "X25": UNSCORED}),
        # Not recorded, so that all rates are equal; then there is a collapse.
        ("cloudflare", {"cpus": 48}, {"C1": FAILS, "C5": FAILS, "C10": UNMEASURED}),
        (
            "cloudflare",
            {"cpus": 48, **times(8, "Sign", MEAN, CPU, goroutines="48", gogc="100")},
            {"C1": HOLDS, "C5": HOLDS},
        ),
        ("cloudflare", signing(100.0, off=20.0, printed=0.12), {"C10": HOLDS}),
        ("cloudflare", signing(100.0, off=80.0, printed=0.12), {"C10": FAILS}),
        ("weimer", {}, {"W1a": UNTESTABLE, "W3": HOLDS, "W7": HOLDS} | MEMORY),
        ("weimer", {"rounds": 12}, MEMORY | {"W5": HOLDS}),
        ("weimer", {"cpus": 4}, {"W1a": FAILS}),
        ("weimer", {"cpus": 4, **times(2, "Finalize", *JVM)}, {"W1a": HOLDS}),
        ("weimer", {"cpus": 4, **times(1.35, "Finalize", *JVM)}, {"W1a": UNDECIDED}),
        ("weimer", times(0, "LeakRead LeakNaive"), {"W6": UNMEASURED, "W4": HOLDS}),
        ("jmh", {}, {"L5a": FAILS, "L5b": UNSCORED}),
        ("jmh", times(10, "Removed Finalized", MEAN), {"L5a": HOLDS, "L5b": UNSCORED}),
        ("precision", scattered(*BOTH), {"X9a": HOLDS, "X9b": HOLDS, "X9c": HOLDS}),
        ("precision", scattered(BOTH[0]), {"X9a": HOLDS, "X9b": HOLDS, "X9c": FAILS}),
        ("precision", scattered(*BOTH, (OURS, "quiet")), {"X9a": FAILS, "X9b": FAILS}),
        ("sittings", sat(2), {"X9d": HOLDS, "X9e": HOLDS}),
        ("sittings", sat(2, slower=3), {"X9d": FAILS, "X9e": HOLDS}),
        ("sittings", sat(1), {"X9d": UNMEASURED, "X9e": UNMEASURED}),
        ("remedies", {}, {"X7c": UNDECIDED, "X6b": HOLDS}),
        ("remedies", times(3, "ParallelSlab", MEAN, goroutines="4"), {"X7c": FAILS}),
        ("remedies", times(0, "ParallelSlab", goroutines="1"), {"X7c": UNMEASURED}),
        ("remedies", times(1.5, "LifetimesSlab", HELD), {"X6b": FAILS}),  # slabs are kept longer
        ("siebenmann", {"cpus": 2}, dict.fromkeys(("S4", "S5", "S6"), UNTESTABLE) | {"S3": HOLDS}),
        ("siebenmann", {"cpus": 8}, {"S4": HOLDS, "S6": UNDECIDED}),  # can be tested
        ("malloc", {}, {"X17a": HOLDS, "X17b": HOLDS}),
        (
            "malloc",
            times(2, "AllocateAuto", MEAN, runtime=ONE_MALLOC),
            {"X17a": FAILS, "X17b": HOLDS},
        ),
        ("wasm", {}, {"X14a": HOLDS, "X14b": HOLDS, "X14c": HOLDS, "X14d": HOLDS}),
        (
            "wasm",
            times(2, "WasmObject WasmTree", CPU, runtime="index"),
            {"X14a": FAILS, "X14b": FAILS, "X14c": FAILS, "X14d": HOLDS},
        ),
        ("wasm", times(10, "WasmTreeNumbers", CPU), {"X14a": HOLDS, "X14d": FAILS}),
        ("cleaners", {}, CLEANERS),
        ("cleaners", times(20, "ReplaceCleaner", MEAN, live="1000"), CLEANERS | {"X18a": FAILS}),
        (
            "cleaners",
            times(0.005, "CollectCleaner OpenShared", MEAN),
            CLEANERS | {"X18b": FAILS, "X18d": FAILS},
        ),
        ("cleaners", times(4, "OpenConfined", MEAN), CLEANERS | {"X18c": FAILS}),
        (
            "cleaners",
            times(5, "ReplaceByThread", MEAN, cleaners="4"),
            CLEANERS | {"X27a": FAILS, "X27b": HOLDS},
        ),
    ],
)
def test_a_verdict_follows_the_samples(tmp_path, study, changed, verdicts):
    rounds = {"lemire": 8, "why": 12, "runtime": 12, "cloudflare": 6}.get(study, 4)
    judged = labels(recorded(tmp_path, study, **({"rounds": rounds} | dict(changed))))
    assert judged.items() >= verdicts.items()
