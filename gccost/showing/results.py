"""The ledger as a reader sees it: a line per claim, with then and today and a small picture.

The pictures are SVGs with positions in percent, so that they stretch with their column.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gccost.judging import rounding, rules
from gccost.judging.ledger import Row, Tested, by_document, table, verdict_counts
from gccost.judging.rules import Agrees, Label, Rule
from gccost.showing import tables
from gccost.showing.tables import Cell, Markup

TEMPLATES = Path(__file__).with_name("template")
PAGES = Environment(
    loader=FileSystemLoader(TEMPLATES),
    autoescape=True,
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
RESULTS, LEDGER = "00-results", "11-ledger"  # the notebooks that show them
WILD = "12-in-the-wild"  # shows what was counted in public modules; no study measures that
STYLE = "results.css"  # of the templates; a notebook's output brings it along


def number(notebook: str) -> str:
    """The number of a chapter by its file's name, such as "8a" for "08a-details"."""
    return notebook.partition("-")[0].lstrip("0")


PAGES.filters["number"] = number

COUNTED: Mapping[Label, tuple[str, str]] = {
    Label.HOLDS: ("holds", "hold"),
    Label.FAILS: ("does not hold", "do not hold"),
    Label.UNDECIDED: ("undecided", "undecided"),
    Label.UNTESTABLE: ("needs another machine", "need another machine"),
    Label.UNMEASURED: ("not measured", "not measured"),
}
"""The verdict of one claim and of several, as in "1 holds" and "3 hold"."""

_OVER = {1 / 8: "⅛", 1 / 4: "¼", 1 / 2: "½", 1: "1", 2: "2", 4: "4", 8: "8"}


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis from `low` to `high` with labelled ticks."""

    low: float
    high: float
    ticks: Mapping[float, str]

    def at(self, value: float) -> float:
        """A value's place in percent of the axis; beyond the axis, one of its ends."""
        if value <= self.low:
            return 0.0
        share = math.log(min(value, self.high) / self.low) / math.log(self.high / self.low)
        return round(100 * share, 2)

    def beyond(self, value: float) -> str:
        """The side on which a value is off the scale; empty if it is on it."""
        return "left" if value < self.low else "right" if value > self.high else ""


_RELATIVE = Scale(1 / 9, 9, _OVER)


@dataclass(frozen=True)
class Picture:
    """What a line's picture shows, in the unit of its scale."""

    line: Tested
    scale: Scale
    unit: float  # the value at which the scale is 1

    @property
    def band(self) -> tuple[float, float] | None:
        """Where the claim holds: left end and width in percent."""
        low, high = (end / self.unit for end in self.line.latest.bounds)
        if not low < high:
            return None
        left, right = self.scale.at(low), self.scale.at(high)
        return left, round(right - left, 2)

    @property
    def published(self) -> float | None:
        """The place of the published figure, if there is one."""
        row = self.line.latest
        return None if row.is_bar else self.scale.at(row.published / self.unit)

    def dots(self, row: Row) -> list[tuple[float, str]]:
        """The places of a row's estimates, and on which side they are off the scale.

        An end of the interval that is off the scale has a place, too.
        """
        if isinstance(row.claim.rule, Agrees):
            return []

        def place(value: float) -> tuple[float, str]:
            return self.scale.at(value / self.unit), self.scale.beyond(value / self.unit)

        measured = row.estimate
        ends = map(place, (measured.low, measured.high) if measured.has_interval else ())
        return list(dict.fromkeys([place(measured.value), *(end for end in ends if end[1])]))

    @property
    def alt(self) -> str:
        """The picture in words."""
        row = self.line.latest
        rows = [each for each in (self.line.then, self.line.today) if each]
        return "; ".join(
            [row.held_to if row.is_bar else f"published {row.held_to}"]
            + [f"{each.toolchain} {measured_text(each)}, {each.said}" for each in rows]
        )


def measured_text(row: Row) -> str:
    """A row's estimate with its interval, or its p; a dash if there is none."""
    return str(cell(row))


def cell(row: Row) -> Cell:
    """The same with the interval below the estimate."""
    rule = row.claim.rule
    if row.estimate.n and isinstance(rule, Agrees):
        return Cell(rule.p_text(row.estimate))
    return tables.estimate(row.estimate, row.unit)


def holds_if(rule: Rule) -> str:
    """A rule in words: the first sentence of its description."""
    return (inspect.getdoc(type(rule)) or "").partition("\n\n")[0].replace("\n", " ")


def region(row: Row) -> str:
    """The range in which a claim holds, in words; empty if there is none."""
    low, high = row.bounds
    return "" if math.isnan(low) else rules.region(low, high, row.unit)


def counts(lines: Iterable[Tested]) -> str:
    """How many claims have each verdict, as in "3 hold, 1 does not hold"."""
    return ", ".join(f"{n} {COUNTED[label][n != 1]}" for label, n in verdict_counts(lines).items())


