"""What one run shows of a study: the one view of its samples, from which all estimates are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gccost import paths
from gccost.cases import jobs, sources, versions
from gccost.cases.cases import Study
from gccost.cases.settings import Mode
from gccost.costs import costs, method, samples, stacks
from gccost.costs.method import Costs, Figure, Spread
from gccost.costs.recorded import machine_of, nearest
from gccost.errors import GccostError
from gccost.run import profiles
from gccost.run.jobtable import Job
from gccost.run.manifest import Manifest
from gccost.run.profiles import Profile
from gccost.run.runs import Run
from gccost.stats import FEWEST

Floats = np.ndarray[Any, np.dtype[np.float64]]

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
        """The recording that shows what this run has not measured; None without one.

        It is of the nearest recorded run that holds the study and whose programs are today's.
        """
        return next(iter(_holding(self.study, self.run)), None)

    @cached_property
    def relatives(self) -> list[Recording]:
        """The recordings that show how far sittings differ, whatever the version of the programs.

        The nearest is first.
        """
        return [_of_study(self.study, run) for run in _readable(self.run)]

    @property
    def of_run(self) -> Costs:
        """The costs of all of the run's cases."""
        return samples.costs_of(self.run)

    @property
    def cpus(self) -> int:
        """The number of CPUs available to the measured programs, limited by any quota."""
        machine = self.manifest["machine"]
        allowed = int(machine.get("allowed_cpus") or 1)
        quota = machine.get("cpu_quota")
        if not quota:
            return allowed
        return min(allowed, max(1, int(quota)))

    @property
    def cores(self) -> int:
        """The number of cores that these CPUs can be threads of, as far as it is known."""
        known = self.manifest["machine"].get("physical_cores")
        return min(self.cpus, int(known or self.cpus))

    @property
    def system(self) -> str:
        """The operating system of the measured programs, with its release."""
        return str(self.manifest["machine"].get("release") or "an unnamed system")

    @property
    def machine(self) -> str:
        """The machine of the run in a few words."""
        return machine_of(self.run)

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
        planned = self.run.table()
        scale = self.manifest["scale"]
        own = {}
        for name, job in self.study.jobs.items():
            scaled = jobs.scaled(job, scale)
            measured = planned.get(name, scaled)
            if scaled["retained_bytes"] or measured["n"] == scaled["n"]:
                scaled = scaled | measured
            own[name] = scaled
        return own

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per process (see `samples`), in the order of jobs and rounds, by its job's name."""
        whole = samples.of_run(self.run).frame
        numbers = {name: job["n"] for name, job in self.jobs.items()}
        n = whole["name"].map(numbers)
        is_usable = (n == 0) | (n == whole["operations"])
        whole = whole[is_usable]
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
                    known[name][number] = _usable(path, path.stat().st_mtime_ns)
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

    def showing(self, name: str) -> Recording:
        """The recording from which a page shows a case: this one, if it has measured it at all.

        This is the one rule for what stands in place of a missing figure: a case without a process
        is shown from the recorded run, whole. What was measured is never replaced.
        """
        if self.recorded is None or self._has(name) or not self.recorded._has(name):
            return self
        return self.recorded

    def _has(self, name: str) -> bool:
        if "profile" in self.jobs[name]:
            return bool(self.cpu_profiles.get(name))
        return not self.processes(name).empty

    def fewest(self, name: str) -> int:
        """How many processes, or profiles, of a case a figure that is quoted needs."""
        return 1 if jobs.has(self.jobs[name], "once") else costs.FEWEST

    def is_due(self, name: str) -> bool:
        """Whether a page shows a case: the run planned it, or could not get its release."""
        job = self.jobs[name]
        is_missing = job["release"] in self.manifest["missing"]
        return name in self.run.table() or (is_missing and job.get("cpus", 1) <= self.cpus)

    @cached_property
    def shown(self) -> pd.DataFrame:
        """The processes that a page shows, as in `frame`; `source` says if they are recorded."""
        source = costs.RECORDED if self.is_aside else ""
        own = self.frame.assign(source=source, run=self.run.name)
        other = [name for name in self.jobs if self.showing(name) is not self]
        if self.recorded is None or not other:
            return own
        theirs = self.recorded.frame.assign(source=costs.RECORDED, run=self.recorded.run.name)
        own = own[~own.index.isin(other)]
        theirs = theirs[theirs.index.isin(other)]
        return pd.concat([own, theirs]) if len(own) else theirs

    # --- Figures ----------------------------------------------------------------------

    def cost(
        self, name: str, metric: str = costs.METRIC, some: pd.DataFrame | None = None
    ) -> Figure:
        """The cost of a case in each sitting, from all of its processes or from some.

        It is next to the recorded one. See `gccost.costs.method`.
        """
        of = self.of_run
        if some is not None:
            of = Costs(some.assign(name=name), whole=of)
        known = self.recorded.cost(name, metric) if self.recorded else None
        relatives = [each.of_run for each in self.relatives]
        if some is None and self.processes(name).empty:
            # Nothing was measured, or all processes ran another number of operations.
            return Figure(history=tuple(Figure() for _ in relatives), recorded=known)
        made = of.cost(name, metric, relatives)
        return replace(made, recorded=known, run=self.run.name)

    def share(self, name: str, of: Callable[[Profile], float]) -> Figure:
        """A share of a job's CPU profiles: those of a sitting are added up."""
        made = method.share(self._shares(name, of))
        past = self._past_shares(name, of)
        profiled = (each for each in self.relatives if each.cpu_profiles)
        made = method.with_prior(made, next(profiled, self).alike)
        known = self.recorded.share(name, of) if self.recorded else None
        return replace(made, history=past, recorded=known, run=self.run.name)

    def _past_shares(self, name: str, of: Callable[[Profile], float]) -> tuple[Figure, ...]:
        """The same share in the nearest recorded run that has sittings of it.

        Profiles take long to read, so those of other runs stay unread.
        """
        for relative in self.relatives:
            past = method.share(relative._shares(name, of))
            if len(past.sittings) >= FEWEST:
                return (past,)
        return ()

    def _shares(self, name: str, of: Callable[[Profile], float]) -> pd.DataFrame:
        """A row per profile of a job: its sitting, its share (0 to 1) and its total."""
        sittings = dict(self.processes(name)[["round", "sitting"]].to_numpy())
        rows = []
        for number, profile in self.cpu_profiles.get(name, {}).items():
            sitting = sittings.get(number, 1.0)
            rows.append((sitting, of(profile), profile.total))
        return pd.DataFrame(rows, columns=["sitting", "share", "total"]).dropna()

    @cached_property
    def alike(self) -> Spread:
        """The prior of a share: fitted to the shares of all phases in the study's profiles."""
        parts = []
        for name in self.cpu_profiles:
            for phase in stacks.PHASES:
                shares = self._shares(name, partial(_phase, phase))
                parts.append((f"{name}, {phase}", shares))
        return method.of_shares(parts)


def _phase(phase: str, profile: Profile) -> float:
    return stacks.phases(profile)[phase]


def _readable(run: Run) -> list[Run]:
    """The recorded runs that may stand for a run, the nearest first, without damaged ones."""
    with suppress(GccostError):
        return [each for each in nearest(run) if each.samples_txt.exists()]
    return []


def _holding(study: Study, run: Run) -> Iterator[Recording]:
    """The recorded runs of a study, of today's programs, that may stand for a run."""
    for other in _readable(run):
        manifest = other.manifest()
        if study.name in other.studies and not sources.changed(study, manifest["programs"]):
            yield _of_study(study, other)


@cache
def _of_study(study: Study, run: Run) -> Recording:
    """A recorded run's recording, whose profiles are read once."""
    return Recording(study, run)


@lru_cache(maxsize=4096)
def _usable(path: Path, changed: int) -> Profile:
    """A profile, as it was last changed. Raises GccostError if it cannot be read or is empty."""
    profile = profiles.read(path)
    if not profile.total:
        raise GccostError("the profile holds no samples", str(path))
    return profile
