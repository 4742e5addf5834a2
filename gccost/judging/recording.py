"""The samples of one study in one run, and the estimates made from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from gccost import stats
from gccost.errors import GccostError
from gccost.judging import costs, metrics
from gccost.judging import samples as sampled
from gccost.judging.claims import Study
from gccost.judging.models import slope
from gccost.judging.quantities import Quantity, Ratio
from gccost.measuring import jobs, toolchains
from gccost.measuring.cases import FREE, Variant
from gccost.measuring.jobs import Job
from gccost.measuring.machine import memory_for_a_sample
from gccost.measuring.manifest import Manifest
from gccost.measuring.profiles import Profile
from gccost.measuring.profiles import read as read_profile
from gccost.measuring.runs import Run
from gccost.measuring.sampler import RUN_DELAY, slices_fault
from gccost.stats import SHOWN, Cost, Estimate, Width

T = TypeVar("T")
Floats = np.ndarray[Any, np.dtype[np.float64]]

# The rounds that must lie near a floor, and within which factor of it; layouts differ by 1 %.
_FLOOR_ROUNDS, _FLOOR_WITHIN = 3, 1.04
_REFERENCE = "reference_ns"  # of manual frees between parts of a loop; see gosrc/meter
_SLICES = "slice_p05_ns"
_NO_SAMPLES = pd.DataFrame(
    {"procs": [], "operations": [], "line": []}, index=pd.Index([], name="round")
)
_CONTROLS_WITHIN = 1.05  # an A/A ratio beyond it whose interval excludes 1 shows a disturbance


@dataclass(frozen=True)
class Recording:
    """The samples and profiles of a study in one run.

    `jobs` has every job of the study by name, measured or not, and `frame` a row per sample
    (see `gccost.judging.samples`). `cpu_profiles` has the profiles by the job's name, then by
    round. `problems` describes unusable lines and profiles. Estimates ignore rounds after
    `last`.
    """

    study: Study
    run: Run
    jobs: Mapping[str, Job]
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
        reading, measured = run.reading(), run.table()
        manifest = run.manifest()
        memory = memory_for_a_sample(manifest["machine"])
        cases = [case.scaled(manifest["scale"]).capped(memory) for case in study.cases]
        table = {case.name: jobs.job(case) for case in cases}
        frame = sampled.of_jobs(reading, {n: job for n, job in table.items() if n in measured})
        problems = [str(problem) for problem in reading.errors]
        problems += [
            f"{run.samples}:{line}: no job of jobs.csv is named {sample.full_name}"
            for line, sample in reading.samples.items()
            if sample.full_name not in measured
        ]
        faulty = []
        sliced = frame[frame["name"].isin([n for n, job in table.items() if job["sliced"]])]
        times = sliced.reindex(columns=[_SLICES, "slices_ns", "mean_ns"])
        for at, low, sums, loop, n in times.assign(n=sliced["operations"]).itertuples():
            if fault := slices_fault(low, sums, loop, n):
                faulty.append(at)
                problems.append(f"{frame['name'][at]}, round {frame['round'][at]:.0f}: {fault}")
        cpu_profiles = {
            name: dict(_usable(run.profiles(name), job["benchmark"], problems))
            for name, job in table.items()
            if "profile" in job
        }
        frame = frame.drop(index=faulty)
        return cls(study, run, table, frame, tuple(problems), cpu_profiles)

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
        measured = {self.jobs[name]["release"] for name in self.frame["name"].unique()}
        return tuple(release for release in self.study.releases if release in measured)

    @property
    def newest(self) -> str:
        """The newest release with samples; without any, the newest of the language."""
        return (toolchains.today(self.study.document), *self.releases)[-1]

    def failures(self, variant: Variant, release: str) -> list[str]:
        """The reasons why samples of a variant on a release failed."""
        return list(self.manifest["failed"].get(variant.on(release), []))

    # --- Samples --------------------------------------------------------------------

    def _once(self, make: Callable[..., T], *of: Any) -> T:
        """What a method gives for its arguments, computed once."""
        key = make.__name__, *of
        if key not in self._known:
            self._known[key] = make(*of)
        found: T = self._known[key]
        return found

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], Any]:
        return {}

    @cached_property
    def _by_job(self) -> Mapping[str, pd.DataFrame]:
        """The samples of each job by its name, indexed by round, in order."""
        rounds = self.frame["round"].to_numpy()
        numbers = self.frame.drop(columns=["name", "round"])
        values = numbers.to_numpy(dtype=float)  # quicker to take apart than a frame
        found = {}
        for name, at in self.frame.groupby("name", sort=False).indices.items():
            ordered = at[np.argsort(rounds[at], kind="stable")]
            known = ~np.isnan(values[ordered]).all(axis=0)
            index = pd.Index(rounds[ordered], name="round")
            columns = numbers.columns[known]
            found[str(name)] = pd.DataFrame(values[ordered][:, known], index, columns)
        return found

    def until(self, round_: float) -> Recording:
        """The recording without the rounds after this one."""
        return self._once(self._until, round_)

    def _until(self, round_: float) -> Recording:
        part = replace(self, last=round_)
        part.__dict__["_by_job"] = self._by_job  # which are read once
        return part

    def samples(self, variant: Variant, release: str) -> pd.DataFrame:
        """The samples of a variant on a release, indexed by round."""
        found = self._by_job.get(variant.on(release), _NO_SAMPLES)
        return found if math.isinf(self.last) else found[found.index <= self.last]

    def processes(self, variant: Variant, release: str) -> pd.DataFrame:
        """The samples of a variant on a release, and what enters its cost.

        `quiet_ns` is the time of a loop that is timed in slices by their low quantile; that of
        another loop is corrected for memory contention, if the process timed manual frees.
        `settled_ns` is the same of the settled time. `rejected` says which processes do not
        count, because their threads waited for a CPU; none if fewer than two would remain.
        """
        return self._once(self._processes, variant, release)

    def _processes(self, variant: Variant, release: str) -> pd.DataFrame:
        found = self.samples(variant, release).copy()
        for column, mean in metrics.QUIET.items():
            if mean in found:
                found[column] = self._undisturbed(variant, release, mean)
        accepted = _unhindered(variant, found)
        found["rejected"] = ~accepted if accepted.sum() > 1 else False
        return found.reset_index()

    def accepted(self, variant: Variant, release: str) -> pd.DataFrame:
        """The processes of a case that count."""
        found = self.processes(variant, release)
        return found[~found["rejected"].to_numpy(dtype=bool)]

    @cached_property
    def every(self) -> pd.DataFrame:
        """The processes of all variants, with the name of their job as index."""
        parts = {
            case.name: self.processes(case.variant, case.release)
            for case in self.study.cases
            if case.name in self._by_job
        }
        if not parts:
            return self.frame.iloc[:0].set_index("name").assign(rejected=False)
        return pd.concat(parts, names=["name"]).droplevel(1)

    @property
    def rejected(self) -> set[int]:
        """The lines of the samples that are not accepted."""
        return set(self.every["line"][self.every["rejected"]])

    def rounds(self, variant: Variant, release: str) -> list[int]:
        """The rounds with an accepted sample, or a profile, of a variant, in order."""
        if variant.profile:
            return sorted(self.profiles(variant, release))
        samples = self.samples(variant, release)
        return sorted({int(r) for r in samples.index[_unhindered(variant, samples)]})

    def _undisturbed(self, variant: Variant, release: str, metric: str) -> Any:
        """A time of each process, accepted or not, as it enters the cost."""
        samples = self.samples(variant, release)
        if variant.stationary:
            return samples.get(_SLICES, math.nan)
        if _REFERENCE not in samples:
            return samples[metric]
        manual = self.cost(replace(FREE, more=variant.more), release)  # of the same measurement
        if not manual.samples:
            return samples[metric]
        return stats.relieved(samples[metric], samples[_REFERENCE], math.exp(manual.log))

    def values(self, variant: Variant, release: str, metric: str = "quiet_ns") -> Floats:
        """A metric of each accepted process."""
        found = self.accepted(variant, release).get(metric, pd.Series(dtype=float))
        return found.dropna().to_numpy(dtype=float)

    # --- Estimates ------------------------------------------------------------------

    def cost(self, variant: Variant, release: str, metric: str = "quiet_ns") -> Cost:
        """The undisturbed cost of a variant; see `gccost.stats`."""
        return self._once(self._cost, variant, release, metric)

    def _cost(self, variant: Variant, release: str, metric: str) -> Cost:
        return costs.fitted(self.accepted(variant, release), metric)

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
                estimate = self._once(self.estimate, ratio, case.release)
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
                least = samples[_SLICES].groupby(level=0).min()
                floor = math.exp(self.cost(variant, release).log)
                within = np.abs(np.log(least / floor)) <= math.log(_FLOOR_WITHIN)
                if len(least) >= _FLOOR_ROUNDS and within.sum() < _FLOOR_ROUNDS:
                    yield (
                        f"{variant.printed} on {toolchains.title(release)}: the fastest times of "
                        f"its {len(least)} rounds differ by up to "
                        f"{100 * (least.max() / least.min() - 1):.0f} %"
                    )
            if variant.gated and "run_delay_share" in samples:
                # Rejected processes are retried, so count rounds, not tries.
                known = samples[["run_delay_share", "procs"]].dropna()
                rounds += known.index.nunique()
                accepted += known.index[_unhindered(variant, known)].nunique()
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


def _unhindered(variant: Variant, samples: pd.DataFrame) -> Any:
    """Whether the threads of each process hardly waited for a CPU, for cases that it affects."""
    if not variant.gated or "run_delay_share" not in samples:
        return np.ones(len(samples), bool)
    return ~((samples["run_delay_share"] > RUN_DELAY) & (samples["procs"] > 1)).to_numpy()


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
