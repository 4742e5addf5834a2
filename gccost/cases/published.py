"""The documents' figures, transcribed in data/published/, whose README explains the columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gccost import paths
from gccost.cases import benchmarks
from gccost.errors import GccostError, expect
from gccost.files import read_text, reading
from gccost.run import gctrace
from gccost.run.schema import columns, rows

if TYPE_CHECKING:
    import pandas as pd

# The columns of the tables; those without a kind are texts.
_PROFILE = (
    "function flat_s:amount flat_percent:amount sum_percent:amount cum_s:amount cum_percent:amount"
)
_TABLES = {
    "addcleanup-timings": "machine variant procs:count iterations ns_per_op:amount",
    "claims": "id document claim value:amount unit figure setup kind same_as",
    "cloudflare-profile": _PROFILE,
    "cloudflare-throughput": "goroutines:count gogc op_per_s:amount",
    "documents": "document chapter author title date toolchain short address headline words "
    "stand_in",
    "kinds": "claim program special object_bytes rate live remedy",
    "lemire-profile": _PROFILE,
    "lemire-timings": "language variant gogc ns_per_op:amount source",
    "siebenmann-profile": "share percent:amount exact",
    "siebenmann-sizes": "variant words:count iterations:count ns_per_op:amount "
    "bytes_per_op:count allocs_per_op:count",
    "weimer-timings": "variant objects:count user_s:amount system_s:amount elapsed_s:amount "
    "cpu_percent:count max_rss_kb:count minor_faults:count",
}


def table(name: str) -> pd.DataFrame:
    """Read a published table by name, such as "lemire-timings".

    Raises GccostError, with the file and the line, if it is missing or damaged.
    """
    import pandas as pd  # which takes longer than to read a table without it

    expect(_TABLES, name, "published table")
    return pd.DataFrame(rows(paths.PUBLISHED / f"{name}.csv", columns(_TABLES[name])))


def text(name: str) -> str:
    """Read a published text. Raises GccostError, with the file, if it is damaged."""
    return read_text(paths.PUBLISHED / name)


def by_name(name: str, wanted: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A table's rows by their first column. Raises GccostError if a wanted one is missing."""
    path = paths.PUBLISHED / f"{name}.csv"
    lines = rows(path, columns(_TABLES[name]))
    entries = {}
    for row in lines:
        first, *_ = row.values()
        entries[first] = row
    with reading(path):
        if len(entries) < len(lines):
            raise ValueError("a name is there twice")
    if missing := {*wanted} - entries.keys():
        raise GccostError(f"it lacks {', '.join(sorted(missing))}", str(path), "add a row for each")
    return entries


def published(name: str) -> pd.DataFrame:
    """A document's table by name, such as "lemire-timings", with the keys of `samples`.

    A benchmark is a `variant` in words, GOGC is `gc`, the figure per operation is `value`.
    data/published/README.md lists the tables; a gctrace has the columns of `traces`.
    """
    import pandas as pd

    if name.endswith("-gctrace"):
        trace = text(f"{name}.txt")
        return pd.DataFrame(map(gctrace.values, gctrace.parse(trace).cycles))
    frame = table(name)
    if "variant" in frame:
        frame["variant"] = frame["variant"].map(lambda name: benchmarks.of(name).variant)
    if "gogc" in frame and not pd.api.types.is_numeric_dtype(frame["gogc"]):
        frame["gc"] = frame["gogc"].map(lambda gogc: "off" if gogc == "off" else "on")
    return frame.rename(columns={"ns_per_op": "value"})
