"""Three small notebooks with every kind of content that the report must show, run for real."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from gccost.cases.settings import Settings
from gccost.showing.execute import execute_all
from gccost.showing.report import write_report

# Rows with every verdict, without a recording.
ROWS = """\
from dataclasses import replace

from gccost.judging import ledger, rules
from gccost.showing import drawing, results, tables
from gccost.stats import Estimate
from gccost.studies import STUDIES

drawing.theme()
lemire = STUDIES["lemire"]
claims = [replace(claim, anchor="the-gap") for claim in lemire.claims]
made = ledger.rows({}, [replace(lemire, claims=claims)])
labels = list(rules.Label) * 2
rows = [
    replace(row, estimate=Estimate(x, 0.9 * x, 1.1 * x, 9, 9, 0.05),
            verdict=rules.Verdict(label, "why <it> is so"))
    for x, (row, label) in enumerate(zip(made, labels, strict=False), start=1)
]
"""

QUESTION = """\
# Is a finalizer ten times more expensive than freeing by hand?

Daniel Lemire measured that freeing C memory from a **finalizer** costs nearly ten times what
freeing it by hand costs ([the document](https://example.org/lemire)). This chapter needs
[the results](00-results.ipynb), [the ledger](11-ledger.ipynb#The-ledger),
[what comes next](02-siebenmann.ipynb) and [the code](../gosrc/cstr/cstr.go).

## The code under test

```go
// AllocateAuto allocates a C string that its finalizer frees.
func AllocateAuto() *Cstr {
	handle := &Cstr{cpointer: C.allocate()}
	runtime.SetFinalizer(handle, func(h *Cstr) { C.free_allocated(h.cpointer) })
	return handle
}
```

| variant | release | ns/op | against freeing by hand |
|---|---|---:|---|
| AllocateFree | 1.27.4 | 60.6 | 1× |
| AllocateAuto | 1.27.4 | 1,150 | 18.4× (18.1 to 18.8) |
| AllocateCleanup | 1.20 | 611 | – |
"""

GAP = """\
## The gap

What follows is drawn from the samples, and [the cell that ran them](#measured) shows them all.

### What else was seen

See [the ledger](11-ledger.ipynb#cell-id=ledger).
"""

NOTICE = """\
from gccost.showing import tables

page = "<details><summary>Recorded run of 2026</summary><p>as it was measured</p></details>"
tables.Markup(page, "Recorded run of 2026")
"""

CHART = """\
import matplotlib.pyplot as plt
import pandas as pd

import gccost
from gccost.showing import drawing

drawing.theme()
gap = pd.DataFrame({{"variant": ["freed manually", "AddCleanup", "finalizer"],
                    "value": [61, 611, 1150]}})
with gccost.chart("{name}", "{title}", gap):
    _, axes = plt.subplots(figsize=(6.8, 2.4))
    axes.scatter(gap.value, gap.variant)
"""


def code(source: str, cell_id: str, *tags: str) -> NotebookNode:
    """A code cell."""
    metadata = {"tags": list(tags)} if tags else {}
    return nbformat.v4.new_code_cell(source, id=cell_id, metadata=metadata)


def prose(source: str, cell_id: str) -> NotebookNode:
    """A markdown cell."""
    return nbformat.v4.new_markdown_cell(source, id=cell_id)


def write(path: Path, cells: Iterable[NotebookNode]) -> Path:
    """Write these cells as an unexecuted notebook, as JupyterLab would save it."""
    metadata = {
        "kernelspec": {"name": "some-other-kernel", "display_name": "Other", "language": "python"},
        "language_info": {"name": "python", "version": "3.12.1"},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=list(cells), metadata=metadata), path)
    return path


def write_all(folder: Path) -> Sequence[Path]:
    """Write the three notebooks, unexecuted: the results, a chapter and the ledger."""
    results = [
        prose("# Results\n\nEvery claim of the document, and what became of it.", "title"),
        code(ROWS + "results.first_screen(rows)", "first-screen", "hide"),
        code("tables.warnings(['the machine is virtual'], 'Less trustworthy')", "warnings"),
        code(CHART.format(name="verdicts", title="Three of four claims hold"), "verdicts"),
    ]
    chapter = [
        prose(QUESTION, "question"),
        code(NOTICE, "notice", "hide"),
        code("print('BenchmarkAllocateFree/go=1.27.4  60.61 ns/op', 'x' * 99)", "measured"),
        prose(GAP, "the-gap"),
        code(CHART.format(name="lemire-gap", title="A finalizer costs 18.4 times"), "gap-chart"),
        code(CHART.format(name="lemire-again", title="The same again"), "again"),
        code("18.4 * 61", "result"),
    ]
    ledger = [
        prose("# The ledger", "title"),
        code(ROWS + "results.ledger(rows)", "ledger", "hide"),
        code(CHART.format(name="verdicts", title="Three of four claims hold"), "verdicts"),
    ]
    return [
        write(folder / "00-results.ipynb", results),
        write(folder / "01-lemire.ipynb", chapter),
        write(folder / "11-ledger.ipynb", ledger),
    ]


REPLAY = Settings("replay")


def execute(notebook: Path, into: Path, settings: Settings = REPLAY) -> Path:
    """Run one notebook; return the path of the executed one, or raise why it failed."""
    for error in execute_all({notebook: into}, settings).values():
        raise error
    return into


FILES = {"ledger.csv": "id,toolchain,published,estimate\nL1,1.27.4,8.67,18.4\n"}


@pytest.fixture(scope="session")
def executed(tmp_path_factory) -> Sequence[Path]:
    """The three notebooks, executed once for all modules that import this."""
    folder = tmp_path_factory.getbasetemp() / "fixture"
    if not folder.exists():
        for path in write_all(folder / "unexecuted"):
            execute(path, folder / path.name)
    return sorted(folder.glob("*.ipynb"))


@pytest.fixture(scope="session")
def report(executed, tmp_path_factory) -> Path:
    """The folder of the report of the two notebooks."""
    return write_fixture_report(executed, tmp_path_factory.mktemp("report"))


def write_fixture_report(
    executed: Sequence[Path], out: Path, files: dict[str, str] = FILES
) -> Path:
    """Write the report of executed notebooks; return its folder, or raise why a page failed."""
    words = {"title": "What it costs", "purpose": "Claims, judged."}
    for error in write_report(executed, out, files=files, **words).values():
        raise error
    return out
