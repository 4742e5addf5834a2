"""Tables as plain HTML that can be copied, printed and read by screen readers."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from gccost.costs.costs import RECORDED, is_numbered
from gccost.judging import rounding
from gccost.stats import Estimate

_UNKNOWN = re.compile(r"\b[nN]a[nN]\b|<NA>")
_END = re.compile(r"(.+_)?(low|high)")  # the name of a column of intervals' ends
_WITH_ENDS = re.compile(r"(<td>[^<>()]+) \(([^<>()]+ to [^<>()]+)\)(?=</td>)")
_UNSEPARATED = re.compile(r"(?<=<t[dh]>)-?\d{4,}(?=\.\d+<|<)")
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
    """An estimate with its interval below it; empty if nothing was measured.

    A dash would say that there is nothing to measure.
    """
    if not measured.n:
        return Cell("")
    return Cell(rounding.value(measured.value, unit), rounding.ends(measured, unit))


def table(
    header: Sequence[str], rows: Iterable[Sequence[str | Cell]], merged: Container[int] = ()
) -> Markup:
    """A table; the first cell of each row is its heading.

    Consecutive rows that agree in the `merged` columns share their cells there.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    body = ""
    text = [list(header)]
    for _, group in groupby(cells, lambda row: [row[i] for i in range(len(row)) if i in merged]):
        together = list(group)
        for number, row in enumerate(together):
            # Below the first row of a group its shared cells are empty, and have no tag.
            shown = [cell if not number or i not in merged else None for i, cell in enumerate(row)]
            tags = ""
            for i, cell in enumerate(shown):
                if cell is not None:
                    height = len(together) if i in merged else 1
                    tags += _tag(cell, is_heading=i == 0, rows=height)
            body += f"<tr>{tags}</tr>"
            text.append([str(cell or "") for cell in shown])
    titles = [f'<th scope="col" {_LEFT}>{html.escape(title)}</th>' for title in header]
    head = f"<thead><tr>{''.join(titles)}</tr></thead>"
    return Markup(f"<table>{head}<tbody>{body}</tbody></table>", plain(text))


def _cell(cell: str | Cell) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


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
    listed, lines = "", [heading]
    for item in items:
        listed += f"<li>{html.escape(item)}</li>"
        lines.append(f"- {item}")
    if not listed:
        return Markup("", "")
    body = f"<p>{html.escape(heading)}</p><ul>{listed}</ul>"
    return Markup(f'<div class="warning" role="note">{body}</div>', "\n".join(lines))


def stacked(parts: Sequence[Markup], gap: str = "\n\n") -> Markup:
    """Several tables or boxes as one output; `gap` is between their plain texts."""
    page = "".join(part.html for part in parts)
    text = gap.join(part.text for part in parts)
    return Markup(page, text)


def printable(text: str) -> str:
    """Text of a program without control characters other than line ends and tabs."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def visible(frame: pd.DataFrame, *, run: bool = False) -> pd.DataFrame:
    """A frame without the columns that a reader need not see.

    These are what `derive` needs, the run unless it is asked for, and the source if nothing is
    recorded.
    """
    hidden = ["figure"] if run else ["figure", "run"]
    if "source" in frame and not (frame["source"] == RECORDED).any():
        hidden.append("source")
    return frame.drop(columns=hidden, errors="ignore")


def _with_words(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame that says "unknown" for an interval's end that is not known, as with two rounds.

    A dash stands for what does not exist, such as a case that a release does not have.
    """
    shown = frame.copy()
    for place, name in enumerate(shown):
        column = shown.iloc[:, place]
        if _END.fullmatch(str(name)) and column.isna().any():
            texts = column.to_string(index=False, header=False, na_rep="unknown").splitlines()
            shown.isetitem(place, [text.strip() for text in texts])
    return shown


def _is_whole(column: pd.Series) -> bool:
    """Whether the floating-point numbers of a column, of which there are some, are whole."""
    numbers = [value for value in column if isinstance(value, float) and not math.isnan(value)]
    return bool(numbers) and all(number.is_integer() for number in numbers)


def _without_decimals(value: Any) -> Any:
    """A whole number as an integer; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def of_frame(frame: pd.DataFrame) -> str:
    """A frame as HTML, with a dash for what does not exist, and without numbers of its rows.

    An interval stands below its figure, as in a `Cell`. Commas separate thousands, and a column of
    whole numbers, such as counts, has no decimals.
    """
    shown = _with_words(visible(frame))
    for place in range(shown.shape[1]):
        column = shown.iloc[:, place]
        if _is_whole(column):
            whole = [_without_decimals(value) for value in column]
            shown.isetitem(place, np.array(whole, dtype=object))
    named = not is_numbered(shown)
    for place, kind in enumerate(shown.dtypes):
        column = shown.iloc[:, place]
        if not isinstance(kind, np.dtype) and column.isna().any():
            texts = column.astype(object).where(column.notna(), "–")
            shown.isetitem(place, texts.to_numpy())
    most = pd.options.display.max_rows
    html = shown.to_html(na_rep="–", notebook=True, max_rows=most, index=named)
    html = html.replace(">NaN<", ">–<")  # of an index
    if "year" not in [*shown.index.names, *shown]:
        html = _UNSEPARATED.sub(lambda found: f"{int(found[0]):,}", html)
    html = _WITH_ENDS.sub(r"\1<br><small>\2</small>", html)
    return f'<div class="mathjax_ignore">{html}</div>' if "$" in html else html


def print_frame(frame: pd.DataFrame | pd.Series, printer: Any, cycle: bool) -> None:
    """Print a frame or a column as text, with a dash for what does not exist."""
    if isinstance(frame, pd.DataFrame):
        frame = _with_words(visible(frame))

    def dash(found: re.Match[str]) -> str:
        return "–".rjust(len(found[0]))

    printer.text(_UNKNOWN.sub(dash, repr(frame)))


def plain(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as text, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = map(str.ljust, row, widths)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
