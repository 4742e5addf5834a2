"""What one run holds of one experiment, and the estimates drawn from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import stats
from gccost.errors import GccostError
from gccost.judging.claims import CLAIMS
from gccost.judging.claims.base import Claim
from gccost.judging.claims.quantities import (
    Agreement,
    Amount,
    Difference,
    Dip,
    Places,
    Quantity,
    Range,
    Saved,
    Share,
    Spread,
    Steepness,
    Straightness,
    Tally,
    TwoBaselines,
    Valley,
)
from gccost.judging.models import walk
from gccost.measuring import benchfmt, frames
from gccost.measuring.experiments.base import Arm, Experiment, Ratio
from gccost.measuring.machine import memory_for_a_sample
from gccost.measuring.profiles import Profile
from gccost.measuring.profiles import read as read_profile
from gccost.measuring.runs import Run
from gccost.stats import Estimate


@dataclass(frozen=True)
class Recording:
    """The samples and profiles of an experiment in one run.

    `frame` has a row a sample; `cpu_profiles` holds the profiles by the case's name,
    then by round; `problems` are the lines and profiles that could not be used.
    """

    experiment: Experiment
    run: Run
    frame: pd.DataFrame
    problems: tuple[str, ...]
    cpu_profiles: Mapping[str, Mapping[int, Profile]]

    @classmethod
    def load(cls, experiment: Experiment, run: Run) -> Recording:
        """Read an experiment's samples from a run.

        Raises GccostError if the run holds none.
        """
        path = run.results(experiment.name)
        if not path.exists():
            raise GccostError(
                f"the run holds no samples of {experiment.name}",
                run.name,
                f"make measure ONLY={experiment.name}",
            )
        reading = benchfmt.read(path)
        scale = float(run.manifest().get("scale", 1.0))
        measured_on = run.experiment(experiment.name).get("machine", run.manifest()["machine"])
        memory = memory_for_a_sample(measured_on)
        cases = [case.scaled(scale).capped(memory) for case in experiment.cases]
        frame = frames.of_cases(reading.frame, cases)
        problems = [str(problem) for problem in reading.errors]
        cpu_profiles = {
            case.name: dict(
                _usable(run.profiles(experiment.name, case.name), case.arm.benchmark, problems)
            )
            for case in experiment.cases
            if case.arm.profile
        }
        return cls(experiment, run, frame, tuple(problems), cpu_profiles)

    @cached_property
    def _cases(self) -> Mapping[str, pd.DataFrame]:
        return frames.by_case(self.frame)

    @cached_property
    def entry(self) -> dict[str, Any]:
        """What the run's manifest says of the experiment."""
        return self.run.experiment(self.experiment.name)

    @property
    def cpus(self) -> int:
        """How many CPUs the machine gave to what was measured; a quota is so many at once."""
        machine = self.entry.get("machine", self.run.manifest()["machine"])
        allowed, quota = int(machine.get("allowed_cpus", 1)), machine.get("cpu_quota")
        return min(allowed, max(1, int(quota))) if quota else allowed

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases with samples, in the experiment's order."""
        measured = set(self.frame["release"]) if len(self.frame) else set()
        return tuple(release for release in self.experiment.releases if release in measured)

    def failures(self, arm: Arm, release: str) -> list[str]:
        """How the samples of an arm on a release ended that gave no figures."""
        return list(self.entry.get("failed", {}).get(arm.on(release), []))

    def samples(self, arm: Arm, release: str) -> pd.DataFrame:
        """The samples of an arm on a release, indexed by round."""
        return self._cases[arm.on(release)]

    def level(self, arm: Arm, release: str, metric: str = "ns/op") -> Estimate:
        """An arm's own level of a metric that is never 0, in the metric's unit."""
        values = self._values(arm, release, metric)
        return stats.level(values.to_numpy(dtype=float), values.index.to_numpy())

    def amount(self, arm: Arm, release: str, metric: str, confidence: float = 0.95) -> Estimate:
        """An arm's amount of a metric that may be 0 (a count), in the metric's unit."""
        values = self._values(arm, release, metric)
        return stats.amount(values.to_numpy(dtype=float), values.index.to_numpy(), confidence)

    def _values(self, arm: Arm, release: str, metric: str) -> pd.Series:
        samples = self.samples(arm, release)
        return samples[metric].dropna() if metric in samples else pd.Series(dtype=float)

    def pairs(self, ratio: Ratio, release: str) -> pd.DataFrame:
        """The samples of a ratio paired by round: columns numerator, denominator."""
        return frames.pairs(self._cases, ratio, release)

    def ratio(
        self,
        ratio: Ratio,
        release: str,
        confidence: float = 0.95,
        peers: stats.Peers | None = None,
    ) -> Estimate:
        """The median of the ratios paired within rounds, with its interval."""
        return stats.paired_ratio(*self._sides(ratio, release), confidence, peers)

    def _sides(self, ratio: Ratio, release: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A ratio's numerator, denominator and round, an entry a round."""
        pairs = self.pairs(ratio, release)
        over, under = (pairs[side].to_numpy(dtype=float) for side in ("numerator", "denominator"))
        return over, under, pairs.index.to_numpy()

    @cached_property
    def peers(self) -> Mapping[str, stats.Peers | None]:
        """What the figures of a kind say of one another's noise: those that are judged, those
        that measuring stops at, and the A/A controls."""
        tested: dict[tuple[Quantity | None, str], None] = {
            (quantity, release): None
            for claim in self.claims
            for quantity in (claim.quantity, claim.beside)
            for release in claim.releases
        }
        headline = ((r, release) for r in self.experiment.headline for release in self.releases)
        tested |= dict.fromkeys((*headline, *self.experiment.controls))
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for quantity, release in tested:
            if isinstance(quantity, Ratio | TwoBaselines):
                for ratio in (
                    (quantity,) if isinstance(quantity, Ratio) else (quantity.over, quantity.other)
                ):
                    over, under, rounds = self._sides(ratio, release)
                    figures = stats.log_ratio(over, under), rounds
                    found.setdefault(_kind(quantity), []).append(figures)
            elif isinstance(quantity, Share):
                shares = self.shares(quantity, release)
                figures = stats.angle(shares.to_numpy()), shares.index.to_numpy()
                found.setdefault(_kind(quantity), []).append(figures)
        return {kind: stats.peers(figures) for kind, figures in found.items()}

    def judged(self, quantity: Quantity, release: str, confidence: float) -> Estimate:
        """The quantity with the interval that a verdict rests on."""
        peers = self.peers.get(_kind(quantity))
        if isinstance(quantity, Ratio):
            return self.ratio(quantity, release, confidence, peers)
        if isinstance(quantity, Share):
            return self.share(quantity, release, confidence, peers)
        if isinstance(quantity, TwoBaselines):
            return self.range(quantity, release, confidence, peers)
        if isinstance(quantity, Dip):
            return self.dip(quantity, release, confidence, peers)
        if isinstance(quantity, Saved):
            return self.saved(quantity, release, confidence, peers)
        return self.estimate(quantity, release, confidence)

    def added(self, ratio: Ratio, release: str, confidence: float = 0.95) -> Estimate:
        """Numerator minus denominator, paired within rounds, in the metric's unit."""
        return stats.difference(*self._sides(ratio, release), confidence)

    def over_sizes(self, curve: Sequence[Ratio], release: str) -> pd.DataFrame:
        """What each ratio's numerator takes more than its denominator, in the metric's unit.

        Indexed by round, a column per entry of the curve that was measured, by its place.
        """
        pairs = {i: self.pairs(ratio, release) for i, ratio in enumerate(curve)}
        return pd.DataFrame(
            {i: p["numerator"] - p["denominator"] for i, p in pairs.items() if len(p)}
        ).dropna()

    def dip(
        self, dip: Dip, release: str, confidence: float = 0.95, peers: stats.Peers | None = None
    ) -> Valley:
        """How deep a curve dips: its first and its last point over its least."""
        added = self.over_sizes(dip.curve, release)
        if not len(added):
            return Valley(math.nan, -math.inf, math.inf, 0, 0, confidence, math.nan, math.nan, -1)
        least = int(added.columns.to_numpy(dtype=int)[added.median().to_numpy().argmin()])
        rounds = added.index.to_numpy()
        first, last = (
            stats.paired_ratio(
                *(added[end].to_numpy(), added[least].to_numpy()), rounds, confidence, peers
            )
            for end in (added.columns[0], added.columns[-1])
        )
        values = (first.value, first.low, first.high, first.samples, first.blocks, confidence)
        return Valley(*values, last.low, last.high, least)

    def shares(self, share: Share, release: str) -> pd.Series:
        """The share (0 to 1) in each round's profile, indexed by round."""
        return pd.Series(
            {
                round_: profile.share(share.functions, share.within, share.of)
                for round_, profile in self.profiles(share.arm, release).items()
            },
            dtype=float,
        ).dropna()

    def share(
        self,
        share: Share,
        release: str,
        confidence: float = 0.95,
        peers: stats.Peers | None = None,
    ) -> Estimate:
        """The share (0 to 1) over the rounds' profiles, with its interval."""
        shares = self.shares(share, release)
        return stats.share(shares.to_numpy(), shares.index.to_numpy(), confidence, peers)

    def profiles(self, arm: Arm, release: str) -> Mapping[int, Profile]:
        """The CPU profiles of an arm on a release, by round."""
        return self.cpu_profiles.get(arm.on(release), {})

    def estimate(self, quantity: Quantity, release: str, confidence: float = 0.95) -> Estimate:
        """The quantity of a claim on a release."""
        if isinstance(quantity, Share):
            return self.share(quantity, release, confidence)
        if isinstance(quantity, Agreement):
            return self.spread(quantity, release)
        if isinstance(quantity, Amount):
            return self.amount(quantity.arm, release, quantity.metric, confidence)
        if isinstance(quantity, Difference):
            return self.added(quantity.ratio, release, confidence)
        if isinstance(quantity, Dip):
            return self.dip(quantity, release, confidence)
        if isinstance(quantity, Places):
            return self.tally(quantity, release, confidence)
        if isinstance(quantity, TwoBaselines):
            return self.range(quantity, release, confidence)
        if isinstance(quantity, Straightness):
            return _amount(self.walks(quantity.arm, release)["r2"], confidence)
        if isinstance(quantity, Steepness):
            return _amount(self.steepness(quantity, release), confidence)
        if isinstance(quantity, Saved):
            return self.saved(quantity, release, confidence)
        return self.ratio(quantity, release, confidence)

    def walks(self, arm: Arm, release: str) -> pd.DataFrame:
        """The straight line of each round through what a call costs by the list's length.

        Indexed by round, with columns `slope` (ns a record), `intercept` (ns) and `r2`.
        """
        fits = {
            round_: vars(walk(samples)) for round_, samples in self.samples(arm, release).iterrows()
        }
        return pd.DataFrame.from_dict(
            fits, orient="index", columns=["slope", "intercept", "r2"], dtype=float
        ).dropna()

    def slope(self, arm: Arm, release: str, confidence: float = 0.95) -> Estimate:
        """What a record in the list costs a call, in ns."""
        return _amount(self.walks(arm, release)["slope"], confidence)

    def intercept(self, arm: Arm, release: str, confidence: float = 0.95) -> Estimate:
        """What a call costs with an empty list, in ns."""
        return _amount(self.walks(arm, release)["intercept"], confidence)

    def steepness(self, quantity: Steepness, release: str) -> pd.Series:
        """The ratio of two slopes in each round, indexed by round."""
        over, under = (self.walks(arm, release)["slope"] for arm in quantity.arms)
        return (over / under).dropna()

    def saved(
        self,
        quantity: Saved,
        release: str,
        confidence: float = 0.95,
        peers: stats.Peers | None = None,
    ) -> Estimate:
        """The share saved: what is left is a ratio, of what it adds after and before."""
        before, after, baseline = (
            frames.by_round(self.samples(arm, release), quantity.metric) for arm in quantity.arms
        )
        sides = pd.DataFrame({"left": after - baseline, "added": before - baseline}).dropna()
        rounds = sides.index.to_numpy()
        left, added = (sides[side].to_numpy(dtype=float) for side in ("left", "added"))
        # Where it saves all or adds nothing there is no ratio of what is left.
        if len(sides) < 2 or (sides <= 0).any(axis=None):
            return stats.amount(1 - left / added, rounds, confidence)
        e = stats.paired_ratio(left, added, rounds, confidence, peers)
        return replace(e, value=1 - e.value, low=1 - e.high, high=1 - e.low)

    def spread(self, agreement: Agreement, release: str) -> Spread:
        """How far independent measurements of the same ratios lie apart."""
        groups = [[self.ratio(ratio, release) for ratio in group] for group in agreement.groups]
        measured = [[e for e in group if e.samples] for group in groups]
        if not all(len(group) > 1 for group in measured):
            return Spread(math.nan, -math.inf, math.inf, 0, 0, 1.0, math.nan)
        widest = max(max(e.value for e in g) / min(e.value for e in g) for g in measured)
        chance = min(stats.heterogeneity(group) for group in measured)
        count = sum(len(group) for group in measured)
        return Spread(widest, widest, widest, count, count, 1.0, chance)

    def scatter(self, ratios: Sequence[Ratio], release: str) -> float:
        """How far one pair lies from the next within each of some measurements: the standard
        deviation of the log ratios. NaN without two pairs in any."""
        logs = [stats.log_ratio(*self._sides(ratio, release)[:2]) for ratio in ratios]
        variances = [float(np.nanvar(x, ddof=1)) for x in logs if np.isfinite(x).sum() > 1]
        return math.sqrt(sum(variances) / len(variances)) if variances else math.nan

    def shows(self, arm: Arm, release: str, metric: str) -> bool | None:
        """Whether any sample of an arm shows a thing; None if there are none."""
        values = self._values(arm, release, metric)
        return bool((values > 0).any()) if len(values) else None

    def tally(self, places: Places, release: str, confidence: float = 0.95) -> Tally:
        """At how many places one arm shows what no other does; its samples are that arm's."""
        found, runs = [], 0
        for shown, *others in zip(places.shown, *places.others, strict=True):
            each = [self.shows(arm, release, places.metric) for arm in (shown, *others)]
            if None not in each:
                found.append((bool(each[0]), any(each[1:])))
                runs += len(self._values(shown, release, places.metric))
        count = float(sum(one and not other for one, other in found)) if found else math.nan
        elsewhere = sum(other for _, other in found)
        return Tally(count, count, count, runs, len(found), confidence, len(found), elsewhere)

    def range(
        self,
        quantity: TwoBaselines,
        release: str,
        confidence: float = 0.95,
        peers: stats.Peers | None = None,
    ) -> Range:
        """Two ratios as one range."""
        one, other = (
            self.ratio(ratio, release, confidence, peers)
            for ratio in (quantity.over, quantity.other)
        )
        value = math.sqrt(one.value * other.value)
        low, high = min(one.low, other.low), max(one.high, other.high)
        samples, blocks = min(one.samples, other.samples), min(one.blocks, other.blocks)
        return Range(value, low, high, samples, blocks, confidence, one, other)

    def single_values(self, quantity: Ratio | Share, release: str) -> np.ndarray:
        """The single values behind an estimate: a paired ratio or share per round."""
        if isinstance(quantity, Share):
            return self.shares(quantity, release).to_numpy()
        pairs = self.pairs(quantity, release)
        return (pairs["numerator"] / pairs["denominator"]).to_numpy()

    def controls(
        self, metric: str = "ns/op", confidence: float = 0.95
    ) -> Iterator[tuple[Arm, str, Estimate]]:
        """The A/A ratios: each twin against the arm that it is identical to.

        Twins are measured in few rounds, which say little of their own spread, so here
        the intervals heed what other ratios say of it.
        """
        for control, release in self.experiment.controls:
            ratio = replace(control, metric=metric)
            estimate = self.ratio(ratio, release, confidence, self.peers.get(_kind(ratio)))
            if estimate.samples:
                yield control.numerator, release, estimate

    def noise_floor(self, ratio: Ratio | None = None, confidence: float = 0.95) -> float:
        """The log ratio below which no difference is called one; infinite without controls.

        For a ratio it is that of the twins of its own arms, where they have some:
        a short sample's noise says nothing of a long one's.
        """
        controls = list(self.controls(confidence=confidence))
        if ratio is not None:
            compared = {ratio.numerator.benchmark, ratio.denominator.benchmark}
            own = [control for control in controls if control[0].benchmark in compared]
            controls = own or controls
        return stats.noise_floor([estimate for _, _, estimate in controls])

    def differs(self, ratio: Ratio, release: str) -> bool:
        """Whether a ratio differs from 1 by more than identical programs do."""
        return stats.differs(self.ratio(ratio, release), self.noise_floor(ratio))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that this experiment tests."""
        return tuple(c for c in CLAIMS.values() if c.experiment == self.experiment.name)


def _kind(quantity: Quantity) -> str:
    """Figures of one kind scatter alike: ratios by what is measured, and shares of profiles."""
    if isinstance(quantity, Share):
        return "profile"
    if isinstance(quantity, Ratio | Saved):
        return quantity.metric.rsplit("-", 1)[-1].removesuffix("/op")
    if isinstance(quantity, Dip):
        return _kind(quantity.curve[0])
    if isinstance(quantity, TwoBaselines):
        return _kind(quantity.over)
    return ""


def _amount(by_round: pd.Series, confidence: float) -> Estimate:
    """The estimate from a figure per round that may be 0 or less."""
    values = by_round[np.isfinite(by_round.to_numpy(dtype=float))]
    return stats.amount(values.to_numpy(dtype=float), values.index.to_numpy(), confidence)


# What runs a benchmark's operations on goroutines of their own, where not the benchmark.
GOROUTINES = "gccost/rates.Measure.func1"


def _usable(
    found: Mapping[int, Path], benchmark: str, problems: list[str]
) -> Iterator[tuple[int, Profile]]:
    """The profiles that can be used; what is wrong with the others goes to `problems`."""
    for round_, path in found.items():
        try:
            profile = read_profile(path)
        except GccostError as error:
            problems.append(str(error))
            continue
        if not profile.total:
            problems.append(f"{path}: the profile holds no samples")
        elif not profile.holds(f".Benchmark{benchmark}") and not profile.holds(GOROUTINES):
            problems.append(f"{path}: the profile is of another program: no Benchmark{benchmark}")
        else:
            yield round_, profile
