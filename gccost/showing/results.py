"""The ledger as a reader sees it: a line per claim, with then and today and a small picture.

The pictures are SVGs with positions in percent, so that they stretch with their column.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gccost.judging import agreement, rounding, rules
from gccost.judging.agreement import Pair
from gccost.judging.carrying import Ledgers
from gccost.judging.ledger import Row, Tested, by_document, over, table, verdict_counts
from gccost.judging.rules import Agrees, Label, Rule
from gccost.judging.since import Since
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
TITLE = "What automatic cleanup costs"  # the report's
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
        length = math.log(self.high / self.low)
        along = math.log(min(value, self.high) / self.low)
        return round(100 * along / length, 2)

    def beyond(self, value: float) -> str:
        """The side on which a value is off the scale; empty if it is on it."""
        if value < self.low:
            return "left"
        return "right" if value > self.high else ""


_MOST_TICKS = 9
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
        low, high = self.line.latest.bounds
        if not low < high:
            return None
        left = self.scale.at(low / self.unit)
        right = self.scale.at(high / self.unit)
        return left, round(right - left, 2)

    @property
    def published(self) -> float | None:
        """The place of the published figure, if there is one."""
        row = self.line.latest
        if row.is_bar:
            return None
        return self.scale.at(row.published / self.unit)

    def dots(self, row: Row) -> list[tuple[float, str]]:
        """The places of a row's estimates, and on which side they are off the scale.

        An end of the interval that is off the scale has a place, too.
        """
        if isinstance(row.claim.rule, Agrees):
            return []
        measured = row.estimate
        places = [self._place(measured.value)]
        if measured.has_interval:
            for end in (measured.low, measured.high):
                place = self._place(end)
                if place[1]:
                    places.append(place)
        return list(dict.fromkeys(places))

    def _place(self, value: float) -> tuple[float, str]:
        """A value's place, and the side on which it is off the scale."""
        relative = value / self.unit
        return self.scale.at(relative), self.scale.beyond(relative)

    @property
    def alt(self) -> str:
        """The picture in words."""
        latest = self.line.latest
        held_to = latest.held_to
        parts = [held_to if latest.is_bar else f"published {held_to}"]
        for row in (self.line.then, self.line.today):
            if row:
                parts.append(f"{row.toolchain} {found(row)}")
        return "; ".join(parts)


def measured_text(row: Row) -> str:
    """A row's estimate with its interval, or its p; empty if nothing was measured."""
    return str(cell(row))


def found(row: Row) -> str:
    """What was found, in words: "16.2× (15.1 to 17.3), holds"; or the verdict alone."""
    measured = measured_text(row)
    return f"{measured}, {row.said}" if measured else row.said


def cell(row: Row) -> Cell:
    """The same with the interval below the estimate."""
    rule = row.claim.rule
    if row.estimate.n and isinstance(rule, Agrees):
        return Cell(rule.p_text(row.estimate))
    return tables.estimate(row.estimate, row.unit)


def holds_if(rule: Rule) -> str:
    """A rule in words: the first sentence of its description."""
    text = inspect.getdoc(type(rule)) or ""
    first, _, _ = text.partition("\n\n")
    return first.replace("\n", " ")


def region(row: Row) -> str:
    """The range in which a claim holds, in words; empty if there is none."""
    low, high = row.bounds
    if math.isnan(low):
        return ""
    return rules.region(low, high, row.unit)


def counts(lines: Iterable[Tested]) -> str:
    """How many claims have each verdict, as in "3 hold, 1 does not hold"."""
    parts = []
    for label, count in verdict_counts(lines).items():
        of_one, of_several = COUNTED[label]
        parts.append(f"{count} {of_one if count == 1 else of_several}")
    return ", ".join(parts)


