"""Two small notebooks with every kind of content that the report must show.

They resemble chapters and are executed for real. The package makes the ledger; the charts
imitate the package's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from gccost.settings import Settings
from gccost.showing.execute import execute_all
from gccost.showing.report import write_report

# Like the chapters' charts: colours that follow the page, and unique ids.
SHOW = """\
import base64, io

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.rcParams.update(
    {"svg.fonttype": "none", "svg.hashsalt": "fixture", "figure.facecolor": "none",
     "axes.facecolor": "none", "text.color": "#1f2328", "axes.labelcolor": "#1f2328",
     "xtick.color": "#59636e", "ytick.color": "#59636e", "axes.edgecolor": "#d1d9e0",
     "font.family": ["DejaVu Sans"]}
)
INKS = {"#1f2328": "var(--ink, #1f2328)", "#59636e": "var(--muted, #59636e)",
        "#d1d9e0": "var(--grid, #d1d9e0)"}


class Chart:
    def __init__(self, name, title, alt, rows, svg=True, png=True):
        figure = Figure(figsize=(6.8, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        labels = [label for label, _ in rows]
        values = [value for _, value in rows]
        axes.hlines(range(len(rows)), 0, values, color="#d1d9e0")
        axes.scatter(values, range(len(rows)), color="#0072b2", zorder=3)
        for at, value in enumerate(values):
            axes.annotate(f"{value} ns", (value, at), xytext=(9, 0),
                          textcoords="offset points", va="center")
        axes.set_yticks(range(len(rows)), labels)
        axes.set_xlim(0, max(values) * 1.15)
        axes.set_xlabel("ns per object")
        clip = axes.fill_between([0, values[0]], -0.5, len(rows) - 0.5, alpha=0.1, linewidth=0)
        vector, raster = io.StringIO(), io.BytesIO()
        figure.savefig(vector, format="svg", metadata={"Date": None})
        figure.savefig(raster, format="png", metadata={"Software": None})
        text = vector.getvalue()
        for colour, ink in INKS.items():
            text = text.replace(colour, ink)
        self.data = {
            "text/plain": f"{title}. {alt}",
            "text/csv": "variant,ns\\n" + "".join(f"{label},{value}\\n" for label, value in rows),
        }
        if svg:
            self.data["image/svg+xml"] = text
        if png:
            self.data["image/png"] = base64.b64encode(raster.getvalue()).decode()
        self.about = {"gccost": {"chart": name, "title": title}}

    def _repr_mimebundle_(self, **_):
        return self.data, self.about
"""

# Rows with every verdict, without a recording.
LEDGER = """\
from dataclasses import replace

from gccost.judging import ledger, rules
from gccost.showing import results
from gccost.stats import Estimate
from gccost.studies import STUDIES

lemire = STUDIES["lemire"]
claims = [replace(claim, anchor="the-gap") for claim in lemire.claims]
made = ledger.rows({}, [replace(lemire, claims=claims)])
labels = list(rules.Label) * 2
rows = [
    replace(row, estimate=Estimate(x, 0.9 * x, 1.1 * x, 9, 9, 0.05),
            verdict=rules.Verdict(label, "why <it> is so"))
    for x, (row, label) in enumerate(zip(made, labels, strict=True), start=1)
]
results.first_screen(rows)
"""

QUESTION = """\
# Is a finalizer ten times more expensive than freeing by hand?

Daniel Lemire measured, in May 2023, that freeing C memory from a **finalizer** costs nearly
ten times what freeing it by hand costs: 650 ns against 75 ns
([the document](https://example.org/lemire)). This chapter repeats the experiment on the
document's Go release and on today's, and says how sure it is. It needs
[the results](00-results.ipynb#The-ledger), [what comes next](02-siebenmann.ipynb) and
[the code](../gosrc/cstr/cstr.go).

## The code under test

The handle holds a pointer to 100 bytes of C memory; `runtime.SetFinalizer` frees it.

```go
// AllocateAuto allocates a C string that its finalizer frees.
func AllocateAuto() *Cstr {
	handle := &Cstr{cpointer: C.allocate()}
	runtime.SetFinalizer(handle, func(h *Cstr) {
		C.free_allocated(h.cpointer)
	})
	return handle
}
```

| variant | allocs/op | ns/op | against freeing by hand |
|---|---|---:|---|
| AllocateFree | 0 | 60.6 | 1× |
| AllocateAuto | 1 | 1,150 | 18.4× (18.1 to 18.8) |
| AllocateCleanup | 4 | 611 | – |
"""

GAP = """\
## The gap

What follows is drawn from the samples, and [the cell that ran them](#measured) shows them all.

- a **round** runs every case once, in a seeded random order;
- a *sample* is one fresh process.

> The denominator is a toy and has shrunk.

### What else was seen

See [the ledger](00-results.ipynb#cell-id=ledger).
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
    """Write the two notebooks, unexecuted: the results and a chapter."""
    results = [
        prose("# Results\n\nEvery claim of the document, and what became of it.", "title"),
        code(
            "from gccost.showing.tables import stacked, warnings\n"
            "virtual = ['the machine is virtual: other guests may take its time']\n"
            "stacked([warnings(virtual, 'What makes this run less trustworthy')] * 2)",
            "warnings",
            "hide",
        ),
        prose("## The ledger", "ledger-title"),
        code(LEDGER, "first-screen"),
        code("results.ledger(rows)", "ledger"),
        code(SHOW, "show", "hide"),
        code(
            'Chart("verdicts", "Three of four claims hold",\n'
            '      "On Go 1.20 L1 is at 9.4 times, on 1.27 at 18.4.",\n'
            '      [("L1", 650), ("L2", 580), ("L3", 70)])',
            "verdicts",
        ),
    ]
    chapter = [
        prose(QUESTION, "question"),
        code(SHOW, "show", "hide"),
        code(
            "import sys\n\n"
            "print('BenchmarkAllocateFree/go=1.27.4/gogc=100  1600000  60.61 ns/op  62.4 B/op')\n"
            "for line in range(2):\n"
            "    print('a second line, and a word that is long:', 'x' * 40)",
            "measured",
        ),
        prose(GAP, "the-gap"),
        code(
            "from IPython.display import Markdown, display\n\n"
            'gap = Chart("lemire-gap", "A finalizer costs 18.4 times freeing by hand",\n'
            '            "By hand 61 ns, by finalizer 1,150 ns.",\n'
            '            [("freed manually", 61), ("AddCleanup", 611), ("finalizer", 1150)])\n'
            "display(gap)\n"
            'display(Markdown("The gap is **18.4×** (18.1 to 18.8)."))',
            "gap-chart",
        ),
        code(
            'Chart("lemire-raster", "The same, as a picture",\n'
            '      "By hand 61 ns, by finalizer 1,150 ns.",\n'
            '      [("freed manually", 61), ("finalizer", 1150)], svg=False)',
            "raster",
        ),
        code("18.4 * 61", "result"),
    ]
    return [
        write(folder / "00-results.ipynb", results),
        write(folder / "01-lemire.ipynb", chapter),
    ]


REPLAY = Settings("replay")


def execute(
    notebook: Path,
    into: Path,
    settings: Settings = REPLAY,
    on_stderr: Callable[[str], object] | None = None,
) -> Path:
    """Run one notebook; return the path of the executed one."""
    execute_all({notebook: into}, settings, on_stderr=on_stderr)
    return into


TITLE = "What automatic clean-up costs"
PURPOSE = "Published claims about finalizers, cleanups and cleaners, measured again and judged."
FILES = {"ledger.csv": "id,toolchain,published,estimate\nL1,1.27.4,8.67,18.4\n"}


@pytest.fixture(scope="session")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """The two notebooks, executed once for all modules that import this."""
    folder = tmp_path_factory.getbasetemp() / "fixture"
    if (folder / "executed").exists():
        return sorted((folder / "executed").glob("*.ipynb"))
    return [
        execute(path, folder / "executed" / path.name) for path in write_all(folder / "notebooks")
    ]


@pytest.fixture(scope="session")
def report(executed: Sequence[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the report of the two notebooks."""
    return write_fixture_report(executed, tmp_path_factory.mktemp("report"))


def write_fixture_report(executed: Sequence[Path], out: Path) -> Path:
    """Write the report of executed notebooks; return its folder."""
    write_report(executed, out, title=TITLE, purpose=PURPOSE, files=FILES)
    return out
