"""The shares (0 to 1) of a finalizer's cost that slabs and the recycled net saved, as recorded.

Computing such a share parses a recorded run, which takes much longer than explaining a profile. So
data/saved-shares.csv keeps them, with a digest of the recorded runs. For other runs than those,
they are computed. After a run was recorded:

    .venv/bin/python -m gccost.saved
"""

from __future__ import annotations

import hashlib
from functools import cache

from gccost import paths
from gccost.files import reading, write_whole
from gccost.run import schema

SLABS = "slabs, forgotten"
CLOSED_SLABS = "slabs, closed"
NET = "net, closed"
_COLUMNS = schema.columns("what share:amount runs:text")
_BLOCK = 1 << 20  # bytes


@cache
def share(what: str) -> float:
    """The share that the recorded runs show for SLABS, CLOSED_SLABS or NET."""
    kept = {row["what"]: row for row in schema.rows(paths.SAVED_SHARES, _COLUMNS)}
    row = kept.get(what)
    if row and row["runs"] == digest():
        return float(row["share"])
    return computed(what)


@cache
def digest() -> str:
    """The hex digest of what the recorded runs hold."""
    made = hashlib.blake2b(digest_size=16)
    for path in sorted(paths.reference().glob("*/*.*")) + [paths.reference() / "reference.json"]:
        if not path.is_file():
            continue
        made.update(f"\0{path.relative_to(paths.reference())}\0".encode())
        with reading(path), path.open("rb") as file:
            while block := file.read(_BLOCK):
                made.update(block)
    return made.hexdigest()


def write() -> None:
    """Compute the shares, and keep them."""
    rows = [f'"{what}",{computed(what)!r},{digest()}' for what in (SLABS, CLOSED_SLABS, NET)]
    text = "\n".join([",".join(_COLUMNS), *rows, ""])
    write_whole(paths.SAVED_SHARES, text.encode())


def computed(what: str) -> float:
    """The share, from the samples of the recorded runs."""
    from gccost.cases.versions import TODAY_GO
    from gccost.costs.recording import Recording
    from gccost.judging.opening import reference
    from gccost.judging.quantities import SavedShare
    from gccost.studies import remedies, wrappers

    study, metric = wrappers.STUDY, "settled_ns"
    each, manual = "WrapperFinalizer/bytes=64/forgotten=0", "WrapperFree/bytes=24"
    if what == SLABS:
        study = remedies.STUDY
        each, other, manual = (
            f"Turns{way}/goroutines=1" for way in ("Finalizer", "Adopted", "Manual")
        )
    elif what == CLOSED_SLABS:
        other = "WrapperAdopted/bytes=24/forgotten=0"
    else:
        other = "WrapperGuardian/bytes=24/forgotten=0"
    saved = SavedShare(each, other, manual, metric)
    return saved.on(Recording(study, reference(study)), TODAY_GO).value


if __name__ == "__main__":
    write()
