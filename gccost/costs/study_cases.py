"""The cases of a study: which of them filters choose, and which keys tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, Literal, TypeAlias, TypeVar

import pandas as pd
from pandas.api.types import is_list_like, is_scalar

from gccost.cases import versions
from gccost.costs import costs as estimating
from gccost.costs import samples as sampled
from gccost.costs.costs import RECORDED
from gccost.costs.method import Figure
from gccost.costs.recording import Recording
from gccost.errors import GccostError, expect
from gccost.run.jobtable import IDENTITY

Filters: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Literal["cases", "profiles"]
FramesOf = TypeVar("FramesOf", bound=Callable[..., pd.DataFrame])


def of_run(method: FramesOf) -> FramesOf:
    """A method of a study whose frame says which run it is of."""

    @wraps(method)
    def marked(study: StudyCases, *given: Any, **keywords: Any) -> pd.DataFrame:
        frame = method(study, *given, **keywords)
        frame.attrs["run"] = study.run
        return frame

    return marked  # type: ignore[return-value]


@dataclass(frozen=True)
class StudyCases:
    """The cases of a study's recording in a run."""

    recording: Recording

    @property
    def name(self) -> str:
        return self.recording.study.name

    @property
    def run(self) -> str:
        """The name of the run, which every frame has too: frame.attrs["run"].

        study.samples().assign(run=study.run) has it as a column, for a file.
        """
        return self.recording.run.name

    @property
    def then(self) -> str:
        """The release of the document, or the nearest that was measured."""
        return versions.title(self.recording.study.document)

    @property
    def today(self) -> str:
        """The newest release that gccost measures."""
        newest = versions.today(self.recording.study.document)
        return versions.title(newest)

    def _error(self, problem: str, hint: str) -> GccostError:
        return GccostError(problem, self._where, hint)

    @property
    def _where(self) -> str:
        return f"study {self.name}"

    # --- Which cases there are --------------------------------------------------------

    @cached_property
    def _jobs(self) -> pd.DataFrame:
        """The keys of every job of the study, measured or not, by its name."""
        return sampled.keys(self.recording.jobs)

    @cached_property
    def _cases(self) -> Mapping[str, pd.DataFrame]:
        """The keys of jobs: of ordinary cases, which A/A controls are not, and of profiled runs."""
        marks = ["control", "profile"]
        is_marked = self._jobs.reindex(columns=marks).notna()
        is_ordinary = ~is_marked.any(axis="columns")
        keys = self._jobs.drop(columns=marks, errors="ignore")
        return {"cases": keys[is_ordinary], "profiles": keys[is_marked["profile"]]}

    def _chosen(self, filters: Filters, of: Rows = "cases") -> pd.DataFrame:
        """The keys of the jobs that have the filters' values; each is a value or several."""
        cases = self._cases[of]
        for name, wanted in filters.items():
            expect(cases, name, "filter", self._where)
            values = self._values(name, wanted)
            is_chosen = cases[name].isin(values)
            if any(map(pd.isna, values)):
                is_chosen = is_chosen | cases[name].isna()
            cases = cases[is_chosen]
        if cases.empty and filters and not _has_missing(filters):
            hint = f"change {' or '.join(filters)}; study.costs() lists the cases"
            raise self._error(f"there is no case with {in_words(filters)}", hint)
        return cases

    def _values(self, name: str, wanted: Any) -> list[Any]:
        """The values that a filter names; "48" is the 48 of the cases."""
        by_text: dict[str, Any] = {}
        for value in self._jobs[name].dropna().unique():
            by_text.setdefault(str(value), value)
        values = []
        for asked in wanted if is_list_like(wanted) else [wanted]:
            value = by_text.get(str(asked), asked)
            if not pd.isna(value):
                expect(by_text.values(), value, name, self._where)
            values.append(value)
        return values

    def _due(self, cases: pd.DataFrame) -> pd.DataFrame:
        """The keys of the cases that a page shows: those that are due, or all if none of them is.

        A smaller budget has fewer points of a curve; points of another run do not fill it up.
        """
        is_due = cases.index.map(self.recording.is_due).astype(bool)
        return cases[is_due] if is_due.any() else cases

    def _measured(self, filters: Filters) -> pd.DataFrame:
        """The keys of the chosen cases that have samples; says if none has."""
        due = self._due(self._chosen(filters))
        shown = self.recording.shown.index
        measured = due[due.index.isin(shown)]
        if measured.empty and filters:
            cases = self._cases["cases"]
            self._say_lacking(filters, due, cases[cases.index.isin(shown)])
        return measured

    def _say_lacking(self, filters: Filters, due: pd.DataFrame, measured: pd.DataFrame) -> None:
        """Print that no due case was measured, and which values of the filters were."""
        if measured.empty:
            return
        others = ""
        for name in filters:
            if not measured[name].isin(due[name]).any():
                values = measured[name].dropna().unique()
                others += f"; it has {name} {', '.join(map(str, values))}"
        print(f"{in_words(filters)}: no run holds it (run {self.run}{others})")

    # --- What tells cases apart -------------------------------------------------------

    def _keys(self, filters: Filters | None = None, of: Rows = "cases") -> list[str]:
        """The columns of the cases' keys that a frame shows: those that differ.

        They do not depend on what was measured. With filters, a key that no case has is not
        shown, and experiments only if nothing else tells the cases apart.
        """
        cases = self._cases[of]
        chosen = self._chosen(filters or {}, of)
        settings = cases.columns.difference([*IDENTITY], sort=False)
        keys = ["release", "variant"]
        for name in ("experiment", *settings):
            if name == "gogc" and not varies(cases["gogc"].dropna()):
                continue  # `gc` says whether it is on
            if varies(cases[name]) and chosen[name].notna().any():
                keys.append(name)
        if filters is None or "experiment" not in keys:
            return keys
        others = [name for name in keys if name != "experiment"]
        return keys if chosen.duplicated(others).any() else others

    @property
    def keys(self) -> list[str]:
        """The columns of `samples` that tell cases apart.

            samples.groupby(study.keys, dropna=False).apply(gccost.cost)

        gives `costs`, which leaves out cases without a value, and keys that tell nothing apart.
        """
        return self._keys()

    def _keyed(
        self,
        rows: list[dict[str, Any]],
        values: list[str],
        of: Rows = "cases",
        filters: Filters | None = None,
    ) -> pd.DataFrame:
        """A frame of rows with these values, and the keys of the job that each one names."""
        filters = filters or {}
        names = self._keys(filters, of)
        keys = self._chosen(filters, of)[names]
        frame = pd.DataFrame(rows, columns=["job", *values])
        frame = frame.join(keys, on="job", how="inner").reset_index(drop=True)
        return frame[[*names, *values]]

    # --- Which run a figure is of -----------------------------------------------------

    def _row(self, job: str, figure: Callable[[Recording], Figure], signed: bool) -> pd.Series:
        """A figure of a job as a row of costs: of the recording from which a page shows it."""
        shown = self.recording.showing(job)
        of_job = figure(shown)
        if self._source(shown):
            of_job = Figure(recorded=replace(of_job, recorded=None))
        return estimating.series(of_job, signed=signed)

    def _source(self, shown: Recording) -> str:
        is_recorded = shown.is_aside or shown is not self.recording
        return RECORDED if is_recorded else ""


def _has_missing(filters: Filters) -> bool:
    """Whether a filter is NA, which may come from what was not measured."""
    return any(is_scalar(value) and pd.isna(value) for value in filters.values())


def in_words(filters: Filters) -> str:
    """Filters in words: the variant by its name."""
    words = []
    for name, value in filters.items():
        words.append(f"{value}" if name == "variant" else f"{name}={value}")
    return ", ".join(words)


def shown_keys(keys: Iterable[str], filters: Filters, frame: pd.DataFrame) -> list[str]:
    """The columns of keys and of filters; not of a filter that no case has."""
    names = list(keys)
    for name in filters:
        if name not in names and frame[name].notna().any():
            names.append(name)
    return names


def varies(column: pd.Series) -> bool:
    """Whether a column has several values, NA being one."""
    return len(column.drop_duplicates()) > 1
