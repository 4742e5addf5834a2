"""Tables as plain HTML that can be copied, printed and read by screen readers."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gccost import rounding
from gccost.judging.ledger import Row
from gccost.stats import Estimate


@dataclass(frozen=True)
class Markup:
    """HTML for a notebook, with an alternative in plain text."""

    html: str
    text: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}


@dataclass(frozen=True)
class Prose:
    """Markdown for a notebook."""

    markdown: str

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/markdown": self.markdown, "text/plain": self.markdown}


@dataclass(frozen=True)
class Cell:
    """A cell with a note in small print below its text."""

    text: str
    note: str = ""

    @property
    def html(self) -> str:
        note = f"<br><small>{html.escape(self.note)}</small>" if self.note else ""
        return html.escape(self.text) + note

    def __str__(self) -> str:
        return f"{self.text} ({self.note})" if self.note else self.text


def estimate(of: Estimate, unit: str) -> Cell:
    """An estimate with its interval below it; a dash if nothing was measured."""
    if not of.samples:
        return Cell("–")
    shown, _, interval = told(of, unit).partition(" (")
    return Cell(shown, interval.removesuffix(")"))


def told(of: Estimate, unit: str) -> str:
    """An estimate's values as text, with its interval if it has one."""
    values = " and ".join(rounding.value(value, unit) for value in of.shown)
    _, bracket, ends = rounding.interval(of, unit).partition(" (")
    return values + bracket + ends if of.has_interval else values


def table(header: Sequence[str], rows: Iterable[Sequence[str | Cell]], caption: str = "") -> Markup:
    """A table; the first cell of each row is its heading."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    lines = [
        f'<tr><th scope="row">{first.html}</th>'
        + "".join(f"<td>{cell.html}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in cells
    ]
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    plain = [list(header), *([str(cell) for cell in row] for row in cells)]
    return Markup(_html(header, lines, caption=title), _plain(plain))


def warnings(items: Iterable[str], heading: str) -> Markup:
    """A box of warnings, each a sentence; empty if there are none."""
    items = list(items)
    if not items:
        return Markup("", "")
    listed = "".join(f"<li>{html.escape(item)}</li>" for item in items)
    markup = f'<aside class="warning"><p>{html.escape(heading)}</p><ul>{listed}</ul></aside>'
    return Markup(markup, "\n".join([heading, *(f"- {item}" for item in items)]))


def stacked(parts: Sequence[Markup], gap: str = "\n\n") -> Markup:
    """Several tables or boxes as one output; `gap` is between their plain texts."""
    return Markup("".join(part.html for part in parts), gap.join(part.text for part in parts))


def ledger(rows: Sequence[Row], links: bool = True) -> Markup:
    """The ledger: a line per claim and release, with links to the chapters."""
    header = ("claim", "", "release", "published", "measured", "measured ÷ published", "verdict")
    spans = Counter(row.claim.id for row in rows)
    lines, plain = [], [list(header)]
    for row in rows:
        name, words, cells = html.escape(row.claim.id), "", ""
        if span := spans.pop(row.claim.id, 0):  # its first row
            words = row.words
            if links:
                chapter = row.study.chapter
                name = f'<a href="{chapter}.ipynb#{row.claim.anchor}">{name}</a>'
            cells = (
                f'<th scope="rowgroup" rowspan="{span}">{name}</th>'
                f'<td class="words" rowspan="{span}">{html.escape(words)}</td>'
            )
        procs = f"{row.procs} procs" if row.procs else ""
        release = Cell(row.toolchain, ", ".join(filter(None, (row.whose, procs))))
        measured = estimate(row.estimate, row.unit)
        factor = rounding.times(row.factor) if row.sized else "–"
        lines.append(
            f"<tr>{cells}<td>{release.html}</td><td>{row.held_to}</td>"
            f"<td>{measured.html}</td><td>{factor}</td><td>{verdict_badge(row)}</td></tr>"
        )
        plain.append(
            [row.claim.id, words, row.toolchain, row.held_to]
            + [str(measured), factor, f"{row.verdict}: {row.verdict.reason}"]
        )
    return Markup(_html(header, lines, ' class="ledger"'), _plain(plain))


def verdict_badge(row: Row) -> str:
    """A verdict as HTML: a badge with its reason as title, and a note if it is undecided."""
    label = row.verdict.label
    note = "" if label.decided else f" <small>{html.escape(row.why)}</small>"
    kind = label.name.lower()  # its class in the report's style sheet
    reason = html.escape(row.verdict.reason)
    return f'<span class="verdict {kind}" title="{reason}">{html.escape(label.value)}</span>{note}'


def _html(
    header: Sequence[str], lines: Iterable[str], attributes: str = "", caption: str = ""
) -> str:
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    body = f"<tbody>{''.join(lines)}</tbody>"
    return f"<table{attributes}>{caption}<thead><tr>{head}</tr></thead>{body}</table>"


def _plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
