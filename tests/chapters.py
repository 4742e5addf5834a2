"""Chapters run in this process: the objects that their cells show."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG

from gccost import paths
from gccost.showing import drawing


def outputs(chapter: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """What each cell of a chapter shows, by the cell's id: charts, frames and sentences."""
    monkeypatch.chdir(paths.NOTEBOOKS)
    made: list[Any] = []
    monkeypatch.setattr(drawing, "display", made.append)
    monkeypatch.setattr(FigureCanvasSVG, "print_svg", lambda _, to, **__: to.write("<svg>"))
    namespace: dict[str, object] = {"display": made.append}
    node = nbformat.read(paths.NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    with plt.rc_context():
        for cell in (cell for cell in node.cells if cell.cell_type == "code"):
            tree = ast.parse(cell.source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, cell.id, "exec"), namespace)  # noqa: S102
            if last is not None:
                shown = compile(ast.Expression(last.value), cell.id, "eval")
                made.append(eval(shown, namespace))  # noqa: S307
            for each in made:
                yield cell.id, each
            made.clear()
    plt.close("all")
