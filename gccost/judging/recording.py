"""The samples of one study in one run, and the estimates made from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from operator import truediv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import paths, stats
from gccost.errors import GccostError
from gccost.judging import costs, kinds, samples
from gccost.judging.claims import Study
from gccost.judging.kinds import Kinds
from gccost.judging.quantities import Quantity, Seen
from gccost.judging.recorded import recorded
from gccost.measuring import jobs, toolchains
from gccost.measuring.jobs import Job
from gccost.measuring.manifest import Manifest
from gccost.measuring.profiles import Profile
from gccost.measuring.profiles import read as read_profile
from gccost.measuring.runs import Run
from gccost.stats import SHOWN, Estimate, Figure

Floats = np.ndarray[Any, np.dtype[np.float64]]

_NO_SAMPLES = pd.DataFrame({"round": [], "sitting": []})


def _nothing() -> None:
    """The recording in place of a recorded one: none."""


@dataclass(frozen=True)
class Recording:
    """The samples and profiles of a study in one run.

    `jobs` has every job of the study by name, as the run's own table has it if it was planned.
    `frame` has a row per sample (see `gccost.judging.samples`), and `cpu_profiles` the profiles by
    the job's name, then by round. `problems` describes unusable lines and profiles. `instead` gives
    the recorded run's recording, for intervals, and for cases of which this run has too few
    processes (see `showing`).
    """

    study: Study
    run: Run
    jobs: Mapping[str, Job]
    frame: pd.DataFrame
    problems: tuple[str, ...]
    cpu_profiles: Mapping[str, Mapping[int, Profile]]
    instead: Callable[[], Recording | None] = _nothing

    @classmethod
    def load(cls, study: Study, run: Run) -> Recording:
        """Read a study's samples from a run. Raises GccostError if the run has none."""
        if not run.samples_txt.exists():
            raise GccostError(
                "the run holds no samples", run.name, f"make measure ONLY={study.name}"
            )
        measured = samples.of_run(run)
        problems = [*measured.problems]
        planned = run.table()
        table = {name: job | planned.get(name, {}) for name, job in study.jobs.items()}
        n = measured.frame["name"].map({name: job["n"] for name, job in table.items()})
        frame = measured.frame[(n == 0) | (n == measured.frame["operations"])]
        cpu_profiles = {
            name: dict(_usable(run.profiles(name), problems))
            for name, job in table.items()
            if "profile" in job
        }
        is_own = run.folder.parent != paths.reference()
        instead = partial(of_study, study) if is_own else _nothing
        return cls(study, run, table, frame, tuple(problems), cpu_profiles, instead)

    @cached_property
    def manifest(self) -> Manifest:
        """The run's manifest."""
        return self.run.manifest()

    @property
    def kinds(self) -> Kinds:
        """The run's kinds of loop."""
        return kinds.of_run(self.run)

    @property
    def cpus(self) -> int:
        """The number of CPUs available to the measured programs, limited by any quota."""
        machine = self.manifest["machine"]
        allowed, quota = int(machine.get("allowed_cpus") or 1), machine.get("cpu_quota")
        return min(allowed, max(1, int(quota))) if quota else allowed

    @property
    def cores(self) -> int:
        """The number of cores that these CPUs can be threads of, as far as it is known."""
        return min(self.cpus, int(self.manifest["machine"].get("physical_cores") or self.cpus))

    @property
    def system(self) -> str:
        """The operating system of the measured programs, with its release."""
        return str(self.manifest["machine"].get("release") or "an unnamed system")

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases with samples, the oldest first."""
        measured = {self.jobs[name]["release"] for name in self.frame["name"]}
        return tuple(release for release in self.study.releases if release in measured)

    @property
    def newest(self) -> str:
        """The newest release with samples; without any, the newest of the language."""
        return (toolchains.today(self.study.document), *self.releases)[-1]

    def failures(self, name: str) -> list[str]:
        """The reasons why samples of a case failed."""
        return list(self.manifest["failed"].get(name, []))

    # --- What a page shows ------------------------------------------------------------

    def fewest(self, name: str) -> int:
        """How many processes, or profiles, of a case a page must have to show it."""
        return 1 if jobs.has(self.jobs[name], "once") else costs.FEWEST

    def showing(self, name: str) -> Recording:
        """The recording from which a page shows a case: this one, or else the recorded run's.

        This is the one rule for what stands in place of a figure that was measured too little: a
        case with fewer than `fewest` processes is shown from the recorded run, whole.
        """
        if self._enough(name):
            return self
        other = self.instead()
        return other if other is not None and other._enough(name) else self

    def is_due(self, name: str) -> bool:
        """Whether a page shows a case: the run planned it, or could not get its release."""
        job = self.jobs[name]
        is_missing = job["release"] in self.manifest["missing"]
        return name in self.run.table() or (is_missing and job.get("cpus", 1) <= self.cpus)

    def _enough(self, name: str) -> bool:
        if "profile" in self.jobs[name]:
            return len(self.cpu_profiles[name]) >= self.fewest(name)
        return len(self._cases.get(name, ())) >= self.fewest(name)

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The processes that a page shows, as in `every`; `source` says if they are recorded."""
        other = [name for name in self.jobs if self.showing(name) is not self]
        recorded = self.instead() if other else None
        if recorded is None:
            return self.every.assign(source="")
        own = self.every[~self.every.index.isin(other)].assign(source="")
        theirs = recorded.every[recorded.every.index.isin(other)].assign(source=costs.RECORDED)
        return pd.concat([own, theirs]) if len(own) else theirs

    # --- Samples --------------------------------------------------------------------

    @cached_property
    def every(self) -> pd.DataFrame:
        """The processes of all variants, with the name of their job as index."""
        order = pd.CategoricalIndex(self.frame["name"], list(self.jobs)).codes
        rows = self.frame.assign(order=order).sort_values(["order", "round"], kind="stable")
        return rows.drop(columns="order").set_index("name")

    @cached_property
    def _cases(self) -> Mapping[str, pd.DataFrame]:
        parts = self.every.reset_index().groupby("name", sort=False)
        return {str(name): part.dropna(axis="columns", how="all") for name, part in parts}

    def processes(self, name: str) -> pd.DataFrame:
        """The samples of a case."""
        return self._cases.get(name, _NO_SAMPLES)

    def rounds(self, name: str) -> list[int]:
        """The rounds with a process, or a profile, of a case, in order."""
        if name in self.cpu_profiles:
            return sorted(self.cpu_profiles[name])
        return sorted(self.processes(name)["round"].astype(int).unique())

    def values(self, name: str, metric: str = costs.METRIC) -> Floats:
        """A metric of each process."""
        values = self.processes(name).get(metric, pd.Series(dtype=float))
        return values.dropna().to_numpy(dtype=float)

    # --- Estimates ------------------------------------------------------------------

    @cached_property
    def _known(self) -> dict[tuple[str, str], Figure]:
        return {}

    def cost(self, name: str, metric: str = costs.METRIC) -> Figure:
        """The cost of a case in each sitting; see `gccost.stats`."""
        if (name, metric) not in self._known:
            self._known[name, metric] = self.cost_of(name, metric, self.processes(name))
        return self._known[name, metric]

    def cost_of(self, name: str, metric: str, processes: pd.DataFrame) -> Figure:
        """The cost of a case from some of its processes."""
        case = kinds.cells(processes, metric).get(name)
        if case is None:
            return Figure()
        kind, n = str(self.jobs[name]["kind"]), len(kinds.usable(processes, metric))
        spread = kinds.of_recorded(self.run).spread(kind, metric)
        if math.isnan(spread):  # of another method or under load; its kind's
            spread = kinds.of_recorded(self.run).spread(kind.partition(", ")[0], metric)
        scatter = self.kinds.scatter(kind, metric)
        made, of_run = kinds.cost(case, metric, scatter, spread, n), self.kinds.cells(metric)
        again = {
            control: kinds.cost(of_run[control], metric, scatter, spread, n)
            for control in self._controls.get(name, ())
            if control in of_run
        }
        ratios = {name: stats.propagate(truediv, [each, made]) for name, each in again.items()}
        return made._replace(controls=ratios)

    @cached_property
    def _controls(self) -> Mapping[str, list[str]]:
        """The A/A controls of each case, which another study of the run may have."""
        found: dict[str, list[str]] = {}
        for name, job in self.run.table().items():
            if "control" in job:
                found.setdefault(jobs.uncontrolled(job), []).append(name)
        return found

    def share(self, name: str, of: Callable[[Profile], float]) -> Figure:
        """A share of a case's CPU profiles: those of a sitting are added up."""
        sittings = dict(self._cases.get(name, _NO_SAMPLES)[["round", "sitting"]].to_numpy())
        profiles = self.cpu_profiles.get(name, {}).items()
        shares = [(sittings.get(round_, 1.0), of(each), each.total) for round_, each in profiles]
        known = pd.DataFrame(shares, columns=["sitting", "share", "total"]).dropna()
        return kinds.share(known)

    def estimate(self, quantity: Quantity, release: str, confidence: float = SHOWN) -> Estimate:
        """The estimate of a quantity on a release, such as a ratio of costs, or a share."""
        return quantity.estimate(Seen(self, release, confidence))


@cache
def of_study(study: Study) -> Recording | None:
    """The recorded run's recording of a study; None without one."""
    with suppress(GccostError):  # a damaged one
        runs = [run for run in recorded() if study.name in run.studies]
        return Recording.load(study, runs[-1]) if runs else None
    return None


def _usable(files: Mapping[int, Path], problems: list[str]) -> Iterator[tuple[int, Profile]]:
    """Read the usable profiles; appends what is wrong with the others to `problems`."""
    for round_, path in files.items():
        try:
            profile = read_profile(path)
        except GccostError as error:
            problems.append(str(error))
            continue
        if profile.total:
            yield round_, profile
        else:
            problems.append(f"{path}: the profile holds no samples")
