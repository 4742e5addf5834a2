"""What one run shows of a study: the one view of its samples, from which all estimates are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from operator import truediv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import paths, stats
from gccost.cases import jobs, versions
from gccost.cases.cases import Study
from gccost.cases.settings import Mode
from gccost.costs import costs, kinds, samples
from gccost.costs.kinds import Kinds
from gccost.costs.recorded import recorded
from gccost.errors import GccostError
from gccost.run import profiles
from gccost.run.jobtable import Job
from gccost.run.manifest import Manifest
from gccost.run.profiles import Profile
from gccost.run.runs import Run
from gccost.stats import Figure

Floats = np.ndarray[Any, np.dtype[np.float64]]

_CONTROL = re.compile(r"/control=\w+")  # in a job's name
_NO_SAMPLES = pd.DataFrame({"round": [], "sitting": []})


@dataclass(frozen=True)
class Recording:
    """A study in one run. Raises GccostError if the run has no samples.

    `notices` are the reasons for showing this run. One that `is_aside` is of a recorded run and
    stands next to studies of another run; its figures then say that they are recorded.
    """

    study: Study
    run: Run
    notices: tuple[str, ...] = ()
    is_aside: bool = False

    def __post_init__(self) -> None:
        if not self.run.samples_txt.exists():
            hint = f"make measure ONLY={self.study.name}"
            raise GccostError("the run holds no samples", self.run.name, hint)
        self.run.manifest()  # or it says what is wrong with it

    @cached_property
    def manifest(self) -> Manifest:
        """The run's manifest."""
        return self.run.manifest()

    @property
    def mode(self) -> Mode:
        """Whether the run is one of your own ("measure") or not ("replay")."""
        return "measure" if self.run.folder.parent == paths.runs() else "replay"

    @cached_property
    def recorded(self) -> Recording | None:
        """The recorded run's recording of the study; None without one, or if it is this one.

        It is for intervals, and for cases of which this run has too few processes (`showing`).
        """
        folder = paths.reference()
        return None if self.run.folder.parent == folder else _of_study(self.study, folder)

    @property
    def kinds(self) -> Kinds:
        """The costs of all of the run's cases."""
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
        measured = {self.jobs[name]["release"] for name in self._cases}
        return tuple(release for release in self.study.releases if release in measured)

    @property
    def newest(self) -> str:
        """The newest release with samples; without any, the newest of the language."""
        return (versions.today(self.study.document), *self.releases)[-1]

    def failures(self, name: str) -> list[str]:
        """The reasons why samples of a case failed."""
        return list(self.manifest["failed"].get(name, []))

    # --- The one frame ------------------------------------------------------------------

    @cached_property
    def jobs(self) -> Mapping[str, Job]:
        """Every job of the study by name: the run's own, and what it has not measured.

        A job of that name with another N is another one, unless memory limited its N.
        """
        planned, scale = self.run.table(), self.manifest["scale"]
        known = {name: jobs.scaled(job, scale) for name, job in self.study.jobs.items()}
        own = {name: planned.get(name, job) for name, job in known.items()}
        return {
            name: job | own[name] if job["retained_bytes"] or own[name]["n"] == job["n"] else job
            for name, job in known.items()
        }

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per process (see `samples`), in the order of jobs and rounds, by its job's name."""
        whole = samples.of_run(self.run).frame
        n = whole["name"].map({name: job["n"] for name, job in self.jobs.items()})
        whole = whole[(n == 0) | (n == whole["operations"])]
        order = pd.Index(list(self.jobs)).get_indexer(pd.Index(whole["name"]))
        at = np.lexsort([whole["round"].to_numpy(), order])
        return whole.iloc[at].set_index("name", drop=False).rename_axis(None)

    @cached_property
    def _cases(self) -> Mapping[str, pd.DataFrame]:
        parts = self.frame.reset_index(drop=True).groupby("name", sort=False)
        return {str(name): part.dropna(axis="columns", how="all") for name, part in parts}

    def processes(self, name: str) -> pd.DataFrame:
        """The samples of a case."""
        return self._cases.get(name, _NO_SAMPLES)

    def values(self, name: str, metric: str = costs.METRIC) -> Floats:
        """A metric of each process of a case."""
        values = self.processes(name).get(metric, pd.Series(dtype=float))
        return values.dropna().to_numpy(dtype=float)

    @cached_property
    def _profiles(self) -> tuple[Mapping[str, Mapping[int, Profile]], tuple[str, ...]]:
        """The usable profiles by job and round, and what is wrong with the others."""
        known: dict[str, dict[int, Profile]] = {}
        problems = []
        for name in (name for name, job in self.jobs.items() if "profile" in job):
            known[name] = {}
            for number, path in self.run.profiles(name).items():
                try:
                    known[name][number] = _usable(path)
                except GccostError as error:
                    problems.append(str(error))
        return known, (*problems,)

    @property
    def cpu_profiles(self) -> Mapping[str, Mapping[int, Profile]]:
        """The CPU profiles by the job's name, then by round."""
        return self._profiles[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with unusable lines and profiles, a sentence each."""
        return samples.of_run(self.run).problems + self._profiles[1]

    def rounds(self, name: str) -> list[int]:
        """The rounds with a process, or a profile, of a case, in order."""
        if "profile" in self.jobs.get(name, ()):
            return sorted(self.cpu_profiles.get(name, {}))
        return sorted(self.processes(name)["round"].astype(int).unique())

    # --- What a page shows ------------------------------------------------------------

    def fewest(self, name: str) -> int:
        """How many processes, or profiles, of a case a page must have to show it."""
        return 1 if jobs.has(self.jobs[name], "once") else costs.FEWEST

    def showing(self, name: str) -> Recording:
        """The recording from which a page shows a case: this one, or else the recorded run's.

        This is the one rule for what stands in place of a figure that was measured too little: a
        case with fewer than `fewest` processes is shown from the recorded run, whole.
        """
        other = None if self._is_enough(name) else self.recorded
        return other if other is not None and other._is_enough(name) else self

    def _is_enough(self, name: str) -> bool:
        is_profiled = "profile" in self.jobs[name]
        measured = self.cpu_profiles.get(name, {}) if is_profiled else self.processes(name)
        return len(measured) >= self.fewest(name)

    def is_due(self, name: str) -> bool:
        """Whether a page shows a case: the run planned it, or could not get its release."""
        job = self.jobs[name]
        is_missing = job["release"] in self.manifest["missing"]
        return name in self.run.table() or (is_missing and job.get("cpus", 1) <= self.cpus)

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The processes that a page shows, as in `frame`; `source` says if they are recorded."""
        own = self.frame.assign(source=costs.RECORDED * self.is_aside)
        other = [name for name in self.jobs if self.showing(name) is not self]
        if self.recorded is None or not other:
            return own
        theirs = self.recorded.frame.assign(source=costs.RECORDED)
        parts = own[~own.index.isin(other)], theirs[theirs.index.isin(other)]
        return pd.concat(parts) if len(parts[0]) else parts[1]

    # --- Estimates ------------------------------------------------------------------

    def cost(
        self, name: str, metric: str = costs.METRIC, some: pd.DataFrame | None = None
    ) -> Figure:
        """The cost of a case in each sitting, from all of its processes or from some.

        It is next to the recorded run's, and to those of its A/A controls, which another study of
        the run may have. See `gccost.stats`.
        """
        if self.processes(name).empty:  # all of them ran another number of operations
            return Figure()
        run, usual = self.kinds, kinds.of_recorded(self.run)
        if some is not None:
            some = some.assign(name=name, kind=run.kind_of.get(name, ""))
        made = (run if some is None else Kinds(some, whole=run)).cost(name, metric, usual)
        known = self.recorded.cost(name, metric) if self.recorded else None
        controls = {}
        for control in self._controls.get(name, ()) if made.n else ():
            if (again := run.cost(control, metric, usual)).n:
                ratio = stats.propagate(truediv, [again, made])
                usual_ratio = known.controls.get(control) if known else None
                controls[control] = replace(ratio, recorded=usual_ratio)
        return replace(made, controls=controls, recorded=known)

    @cached_property
    def _controls(self) -> Mapping[str, list[str]]:
        """The names of the A/A controls of a case."""
        of: dict[str, list[str]] = {}
        for name in filter(_CONTROL.search, self.kinds.kind_of):
            of.setdefault(_CONTROL.sub("", name), []).append(name)
        return of

    def share(self, name: str, of: Callable[[Profile], float]) -> Figure:
        """A share of a job's CPU profiles: those of a sitting are added up."""
        sittings = dict(self.processes(name)[["round", "sitting"]].to_numpy())
        of_job = self.cpu_profiles.get(name, {}).items()
        shares = [(sittings.get(round_, 1.0), of(each), each.total) for round_, each in of_job]
        made = kinds.share(pd.DataFrame(shares, columns=["sitting", "share", "total"]).dropna())
        return replace(made, recorded=self.recorded.share(name, of) if self.recorded else None)


@cache
def _of_study(study: Study, folder: Path) -> Recording | None:
    """The recorded run's recording of a study in a folder of runs; None without one."""
    with suppress(GccostError):  # a damaged one
        runs = [run for run in recorded() if study.name in run.studies]
        return Recording(study, runs[-1]) if runs else None
    return None


def _usable(path: Path) -> Profile:
    """A profile. Raises GccostError if it cannot be read or is empty."""
    profile = profiles.read(path)
    if not profile.total:
        raise GccostError("the profile holds no samples", str(path))
    return profile
