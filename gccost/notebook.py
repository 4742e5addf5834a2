"""What a notebook calls: a study with its samples, costs, ratios, shares and verdicts as frames.

`gccost` itself exports it; `help(gccost)` is the manual.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, wraps
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from gccost import opening, paths
from gccost.errors import GccostError, MissingTool, nearest
from gccost.judging import costs as estimating
from gccost.judging import ledger, metrics, stacks
from gccost.judging import published as transcribed
from gccost.judging import samples as sampled
from gccost.judging.ledger import Row
from gccost.judging.machines import Machine, by_machine, facts, words
from gccost.judging.machines import frame as frame_of
from gccost.judging.machines import machines as judged
from gccost.judging.models import walked
from gccost.judging.recording import Recording
from gccost.judging.reference import recorded
from gccost.judging.rules import asked
from gccost.measuring import benchmarks, gctrace, languages, runs, toolchains
from gccost.measuring.cases import BUDGETS, named
from gccost.measuring.profiles import Profile
from gccost.measuring.runs import Run
from gccost.measuring.settings import Mode, Settings
from gccost.showing import drawing, programs, reading, tables
from gccost.showing import results as results_of
from gccost.showing.notice import machine as machine_of
from gccost.showing.notice import notice
from gccost.showing.tables import Markup
from gccost.stats import Line, share
from gccost.studies import STUDIES, declared

F = TypeVar("F", bound=Callable[..., pd.DataFrame])
Rows = Literal["cases", "controls", "profiles"]
_ALWAYS = ("release", "variant")  # the keys that every frame has
_FIRST = ("round", "sitting", "procs", "operations", "rejected")
_MEASURED = ("quiet_ns", "mean_ns", "probe_ns")
_HIDDEN = ("line", "waited", "sliced", "raw_quiet_ns", "raw_settled_ns")
WAITED = "its threads waited for a CPU"
_BOOKKEEPING = ("unix_s", "build_s", "elapsed_s", "c_misfreed")
_PRINTED = ("ns/op", "B/op", "allocs/op", "op/s")  # of a plain command's results
_NEVER = ("experiment", "benchmark", "control", "profile", "procs", "round")


def _of_run(method: F) -> F:
    """A method of a study whose frame says which run it is of."""

    @wraps(method)
    def marked(study: OpenedStudy, *given: Any, **named: Any) -> pd.DataFrame:
        frame = method(study, *given, **named)
        frame.attrs["run"] = study.run
        return frame

    return marked  # type: ignore[return-value]


@dataclass(frozen=True)
class OpenedStudy:
    """A study and the run that it shows. Display it to see which run, and its caveats.

    `then` and `today` are the releases that its claims are tested on, such as "Go 1.20.14".
    """

    recording: Recording
    mode: Mode
    notices: tuple[str, ...]  # the reasons for showing this run

    def __repr__(self) -> str:
        return f"<study {self.name}, run {self.recording.run.name}, {len(self._samples)} samples>"

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
        return toolchains.title(self.recording.study.document)

    @property
    def today(self) -> str:
        """The newest release that gccost measures."""
        return toolchains.title(toolchains.today(self.recording.study.document))

    @property
    def releases(self) -> list[str]:
        """The releases that were measured, oldest first."""
        return list(map(toolchains.title, self.recording.releases))

    @property
    def cpus(self) -> int:
        """The CPUs that the measured programs could use."""
        return self.recording.cpus

    @property
    def machine(self) -> str:
        """The machine of the run in words, which are safe in Markdown."""
        known = self.recording.manifest["machine"]
        cpu, kind, system = (words(known.get(n)) for n in ("cpu", "virtualisation", "release"))
        shared = f"a virtual machine ({kind}), shared with others" if kind else ""
        return ", ".join(filter(None, [cpu, f"{self.cpus} CPUs", shared, system]))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """One line that opens into how the run was measured, and its caveats."""
        recording = self.recording
        told = notice([recording], self.mode, self.notices)
        whose = "Recorded run" if self.mode == "replay" else "Your run"
        line = f"{whose} {recording.run.name}: {', '.join(self.releases)}; {self.machine}"
        opened = " open" if recording.waited or self.notices else ""
        summary = f"<summary>{html.escape(line)}. How it was measured</summary>"
        page = f"<details{opened}>{summary}{told.html}</details>"
        return Markup(page, f"{line}\n{told.text}")._repr_mimebundle_()

    # --- Frames --------------------------------------------------------------------

    @cached_property
    def _samples(self) -> pd.DataFrame:
        """Every process: the keys of its job, the round, the metrics, and why it was rejected.

        The index is the name of the job. The order of the columns is that of `samples`.
        """
        every = self.recording.every
        shown = dict.fromkeys([*_FIRST, *metrics.QUIET, *self.recording.frame.columns])
        hidden = {"name", *_HIDDEN, *(column for column in shown if column.endswith("_records_ns"))}
        if every.empty:  # every column that a reader may ask for
            shown, hidden = dict.fromkeys([*_FIRST, *metrics.QUIET, *metrics.REPORTED]), set()
            every = every.reindex(columns=list(shown))
        found = every[[column for column in shown if column in every and column not in hidden]]
        found = found.astype(dict.fromkeys(("round", "sitting", "procs", "operations"), int))
        found["rejected"] = np.where(found["rejected"], WAITED, "")
        return pd.concat([self._jobs.loc[found.index], found], axis="columns").copy()  # one block

    @cached_property
    def _jobs(self) -> pd.DataFrame:
        """The keys of every job of the study, measured or not, by its name."""
        return sampled.keys(self.recording.jobs)

    def _kind(self, of: Rows) -> pd.DataFrame:
        """The keys of ordinary cases, of A/A controls, or of profiled runs."""
        cases = self._jobs
        control, profile = (
            cases[key].notna() if key in cases else pd.Series(False, index=cases.index)
            for key in ("control", "profile")
        )
        chosen = {"cases": ~control & ~profile, "controls": control, "profiles": profile}
        if of not in chosen:
            raise GccostError(f"there are no samples of {of!r}", hint=nearest(of, chosen))
        return cases[chosen[of]].drop(columns=["control", "profile"], errors="ignore")

    def _keys(self, of: Rows, filters: Mapping[str, Any]) -> list[str]:
        """The columns of the cases' keys that a frame shows: those that differ.

        They do not depend on what was measured. A key that no case left by the filters has is
        not shown.
        """
        cases = self._kind(of)
        named = [str(column) for column in cases if column not in _NEVER]
        if "gogc" in named and not _varies(cases["gogc"].dropna()):
            named.remove("gogc")  # `gc` says whether it is on
        left = self._filtered(cases, filters)
        differ = [name for name in named if _varies(cases[name]) and left[name].notna().any()]
        keys = [name for name in named if name in {*_ALWAYS, *differ}]
        if left.duplicated(keys).any():  # a variant of two experiments
            keys.insert(keys.index("variant") + 1, "experiment")
        return keys

    @property
    def keys(self) -> list[str]:
        """The columns of `samples` and `costs` that tell cases apart.

            samples.groupby(study.keys, dropna=False).apply(gccost.cost)

        gives `costs`, which leaves out those that no case left by its filters has.
        """
        return self._keys("cases", {})

    @cached_property
    def _known(self) -> dict[tuple[str, str], pd.Series]:
        return {}

    def _cost(self, job: str, metric: str) -> pd.Series:
        """What `gccost.cost` says of a job, computed once."""
        if (job, metric) not in self._known:
            samples = self._every.get_group(job)
            found = estimating.figure(samples[~samples["rejected"]], metric, self.recording.lines)
            self._known[job, metric] = estimating.series(found, metric)
        return self._known[job, metric]

    @cached_property
    def _every(self) -> Any:
        return self.recording.every.groupby(level="name", sort=False)

    def _costs(self, metric: str, of: Rows, filters: Mapping[str, Any]) -> pd.DataFrame:
        """All keys, and the cost, of each measured case that the filters leave."""
        metrics.kind(metric)
        cases = self._filtered(self._kind(of), filters)
        cases = cases[cases.index.isin(self.recording.every.index)]
        rows = [self._cost(name, metric) for name in cases.index]
        found = pd.DataFrame(rows, cases.index, estimating.COSTS)
        types = dict.fromkeys(found.columns.drop("kind"), float) | {"rounds": int, "n": int}
        found = pd.concat([cases, found.astype(types)], axis="columns")
        return found[found["n"] > 0].reset_index(drop=True)

    def _filtered(self, frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
        """The rows that have the filters' values; each is a value or a list of values."""
        at = frame.columns.get_loc("round") if "round" in frame else len(frame.columns)
        for name, wanted in filters.items():
            if name not in frame.columns[:at]:
                known = nearest(name, frame.columns[:at])
                raise GccostError(f"there is no filter {name!r}", f"study {self.name}", known)
            values = list(wanted) if isinstance(wanted, (list, tuple, set)) else [wanted]
            known_values = list(self._jobs[name].dropna().unique())
            for value in values:
                if not pd.isna(value) and value not in known_values:
                    hint = nearest(value, known_values)
                    raise GccostError(f"there is no {name} {value!r}", f"study {self.name}", hint)
            missing = any(pd.isna(value) for value in values)
            frame = frame[frame[name].isin(values) | (frame[name].isna() & missing)]
        return frame

    def _keyed(
        self,
        rows: list[dict[str, Any]],
        values: list[str],
        of: Rows,
        filters: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """A frame of rows with these values, and the keys of the job that each one names."""
        cases = self._filtered(self._kind(of), filters or {})
        frame = pd.DataFrame(rows, columns=["job", *values])
        frame = frame[frame["job"].isin(cases.index)]
        keys = cases.loc[frame["job"], self._keys(of, filters or {})]
        parts = [keys.reset_index(drop=True), frame[values].reset_index(drop=True)]
        return pd.concat(parts, axis="columns")

    def _profiles(self) -> Iterator[tuple[str, int, Profile]]:
        """Each CPU profile, with the name of its job, and its round."""
        for job, profiles in self.recording.cpu_profiles.items():
            for round_, profile in profiles.items():
                yield job, round_, profile

    @_of_run
    def samples(self, *, of: Rows = "cases", all: bool = False, **filters: Any) -> pd.DataFrame:
        """A row per process that counts: its case's keys, the round, and its metrics.

        Keys: `release` (an ordered category), `variant` in words, `gc` ("on" or "off"),
        `gogc`, sizes and other settings as numbers, NA where a case has none. Metrics have
        their unit in their name. `mean_ns` is what `go test` prints; `quiet_ns` is what enters
        a cost (see `gccost.cost`).

        Filters are keywords: samples(gc="on", variant=["manual free", "finalizer frees"]).
        `all` adds processes that do not count; `rejected` says why. `of` is "controls" for
        A/A controls or "profiles" for profiled runs, which are never mixed with the others.
        Raises GccostError for an unknown filter or value.
        """
        chosen = self._filtered(self._kind(of), filters).index
        frame = self._samples[self._samples.index.isin(chosen)]
        if not all:
            frame = frame[frame["rejected"] == ""].drop(columns="rejected")
        keys = self._keys(of, {})
        rejected = ("rejected",) if all else ()
        first = [*keys, "round", "sitting", *rejected, "procs", "operations", *_MEASURED]
        others = frame.columns.difference([*self._jobs, *first, *_BOOKKEEPING], sort=False)
        empty = [name for name in others if len(frame) and frame[name].isna().all()]
        frame = frame.reindex(columns=[*first, *others]).drop(columns=empty)
        frame = frame.reset_index(drop=True)
        frame.attrs |= {"lines": self.recording.lines, "keys": self._keys(of, {})}
        return frame

    @_of_run
    def costs(
        self, metric: str = "quiet_ns", *, of: Rows = "cases", **filters: Any
    ) -> pd.DataFrame:
        """A row per measured case: its keys, value, low and high (95 %), rounds, n (processes).

        The same as samples(…).groupby(keys, dropna=False).apply(gccost.cost). With one round, low
        and high are NA. Raises GccostError for an unknown metric, filter or value.
        """
        _check_metric(metric)
        found = self._costs(metric, of, filters)
        return found[[*self._keys(of, filters), *estimating.COSTS]]

    @_of_run
    def compare(
        self,
        over: str | Mapping[str, Any] | list[str],
        under: str | Mapping[str, Any],
        metric: str = "quiet_ns",
        *,
        of: Rows = "cases",
        **filters: Any,
    ) -> pd.DataFrame:
        """The ratio and the difference of two variants' costs, a row per release.

        Columns: ratio, ratio_low, ratio_high; more, more_low, more_high (in the metric's
        unit); differs (the ratio's interval excludes 1); rounds, n. `over` and `under` are names of
        variants, or filters: compare({"gc": "off"}, {"gc": "on"}, variant="finalizer frees").
        If `over` is a list, the index has the variant too, and any other key that varies.
        Rows of `then` and `today` are NA if they were not measured, and a line says which case
        lacks. Raises GccostError if a name is unknown, or if the filters leave two cases of a
        name, or none.
        """
        if isinstance(over, list):
            parts = {name: self.compare(name, under, metric, of=of, **filters) for name in over}
            found = pd.concat(parts, names=["variant"])
            return found.reorder_levels([*map(str, found.index.names[1:]), "variant"])
        sides = [
            dict(side) if isinstance(side, Mapping) else {"variant": side} for side in (over, under)
        ]
        chosen = {*sides[0], *sides[1], "variant"}
        frames = [self._side(metric, of, filters, side) for side in sides]
        keys = ["release"]
        for name in frames[0].columns.drop([*estimating.COSTS, "release"]):
            values = [frame[name].drop_duplicates() for frame in frames]
            if name not in chosen and any(len(each) > 1 for each in values):
                keys.append(str(name))
        for frame, side in zip(frames, sides, strict=True):
            if frame.duplicated(keys).any():
                differing = [
                    str(name)
                    for name in frame.columns.drop(estimating.COSTS)
                    if name not in keys and _varies(frame[name])
                ]
                raise GccostError(
                    f"there are two costs of {side}",
                    f"study {self.name}",
                    f"name {' or '.join(differing)} as a filter",
                )
        found = estimating.compare(frames[0], frames[1], keys)
        if keys == ["release"]:
            shown = {*found.index, self.then, self.today}
            known = self._jobs["release"]
            titles = [title for title in known.cat.categories if title in shown]
            found = found.reindex(pd.CategoricalIndex(titles, dtype=known.dtype, name="release"))
        whole = found[["rounds", "n"]].astype(float).fillna(0).astype(int)
        numbers = found.drop(columns=["differs", "rounds", "n"]).columns
        types = dict.fromkeys(numbers, float) | {"differs": "boolean"}
        return found.astype(types).assign(**whole)

    def _side(
        self, metric: str, of: Rows, filters: Mapping[str, Any], side: Mapping[str, Any]
    ) -> pd.DataFrame:
        """The costs of one side of a comparison; says which of its cases were not measured.

        Raises GccostError if the study has no such case, measured or not. A filter that is NA
        may come from what was not measured.
        """
        _check_metric(metric)
        wanted = {**filters, **side}
        cases = self._filtered(self._kind(of), wanted)
        if cases.empty and not any(map(_is_na, wanted.values())):
            others = self._filtered(self._kind(of), dict(side))
            known = [name for name in filters if len(others) and _varies(others[name])]
            hint = f"change {' or '.join(known or wanted)}; study.costs() lists the cases"
            raise GccostError(f"there is no case with {_said(wanted)}", f"study {self.name}", hint)
        found = self._costs(metric, of, wanted).drop(columns="benchmark")
        measured = set(found["release"])
        lacking = [str(each) for each in cases["release"].unique() if each not in measured]
        if lacking:
            print(f"{_said(side)}: not measured on {', '.join(lacking)} (run {self.run})")
        return found

    @cached_property
    def lines(self) -> pd.DataFrame:
        """What the loops of a kind have in common (see `gccost.stats`), a row per kind.

        Columns: slope over the probe and its slope_error; spread of processes about their line,
        with its degrees of freedom; probes, the spread of the probes, of which a price is the lower
        quartile; run_to_run, the spread of sittings, with run_to_run_freedom;
        sittings, their number in this run. All are of logs.
        """
        kinds = {str(job["kind"]) for job in self.recording.jobs.values()}
        found = [self.recording.lines.of(kind) for kind in self.recording.lines if kind in kinds]
        frame = pd.DataFrame(found, columns=Line._fields).set_index("kind")
        return frame.dropna(subset="spread")

    def kind(self, name: str) -> pd.DataFrame:
        """The processes of a kind of loop in this run, of all studies: what its line is fitted to.

        Columns: case; sitting; round; loop_ns, the time of the loop: the 5 % quantile of
        its slices, if it is timed in slices, or the mean; probe_ns; and probe, the log of the
        probe's time over its undisturbed price, 0 without a probe. Empty if the run has none.
        """
        frame = self.recording.lines.processes(name).rename(
            columns={"name": "case", "raw_quiet_ns": "loop_ns"}
        )
        shown = ["case", "sitting", "round", "loop_ns", "probe_ns", "probe"]
        frame = frame.reindex(columns=shown).dropna(subset="loop_ns").fillna({"probe": 0.0})
        return frame.reset_index(drop=True)

    @cached_property
    @_of_run
    def controls(self) -> pd.DataFrame:
        """The A/A ratios, of each control to the identical variant; those far from 1 are noise."""
        rows = [
            {
                "release": toolchains.title(go),
                "variant": benchmarks.of(variant.benchmark).variant,
                **estimating.row(estimate),
            }
            for variant, go, estimate in self.recording.controls()
        ]
        return pd.DataFrame(rows, columns=["release", "variant", *estimating.VALUES])

    @cached_property
    @_of_run
    def stacks(self) -> pd.DataFrame:
        """A row per stack of every CPU profile: its case's keys, round, stack, ms, percent.

        `stack` is a tuple of function names, the outermost first.
        """
        rows = [
            {"job": job, "round": round_, "stack": stack, "ms": ns / 1e6}
            | {"percent": 100 * ns / profile.total}
            for job, round_, profile in self._profiles()
            for stack, ns in profile.stacks
        ]
        return self._keyed(rows, ["round", "stack", "ms", "percent"], "profiles")

    @_of_run
    def shares(
        self,
        parts: Mapping[str, Iterable[str]] | None = None,
        *,
        within: Iterable[str] = (),
        of: Iterable[str] = (),
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
        within, of = tuple(within), tuple(of)

        def parts_of(profile: Profile) -> Mapping[str, float]:
            if parts is None:
                return stacks.phases(profile)
            return {name: profile.share(tuple(parts[name]), within, of) for name in parts}

        rows = [
            {"job": job, "round": round_, "part": part, "percent": 100 * part_share}
            for job, round_, profile in self._profiles()
            for part, part_share in parts_of(profile).items()
        ]
        values = ["round", "part", "percent"]
        frame = self._keyed(rows, values, "profiles", filters).dropna(subset="percent")
        if by_profile:
            return frame.reset_index(drop=True)
        keys = [str(c) for c in frame.columns[: frame.columns.get_loc("round")]]
        found = [
            [*key, *estimating.of_share(share(group["percent"] / 100)).values()]
            for key, group in frame.groupby([*keys, "part"], sort=False, dropna=False)
        ]
        return pd.DataFrame(found, columns=[*keys, "part", *estimating.COSTS])

    @cached_property
    @_of_run
    def traces(self) -> pd.DataFrame:
        """A row per GC cycle of the recorded gctraces: its case's keys, and the line's values.

        Columns: number, at (s), percent, cpu_ms, start_mb, live_mb, goal_mb, forced. A trace
        that cannot be read is named and left out.
        """
        rows = []
        for name in self.recording.jobs:
            path = self.recording.run.gctrace(name)
            if path.exists():
                try:
                    cycles = gctrace.read(path).cycles
                except GccostError as error:
                    print(f"gctraces/{path.name} is left out: it cannot be read ({error.hint})")
                    continue
                rows += [{"job": name} | gctrace.values(cycle) for cycle in cycles]
        return self._keyed(rows, list(gctrace.VALUES), "cases")

    @_of_run
    def calls(self, **filters: Any) -> pd.DataFrame:
        """The time of a call by the number of records in its span's list, a row per process.

        Columns: the case's keys, round, records, ns.
        """
        every = self.recording.every
        rows = [
            {"job": name, "round": sample["round"], "records": records, "ns": ns}
            for name, sample in every[~every["rejected"]].iterrows()
            for records, ns in zip(*walked(sample), strict=True)
        ]
        return self._keyed(rows, ["round", "records", "ns"], "cases", filters)

    @cached_property
    @_of_run
    def slices(self) -> pd.DataFrame:
        """A row per slice of the processes whose slices were stored: keys, slice, ns."""
        rows = []
        for name in self.recording.jobs:
            try:
                times = self.recording.run.read_slices(name)
            except GccostError as error:
                print(f"the slices are left out: {error}")
                continue
            rows += [{"job": name, "slice": i, "ns": ns} for i, ns in enumerate(times)]
        return self._keyed(rows, ["slice", "ns"], "cases")

    @property
    def published(self) -> pd.DataFrame:
        """The document's main table; `gccost.published(name)` reads the others."""
        found = sorted(paths.PUBLISHED.glob(f"{self.name}-*.csv"))
        timings = [path for path in found if path.stem.endswith("timings")]
        if not found:
            raise GccostError(f"no figures are published for {self.name}", str(paths.PUBLISHED))
        return transcribed.published((timings or found)[0].stem)

    @cached_property
    def _rows(self) -> list[Row]:
        return ledger.rows({self.name: self.recording}, [self.recording.study])

    @cached_property
    @_of_run
    def verdicts(self) -> pd.DataFrame:
        """A row per claim and release: what is claimed, measured, the rule's range, the verdict.

        Columns: id, release, claim, published, value, low, high (95 %), n, unit, verdict,
        reason, holds_from, holds_to, document.
        """
        return ledger.frame(self._rows)

    @property
    @_of_run
    def sides(self) -> pd.DataFrame:
        """The samples of claims on ratios of two times, with id and side ("over", "under")."""
        frame = ledger.sides(self._rows, self.recording)
        frame.attrs["lines"] = self.recording.lines
        return frame

    def judge(self, *claims: str, bar: float | tuple[float, float] | None = None) -> Markup:
        """The verdicts of claims as a table, with the rule and its range, and the reason.

        With `bar` a claim is judged with another range: judge("M1", bar=6) asks whether the
        ratio is above 6, judge("M3", bar=(0.9, 1.1)) whether it is between the two. Such a
        verdict is shown only; the ledger has the rule's own.
        """
        known = list(dict.fromkeys(row.claim.id for row in self._rows))
        for claim in claims:
            if claim not in known:
                hint = nearest(claim, known)
                raise GccostError(f"there is no claim {claim!r}", f"study {self.name}", hint)
        rows = [row for row in self._rows if row.claim.id in (claims or known)]
        if bar is not None:
            rows = self._with_bar(rows, bar)
        header = ("claim", "published", "on", "measured (95 %)", "holds if", "verdict")
        return tables.table(
            header,
            [
                [
                    f"{row.claim.id}: {row.words}",
                    row.held_to,
                    row.toolchain,
                    results_of.cell(row),
                    self._rule(row, bar),
                    tables.Cell(str(row.verdict), row.why),
                ]
                for row in rows
            ],
            merged={0, 1, 4},
        )

    def _rule(self, row: Row, bar: object) -> tables.Cell:
        """The range in which a claim holds, and the rule that it comes from."""
        rule = results_of.holds_if(row.claim.rule) if bar is None else f"bar {bar}, as asked"
        return tables.Cell(results_of.region(row), rule)

    def _with_bar(self, rows: list[Row], bar: float | tuple[float, float]) -> list[Row]:
        """The rows of some claims, judged anew with another range."""
        claims = {
            row.claim.id: replace(row.claim, rule=asked(row.claim.rule, row.published, bar))
            for row in rows
        }
        study = replace(self.recording.study, claims=tuple(claims.values()))
        return ledger.rows({self.name: self.recording}, [study])

    def shell(self, command: str) -> pd.DataFrame:
        """Run a command in the folder of the measured programs, as anyone would type it.

        Prints its output, and returns its results in the columns of `samples`. It runs on the
        newest release that was measured. Replay, or a machine that lacks a tool, prints the
        output that was stored with the recorded run.
        """
        language = languages.of(self.recording.study)
        stored = self.recording.manifest.get("shell", {})
        found = next((each for each in stored.values() if each["command"] == command), None)
        release = self.recording.newest
        if self.mode == "measure":
            try:
                printed = programs.run(command, language, release)
            except MissingTool as error:
                print(f"The command cannot run here, so its recorded output is shown. {error}")
                replayed = opening.shown(self.recording.study, Settings("replay"))
                return OpenedStudy(*replayed).shell(command)
            self.recording.run.store_shell(command, command, printed)
            print(f"{toolchains.title(release)}, run just now")
        elif found is None:
            print("The recorded run lacks this command's output; with a compiler, it runs here.")
            printed = ""
        else:
            printed = found["output"]
            print(f"{toolchains.title(release)}, recorded on {found['date'][:10]}")
        for line in filter(None, printed.splitlines()):
            name, *fields = line.split("\t")
            if any(field.endswith(" ns/op") for field in fields):  # a trace may follow the name
                fields = [f for f in fields if f.strip().isdigit() or f.split()[-1] in _PRINTED]
            print(tables.printable("\t".join([name, *fields])))
        found = reading.frame(reading.results(printed), ours=True)
        return found.assign(release=toolchains.title(release))


def _check_metric(name: str) -> None:
    """Raise GccostError for a unit, such as "ns/op", naming the columns that have it."""
    column = metrics.column(name)
    if column != name:
        known = [quiet for quiet, of in metrics.QUIET.items() if of == column]
        hint = f"name one of {', '.join([column, *known])}"
        raise GccostError(f"there is no metric {name!r}", hint=hint)


def _said(filters: Mapping[str, Any]) -> str:
    """Filters in words: the variant by its name."""
    return ", ".join(
        f"{value}" if name == "variant" else f"{name}={value}" for name, value in filters.items()
    )


def _is_na(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _varies(column: pd.Series) -> bool:
    """Whether a column has several values, NA being one."""
    return len(column.drop_duplicates()) > 1


def open_study(name: str, run: str = "") -> OpenedStudy:
    """Open a study: your newest run that holds it, or the recorded one. Never measures.

    `run` names another one, which `gccost.runs()` lists; its beginning is enough. A trial (a run
    at the budget tiny) is shown only if no other of your runs holds the study, or by its name.
    Display the result to see which run it is. Also gives seaborn the charts' style.
    Raises GccostError, naming the nearest, if there is no such study or run.
    """
    drawing.theme()
    study = declared(name)
    return OpenedStudy(
        *(opening.chosen(study, run) if run else opening.shown(study, Settings.read()))
    )


def listed_runs() -> pd.DataFrame:
    """The runs that `gccost.open` can show, oldest first, recorded ones and your own.

    Columns: run, machine, studies (that it holds), budget (empty: interrupted; tiny: a trial),
    date, source ("your run" or "recorded").
    """
    rows = [
        {
            "run": run.name,
            "machine": machine_of(run),
            "studies": ", ".join(opening.studies_of(run)),
            "budget": ", ".join(run.manifest()["finished"]),
            "date": pd.Timestamp(run.manifest()["created"][:10]),
            "source": source,
        }
        for run, source in opening.listed()
    ]
    return pd.DataFrame(rows, columns=["run", "machine", "studies", "budget", "date", "source"])


@dataclass(frozen=True)
class Results:
    """Every study that has a run, and the ledger of all claims. Displays what was run."""

    studies: Mapping[str, OpenedStudy]

    @cached_property
    def _rows(self) -> list[Row]:
        shown = {
            name: opening.Shown(each.recording, each.mode, each.notices)
            for name, each in self.studies.items()
        }
        return opening.rows(shown, Settings.read().only)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """The verdicts of all claims, in the columns of a study's `verdicts`, and their source.

        `source` is "your run" or "the recorded run"; a quick run does not measure every study.
        """
        source = {
            name: "your run" if study.mode == "measure" else "the recorded run"
            for name, study in self.studies.items()
        }
        found = ledger.frame(self._rows)
        return found.assign(source=[source.get(row.study.name, "") for row in self._rows])

    @cached_property
    def lines(self) -> pd.DataFrame:
        """The lines of all studies' kinds of loop, as in a study's `lines`."""
        found = pd.concat([each.lines for each in self.studies.values()])
        return found[~found.index.duplicated()]

    def kind(self, name: str) -> pd.DataFrame:
        """The processes of a kind of loop, as in a study's `kind`."""
        holding = [each for each in self.studies.values() if name in each.lines.index]
        return (holding or list(self.studies.values()))[0].kind(name)

    @property
    def sides(self) -> pd.DataFrame:
        """The processes that claims compare, of all studies, as in a study's `sides`."""
        parts = [each.sides for each in self.studies.values()]
        # Samples of one run keep their lines.
        filled = [part for part in parts if len(part)] or parts
        return pd.concat(filled, ignore_index=True).infer_objects()

    def study(self, name: str) -> OpenedStudy:
        """One of the studies, opened."""
        return self.studies.get(name) or open_study(name)

    def first_screen(self) -> Markup:
        """The verdicts counted, and each document's headline claim, then and today."""
        return results_of.first_screen(self._rows)

    def ledger(self) -> Markup:
        """The ledger as a table that opens into rules, reasons and evidence."""
        return results_of.ledger(self._rows)

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        of_run: dict[Path, list[OpenedStudy]] = {}
        for each in self.studies.values():
            of_run.setdefault(each.recording.run.folder, []).append(each)
        notices = [
            notice([s.recording for s in shown], shown[0].mode, chain(*(s.notices for s in shown)))
            for shown in of_run.values()
        ]
        return tables.stacked(notices)._repr_mimebundle_()


def results() -> Results:
    """Open every study that has a run, without measuring; for the notebook of all results."""
    drawing.theme()
    found = opening.every(Settings.read())
    return Results({name: OpenedStudy(*each) for name, each in found.items()})


def _machines(say: bool = False) -> list[Machine]:
    """Every recorded machine, and your own newest run unless the settings say replay."""
    own = [run for run in runs.all_runs(paths.runs()) if run.manifest()["finished"]]
    chosen = [*recorded(), *([] if Settings.read().mode == "replay" else own[-1:])]
    found, unusable = _judged(tuple(chosen))
    told = [*unusable, *runs.skipped(paths.reference()), *chain(*map(runs.changed, chosen))]
    for problem in told if say else ():
        print(tables.printable(problem))
    return found


@lru_cache(maxsize=1)
def _judged(chosen: tuple[Run, ...]) -> tuple[list[Machine], list[str]]:
    unusable: list[str] = []
    return judged(by_machine(chosen), list(STUDIES.values()), unusable), unusable


def machines() -> pd.DataFrame:
    """The ledgers of all recorded machines: a row per machine, claim and release.

    The columns of `verdicts`, and `machine`, `agree` (whether the decided verdicts on the claim
    agree between machines) and `p` (of measurements of one true value lying so far apart).
    Samples of two machines are never pooled. A run that cannot be shown is named.
    """
    drawing.theme()
    return frame_of(_machines(say=True))


def computers() -> pd.DataFrame:
    """What the recorded runs say of their machines: a row per fact, a column per machine."""
    return facts(_machines())


def measure(name: str, budget: str = "quick") -> OpenedStudy:
    """Measure what your run of a study lacks, with a progress bar, and open it."""
    drawing.theme()
    settings = Settings("measure", named(BUDGETS, budget, "budget"))
    return OpenedStudy(*opening.measured(declared(name), settings))
