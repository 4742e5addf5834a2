"""What kernels, and processes that make pages, share: imported modules and opened studies.

The process that they fork from imports it: see `gccost.showing.forked`.
"""

from __future__ import annotations

import gc
from contextlib import suppress

import ipykernel.kernelapp as _kernelapp  # noqa: F401
import pandas as pd
import seaborn as _seaborn  # noqa: F401

from gccost import notebook as _notebook  # noqa: F401
from gccost.cases.settings import Settings
from gccost.costs import samples
from gccost.costs.recorded import recorded
from gccost.errors import GccostError
from gccost.judging import carrying, ledger, opening
from gccost.showing import drawing as _drawing  # noqa: F401
from gccost.showing import reporting as _reporting  # noqa: F401
from gccost.studies import STUDIES

# As in a kernel that imports pandas itself: pandas asks at its import whether it runs in one.
pd.set_option("display.max_columns", 20)

with suppress(GccostError):  # the notebooks say what is wrong, each in its place
    recordings = opening.every(STUDIES.values(), Settings.read())
    for run in [*(recording.run for recording in recordings.values()), *recorded()]:
        samples.costs_of(run)
    # What is recorded is judged once for all kernels.
    replayed = {name: each for name, each in recordings.items() if each.mode == "replay"}
    ledger.rows(replayed, [each.study for each in replayed.values()])
    carrying.by_machine([*STUDIES.values()])

gc.freeze()  # a collection in a kernel would copy the pages that it shares
