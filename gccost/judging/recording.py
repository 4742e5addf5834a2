"""What one run holds of one experiment, and the estimates drawn from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import stats
from gccost.errors import GccostError
from gccost.judging.claims import CLAIMS, Agreement, Claim, Quantity, Share, Spread
from gccost.measuring import benchfmt, frames
from gccost.measuring.experiments import Arm, Experiment, Ratio
from gccost.measuring.profiles import Profile
from gccost.measuring.profiles import read as read_profile
from gccost.measuring.runs import Run
from gccost.stats import Estimate


@dataclass(frozen=True)
class Recording:
    """The samples and profiles of an experiment in one run.

    `frame` has a row a sample; `cpu_profiles` holds the profiles by benchmark and
    release, then by round; `problems` are the lines and profiles that could not be
    used.
    """

    experiment: Experiment
    run: Run
    frame: pd.DataFrame
    problems: tuple[str, ...]
    cpu_profiles: Mapping[tuple[str, str], Mapping[int, Profile]]

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
        cases = [case.scaled(scale) for case in experiment.cases]
        frame = frames.of_cases(reading.frame, cases)
        problems = [str(problem) for problem in reading.errors]
        cpu_profiles: dict[tuple[str, str], dict[int, Profile]] = {}
        for case in experiment.cases:
            if case.arm.profile:
                key = (case.arm.benchmark, case.go)
                cpu_profiles[key] = dict(_readable(run.profiles(experiment.name, *key), problems))
        return cls(experiment, run, frame, tuple(problems), cpu_profiles)

    @cached_property
    def entry(self) -> dict[str, Any]:
        """What the run's manifest says of the experiment."""
        return self.run.experiment(self.experiment.name)

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases with samples, in the experiment's order."""
        measured = set(self.frame["go"]) if len(self.frame) else set()
        return tuple(go for go in self.experiment.releases if go in measured)

    def samples(self, arm: Arm, go: str) -> pd.DataFrame:
        """The samples of an arm on a release, indexed by round."""
        return frames.of_arm(self.frame, arm, go)

    def level(self, arm: Arm, go: str, metric: str = "ns/op") -> Estimate:
        """An arm's own level of a metric that is never 0, in the metric's unit."""
        values = self._values(arm, go, metric)
        return stats.level(values.to_numpy(dtype=float), values.index.to_numpy())

    def amount(self, arm: Arm, go: str, metric: str) -> Estimate:
        """An arm's amount of a metric that may be 0 (a count), in the metric's unit."""
        values = self._values(arm, go, metric)
        return stats.amount(values.to_numpy(dtype=float), values.index.to_numpy())

    def _values(self, arm: Arm, go: str, metric: str) -> pd.Series:
        samples = self.samples(arm, go)
        return samples[metric].dropna() if metric in samples else pd.Series(dtype=float)

    def pairs(self, ratio: Ratio, go: str) -> pd.DataFrame:
        """The samples of a ratio paired by round: columns numerator, denominator."""
        return frames.pairs(self.frame, ratio, go)

    def ratio(self, ratio: Ratio, go: str, confidence: float = 0.95) -> Estimate:
        """The median of the ratios paired within rounds, with its interval."""
        pairs = self.pairs(ratio, go)
        return stats.paired_ratio(
            pairs["numerator"].to_numpy(dtype=float),
            pairs["denominator"].to_numpy(dtype=float),
            pairs.index.to_numpy(),
            confidence,
        )

    def added(self, ratio: Ratio, go: str) -> Estimate:
        """Numerator minus denominator, paired within rounds, in the metric's unit."""
        pairs = self.pairs(ratio, go)
        return stats.difference(
            pairs["numerator"].to_numpy(dtype=float),
            pairs["denominator"].to_numpy(dtype=float),
            pairs.index.to_numpy(),
        )

    def shares(self, share: Share, go: str) -> pd.Series:
        """The share (0 to 1) in each round's profile, indexed by round."""
        return pd.Series(
            {
                round_: profile.share(share.functions)
                for round_, profile in self.profiles(share.arm.benchmark, go).items()
            },
            dtype=float,
        ).dropna()

    def share(self, share: Share, go: str, confidence: float = 0.95) -> Estimate:
        """The share (0 to 1) over the rounds' profiles, with its interval."""
        shares = self.shares(share, go)
        return stats.amount(shares.to_numpy(), shares.index.to_numpy(), confidence)

    def profiles(self, benchmark: str, go: str) -> Mapping[int, Profile]:
        """The CPU profiles of a benchmark on a release, by round."""
        return self.cpu_profiles.get((benchmark, go), {})

    def estimate(self, quantity: Quantity, go: str, confidence: float = 0.95) -> Estimate:
        """The quantity of a claim on a release."""
        if isinstance(quantity, Share):
            return self.share(quantity, go, confidence)
        if isinstance(quantity, Agreement):
            return self.spread(quantity, go)
        return self.ratio(quantity, go, confidence)

    def spread(self, agreement: Agreement, go: str) -> Spread:
        """How far independent measurements of the same ratios lie apart."""
        groups = [[self.ratio(ratio, go) for ratio in group] for group in agreement.groups]
        measured = [[e for e in group if e.samples] for group in groups]
        if not all(len(group) > 1 for group in measured):
            return Spread(math.nan, -math.inf, math.inf, 0, 0, 1.0, math.nan)
        widest = max(max(e.value for e in g) / min(e.value for e in g) for g in measured)
        chance = min(stats.heterogeneity(group) for group in measured)
        count = sum(len(group) for group in measured)
        return Spread(widest, widest, widest, count, count, 1.0, chance)

    def single_values(self, quantity: Ratio | Share, go: str) -> np.ndarray:
        """The single values behind an estimate: a paired ratio or share per round."""
        if isinstance(quantity, Share):
            return self.shares(quantity, go).to_numpy()
        pairs = self.pairs(quantity, go)
        return (pairs["numerator"] / pairs["denominator"]).to_numpy()

    def controls(self, metric: str = "ns/op") -> Iterator[tuple[Arm, str, Estimate]]:
        """The A/A ratios: each twin against the arm that it is identical to."""
        for control, go in self.experiment.controls:
            estimate = self.ratio(replace(control, metric=metric), go)
            if estimate.samples:
                yield control.numerator, go, estimate

    def noise_floor(self, ratio: Ratio | None = None) -> float:
        """The log ratio below which no difference is called one; infinite without controls.

        For a ratio it is that of the twins of its own arms, where they have some:
        a short sample's noise says nothing of a long one's.
        """
        controls = list(self.controls())
        if ratio is not None:
            compared = {ratio.numerator.benchmark, ratio.denominator.benchmark}
            own = [control for control in controls if control[0].benchmark in compared]
            controls = own or controls
        return stats.noise_floor([estimate for _, _, estimate in controls])

    def differs(self, ratio: Ratio, go: str) -> bool:
        """Whether a ratio differs from 1 by more than identical programs do."""
        return stats.differs(self.ratio(ratio, go), self.noise_floor(ratio))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that this experiment tests."""
        return tuple(c for c in CLAIMS.values() if c.experiment == self.experiment.name)


def _readable(found: Mapping[int, Path], problems: list[str]) -> Iterator[tuple[int, Profile]]:
    """The profiles that can be read; what is wrong with the others goes to `problems`."""
    for round_, path in found.items():
        try:
            yield round_, read_profile(path)
        except GccostError as error:
            problems.append(str(error))
