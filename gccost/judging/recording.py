"""The samples of one study in one run, and the estimates made from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import stats
from gccost.errors import GccostError
from gccost.judging import costs, metrics
from gccost.judging.claims import Study
from gccost.judging.models import slope
from gccost.judging.quantities import Quantity, Ratio
from gccost.measuring import frames, toolchains
from gccost.measuring.cases import FREE, Variant
from gccost.measuring.machine import memory_for_a_sample
from gccost.measuring.manifest import Manifest
from gccost.measuring.profiles import Profile
from gccost.measuring.profiles import read as read_profile
from gccost.measuring.runs import Run
from gccost.measuring.samples import RUN_DELAY, slices_fault
from gccost.stats import SHOWN, Cost, Estimate, Width

Floats = np.ndarray[Any, np.dtype[np.float64]]

# The rounds that must lie near a floor, and within which factor of it; layouts differ by 1 %.
_FLOOR_ROUNDS, _FLOOR_WITHIN = 3, 1.04
_REFERENCE = "reference-ns/op"  # of manual frees between parts of a loop; see gosrc/meter
_SLICES = "slice-p05-ns/op"
_CONTROLS_WITHIN = 1.05  # an A/A ratio beyond it whose interval excludes 1 shows a disturbance


@dataclass(frozen=True)
class Recording:
    """The samples and profiles of a study in one run.

    `frame` has a row per sample; `cpu_profiles` has the profiles by the case's name, then by
    round; `problems` describes unusable lines and profiles. Estimates ignore rounds after
    `last`.
    """

    study: Study
    run: Run
    frame: pd.DataFrame
    problems: tuple[str, ...]
    cpu_profiles: Mapping[str, Mapping[int, Profile]]
    last: float = math.inf

    @classmethod
    def load(cls, study: Study, run: Run) -> Recording:
        """Read a study's samples from a run. Raises GccostError if the run has none."""
        if not run.samples.exists():
            raise GccostError(
                "the run holds no samples", run.name, f"make measure ONLY={study.name}"
            )
        reading = run.reading()
        manifest = run.manifest()
        memory = memory_for_a_sample(manifest["machine"])
        cases = [case.scaled(manifest["scale"]).capped(memory) for case in study.cases]
        named = {case.variant.benchmark for case in cases}
        frame = frames.of_cases(reading.frame_of(named), cases)
        if len(frame):  # the pool also has other studies' metrics
            frame = frame.dropna(axis="columns", how="all")
        problems = [str(problem) for problem in reading.errors]
        stationary = {case.name for case in cases if case.variant.stationary}
        faulty = []
        sliced = frame[frame["name"].isin(stationary)]
        for at, sample in zip(sliced.index, sliced.to_dict("records"), strict=True):
            if fault := slices_fault(sample):
                faulty.append(at)
                problems.append(f"{sample['name']}, round {sample['round']:.0f}: {fault}")
        cpu_profiles = {
            case.name: dict(_usable(run.profiles(case.name), case.variant.benchmark, problems))
            for case in study.cases
            if case.variant.profile
        }
        return cls(study, run, frame.drop(index=faulty), tuple(problems), cpu_profiles)

    @cached_property
    def manifest(self) -> Manifest:
        """The run's manifest."""
        return self.run.manifest()

    @property
    def cpus(self) -> int:
        """The number of CPUs available to the measured programs, limited by any quota."""
        machine = self.manifest["machine"]
        allowed, quota = int(machine.get("allowed_cpus") or 1), machine.get("cpu_quota")
        return min(allowed, max(1, int(quota))) if quota else allowed

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases with samples, in the study's order."""
        measured = set(self.frame["release"]) if len(self.frame) else set()
        return tuple(release for release in self.study.releases if release in measured)

    @property
    def newest(self) -> str:
        """The newest release with samples; without any, the newest of the language."""
        return (toolchains.today(self.study.document), *self.releases)[-1]

    def failures(self, variant: Variant, release: str) -> list[str]:
        """The reasons why samples of a variant on a release failed."""
        return self.manifest["failed"].get(variant.on(release), [])

    # --- Samples --------------------------------------------------------------------

    @cached_property
    def _cases(self) -> Mapping[str, pd.DataFrame]:
        return frames.by_case(self.frame)

    def until(self, round_: float) -> Recording:
        """The recording without the rounds after this one."""
        part = replace(self, last=round_)
        part.__dict__["_cases"] = self._cases  # which are read once
        return part

    def samples(self, variant: Variant, release: str) -> pd.DataFrame:
        """The samples of a variant on a release, indexed by round."""
        found = self._cases[variant.on(release)]
        return found if math.isinf(self.last) else found[found.index <= self.last]

    def accepted(self, variant: Variant, release: str) -> pd.DataFrame:
        """The samples of processes whose threads hardly waited for a CPU, for cases it affects.

        Returns all samples if fewer than two remain.
        """
        samples = self.samples(variant, release)
        found = _unhindered(variant, samples)
        return found if len(found) > 1 else samples

    @property
    def rejected(self) -> set[int]:
        """The lines of the samples that are not accepted."""
        return {
            line
            for case in self.study.cases
            if case.variant.gated and len(self.samples(case.variant, case.release))
            for line in set(self.samples(case.variant, case.release)["line"])
            - set(self.accepted(case.variant, case.release)["line"])
        }

    def rounds(self, variant: Variant, release: str) -> list[int]:
        """The rounds with an accepted sample, or a profile, of a variant, in order."""
        if variant.profile:
            return sorted(self.profiles(variant, release))
        samples = self.samples(variant, release)
        return sorted({int(r) for r in _unhindered(variant, samples).index})

    def undisturbed(self, variant: Variant, release: str, metric: str = "ns/op") -> pd.Series:
        """A metric of each process, accepted or not, as it enters the cost.

        For a loop timed in slices it is their low quantile. Another loop's time is corrected
        for memory contention, if the process timed manual frees.
        """
        samples = self.samples(variant, release)
        column = _sliced(variant, metric)
        if column not in samples:
            return pd.Series(dtype=float)
        values = samples[column]
        if column not in ("ns/op", "settled-ns/op") or _REFERENCE not in samples:
            return values
        manual = self.cost(replace(FREE, more=variant.more), release)  # of the same measurement
        if not manual.samples:
            return values
        relieved = stats.relieved(values, samples[_REFERENCE], math.exp(manual.log))
        return pd.Series(relieved, index=samples.index)

    def _accepted(self, variant: Variant, release: str, metric: str, column: str) -> pd.DataFrame:
        """The accepted processes as `gccost.judging.tidy` names them: round and the metric."""
        values = self.undisturbed(variant, release, metric)
        if not len(values):
            return pd.DataFrame({"round": [], column: []})
        samples = self.samples(variant, release)
        frame = pd.DataFrame({"round": samples.index, column: values.to_numpy(dtype=float)})
        if variant.stationary and _SLICES in samples:
            frame[metrics.column(_SLICES)] = samples[_SLICES].to_numpy()
        counts = samples["line"].isin(self.accepted(variant, release)["line"]).to_numpy()
        return frame[counts]

    def values(self, variant: Variant, release: str, metric: str = "ns/op") -> Floats:
        """A metric of each accepted process, as it enters the cost."""
        values = self._accepted(variant, release, metric, metric)[metric]
        return values.dropna().to_numpy(dtype=float)

    # --- Estimates ------------------------------------------------------------------

    def cost(self, variant: Variant, release: str, metric: str = "ns/op") -> Cost:
        """The undisturbed cost of a variant; see `gccost.stats`."""
        key = (variant, release, metric)
        if key not in self._costs:
            self._costs[key] = self._cost(*key)
        return self._costs[key]

    @cached_property
    def _costs(self) -> dict[tuple[Variant, str, str], Cost]:
        return {}

    def _cost(self, variant: Variant, release: str, metric: str) -> Cost:
        quiet = {of: column for column, of in metrics.QUIET.items()}
        column = quiet.get(metric) or metrics.column(metric)
        return costs.fitted(self._accepted(variant, release, metric, column), column)

    def combine(
        self,
        function: Callable[..., float],
        costs: Sequence[tuple[Variant, str]],
        release: str,
        width: Width = SHOWN,
        *,
        signed: bool = False,
    ) -> Estimate:
        """An estimate of function(cost, …) from the costs of variants, each with its metric."""
        found = [self.cost(variant, release, metric) for variant, metric in costs]
        return stats.combine(function, found, width, signed=signed)

    def profiles(self, variant: Variant, release: str) -> Mapping[int, Profile]:
        """The CPU profiles of a variant on a release, by round."""
        found = self.cpu_profiles.get(variant.on(release), {})
        return {round_: profile for round_, profile in found.items() if round_ <= self.last}

    def estimate(self, quantity: Quantity, release: str, width: Width = SHOWN) -> Estimate:
        """The estimate of a quantity on a release, such as a ratio of costs, or a share."""
        return quantity.estimate(self, release, width)

    def slope(self, variant: Variant, release: str, width: Width = SHOWN) -> Estimate:
        """The cost (ns) that each record in the list adds to a call; a sample per process."""
        found = [slope(sample) for _, sample in self.samples(variant, release).iterrows()]
        return stats.amount(found, width)

    # --- Disturbances ---------------------------------------------------------------

    def controls(self) -> Iterator[tuple[Variant, str, Estimate]]:
        """The A/A ratios, of each control to the identical variant."""
        for case in self.study.cases:
            if case.variant.control:
                ratio = Ratio(case.variant, replace(case.variant, control=""))
                estimate = self.estimate(ratio, case.release)
                if estimate.samples:
                    yield case.variant, case.release, estimate

    @cached_property
    def disturbed(self) -> Mapping[str, tuple[str, ...]]:
        """The signs, by release, that the machine was too busy for some ratios of times."""
        variants = {
            go: [c.variant for c in self.study.cases if c.release == go] for go in self.releases
        }
        found = {go: tuple(self.disturbances(variants[go], go)) for go in self.releases}
        return {go: reasons for go, reasons in found.items() if reasons}

    def disturbances(self, variants: Iterable[Variant], release: str) -> Iterator[str]:
        """The signs that the machine was too busy for ratios of these variants' times."""
        rounds = accepted = 0
        for variant in dict.fromkeys(variants):
            samples = self.samples(variant, release)
            if variant.stationary and variant.gogc == FREE.gogc and len(samples):
                least = samples[_sliced(variant, "ns/op")].groupby(level=0).min()
                floor = math.exp(self.cost(variant, release).log)
                within = np.abs(np.log(least / floor)) <= math.log(_FLOOR_WITHIN)
                if len(least) >= _FLOOR_ROUNDS and within.sum() < _FLOOR_ROUNDS:
                    yield (
                        f"{variant.printed} on {toolchains.title(release)} shows no floor: the "
                        f"least times of its {len(least)} rounds lie up to "
                        f"{100 * (least.max() / least.min() - 1):.0f} % apart"
                    )
            if variant.gated and "run-delay-share" in samples:
                # Rejected processes are retried, so count rounds, not tries.
                known = samples[["run-delay-share", "procs"]].dropna()
                rounds += known.index.nunique()
                accepted += _unhindered(variant, known).index.nunique()
        if accepted < rounds / 2:
            yield (
                f"in {rounds - accepted} of {rounds} rounds of a variant every process waited for "
                f"a CPU for more than {100 * RUN_DELAY:.0f} % of its time"
            )
        compared = {variant.benchmark for variant in variants}
        for variant, go, e in self.controls():
            off = not e.contains(1) and not 1 / _CONTROLS_WITHIN <= e.value <= _CONTROLS_WITHIN
            if off and go == release and variant.benchmark in compared:
                yield f"{variant.benchmark} against itself comes out as {e.value:.3g}"


