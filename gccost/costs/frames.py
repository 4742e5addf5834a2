"""A study's measurements as frames: samples, costs, ratios, and shares of CPU profiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from itertools import repeat
from operator import truediv
from typing import Any, Literal, TypeVar

import pandas as pd
from pandas.api.types import is_list_like, is_scalar

from gccost import paths
from gccost.cases import jobs, published, versions
from gccost.costs import busy, method, metrics, stacks
from gccost.costs import costs as estimating
from gccost.costs import samples as sampled
from gccost.costs.costs import COSTS, METRIC, RECORDED, VALUES
from gccost.costs.method import Figure, propagate
from gccost.costs.models import AT, walked
from gccost.costs.recording import Recording
from gccost.errors import GccostError, expect, nearest
from gccost.run import gctrace
from gccost.run.jobtable import IDENTITY
from gccost.run.profiles import Profile

F = TypeVar("F", bound=Callable[..., pd.DataFrame])
Rows = Literal["cases", "profiles"]
_COUNTS = ["round", "sitting", "procs", "operations"]
_MEASURED = ["ns", "settled_ns"]
_MANY = 10  # profiles that have every function which takes time
_HIDDEN = [
    *("line", "unix_s", "build_s", "elapsed_s", "c_misfreed", "source", "run", "name"),
]


def of_run(method: F) -> F:
    """A method of a study whose frame says which run it is of."""

    @wraps(method)
    def marked(study: Frames, *given: Any, **keywords: Any) -> pd.DataFrame:
        frame = method(study, *given, **keywords)
        frame.attrs["run"] = study.run
        return frame

    return marked  # type: ignore[return-value]


@dataclass(frozen=True)
class Frames:
    """The frames of a study's recording in a run."""

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
        return versions.title(versions.today(self.recording.study.document))

    def _error(self, problem: str, hint: str) -> GccostError:
        return GccostError(problem, self._where, hint)

    @property
    def _where(self) -> str:
        return f"study {self.name}"

    # --- Cases ---------------------------------------------------------------------

    @cached_property
    def _jobs(self) -> pd.DataFrame:
        """The keys of every job of the study, measured or not, by its name."""
        return sampled.keys(self.recording.jobs)

    @cached_property
    def _cases(self) -> Mapping[str, pd.DataFrame]:
        """The keys of jobs: of ordinary cases, which A/A controls are not, and of profiled runs."""
        apart = self._jobs.reindex(columns=["control", "profile"]).notna()
        jobs = self._jobs.drop(columns=["control", "profile"], errors="ignore")
        return {"cases": jobs[~apart.any(axis="columns")], "profiles": jobs[apart["profile"]]}

    def _chosen(self, filters: Mapping[str, Any], of: Rows = "cases") -> pd.DataFrame:
        """The keys of the jobs that have the filters' values; each is a value or several."""
        frame = self._cases[of]
        for name, wanted in filters.items():
            expect(frame, name, "filter", self._where)
            known = list(self._jobs[name].dropna().unique())
            asked = list(wanted) if is_list_like(wanted) else [wanted]
            values = [_known_as(known, each) for each in asked]
            for value in values:
                if not pd.isna(value):
                    expect(known, value, name, self._where)
            missing = frame[name].isna() & any(map(pd.isna, values))
            frame = frame[frame[name].isin(values) | missing]
        unknown = [each for each in filters.values() if is_scalar(each) and pd.isna(each)]
        if frame.empty and filters and not unknown:  # NA may come from what was not measured
            hint = f"change {' or '.join(filters)}; study.costs() lists the cases"
            raise self._error(f"there is no case with {_said(filters)}", hint)
        return frame

    def _due(self, cases: pd.DataFrame) -> pd.DataFrame:
        """The keys of the cases that a page shows: those that are due, or all if none of them is.

        A smaller budget has fewer points of a curve; points of another run do not fill it up.
        """
        due = cases[[self.recording.is_due(str(name)) for name in cases.index]]
        return cases if due.empty else due

    def _measured(self, filters: Mapping[str, Any]) -> pd.DataFrame:
        """The keys of the chosen cases that have samples; says if none has."""
        cases, every = self._due(self._chosen(filters)), self.recording.shown.index
        measured, known = (each[each.index.isin(every)] for each in (cases, self._cases["cases"]))
        if measured.empty and filters and len(known):
            has = [
                f"; it has {name} {', '.join(map(str, known[name].dropna().unique()))}"
                for name in filters
                if not known[name].isin(cases[name]).any()
            ]
            print(f"{_said(filters)}: no run holds it (run {self.run}{''.join(has)})")
        return measured

    def _keys(self, filters: Mapping[str, Any] | None = None, of: Rows = "cases") -> list[str]:
        """The columns of the cases' keys that a frame shows: those that differ.

        They do not depend on what was measured. With filters, a key that no case has is not
        shown, and experiments only if nothing else tells the cases apart.
        """
        left, cases = self._chosen(filters or {}, of), self._cases[of]
        settings = cases.columns.difference([*IDENTITY], sort=False)
        keys = ["release", "variant", "experiment", *settings]
        if "gogc" in keys and not _varies(cases["gogc"].dropna()):
            keys.remove("gogc")  # `gc` says whether it is on
        differ = [name for name in keys if _varies(cases[name]) and left[name].notna().any()]
        keys = [name for name in keys if name in ("release", "variant", *differ)]
        others = [name for name in keys if name != "experiment"]
        return keys if filters is None or left.duplicated(others).any() else others

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
        filters: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """A frame of rows with these values, and the keys of the job that each one names."""
        keys = self._chosen(filters or {}, of)[self._keys(filters or {}, of)]
        frame = pd.DataFrame(rows, columns=["job", *values]).join(keys, on="job", how="inner")
        return frame[[*keys, *values]].reset_index(drop=True)

    # --- Samples and costs ---------------------------------------------------------

    @cached_property
    def _samples(self) -> pd.DataFrame:
        """Every process by the name of its job: the job's keys, and all that was measured."""
        rows = self.recording.shown
        if rows.empty:  # every column that a reader may ask for
            rows = rows.reindex(columns=[*dict.fromkeys([*rows, *metrics.REPORTED])])
        rows = rows.astype(dict.fromkeys(_COUNTS, int))
        return pd.concat([self._jobs.loc[rows.index], rows], axis="columns").copy()  # one block

    @of_run
    def samples(self, **filters: Any) -> pd.DataFrame:
        """A row per process: its case's keys, the round, and its metrics.

        Keys: `release` (an ordered category), `variant` in words, `gc` ("on" or "off"), `gogc`,
        sizes and other settings as numbers, NA where a case has none. Metrics have their unit in
        their name; `ns` is the ns/op that `go test` prints. `name` is the job's, in the run's
        jobs.csv and samples.txt.

        Filters are keywords: samples(gc="on", variant=["manual free", "finalizer frees"]); each is
        a column. A/A controls and profiled runs are not among them. Raises GccostError for an
        unknown filter or value.
        """
        frame = self._samples
        frame = frame[frame.index.isin(self._measured(filters).index)]
        keys = self._keys()
        first = [*_asked(keys, filters, frame), *_COUNTS, "source", *_MEASURED]
        others = frame.columns.difference([*self._jobs, *first, *_HIDDEN], sort=False)
        others = others[~others.str.endswith("_records_ns")]
        frame = frame.reindex(columns=[*first, *others, "run", "name"]).reset_index(drop=True)
        empty = [name for name in ("settled_ns", *others) if frame[name].isna().all()]
        frame = frame.drop(columns=empty if len(frame) else [])
        frame.attrs |= {"study": _Context(self), "keys": keys}
        return frame

    @of_run
    def costs(self, metric: str = METRIC, **filters: Any) -> pd.DataFrame:
        """A row per measured case: its keys, value, low and high (95 %), rounds, n (processes).

        `gccost.derive` computes from the column `figure`, which is shown as "…". Each filter is a
        column. The same as samples(…).groupby(keys, dropna=False).apply(gccost.cost). With fewer
        than three rounds in every sitting, low and high are NA. Raises GccostError for an unknown
        metric, filter or value.
        """
        costs = self._costs(metric, self._measured(filters))
        return costs[[*_asked(self._keys(filters), filters, costs), *COSTS]]

    def _costs(self, metric: str, cases: pd.DataFrame) -> pd.DataFrame:
        """All keys, and the cost, of the cases that were measured."""
        self._check_metric(metric)
        shown = self.recording.shown
        values = shown[shown.index.isin(cases.index)].get(metric, pd.Series(dtype=float))
        estimating.say_zeros(values, metric, "they are left out")
        rows = [self._cost(name, metric) for name in cases.index]
        costs = pd.concat([cases, estimating.frame(rows, cases.index)], axis="columns")
        return costs[costs["n"] > 0].reset_index(drop=True)

    def _cost(self, name: str, metric: str, samples: pd.DataFrame | None = None) -> pd.Series:
        """The cost of a case as a row of costs, from all of its samples or from some."""
        signed = estimating.is_signed(metric)
        return self._row(name, lambda shown: shown.cost(name, metric, samples), signed)

    def _row(self, name: str, figure: Callable[[Recording], Figure], signed: bool) -> pd.Series:
        """A figure of a job as a row of costs: of the recording from which a page shows it."""
        shown = self.recording.showing(name)
        made = figure(shown)
        if self._source(shown):
            made = Figure(recorded=replace(made, recorded=None))
        return estimating.series(made, signed=signed)

    def _source(self, shown: Recording) -> str:
        return RECORDED * (shown.is_aside or shown is not self.recording)

    def _check_metric(self, name: str) -> None:
        """Raise GccostError for what is no metric, such as the unit "ns/op"."""
        if str(name) in metrics.REPORTED or metrics.SERIES.fullmatch(str(name)):
            return
        known = [*metrics.SCALES, *self.recording.frame.select_dtypes("number")]
        if name not in known:
            hint = nearest(metrics.column(str(name)), known)
            raise self._error(f"there is no metric {name!r}", hint)

    @of_run
    def compare(
        self,
        over: str | Mapping[str, Any] | list[str],
        under: str | Mapping[str, Any],
        metric: str = METRIC,
        **filters: Any,
    ) -> pd.DataFrame:
        """The ratio and the difference of two variants' costs.

        A row per release, and per any other key that varies and that the sides do not name.

        Columns: ratio, ratio_low, ratio_high; more, more_low, more_high (in the metric's
        unit); differs (the ratio's interval excludes 1); rounds, n. `over` and `under` are names of
        variants, or filters: compare({"gc": "off"}, {"gc": "on"}, variant="finalizer frees").
        If `over` is a list, the index has the variant too.
        Rows of `then` and `today` are NA if they were not measured, and a line says which case
        lacks. Raises GccostError if a name is unknown, or if the filters leave two cases of a
        name, or none.
        """
        if isinstance(over, list) and over:
            parts = {name: self.compare(name, under, metric, **filters) for name in over}
            comparison = pd.concat(parts, names=["variant"])
            return comparison.reorder_levels([*map(str, comparison.index.names[1:]), "variant"])
        for side in (over, under):
            if not isinstance(side, str | Mapping):
                hint = "name a variant, or filters; only the first may be a list, of variants"
                raise self._error(f"{side!r} is no side of a comparison", hint)
        sides = [
            dict(side) if isinstance(side, Mapping) else {"variant": side} for side in (over, under)
        ]
        frames = [self._side(metric, filters, side) for side in sides]
        chosen = {*sides[0], *sides[1], "variant", "release"}
        settings = frames[0].columns.intersection(self.keys)
        varying = [name for name in settings if any(_varies(frame[name]) for frame in frames)]
        keys = ["release", *(str(name) for name in varying if name not in chosen)]
        for frame, side in zip(frames, sides, strict=True):
            if frame.duplicated(keys).any():
                differing = [n for n in settings.drop(keys) if _varies(frame[n])]
                hint = f"name {' or '.join(differing)} as a filter"
                raise self._error(f"there are two costs of {side}", hint)
        comparison = estimating.compare(frames[0], frames[1], keys)
        if comparison.empty and all(map(len, frames)):
            hint = f"the sides have no {', '.join(keys)} in common; name it as a filter of each"
            raise self._error("the comparison has no row", hint)
        if keys != ["release"]:
            indexes = [frame.set_index(keys).index for frame in frames]
            estimating.say_unmatched("compare", comparison.index, indexes)
            return comparison
        releases = self._jobs["release"].cat.categories
        shown = releases[releases.isin([*comparison.index, self.then, self.today])]
        index = pd.CategoricalIndex(shown, releases, ordered=True, name="release")
        comparison = comparison.reindex(index)
        return comparison.assign(**comparison[["rounds", "n"]].fillna(0).astype(int))

    def _side(
        self, metric: str, filters: Mapping[str, Any], side: Mapping[str, Any]
    ) -> pd.DataFrame:
        """The costs of one side of a comparison; says which of its cases were not measured.

        Raises GccostError if the study has no such case, measured or not. A filter that is NA
        may come from what was not measured.
        """
        cases = self._chosen({**filters, **side})
        cases = self._due(cases)
        costs = self._costs(metric, cases)
        measured = set(costs["release"])
        lacking = [str(each) for each in cases["release"].unique() if each not in measured]
        if lacking:
            print(f"{_said(side)}: no run holds it on {', '.join(lacking)}")
        return costs.drop(columns="benchmark")

    @property
    def busy(self) -> pd.Series:
        """The median share of time that a benchmark's processes waited for a CPU, by sitting.

        Its name is that of the benchmark. A sitting with more than 0.1 is busy.
        """
        return busy.delays(self.recording.frame)

    @cached_property
    @of_run
    def controls(self) -> pd.DataFrame:
        """The A/A ratios, of each control to the identical variant; those far from 1 are noise."""
        rows = []
        for name, job in self.recording.jobs.items():
            if "control" in job:
                shown = self.recording.showing(name)
                pair = [shown.cost(each) for each in (name, jobs.uncontrolled(job))]
                estimate = method.estimate(propagate(truediv, pair))
                if estimate.n:
                    figures = estimating.row(estimate).values()
                    of = [versions.title(job["release"]), job["variant"], *figures]
                    rows.append([*of, self._source(shown), shown.run.name])
        return pd.DataFrame(rows, columns=["release", "variant", *VALUES, "source", "run"])

    # --- Profiles and traces -----------------------------------------------

    def _profiles(self) -> Iterator[tuple[dict[str, Any], Profile]]:
        """Each CPU profile, with the name of its job, its round and its source."""
        for job in self._due(self._cases["profiles"]).index:
            shown = self.recording.showing(job)
            for number, profile in shown.cpu_profiles[job].items():
                source = {"source": self._source(shown), "run": shown.run.name}
                yield {"job": job, "round": number, **source}, profile

    @cached_property
    @of_run
    def stacks(self) -> pd.DataFrame:
        """A row per stack of every CPU profile: its case's keys, round, stack, ms, percent.

        `stack` is a tuple of function names, the outermost first.
        """
        rows = [
            {**of, "stack": stack, "ms": ns / 1e6, "percent": 100 * ns / profile.total}
            for of, profile in self._profiles()
            for stack, ns in profile.stacks
        ]
        return self._keyed(rows, ["round", "stack", "ms", "percent"], "profiles")

    @of_run
    def shares(
        self,
        parts: Mapping[str, Collection[str]] | None = None,
        *,
        within: Collection[str] = (),
        of: Collection[str] = (),
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
        chosen: dict[str, Callable[[Profile], float]] = {
            name: partial(_phase_of, name) for name in (*stacks.PHASES, stacks.FUNCTIONS)
        }
        if parts is None and (within or of):
            raise self._error("within and of are for parts of your own", "name the parts too")
        if parts is not None:
            if not isinstance(parts, Mapping):
                hint = "name each part: {'C calls': ['runtime.cgocall']}"
                raise self._error(f"{parts!r} does not map parts to functions", hint)
            self._check_functions(*filter(len, (within, of)), *parts.values())
            chosen = {
                name: partial(_share_of, tuple(functions), tuple(within), tuple(of))
                for name, functions in parts.items()
            }
        rows: list[dict[str, Any]] = []
        if by_profile:
            for job, profile in self._profiles():
                for part, share in chosen.items():
                    rows.append({**job, "part": part, "percent": 100 * share(profile)})
            values = ["round", "part", "percent", "source", "run"]
            return self._keyed(rows, values, "profiles", filters).dropna(subset="percent")
        for job in self._due(self._cases["profiles"]).index:
            for part, share in chosen.items():
                rows.append({"job": job, "part": part, **self._share(str(job), share)})
        frame = self._keyed(rows, ["part", *COSTS], "profiles", filters)
        return frame.dropna(subset="value").reset_index(drop=True)

    def _share(self, job: str, of: Callable[[Profile], float]) -> pd.Series:
        """The share of a job's profiles as a row of costs, in percent."""

        def percent(shown: Recording) -> Figure:
            return propagate(lambda share: 100 * share, [shown.share(job, of)])

        row = self._row(job, percent, signed=True)
        row[["low", "high"]] = row[["low", "high"]].astype(float).clip(0, 100)
        return row

    def _check_functions(self, *lists: Any) -> None:
        """Raise GccostError for a text in place of a list, and for a list that no profile knows.

        Some functions of a list may be those of other releases; the document's profile counts.
        """
        for names in lists:
            is_list = isinstance(names, Collection) and not isinstance(names, str) and names
            if not is_list or not all(isinstance(name, str) for name in names):
                hint = "write a list, such as ['runtime.cgocall']"
                raise self._error(f"{names!r} is no list of functions", hint)
        wanted, document = list(lists), f"{self.name}-profile"
        known, count = set[str](), 0
        if (paths.PUBLISHED / f"{document}.csv").exists():
            known.update(published.table(document).get("function", ()))
        for recording in filter(None, (self.recording, self.recording.recorded)):
            for profiles in recording.cpu_profiles.values():
                known.update(*(profile.names for profile in profiles.values()))
                count += len(profiles)
            wanted = [names for names in wanted if not any(_is_among(n, known) for n in names)]
        for names in wanted if count else ():
            what = f"no profile has a function {' or '.join(names)}"
            if count >= _MANY:
                raise self._error(what, nearest(next(iter(names)), known))
            print(f"{what}, but there are {count} profiles only")

    @cached_property
    @of_run
    def traces(self) -> pd.DataFrame:
        """A row per GC cycle of the recorded gctraces: its case's keys, and the line's values.

        Columns: number, at (s), percent, cpu_ms, start_mb, live_mb, goal_mb, forced. A trace
        that cannot be read is named and left out.
        """
        rows: list[dict[str, Any]] = []
        for name in self.recording.jobs:
            path = self.recording.showing(name).run.gctrace(name)
            try:
                cycles = gctrace.read(path).cycles if path.exists() else ()
            except GccostError as error:
                print(f"a file is left out: {error}")
            else:
                rows += [{"job": name, **gctrace.values(cycle)} for cycle in cycles]
        return self._keyed(rows, list(gctrace.VALUES))

    @of_run
    def calls(self, **filters: Any) -> pd.DataFrame:
        """The time of a call by the number of records in its span's list, a row per process.

        Columns: the case's keys, round, records, ns; source and run, as in costs.
        """
        every = self.recording.shown
        timed = every[[str(name) for name in every if AT.fullmatch(str(name))]]
        rows = []
        for name, sample in every[timed.notna().any(axis="columns")].iterrows():
            process = {"job": name, **sample[["round", "source", "run"]]}
            for records, ns in zip(*walked(sample), strict=True):
                rows.append({**process, "records": records, "ns": ns})
        values = ["round", "records", "ns", "source", "run"]
        return self._keyed(rows, values, "cases", filters)


def _asked(keys: Iterable[str], filters: Iterable[str], frame: pd.DataFrame) -> dict[str, None]:
    """The columns of keys and of filters; not of a filter that no case has."""
    return dict.fromkeys([*keys, *(name for name in filters if frame[name].notna().any())])


def _known_as(known: list[Any], value: Any) -> Any:
    """The known value with the same text, so that 48 and "48" are one value; else the value."""
    return next((each for each in known if str(each) == str(value)), value)


def _said(filters: Mapping[str, Any]) -> str:
    """Filters in words: the variant by its name."""
    return ", ".join(
        f"{value}" if name == "variant" else f"{name}={value}" for name, value in filters.items()
    )


def _varies(column: pd.Series) -> bool:
    """Whether a column has several values, NA being one."""
    return len(column.drop_duplicates()) > 1


def _share_of(
    functions: tuple[str, ...], within: tuple[str, ...], of: tuple[str, ...], profile: Profile
) -> float:
    return profile.share(functions, within, of)


def _phase_of(name: str, profile: Profile) -> float:
    return stacks.phases(profile)[name]


def _is_among(name: str, known: Iterable[str]) -> bool:
    """Whether a function is known; a name that ends in "*" stands for all with that prefix."""
    prefix = name.removesuffix("*")
    return name in known or (prefix != name and any(map(str.startswith, known, repeat(prefix))))


class _Context:
    """The study that samples are of; copies are the same object."""

    def __init__(self, study: Frames) -> None:
        self.study = study

    def __deepcopy__(self, memo: Any) -> _Context:
        return self

    def cost(self, samples: pd.DataFrame, metric: str) -> pd.Series:
        """The cost of a case from some of its samples."""
        return self.study._cost(str(samples["name"].iloc[0]), metric, samples)
