"""What a notebook calls: a study with its samples, costs, ratios, shares and verdicts as frames.

`gccost` itself exports it; `help(gccost)` is the manual.
"""

from __future__ import annotations

import io
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from gccost import paths, processes, rounding
from gccost.errors import GccostError, nearest
from gccost.judging import costs as estimating
from gccost.judging import ledger, metrics, tidy
from gccost.judging import published as transcribed
from gccost.judging.ledger import Row
from gccost.judging.models import walked
from gccost.judging.recording import Recording
from gccost.measuring import benchfmt, gctrace, languages, toolchains
from gccost.measuring.names import NAMES
from gccost.settings import Mode, Settings
from gccost.showing import drawing, results, tables
from gccost.showing.notice import notice
from gccost.showing.tables import Markup, Prose
from gccost.stats import Estimate, share
from gccost.studies import declared

SHELL_SECONDS = 300  # after which a chapter's plain command counts as hung
Rows = Literal["cases", "controls", "profiles"]
_ALWAYS = ("release", "variant")  # the keys that every frame has
_BOOKKEEPING = ("unix_s", "build_s", "elapsed_s", "c_misfreed")
_PRINTED = ("ns/op", "B/op", "allocs/op", "op/s")  # of a plain command's results
_NEVER = ("experiment", "benchmark", "control", "profile", "procs", "round")