def first_screen(rows: Iterable[Row]) -> Markup:
    """The verdicts counted, and each document's headline claim, published, then and today."""
    documents = [document for document in by_document(rows) if document.headline]
    lines = [document.drawn for document in documents if document.drawn]
    drawn = [row for line in lines for row in line.rows]
    every = [line for document in documents for line in document.lines]
    today = [line.today.toolchain for line in lines if line.today]
    shown = _rendered(
        "headlines",
        "\n".join(_in_words(document) for document in documents if document.drawn),
        documents=documents,
        count=verdict_counts(every),
        scale=_spanning(drawn),
        newest=", ".join(dict.fromkeys(today)),
    )
    return replace(shown, name="answers")


def _in_words(document: Any) -> str:
    """A document's headline claim, and its verdicts then and today."""
    parts = [document.words]
    for row in (document.drawn.then, document.drawn.today):
        if row:
            parts.append(f"{row.toolchain}: {found(row)}")
    return ", ".join(parts)


def ledger(rows: Sequence[Row]) -> Markup:
    """The ledger: a line per claim, grouped by document, with links to the chapters."""
    header = ["claim", "", "release", "published", "measured", "measured ÷ published", "verdict"]
    plain = [header]
    for row in rows:
        factor = rounding.times(row.factor) if row.sized else "–"
        verdict = f"{row.said}: {row.verdict.reason}"
        claim = [row.claim.id, row.words, row.toolchain, row.held_to]
        plain.append([*claim, measured_text(row), factor, verdict])
    shown = _rendered("ledger", tables.plain(plain), documents=by_document(rows))
    return replace(shown, name="ledger", csv=csv(rows))


def machines(ledgers: Ledgers) -> Markup | None:
    """The figures and verdicts of several machines, or why one has none, as a table that opens.

    Two columns for each machine but the first: what it found, and that over the first one's. None
    if no claim was tested on two machines.
    """
    by_claim: dict[tuple[str, str], dict[str, Row]] = {}
    unjudged: dict[str, str] = {}
    for label, rows in ledgers.items():
        if isinstance(rows, str):
            unjudged[label] = rows
            continue
        for row in rows:
            if row.verdict.label not in (Label.UNMEASURED, Label.UNTESTABLE):
                by_claim.setdefault((row.claim.id, row.toolchain), {})[label] = row
    shared = {tested: by_label for tested, by_label in by_claim.items() if len(by_label) > 1}
    judged = {*chain(*shared.values())}
    shown = [*(label for label in ledgers if label in judged), *unjudged]
    if not shown:
        return None
    lines = [_on_each(tested, by_label, shown) for tested, by_label in shared.items()]
    if unjudged:
        lines.append(_unjudged(unjudged, shown))
    first, *others = shown
    header = ["claim", "on", first]
    for label in others:
        header += [label, "÷ first"]
    whole = tables.table(header, lines, merged={0})
    line = (
        f"The verdicts of {len(shown)} recorded machines, whose samples are never pooled; "
        "an empty cell: not measured there"
    )
    page = f"<details><summary>{line}</summary>{whole.html}</details>"
    return Markup(page, f"{line}\n{whole.text}")


def _on_each(
    tested: tuple[str, str], by_label: Mapping[str, Row], shown: Sequence[str]
) -> list[str | Cell]:
    """The line of a claim on a release: what each machine has found."""
    line: list[str | Cell] = [*tested]
    first, *_ = shown
    for label in shown:
        row = by_label.get(label)
        line.append(_with_verdict(row) if row else "")
        if label != first:
            line.append(_times(by_label.get(first), row))
    return line


def _with_verdict(row: Row) -> Cell:
    """A row's estimate and verdict, with the interval below them."""
    shown = cell(row)
    return Cell(f"{shown.text} {row.said}", shown.note)


def _times(first: Row | None, other: Row | None) -> str:
    """The other row's figure over the first one's; empty if one of them is missing."""
    if first is None or other is None:
        return ""
    factor = over(other.estimate.value, first.estimate.value)
    return rounding.times(factor) if math.isfinite(factor) else ""


