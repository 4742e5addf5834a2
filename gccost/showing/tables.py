"""Tables as plain HTML that can be copied, printed and read by screen readers."""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from gccost.judging import rounding
from gccost.stats import Estimate

_RELEASE = re.compile(r"\b(Go|JDK) (?=\d)")  # no line ends in it


@dataclass(frozen=True, repr=False)
class Markup:
    """HTML for a notebook, with an alternative in plain text, which is shown elsewhere.

    With a name, the command line finds it, and its `csv`, in the executed notebook.
    """

    html: str
    text: str
    csv: str = ""
    name: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        # JupyterLab would typeset TeX, which may stand in a text of a run.
        holds_tex = "$" in self.html or "\\" in self.html
        shown = f'<div class="mathjax_ignore">{self.html}</div>' if holds_tex else self.html
        bundle = {"text/html": shown, "text/plain": self.text}
        if not self.name:
            return bundle, {}
        data = {"text/csv": self.csv} if self.csv else {}
        return bundle | data, {"gccost": {"table": self.name}}


@dataclass(frozen=True, repr=False)
class Prose:
    """Markdown for a notebook."""

    markdown: str

    def __repr__(self) -> str:
        return self.markdown

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
        return _RELEASE.sub(r"\1&nbsp;", html.escape(self.text)) + note

    def __str__(self) -> str:
        return f"{self.text} ({self.note})" if self.note else self.text


def estimate(measured: Estimate, unit: str) -> Cell:
    """An estimate with its interval below it; a dash if nothing was measured."""
    if not measured.n:
        return Cell("–")
    values = " and ".join(rounding.value(value, unit) for value in measured.shown)
    return Cell(values, rounding.ends(measured, unit))


def table(
    header: Sequence[str], rows: Iterable[Sequence[str | Cell]], merged: Container[int] = ()
) -> Markup:
    """A table; the first cell of each row is its heading.

    Consecutive rows that agree in the `merged` columns share their cells there.
    """
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    head = "".join(f'<th scope="col" {_LEFT}>{html.escape(cell)}</th>' for cell in header)
    body, text = "", [list(header)]
    for _, group in groupby(cells, lambda row: [c for i, c in enumerate(row) if i in merged]):
        together = list(group)
        for at, row in enumerate(together):
            shown = [cell if not at or i not in merged else None for i, cell in enumerate(row)]
            tags = (
                _tag(cell, is_heading=not i, rows=len(together) if i in merged else 1)
                for i, cell in enumerate(shown)
                if cell is not None
            )
            body += f"<tr>{''.join(tags)}</tr>"
            text.append([str(cell or "") for cell in shown])
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return Markup(whole, plain(text))


# JupyterLab aligns cells to the right, and prints headings in bold.
_LEFT = 'style="text-align: left"'
_PLAIN = 'style="text-align: left; font-weight: normal"'


def _tag(cell: Cell, *, is_heading: bool, rows: int) -> str:
    span = f' rowspan="{rows}"' if rows > 1 else ""
    if is_heading:
        scope = "rowgroup" if rows > 1 else "row"
        return f'<th scope="{scope}"{span} {_PLAIN}>{cell.html}</th>'
    return f"<td{span} {_LEFT}>{cell.html}</td>"


def warnings(items: Iterable[str], heading: str) -> Markup:
    """A box of warnings, each a sentence; empty if there are none."""
    items = list(items)
    if not items:
        return Markup("", "")
    listed = "".join(f"<li>{html.escape(item)}</li>" for item in items)
    body = f"<p>{html.escape(heading)}</p><ul>{listed}</ul>"
    text = "\n".join([heading, *(f"- {item}" for item in items)])
    return Markup(f'<div class="warning" role="note">{body}</div>', text)


def stacked(parts: Sequence[Markup], gap: str = "\n\n") -> Markup:
    """Several tables or boxes as one output; `gap` is between their plain texts."""
    return Markup("".join(part.html for part in parts), gap.join(part.text for part in parts))


def printable(text: str) -> str:
    """Text of a program without control characters other than line ends and tabs."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def plain(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as text, in columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