def first_screen(rows: Iterable[Row]) -> Markup:
    """The verdicts counted, and each document's headline claim, published, then and today."""
    documents = [each for each in by_document(rows) if each.headline]
    chosen = [line for each in documents if (line := each.drawn)]
    scale = _spanning([row for line in chosen for row in line.rows])
    plain = [
        [each.words, *(_plainly(row) for row in (each.drawn.then, each.drawn.today))]
        for each in documents
        if each.drawn
    ]
    shown = _rendered(
        "headlines",
        "\n".join(", ".join(filter(None, cells)) for cells in plain),
        documents=documents,
        count=verdict_counts(line for each in documents for line in each.lines),
        scale=scale,
        newest=", ".join(dict.fromkeys(line.today.toolchain for line in chosen if line.today)),
    )
    return replace(shown, name="answers")


def ledger(rows: Sequence[Row]) -> Markup:
    """The ledger: a line per claim, grouped by document, with links to the chapters."""
    header = ("claim", "", "release", "published", "measured", "measured ÷ published", "verdict")
    plain = [list(header)]
    for row in rows:
        factor = rounding.times(row.factor) if row.sized else "–"
        plain.append(
            [row.claim.id, row.words, row.toolchain, row.held_to, measured_text(row), factor]
            + [f"{row.said}: {row.verdict.reason}"]
        )
    shown = _rendered("ledger", tables.plain(plain), documents=by_document(rows))
    return replace(shown, name="ledger", csv=csv(rows))


def machines(ledgers: Mapping[str, Sequence[Row] | str]) -> Markup | None:
    """The verdicts that several machines have, or why one has none, as a table that opens.

    A column for each machine. None if no claim was tested on two machines.
    """
    cells: dict[tuple[str, str], dict[str, Cell]] = {}
    for label, rows in ledgers.items():
        if isinstance(rows, str):
            cells.setdefault(_UNJUDGED, {})[label] = Cell(tables.printable(rows))
            continue
        for row in rows:
            if row.verdict.label not in (Label.UNMEASURED, Label.UNTESTABLE):
                shown = cell(row)
                judged = Cell(f"{shown.text} {row.said}", shown.note)
                cells.setdefault((row.claim.id, row.toolchain), {})[label] = judged
    shared = [
        [*at, *(of.get(label, "–") for label in ledgers)]
        for at, of in cells.items()
        if len(of) > 1 or at == _UNJUDGED
    ]
    if not shared:
        return None
    whole = tables.table(("claim", "on", *ledgers), shared, merged={0})
    line = f"The verdicts of {len(ledgers)} recorded machines, whose samples are never pooled"
    page = f"<details><summary>{line}</summary>{whole.html}</details>"
    return Markup(page, f"{line}\n{whole.text}")


# Where the table of machines says of one that it cannot be judged.
_UNJUDGED = ("–", "–")


def csv(rows: Sequence[Row]) -> str:
    """The ledger for programs to read."""
    return str(table(rows).to_csv(index=False, lineterminator="\n"))


def _plainly(row: Row | None) -> str:
    return f"{row.toolchain}: {measured_text(row)}, {row.said}" if row else ""


def _spanning(rows: Iterable[Row]) -> Scale:
    """A scale for the rows' own values, with 1 and all that is published on it."""
    drawn = [value for row in rows for value in (row.published, row.estimate.value)]
    values = [value for value in drawn if math.isfinite(value) and value > 0]
    low, high = min([1.0, *values]) / 1.1, 1.4 * max([2.0, *values])
    return Scale(low, high, {tick: f"{tick:g}×" for tick in _ticks(low, high)})


def _ticks(low: float, high: float) -> list[float]:
    """Ticks at 1, 2, 5, 10, 20, … between two values, few enough to be readable."""
    ticks = [m * 10.0**e for e in range(-3, 9) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    return ticks if len(ticks) <= 9 else [t for t in ticks if math.log10(t).is_integer()]


def _rendered(macro: str, text: str, **given: object) -> Markup:
    """A macro of the template as HTML that brings its style along."""
    functions: dict[str, Callable[..., object] | object] = {
        "Picture": Picture,
        "cell": cell,
        "counted": COUNTED,
        "counts": counts,
        "holds": Label.HOLDS,
        "ledger_page": LEDGER,
        "holds_if": holds_if,
        "region": region,
        "relative": _RELATIVE,
        "verdict_counts": verdict_counts,
        "times": rounding.times,
    }
    template = PAGES.get_template("results.html").make_module(functions)
    style = (TEMPLATES / STYLE).read_text(encoding="utf-8").strip()
    html = str(getattr(template, macro)(**given))
    return Markup(f"<style>\n{style}\n</style>\n{html}", text)
