"""A study's samples, costs and ratios as frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import truediv
from typing import Any, TypeAlias

import pandas as pd

from gccost.cases import jobs, versions
from gccost.costs import busy, method, metrics
from gccost.costs import costs as estimating
from gccost.costs.costs import COSTS, METRIC, VALUES
from gccost.costs.study_cases import Filters, StudyCases, in_words, of_run, shown_keys, varies
from gccost.errors import nearest

Side: TypeAlias = str | Filters
_COUNTS = ["round", "sitting", "procs", "operations"]
_MEASURED = ["ns", "settled_ns"]
_HIDDEN = [
    *("line", "unix_s", "build_s", "elapsed_s", "c_misfreed", "source", "run", "name"),
]


class StudyCosts(StudyCases):
    """The samples of a study's recording, their costs, and ratios of these."""

    @cached_property
    def _samples(self) -> pd.DataFrame:
        """Every process by the name of its job: the job's keys, and all that was measured."""
        processes = self.recording.shown
        if processes.empty:  # every column that a reader may ask for
            columns = dict.fromkeys([*processes, *metrics.REPORTED])
            processes = processes.reindex(columns=list(columns))
        processes = processes.astype(dict.fromkeys(_COUNTS, int))
        keys = self._jobs.loc[processes.index]
        return pd.concat([keys, processes], axis="columns").copy()  # one block

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
        measured = self._measured(filters)
        is_chosen = self._samples.index.isin(measured.index)
        frame = self._samples[is_chosen]
        keys = self._keys()
        first = [*shown_keys(keys, filters, frame), *_COUNTS, "source", *_MEASURED]
        not_shown = [*self._jobs, *first, *_HIDDEN]
        others = frame.columns.difference(not_shown, sort=False)
        others = others[~others.str.endswith("_records_ns")]
        frame = frame.reindex(columns=[*first, *others, "run", "name"]).reset_index(drop=True)
        if len(frame):
            is_empty = frame[["settled_ns", *others]].isna().all()
            frame = frame.drop(columns=is_empty.index[is_empty])
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
        cases = self._measured(filters)
        costs = self._costs(metric, cases)
        keys = self._keys(filters)
        columns = shown_keys(keys, filters, costs) + COSTS
        return costs[columns]

    def _costs(self, metric: str, cases: pd.DataFrame) -> pd.DataFrame:
        """All keys, and the cost, of the cases that were measured."""
        self._check_metric(metric)
        processes = self.recording.shown
        is_of_cases = processes.index.isin(cases.index)
        processes = processes[is_of_cases]
        values = processes.get(metric, pd.Series(dtype=float))
        estimating.say_zeros(values, metric, "they are left out")
        rows = [self._cost(name, metric) for name in cases.index]
        figures = estimating.frame(rows, cases.index)
        costs = pd.concat([cases, figures], axis="columns")
        measured = costs[costs["n"] > 0]
        return measured.reset_index(drop=True)

    def _cost(self, name: str, metric: str, samples: pd.DataFrame | None = None) -> pd.Series:
        """The cost of a case as a row of costs, from all of its samples or from some."""
        signed = estimating.is_signed(metric)
        return self._row(name, lambda shown: shown.cost(name, metric, samples), signed)

    def _check_metric(self, name: str) -> None:
        """Raise GccostError for what is no metric, such as the unit "ns/op"."""
        text = str(name)
        if text in metrics.REPORTED or metrics.SERIES.fullmatch(text):
            return
        columns = self.recording.frame.select_dtypes("number")
        names = [*metrics.SCALES, *columns]
        if name in names:
            return
        hint = nearest(metrics.column(text), names)
        raise self._error(f"there is no metric {name!r}", hint)

    # --- Comparisons ------------------------------------------------------------------

    @of_run
    def compare(
        self,
        over: Side | list[str],
        under: Side,
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
            parts = {}
            for name in over:
                parts[name] = self.compare(name, under, metric, **filters)
            comparison = pd.concat(parts, names=["variant"])
            _, *keys = map(str, comparison.index.names)
            return comparison.reorder_levels([*keys, "variant"])
        sides = [self._filters(over), self._filters(under)]
        frames = [self._side(metric, filters, side) for side in sides]
        varying = {*self._varying(frames[0]), *self._varying(frames[1])}
        unnamed = varying - {*sides[0], *sides[1], "variant", "release"}
        keys = ["release", *(name for name in self.keys if name in unnamed)]
        for frame, side in zip(frames, sides, strict=True):
            self._check_unique(frame, side, keys)
        comparison = estimating.compare(frames[0], frames[1], keys)
        if comparison.empty and all(map(len, frames)):
            hint = f"the sides have no {', '.join(keys)} in common; name it as a filter of each"
            raise self._error("the comparison has no row", hint)
        if keys == ["release"]:
            return self._with_then_and_today(comparison)
        indexes = [frame.set_index(keys).index for frame in frames]
        estimating.say_unmatched("compare", comparison.index, indexes)
        return comparison

    def _filters(self, side: object) -> dict[str, Any]:
        """One side of a comparison as filters."""
        if isinstance(side, str):
            return {"variant": side}
        if isinstance(side, Mapping):
            return dict(side)
        hint = "name a variant, or filters; only the first may be a list, of variants"
        raise self._error(f"{side!r} is no side of a comparison", hint)

    def _side(self, metric: str, filters: Filters, side: Filters) -> pd.DataFrame:
        """The costs of one side of a comparison; says which of its cases were not measured.

        Raises GccostError if the study has no such case, measured or not. A filter that is NA
        may come from what was not measured.
        """
        chosen = self._chosen({**filters, **side})
        cases = self._due(chosen)
        costs = self._costs(metric, cases)
        measured = set(costs["release"])
        lacking = [str(title) for title in cases["release"].unique() if title not in measured]
        if lacking:
            print(f"{in_words(side)}: no run holds it on {', '.join(lacking)}")
        return costs.drop(columns="benchmark")

    def _varying(self, side: pd.DataFrame) -> list[str]:
        """The keys that differ among the costs of a side."""
        keys = side.columns.intersection(self.keys)
        return [str(name) for name in keys if varies(side[name])]

    def _check_unique(self, side: pd.DataFrame, filters: Filters, keys: list[str]) -> None:
        """Raise GccostError if a side has two costs with the same keys."""
        if not side.duplicated(keys).any():
            return
        differing = [name for name in self._varying(side) if name not in keys]
        hint = f"name {' or '.join(differing)} as a filter"
        raise self._error(f"there are two costs of {filters}", hint)

    def _with_then_and_today(self, comparison: pd.DataFrame) -> pd.DataFrame:
        """A comparison by release, with an empty row for `then` and `today` if they lack."""
        releases = self._jobs["release"].cat.categories
        is_shown = releases.isin([*comparison.index, self.then, self.today])
        titles = releases[is_shown]
        index = pd.CategoricalIndex(titles, releases, ordered=True, name="release")
        comparison = comparison.reindex(index)
        for count in ("rounds", "n"):
            comparison[count] = comparison[count].fillna(0).astype(int)
        return comparison

    # --- How far the figures can be trusted -------------------------------------------

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
        columns = ["release", "variant", *VALUES, "source", "run"]
        return pd.DataFrame(self._control_rows(), columns=columns)

    def _control_rows(self) -> Iterator[list[Any]]:
        for name, job in self.recording.jobs.items():
            if "control" not in job:
                continue
            shown = self.recording.showing(name)
            pair = [shown.cost(name), shown.cost(jobs.uncontrolled(job))]
            ratio = method.propagate(truediv, pair)
            estimate = method.estimate(ratio)
            if estimate.n:
                title = versions.title(job["release"])
                values = estimating.row(estimate).values()
                source = self._source(shown)
                yield [title, job["variant"], *values, source, shown.run.name]


class _Context:
    """The study that samples are of; copies are the same object."""

    def __init__(self, study: StudyCosts) -> None:
        self.study = study

    def __deepcopy__(self, memo: Any) -> _Context:
        return self

    def cost(self, samples: pd.DataFrame, metric: str) -> pd.Series:
        """The cost of a case from some of its samples."""
        name = str(samples["name"].iloc[0])
        return self.study._cost(name, metric, samples)
