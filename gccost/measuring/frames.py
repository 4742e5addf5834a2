"""Selecting cases' samples from a frame with a row per sample, as from `benchfmt.read`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pandas as pd
from pandas.api.types import is_numeric_dtype

from gccost.measuring import toolchains
from gccost.measuring.cases import Case

MOST_ROUNDS = 1_000_000  # the largest valid round number
# The key of each language that identifies a release.
RELEASES = ("go", "jdk")
# The keys that identify a case, in the order of its name.
KEYS = (
    *("words", "goroutines", "handles", "live", "mb", "mib", "remaining"),
    *("order", "bytes", "dummies", "others"),
    *(*RELEASES, "gogc", "gomemlimit", "gomaxprocs", "setting", "control", "profile", "runtime"),
    *("arenas", "run"),
    *("method", "load", "measurement", "against"),
    *("gc", "heap", "escape", "finalization", "gcthreads"),
)


def of_cases(frame: pd.DataFrame, cases: Iterable[Case]) -> pd.DataFrame:
    """The samples that belong to the cases and have their N, with columns `name` and
    `release`."""
    frame = _tidy(frame)
    if not len(frame) or "round" not in frame:
        return frame.iloc[:0].assign(
            name=pd.Series(dtype=str), release=pd.Series(dtype=str), round=pd.Series(dtype=float)
        )
    wanted = {c.name: c.n for c in cases}
    names = _names(frame)
    n = names.map(wanted)
    in_round = frame["round"].between(1, MOST_ROUNDS)
    frame = frame.assign(name=names, release=_releases(frame))
    return frame[(n.eq(frame["n"]) | n.eq(0)) & in_round]


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with our keys as text and all other columns as numbers.

    A foreign line may have a metric named like one of our keys, or a key named like one of
    our metrics; see `benchfmt.Reading`.
    """
    numbers = {column for column in frame if is_numeric_dtype(frame[column])}
    texts = {
        key: next((c for c in (key, f"/{key}", f"//{key}") if c in frame and c not in numbers), "")
        for key in KEYS
    }
    present = {key: column for key, column in texts.items() if column}
    order = [c for c in frame if c in numbers - set(KEYS) or c == "benchmark"]
    return frame[order].assign(**{key: frame[column] for key, column in present.items()})


def _releases(frame: pd.DataFrame) -> pd.Series:
    """The release of each sample's toolchain; empty if it names none."""
    releases = pd.Series("", index=frame.index)
    for key in RELEASES:
        if key in frame:
            named = frame[key].astype(str).map(lambda v, k=key: toolchains.from_name(k, v))
            releases = releases.where(releases != "", named)
    return releases


def _names(frame: pd.DataFrame) -> pd.Series:
    """The name of each sample's case."""
    names = frame["benchmark"].astype(str)
    for key in KEYS:
        if key in frame:
            values = frame[key].astype(str)
            names = names + values.map(lambda v, k=key: f"/{k}={v}" if v else "")
    return names


def by_case(frame: pd.DataFrame) -> Mapping[str, pd.DataFrame]:
    """The samples of each case by its name, indexed by round, in order."""
    # A copy consolidates the columns, which makes later operations several times as fast.
    ordered = frame.copy().set_index("round").sort_index(kind="stable")
    cases: defaultdict[str, pd.DataFrame] = defaultdict(lambda: ordered.iloc[:0])
    measured = ordered.notna().groupby(ordered["name"].to_numpy()).any()  # at all, in a case
    cases |= {
        str(name): samples.loc[:, measured.loc[name].to_numpy()]
        for name, samples in ordered.groupby("name", sort=False)
    }
    return cases