def _unjudged(unjudged: Mapping[str, str], shown: Sequence[str]) -> list[str | Cell]:
    """The line that says why machines cannot be judged."""
    line: list[str | Cell] = ["every claim", "every release"]
    first, *_ = shown
    for label in shown:
        line.append(Cell(tables.printable(unjudged.get(label, ""))))
        if label != first:
            line.append("")
    return line


def changes(since: Since) -> Markup:
    """What was measured before and now, as a table that opens; what moved comes first."""
    moved = [pair for pair in since.pairs if _has_moved(pair)]
    rest = [pair for pair in since.pairs if not _has_moved(pair)]
    header = ("claim", "on", f"before: {since.before}", f"now: {since.now}", "now ÷ before")
    whole = tables.table(header, map(_change, (*moved, *rest)), merged={0})
    found = agreement.frame(since.pairs)
    outside = int((~found["inside"]).sum())
    line = (
        f"Since {since.before}: {outside} of {found['inside'].count()} figures moved beyond their "
        f"tolerances (by chance up to {agreement.by_chance(found)}), and "
        f"{found['contradicts'].sum()} of {len(found)} verdicts turned"
    )
    opened = " open" if moved else ""
    page = f"<details{opened}><summary>{line}</summary>{whole.html}</details>"
    return Markup(page, f"{line}\n{whole.text}")


def _change(pair: Pair) -> list[str | Cell]:
    """A row for a claim on a release: before, now, and the factor between the two."""
    row: list[str | Cell] = [f"{pair.ours.claim.id}: {pair.ours.words}", pair.ours.toolchain]
    row += [_with_verdict(pair.theirs), _with_verdict(pair.ours)]
    if pair.inside is None:
        return [*row, "not compared"]
    beyond = "" if pair.inside else " moved"
    tolerance = f"tolerance {rounding.times(pair.tolerance)}"
    return [*row, Cell(f"{rounding.times(pair.factor)}{beyond}", tolerance)]


def _has_moved(pair: Pair) -> bool:
    return pair.inside is False or pair.contradicts


def csv(rows: Sequence[Row]) -> str:
    """The ledger for programs to read."""
    return str(table(rows).to_csv(index=False, lineterminator="\n"))


def _spanning(rows: Iterable[Row]) -> Scale:
    """A scale for the rows' own values, with 1 and all that is published on it."""
    values = [1.0]
    for row in rows:
        for value in (row.published, row.estimate.value):
            if math.isfinite(value) and value > 0:
                values.append(value)
    low = min(values) / 1.1
    high = 1.4 * max([2.0, *values])
    return Scale(low, high, {tick: f"{tick:g}×" for tick in _ticks(low, high)})


def _ticks(low: float, high: float) -> list[float]:
    """Ticks at 1, 2, 5, 10, 20, … between two values, few enough to be readable."""
    ticks = []
    for exponent in range(-3, 9):
        for step in (1, 2, 5):
            tick = step * 10.0**exponent
            if low <= tick <= high:
                ticks.append(tick)
    if len(ticks) <= _MOST_TICKS:
        return ticks
    return [tick for tick in ticks if math.log10(tick).is_integer()]


def on_other(row: Row) -> str:
    """What another recorded machine has found, in words; empty if there is none.

    Of several machines, it is the one whose figure is farthest.
    """
    if row.other is None:
        return ""
    several = f", the farthest of {len(row.others)} other machines" if len(row.others) > 1 else ""
    factor = (
        f", {rounding.times(row.other_over_this)} this figure"
        if math.isfinite(row.other_over_this)
        else ""
    )
    return f". {row.other.machine}{several}: {measured_text(row.other)}{factor}"


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
        "on_other": on_other,
        "region": region,
        "relative": _RELATIVE,
        "verdict_counts": verdict_counts,
        "times": rounding.times,
    }
    template = PAGES.get_template("results.html")
    macros = template.make_module(functions)
    html = getattr(macros, macro)(**given)
    style = (TEMPLATES / STYLE).read_text(encoding="utf-8").strip()
    return Markup(f"<style>\n{style}\n</style>\n{html}", text)