def _unhindered(variant: Variant, samples: pd.DataFrame) -> pd.DataFrame:
    if not variant.gated or "run-delay-share" not in samples:
        return samples
    return samples[~((samples["run-delay-share"] > RUN_DELAY) & (samples["procs"] > 1))]


def _sliced(variant: Variant, metric: str) -> str:
    """The metric of a loop's time: the low quantile of its slices, if it has slices."""
    timed = variant.stationary and metric in ("ns/op", "settled-ns/op")
    return _SLICES if timed else metric


# The loops that several benchmarks share; a profile need not name the benchmark itself.
SHARED_LOOPS = ("gccost/rates.Measure.func1", "gccost/specials.overPrograms.func1")


def _usable(
    found: Mapping[int, Path], benchmark: str, problems: list[str]
) -> Iterator[tuple[int, Profile]]:
    """Read the usable profiles; appends what is wrong with the others to `problems`."""
    for round_, path in found.items():
        try:
            profile = read_profile(path)
        except GccostError as error:
            problems.append(str(error))
            continue
        if not profile.total:
            problems.append(f"{path}: the profile holds no samples")
        elif not any(map(profile.holds, (f".Benchmark{benchmark}", *SHARED_LOOPS))):
            problems.append(f"{path}: the profile is of another program: no Benchmark{benchmark}")
        else:
            yield round_, profile
