"""The documents' figures, transcribed in data/published/, whose README explains the columns."""

from __future__ import annotations

import pandas as pd

from gccost import paths
from gccost.errors import GccostError, nearest


def table(name: str) -> pd.DataFrame:
    """Read a published table by name, such as "lemire-timings"."""
    path = paths.PUBLISHED / f"{name}.csv"
    if not path.exists():
        known = sorted(p.stem for p in paths.PUBLISHED.glob("*.csv"))
        raise GccostError(f"there is no published table {name!r}", hint=nearest(name, known))
    frame: pd.DataFrame = pd.read_csv(path, dtype={"gogc": str}, keep_default_na=False)
    return frame


def claims() -> pd.DataFrame:
    """The published claims, indexed by id."""
    return table("claims").set_index("id")
