"""Each gccost module imports only from earlier layers, and from its own package."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gccost import paths, processes

# Neighbours do not import one another: nothing that judges or shows knows a study by name.
LAYERS = (
    {"errors", "processes"},
    {"files", "paths", "progress", "stats"},
    {"run"},
    {"cases"},
    {"costs", "measuring"},
    {"judging"},
    {"showing", "studies"},
    {"saved"},
    {"check", "explain", "notebook", "sitting"},
    {"cli", "prepared"},
    {"__main__"},
)
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


ROOT = paths.ROOT / "gccost"
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """The rooms, or modules beside the rooms, that a module imports, with the lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("gccost"):
            continue
        room, *_ = node.module.split(".")[1:] or ("",)
        for name in [room] if room else [alias.name for alias in node.names]:
            yield node.lineno, name


def test_no_module_imports_from_a_later_layer():
    upwards = []
    for path in ROOT.rglob("*.py"):
        here, *_ = path.relative_to(ROOT).with_suffix("").parts
        if here == "__init__":
            continue
        upwards += [
            f"{path.relative_to(ROOT)}:{line} imports {name}"
            for line, name in imported(path)
            if name != here and LEVELS[name] >= LEVELS[here]
        ]
    assert not upwards


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_it_says_that_it_may_and_says_no_other(room):
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))
    said = re.search(r"It may import: the ground \(([^)]*)\)([^.]*)\.$", text or "")
    assert said, text
    ground, rooms = (set(re.findall(r"\w+", part)) for part in said.groups())
    assert ground == set.union(*LAYERS[:2])
    used = {name for path in (ROOT / room).rglob("*.py") for _, name in imported(path)}
    assert used - {room} - ground <= rooms <= set(ROOMS)


def loaded(program: str) -> set[str]:
    """The modules that a program loads."""
    program += "; import sys; print(*sys.modules)"
    ran = processes.run([sys.executable, "-c", program])
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def test_the_command_line_loads_nothing_slow():
    slow = {"IPython", "distributed", "matplotlib", "numpy", "pandas", "scipy", "seaborn"}
    assert not slow & loaded("import gccost.cli")


def test_studies_draw_nothing():
    assert not {"IPython", "matplotlib", "seaborn"} & loaded("import gccost.studies")