@dataclass(frozen=True)
class OpenedStudy:
    """A study and the run that it shows. Display it to see which run, and its caveats.

    `then` and `today` are the releases that its claims are tested on, such as "Go 1.20.14".
    """

    recording: Recording
    mode: Mode
    notices: tuple[str, ...]  # the reasons for showing this run

    @property
    def name(self) -> str:
        return self.recording.study.name

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

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        return notice([self.recording], self.mode, self.notices)._repr_mimebundle_()

    # --- Frames --------------------------------------------------------------------

    @cached_property
    def _tidy(self) -> pd.DataFrame:
        return tidy.tidy(self.recording)

    def _all(self, of: Rows) -> pd.DataFrame:
        """The processes of ordinary cases, of A/A controls, or of profiled runs."""
        frame = self._tidy
        control, profile = (
            frame[key].notna() if key in frame else pd.Series(False, index=frame.index)
            for key in ("control", "profile")
        )
        chosen = {"cases": ~control & ~profile, "controls": control, "profiles": profile}
        if of not in chosen:
            raise GccostError(f"there are no samples of {of!r}", hint=nearest(of, chosen))
        return frame[chosen[of]].drop(columns=["control", "profile"], errors="ignore")

    def _keys(self, frame: pd.DataFrame) -> list[str]:
        """The columns that identify a case, of which some differ within the study."""
        at = frame.columns.get_loc("round") if "round" in frame else 0
        named = [str(column) for column in frame.columns[:at]]
        if "gogc" in frame and not _varies(frame["gogc"].dropna()):
            named.remove("gogc")  # `gc` says whether it is on
        return [
            name
            for name in named
            if name in _ALWAYS or (name not in _NEVER and _varies(frame[name]))
        ]

    def _filtered(self, frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
        """The rows that have the filters' values; each is a value or a list of values."""
        at = frame.columns.get_loc("round") if "round" in frame else len(frame.columns)
        for name, wanted in filters.items():
            if name not in frame.columns[:at]:
                known = nearest(name, frame.columns[:at])
                raise GccostError(f"there is no filter {name!r}", f"study {self.name}", known)
            values = list(wanted) if isinstance(wanted, (list, tuple, set)) else [wanted]
            column = self._tidy[name]
            known_values = [*column.dropna().unique(), *self._declared(name)]
            for value in values:
                if not pd.isna(value) and value not in known_values:
                    raise GccostError(
                        f"there is no {name} {value!r}",
                        f"study {self.name}",
                        nearest(value, dict.fromkeys(known_values)),
                    )
            missing = any(pd.isna(value) for value in values)
            frame = frame[frame[name].isin(values) | (frame[name].isna() & missing)]
        return frame

    def _declared(self, name: str) -> list[Any]:
        """The values of a key in the study's cases, measured or not."""
        found = (tidy.keys(case).get(name) for case in self.recording.study.cases)
        return [value for value in dict.fromkeys(found) if value is not None]

    def _keyed(
        self,
        rows: list[dict[str, Any]],
        values: list[str],
        filters: Mapping[str, Any] | None = None,
    ) -> pd.DataFrame:
        """A frame of rows that have a case's keys and these values; "round" is the first."""
        named = list(dict.fromkeys(key for row in rows for key in row if key not in values))
        frame = pd.DataFrame(rows, columns=[*(named or _ALWAYS), *values])
        frame["release"] = frame["release"].astype(self._tidy["release"].dtype)
        keys = self._keys(frame)
        return self._filtered(frame, filters or {})[[*keys, *values]].reset_index(drop=True)

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
        frame = self._filtered(self._all(of), filters)
        if not all:
            frame = frame[frame["rejected"] == ""].drop(columns="rejected")
        at = frame.columns.get_loc("round")
        empty = [c for c in frame.columns if frame[c].isna().all()]
        first = [*frame.columns[: at + 1], "operations", "quiet_ns", "mean_ns"]
        frame = frame[[*first, *frame.columns.difference([*first, *_BOOKKEEPING], sort=False)]]
        same = [c for c in frame.columns[:at] if c not in self._keys(self._all(of))]
        kept = {*_ALWAYS, "round", "operations", "quiet_ns", "mean_ns"}
        dropped = {*empty, *same} - kept
        return frame.drop(columns=list(dropped), errors="ignore").reset_index(drop=True)

    def costs(
        self, metric: str = "quiet_ns", *, of: Rows = "cases", **filters: Any
    ) -> pd.DataFrame:
        """A row per measured case: its keys, value, low and high (95 %), rounds, n (processes).

        The same as samples(…).groupby(keys).apply(gccost.cost). With one round, low and high
        are NA. Raises GccostError for an unknown metric, filter or value.
        """
        metrics.by_column(metric)
        frame = self._all(of)
        counted = self._filtered(frame, filters)
        counted = counted[counted["rejected"] == ""]
        keys = self._keys(frame)
        named = counted.columns[: counted.columns.get_loc("round")]
        found = estimating.costs(counted, [str(name) for name in named], metric)
        return found[[*keys, *estimating.VALUES]]

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
        Rows of `then` and `today` are NA if they were not measured. Raises GccostError if a
        name is unknown, or if the filters leave two cases of a name.
        """
        if isinstance(over, list):
            parts = {name: self.compare(name, under, metric, of=of, **filters) for name in over}
            found = pd.concat(parts, names=["variant"])
            return found.reorder_levels([*found.index.names[1:], "variant"])
        sides = [
            dict(side) if isinstance(side, Mapping) else {"variant": side} for side in (over, under)
        ]
        chosen = {*sides[0], *sides[1], "variant"}
        frames = [self._all_keys(metric, of, {**filters, **side}) for side in sides]
        keys = ["release"]
        for name in frames[0].columns.drop([*estimating.VALUES, "release"]):
            values = [frame[name].drop_duplicates() for frame in frames]
            if name not in chosen and any(len(each) > 1 for each in values):
                keys.append(str(name))
        for frame, side in zip(frames, sides, strict=True):
            if frame.duplicated(keys).any():
                differing = [
                    str(name)
                    for name in frame.columns.drop(estimating.VALUES)
                    if name not in keys and _varies(frame[name])
                ]
                raise GccostError(
                    f"there are two costs of {side}",
                    f"study {self.name}",
                    f"name {' or '.join(differing)} as a filter",
                )
        found = estimating.compare(frames[0], frames[1], keys)
        if keys == ["release"]:
            titles = [
                t for t in found.index.categories if t in {*found.index, self.then, self.today}
            ]
            index = pd.CategoricalIndex(titles, dtype=found.index.dtype, name="release")
            found = found.reindex(index)
        return found

    def _all_keys(self, metric: str, of: Rows, filters: Mapping[str, Any]) -> pd.DataFrame:
        """Costs with the keys that may distinguish two cases of a name."""
        metrics.by_column(metric)
        frame = self._filtered(self._all(of), filters)
        frame = frame[frame["rejected"] == ""]
        named = [str(c) for c in frame.columns[: frame.columns.get_loc("round")]]
        found = estimating.costs(frame, named, metric)
        return found.drop(columns=["benchmark"])

    @cached_property
    def controls(self) -> pd.DataFrame:
        """The A/A ratios, of each control to the identical variant; those far from 1 are noise."""
        rows = [
            {
                "release": toolchains.title(go),
                "variant": NAMES.get(variant.benchmark, variant.benchmark),
                **estimating.row(estimate),
            }
            for variant, go, estimate in self.recording.controls()
        ]
        return pd.DataFrame(rows, columns=["release", "variant", *estimating.VALUES])

    # --- Profiles and traces -------------------------------------------------------

    @cached_property
    def stacks(self) -> pd.DataFrame:
        """A row per stack of every CPU profile: its case's keys, round, stack, ms, percent.

        `stack` is a tuple of function names, the outermost first.
        """
        rows = [
            tidy.keys(case)
            | {"round": round_, "stack": stack, "ms": ns / 1e6}
            | {"percent": 100 * ns / profile.total}
            for case in self.recording.study.cases
            for round_, profile in self.recording.profiles(case.variant, case.release).items()
            for stack, ns in profile.stacks
        ]
        frame = pd.DataFrame(rows, columns=None if rows else ["release", "variant", "round"])
        return frame[
            [*self._keys(frame), *(c for c in ("round", "stack", "ms", "percent") if c in frame)]
        ]

    def shares(
        self,
        parts: Mapping[str, Iterable[str]],
        *,
        within: Iterable[str] = (),
        of: Iterable[str] = (),
        by_profile: bool = False,
        **filters: Any,
    ) -> pd.DataFrame:
        """The shares of CPU profiles, in percent, whose stacks contain any of some functions.

        `parts` maps the name of a part to its functions; a name that ends in "*" matches all
        with that prefix. Parts may overlap. With `within` a stack must also contain any of
        those; with `of` the share is of the stacks that contain any of those. A row per case
        and part: the keys, `part`, value, low, high (95 %), rounds, n (profiles). With
        `by_profile` a row per profile instead: the keys, part, round, percent.
        """
        within, of = tuple(within), tuple(of)
        profiles = [
            (tidy.keys(case), round_, profile)
            for case in self.recording.study.cases
            for round_, profile in self.recording.profiles(case.variant, case.release).items()
        ]
        rows = [
            keys
            | {"round": round_, "part": part}
            | {"percent": 100 * profile.share(tuple(functions), within, of)}
            for keys, round_, profile in profiles
            for part, functions in parts.items()
        ]
        frame = self._keyed(rows, ["round", "part", "percent"], filters).dropna(subset="percent")
        if by_profile:
            return frame.reset_index(drop=True)
        keys = [str(c) for c in frame.columns[: frame.columns.get_loc("round")]]
        found = [
            [*key, *estimating.row(share(group["percent"] / 100), 100).values()]
            for key, group in frame.groupby([*keys, "part"], sort=False, dropna=False)
        ]
        return pd.DataFrame(found, columns=[*keys, "part", *estimating.VALUES])

    @cached_property
    def traces(self) -> pd.DataFrame:
        """A row per GC cycle of the recorded gctraces: its case's keys, and the line's values.

        Columns: number, at (s), percent, cpu_ms, start_mb, live_mb, goal_mb, forced.
        """
        rows = []
        for case in self.recording.study.cases:
            path = self.recording.run.gctrace(case.name)
            if case.traced and path.exists():
                for cycle in gctrace.read(path).cycles:
                    values = {n: getattr(cycle, n) for n in _CYCLE}
                    rows.append(tidy.keys(case) | {"round": 1} | values)
        frame = pd.DataFrame(
            rows, columns=None if rows else ["release", "variant", "round", *_CYCLE]
        )
        return frame[[*self._keys(frame), *_CYCLE]]

    def calls(self, **filters: Any) -> pd.DataFrame:
        """The time of a call by the number of records in its span's list, a row per process.

        Columns: the case's keys, round, records, ns.
        """
        rows = []
        for case in self.recording.study.cases:
            samples = self.recording.accepted(case.variant, case.release)
            for round_, sample in samples.iterrows():
                for records, ns in zip(*walked(sample), strict=True):
                    rows.append(tidy.keys(case) | {"round": round_, "records": records, "ns": ns})
        frame = pd.DataFrame(
            rows, columns=None if rows else ["release", "variant", "round", "records", "ns"]
        )
        keys = self._keys(frame)
        return self._filtered(frame, filters)[[*keys, "round", "records", "ns"]].reset_index(
            drop=True
        )

    @cached_property
    def slices(self) -> pd.DataFrame:
        """A row per slice of the processes whose slices were stored: keys, slice, ns."""
        rows = []
        for case in self.recording.study.cases:
            path = self.recording.run.slices(case.name)
            if path.exists():
                times = path.read_text(encoding="utf-8").split()
                for number, ns in enumerate(map(float, times)):
                    rows.append(tidy.keys(case) | {"round": 1, "slice": number, "ns": ns})
        named = list(dict.fromkeys(key for row in rows for key in row))
        frame = pd.DataFrame(rows, columns=named or ["release", "variant", "round", "slice", "ns"])
        return frame[[*self._keys(frame.drop(columns=["slice", "ns"])), "slice", "ns"]]

    # --- Claims --------------------------------------------------------------------

    @property
    def published(self) -> pd.DataFrame:
        """The document's main table; `gccost.published(name)` reads the others."""
        found = sorted(paths.PUBLISHED.glob(f"{self.name}-*.csv"))
        timings = [path for path in found if path.stem.endswith("timings")]
        if not found:
            raise GccostError(f"no figures are published for {self.name}", str(paths.PUBLISHED))
        return published((timings or found)[0].stem)

    @cached_property
    def _rows(self) -> list[Row]:
        return ledger.rows({self.name: self.recording}, [self.recording.study])

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """A row per claim and release: what is claimed, measured, the rule's range, the verdict.

        Columns: id, release, claim, published, value, low, high (95 %), n, unit, verdict,
        reason, holds_from, holds_to, document.
        """
        return ledger.frame(self._rows)

    def judge(self, *claims: str) -> Markup:
        """The verdicts of claims as a table, with the rule's range and the reason."""
        known = list(dict.fromkeys(row.claim.id for row in self._rows))
        for claim in claims:
            if claim not in known:
                hint = nearest(claim, known)
                raise GccostError(f"there is no claim {claim!r}", f"study {self.name}", hint)
        chosen = [row for row in self._rows if row.claim.id in (claims or known)]
        header = ("claim", "on", "published", "measured (95 %)", "holds if", "verdict")
        return tables.table(
            header,
            [
                [
                    f"{row.claim.id}: {row.words}",
                    row.toolchain,
                    row.held_to,
                    results.cell(row),
                    results.region(row),
                    tables.Cell(str(row.verdict), row.why),
                ]
                for row in chosen
            ],
        )

    # --- By hand -------------------------------------------------------------------

    def shell(self, command: str) -> pd.DataFrame:
        """Run a command in the folder of the measured programs, as anyone would type it.

        Prints its output, and returns its results in the columns of `samples`. It runs on the
        newest release that was measured. Replay prints the output that was stored with the run.
        """
        language = languages.of(self.recording.study)
        stored = self.recording.manifest.get("shell", {})
        found = next((each for each in stored.values() if each["command"] == command), None)
        release = self.recording.newest
        if self.mode == "measure":
            printed = _run(command, language, release)
            print(f"{toolchains.title(release)}, run just now")
        elif found is None:
            print("The recorded run lacks this command's output; with a compiler, it runs here.")
            printed = ""
        else:
            printed = found["output"]
            print(f"{toolchains.title(release)}, recorded on {found['date'][:10]}")
        for line in filter(None, printed.splitlines()):
            name, *fields = line.split("\t")
            if name.startswith("Benchmark"):
                fields = [f for f in fields if f.strip().isdigit() or f.split()[-1] in _PRINTED]
            print(tables.printable("\t".join([name, *fields])))
        return read(io.StringIO(printed)).assign(release=toolchains.title(release))


def _varies(column: pd.Series) -> bool:
    """Whether a column has several values, NA being one."""
    return len(column.drop_duplicates()) > 1


_CYCLE = ("number", "at", "percent", "cpu_ms", "start_mb", "live_mb", "goal_mb", "forced")


def _run(command: str, language: languages.Language, release: str) -> str:
    toolchain = language.fetch(release, toolchains.silent)
    place = shlex.join(["sh", "-c", command])
    try:
        done = processes.run(
            ["/bin/sh", "-c", command],
            cwd=language.folder,
            env=language.environment(toolchain),
            stderr=subprocess.STDOUT,
            limit=SHELL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise GccostError(f"stopped after {SHELL_SECONDS} s", place) from None
    if done.returncode:
        raise GccostError(f"the command failed:\n{done.stdout.strip()}", place)
    return done.stdout


def open_study(name: str) -> OpenedStudy:
    """Open a study: your newest run that holds it, or the recorded one. Never measures.

    Display the result to see which run it is. Also gives seaborn the charts' style.
    Raises GccostError, naming the nearest, if there is no such study.
    """
    from gccost import study  # the older interface, which the other chapters still use

    drawing.theme()
    found = study._without_measuring(declared(name), Settings.read())
    return OpenedStudy(found.recording, found.mode, found.notices)


def measure(name: str, budget: str = "quick") -> OpenedStudy:
    """Measure what your run of a study lacks, with a progress bar, and open it."""
    from gccost import study
    from gccost.measuring.cases import budget as named

    drawing.theme()
    found = study.open_study(name, Settings("measure", named(budget)))
    return OpenedStudy(found.recording, found.mode, found.notices)


def read(source: str | Path | io.StringIO) -> pd.DataFrame:
    """Read the output of your own `go test -bench`: a file, or the text itself.

    A row per result, in the columns of `samples`: variant (in words, if it is one of ours),
    benchmark, operations, procs, mean_ns, and other metrics with the unit in their name.
    Raises GccostError if the file is missing or holds no result.
    """
    text = source.getvalue() if isinstance(source, io.StringIO) else str(source)
    place = "the command's output"
    if not isinstance(source, io.StringIO) and "\n" not in text:
        place = text
        try:
            text = Path(text).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            hint = "name a file with the output of go test -bench"
            raise GccostError(f"it cannot be read: {error.strerror}", place, hint) from None
    found = [s for s in benchfmt.results(text) if isinstance(s, benchfmt.Sample)]
    if not found and not isinstance(source, io.StringIO):
        hint = "it should have lines such as BenchmarkFree-8  1000000  60.6 ns/op"
        raise GccostError("it holds no result of a benchmark", place, hint)
    rows = [
        {
            "variant": NAMES.get(sample.name, sample.name),
            "benchmark": sample.name,
            **{
                key: pd.to_numeric(value) if key in tidy.NUMBERS else value
                for key, value in sample.keys.items()
            },
            "procs": sample.procs,
            "operations": sample.n,
            **{metrics.column(metric): value for metric, value in sample.metrics.items()},
        }
        for sample in found
    ]
    return pd.DataFrame(rows, columns=None if rows else ["variant", "operations", "mean_ns"])


def published(name: str) -> pd.DataFrame:
    """A document's table by name, such as "lemire-timings", with the keys of `samples`.

    A benchmark is a `variant` in words, GOGC is `gc`, the figure per operation is `value`.
    data/published/README.md lists the tables.
    """
    frame = transcribed.table(name)
    if "variant" in frame:
        frame["variant"] = frame["variant"].map(lambda each: NAMES.get(each, each))
    if "gogc" in frame and not pd.api.types.is_numeric_dtype(frame["gogc"]):
        frame["gc"] = frame["gogc"].map(lambda each: "off" if each == "off" else "on")
    return frame.rename(columns={"ns_per_op": "value"})


def source(path: str, *functions: str) -> Prose:
    """Show functions of a file of gosrc/, or a file of javasrc/, with their comments."""
    from gccost import study

    return study.source(path, *functions) if functions else study.listing(path)


# --- Figures as text ---------------------------------------------------------------


def _text(row: Any, unit: str, columns: tuple[str, str, str]) -> str:
    """A row's figure with its interval; "not measured", or "too few samples"."""
    if isinstance(row, pd.DataFrame):
        row = row.iloc[0] if len(row) == 1 else {}
    if columns[0] not in row:
        columns = ("value", "low", "high")
    value, low, high = (row.get(name, float("nan")) for name in columns)
    if pd.isna(value):
        return "not measured"
    known = {"value": value, "low": low, "high": high, "n": row.get("n", drawing.FEWEST)}
    if not drawing.quotable(known):
        return "too few samples"
    e = Estimate(float(value), float(low), float(high), int(known["n"]), 2, 0.95)
    return rounding.interval(e, unit)


_RATIO, _MORE = (
    tuple(f"{name}{end}" for end in ("", "_low", "_high")) for name in ("ratio", "more")
)


def times(row: Any) -> str:
    """A ratio with its interval, as text: "15.5× (15.0 to 16.1)"; takes a row of `compare`."""
    return _text(row, "ratio", _RATIO)


def ns(row: Any) -> str:
    """A time with its interval: "51.2 ns (49.9 to 52.6)"; takes a row of `costs` or `compare`."""
    return _text(row, "ns", _MORE)


def percent(row: Any) -> str:
    """A share in percent with its interval: "18.1 % (10.9 to 26.7)"; takes a row of `shares`."""
    return _text(row, "percent", ("value", "low", "high"))


def number(row: Any) -> str:
    """A count or another number with its interval; takes a row of `costs` or `derive`."""
    return _text(row, "number", ("value", "low", "high"))
