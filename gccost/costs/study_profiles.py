"""A study's CPU profiles and GC traces as frames, and calls by the length of their list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import pandas as pd

from gccost import paths
from gccost.cases import published
from gccost.costs import stacks
from gccost.costs.costs import COSTS, RECORDED
from gccost.costs.method import Figure, propagate
from gccost.costs.models import AT, walked
from gccost.costs.recording import Recording
from gccost.costs.study_cases import Filters, StudyCases, of_run
from gccost.errors import GccostError, nearest
from gccost.run import gctrace
from gccost.run.profiles import Profile

Functions: TypeAlias = Collection[str]
Share: TypeAlias = Callable[[Profile], float]
_MANY = 10  # profiles that have every function which takes time


class StudyProfiles(StudyCases):
    """The CPU profiles and traces of a study's recording."""

    def _profiles(self) -> Iterator[tuple[dict[str, Any], Profile]]:
        """Each CPU profile, with the name of its job, its round and its source."""
        for job in self._profiled_jobs:
            shown = self.recording.showing(job)
            origin = {"source": self._source(shown), "run": shown.run.name}
            for number, profile in shown.cpu_profiles[job].items():
                yield {"job": job, "round": number, **origin}, profile

    @property
    def _profiled_jobs(self) -> list[str]:
        """The profiled jobs that a page shows."""
        profiled = self._cases["profiles"]
        return list(self._due(profiled).index)

    @cached_property
    @of_run
    def stacks(self) -> pd.DataFrame:
        """A row per stack of every CPU profile: its case's keys, round, stack, ms, percent.

        `stack` is a tuple of function names, the outermost first.
        """
        rows = []
        for job, profile in self._profiles():
            for stack, ns in profile.stacks:
                percent = 100 * ns / profile.total
                rows.append({**job, "stack": stack, "ms": ns / 1e6, "percent": percent})
        return self._keyed(rows, ["round", "stack", "ms", "percent"], "profiles")

    @of_run
    def shares(
        self,
        parts: Mapping[str, Functions] | None = None,
        *,
        within: Functions = (),
        of: Functions = (),
        by_profile: bool = False,
        **filters: Any,
    ) -> pd.DataFrame:
        """The shares of CPU profiles, in percent, whose stacks contain any of some functions.

        `parts` maps the name of a part to its functions; a name that ends in "*" matches all
        with that prefix. Parts may overlap. Without `parts` they are the phases of a finalizer's
        or cleanup's life: registering, marking, sweeping, running, functions (the program's own),
        and resolving (weak pointers); a stack's innermost such function decides its phase.
        With `within` a stack must also contain any of those; with `of` the share is of the
        stacks that contain any of those. A row per case and part: the keys, `part`, value, low,
        high (95 %), rounds, n (profiles). With `by_profile` a row per profile instead: the keys,
        part, round, percent.
        """
        chosen = self._parts(parts, within, of)
        if by_profile:
            return self._shares_by_profile(chosen, filters)
        rows: list[dict[str, Any]] = []
        for job in self._profiled_jobs:
            for part, share in chosen.items():
                rows.append({"job": job, "part": part, **self._share(job, share)})
        frame = self._keyed(rows, ["part", *COSTS], "profiles", filters)
        return frame.dropna(subset="value").reset_index(drop=True)

    def _shares_by_profile(self, parts: Mapping[str, Share], filters: Filters) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for job, profile in self._profiles():
            for part, share in parts.items():
                rows.append({**job, "part": part, "percent": 100 * share(profile)})
        columns = ["round", "part", "percent", "source", "run"]
        return self._keyed(rows, columns, "profiles", filters).dropna(subset="percent")

    def _share(self, job: str, share: Share) -> pd.Series:
        """The share of a job's profiles as a row of costs, in percent."""

        def percent(shown: Recording) -> Figure:
            return propagate(lambda value: 100 * value, [shown.share(job, share)])

        row = self._row(job, percent, signed=True)
        ends = row[["low", "high"]].astype(float)
        row[["low", "high"]] = ends.clip(0, 100)
        return row

    # --- Parts of a profile -----------------------------------------------------------

    def _parts(
        self, parts: Mapping[str, Functions] | None, within: Functions, of: Functions
    ) -> dict[str, Share]:
        """What computes the share of each part: of a reader's own, or of each phase."""
        if parts is None:
            if within or of:
                raise self._error("within and of are for parts of your own", "name the parts too")
            return {name: _of_phase(name) for name in (*stacks.PHASES, stacks.FUNCTIONS)}
        if not isinstance(parts, Mapping):
            hint = "name each part: {'C calls': ['runtime.cgocall']}"
            raise self._error(f"{parts!r} does not map parts to functions", hint)
        asked = [functions for functions in (within, of) if len(functions)]
        asked += parts.values()
        self._check_lists(asked)
        self._check_functions(asked)
        shares = {}
        for name, functions in parts.items():
            shares[name] = _of_functions(tuple(functions), tuple(within), tuple(of))
        return shares

    def _check_lists(self, asked: list[Any]) -> None:
        """Raise GccostError for a text, or nothing, in place of a list of functions."""
        for functions in asked:
            is_list = isinstance(functions, Collection) and not isinstance(functions, str)
            if is_list and functions and all(isinstance(name, str) for name in functions):
                continue
            hint = "write a list, such as ['runtime.cgocall']"
            raise self._error(f"{functions!r} is no list of functions", hint)

    def _check_functions(self, asked: list[Functions]) -> None:
        """Raise GccostError for a list of functions that no profile knows.

        Some functions of a list may be those of other releases; the document's profile counts.
        """
        names = self._published_functions()
        unknown = asked
        count = 0
        for recording in filter(None, (self.recording, self.recording.recorded)):
            for of_job in recording.cpu_profiles.values():
                count += len(of_job)
                for profile in of_job.values():
                    names.update(profile.names)
            unknown = [functions for functions in unknown if not _any_among(functions, names)]
        if not count:
            return
        for functions in unknown:
            problem = f"no profile has a function {' or '.join(functions)}"
            if count >= _MANY:
                raise self._error(problem, nearest(next(iter(functions)), names))
            print(f"{problem}, but there are {count} profiles only")

    def _published_functions(self) -> set[str]:
        """The functions of the document's profile, if it has one."""
        table = f"{self.name}-profile"
        if not (paths.PUBLISHED / f"{table}.csv").exists():
            return set()
        return set(published.table(table).get("function", ()))

    # --- Traces and calls -------------------------------------------------------------

    @cached_property
    @of_run
    def traces(self) -> pd.DataFrame:
        """A row per GC cycle of the recorded gctraces: its case's keys, and the line's values.

        Columns: number, at (s), percent, stopped_ms (the world), clock_ms (in all), cpu_ms,
        start_mb, live_mb, goal_mb, forced; source and run, as in costs. A trace that cannot be
        read is named and left out.
        """
        rows: list[dict[str, Any]] = []
        for name in self.recording.jobs:
            shown = self.recording.showing(name)
            is_recorded = shown is not self.recording or self.recording.is_aside
            source = RECORDED if is_recorded else ""
            path = shown.run.gctrace(name)
            if not path.exists():
                continue
            try:
                trace = gctrace.read(path)
            except GccostError as error:
                print(f"a file is left out: {error}")
                continue
            for cycle in trace.cycles:
                values = gctrace.values(cycle)
                rows.append({"job": name, **values, "source": source, "run": shown.run.name})
        return self._keyed(rows, [*gctrace.VALUES, "source", "run"])

    @of_run
    def calls(self, **filters: Any) -> pd.DataFrame:
        """The time of a call by the number of records in its span's list, a row per process.

        Columns: the case's keys, round, records, ns; source and run, as in costs.
        """
        processes = self.recording.shown
        lengths = [str(name) for name in processes if AT.fullmatch(str(name))]
        has_lengths = processes[lengths].count(axis="columns") > 0
        rows = []
        for name, process in processes[has_lengths].iterrows():
            of = {"job": name, **process[["round", "source", "run"]]}
            for records, ns in zip(*walked(process[lengths]), strict=True):
                rows.append({**of, "records": records, "ns": ns})
        values = ["round", "records", "ns", "source", "run"]
        return self._keyed(rows, values, "cases", filters)


def _of_phase(name: str) -> Share:
    return lambda profile: stacks.phases(profile)[name]


def _of_functions(
    functions: tuple[str, ...], within: tuple[str, ...], of: tuple[str, ...]
) -> Share:
    return lambda profile: profile.share(functions, within, of)


def _any_among(functions: Functions, names: set[str]) -> bool:
    """Whether one of these is a known function; "*" at the end stands for any rest of the name."""
    for function in functions:
        if function in names:
            return True
        prefix = function.removesuffix("*")
        if prefix != function and any(name.startswith(prefix) for name in names):
            return True
    return False
