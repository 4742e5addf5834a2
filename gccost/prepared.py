"""What kernels share: imported modules and opened studies. Imported by the process they fork from.

See `gccost.showing.forked`.
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
from gccost.judging import carrying, opening
from gccost.showing import drawing as _drawing  # noqa: F401
from gccost.studies import STUDIES

# As in a kernel that imports pandas itself: pandas asks at its import whether it runs in one.
pd.set_option("display.max_columns", 20)

with suppress(GccostError):  # the notebooks say what is wrong, each in its place
    for recording in opening.every(STUDIES.values(), Settings.read()).values():
        samples.costs_of(recording.run)
    for run in recorded():
        samples.costs_of(run)
    carrying.by_machine([*STUDIES.values()])  # judges the recorded runs once for all kernels

gc.freeze()  # a collection in a kernel would copy the pages that it shares
