"""The documents' figures, transcribed in data/published/, whose README explains the columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from gccost import paths
from gccost.errors import GccostError, nearest
from gccost.files import read_table, read_text, reading
from gccost.measuring import benchmarks, gctrace

# The kinds of the tables' columns: text, whole numbers, numbers.
KINDS = {
    "addcleanup-timings": "UUiUf",
    "claims": "UUUfUUUU",
    "cloudflare-profile": "Ufffff",
    "cloudflare-throughput": "iUf",
    "documents": "UUUUUUUUUU",
    "lemire-profile": "Ufffff",
    "lemire-timings": "UUUfU",
    "release-notes": "UUU",
    "siebenmann-profile": "UfU",
    "siebenmann-sizes": "Uiifii",
    "weimer-timings": "Uifffiii",
}


def table(name: str) -> pd.DataFrame:
    """Read a published table by name, such as "lemire-timings".

    Raises GccostError, with the file, if it is missing or damaged.
    """
    path = paths.PUBLISHED / f"{name}.csv"
    if not path.exists():
        known = sorted(p.stem for p in paths.PUBLISHED.glob("*.csv"))
        raise GccostError(f"there is no published table {name!r}", hint=nearest(name, known))
    read_table(path)
    with reading(path):
        frame: pd.DataFrame = pd.read_csv(path, dtype={"gogc": str}, keep_default_na=False)
        kinds = "".join(kind if (kind := frame[c].dtype.kind) in "if" else "U" for c in frame)
        if kinds != KINDS.get(name, kinds):
            raise ValueError(f"its columns hold {kinds}, not {KINDS[name]}: text, floats, integers")
    return frame


def text(name: str) -> str:
    """Read a published text. Raises GccostError, with the file, if it is damaged."""
    return read_text(paths.PUBLISHED / name)


def by_name(name: str, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A table's rows by their first column. Raises GccostError if a wanted one is missing."""
    rows = table(name).to_dict("records")
    found = {str(next(iter(row.values()))): {str(k): v for k, v in row.items()} for row in rows}
    with reading(paths.PUBLISHED / f"{name}.csv"):
        if len(found) < len(rows):
            raise ValueError("a name is there twice")
    if missing := {*wanted} - found.keys():
        lacks = f"it lacks {', '.join(sorted(missing))}"
        raise GccostError(lacks, str(paths.PUBLISHED / f"{name}.csv"), "add a row for each")
    return found


def published(name: str) -> pd.DataFrame:
    """A document's table by name, such as "lemire-timings", with the keys of `samples`.

    A benchmark is a `variant` in words, GOGC is `gc`, the figure per operation is `value`.
    data/published/README.md lists the tables; a gctrace has the columns of `traces`.
    """
    if name.endswith("-gctrace"):
        trace = text(f"{name}.txt")
        return pd.DataFrame(map(gctrace.values, gctrace.parse(trace).cycles))
    frame = table(name)
    if "variant" in frame:
        frame["variant"] = frame["variant"].map(lambda each: benchmarks.of(each).variant)
    if "gogc" in frame and not pd.api.types.is_numeric_dtype(frame["gogc"]):
        frame["gc"] = frame["gogc"].map(lambda each: "off" if each == "off" else "on")
    return frame.rename(columns={"ns_per_op": "value"})
