"""Each gccost module imports only from earlier layers, and from its own package."""

from __future__ import annotations

import ast
import sys

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
    {"check", "explain", "notebook"},
    {"cli"},
    {"__main__"},
)
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


def test_no_module_imports_from_a_later_layer():
    root = paths.ROOT / "gccost"
    upwards = []
    for path in root.rglob("*.py"):
        here, *_ = path.relative_to(root).with_suffix("").parts
        if here == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("gccost"):
                continue
            package, *_ = node.module.split(".")[1:] or ("",)
            there = [package] if package else [alias.name for alias in node.names]
            upwards += [
                f"{path.relative_to(root)}:{node.lineno} imports {name}"
                for name in there
                if name != here and LEVELS[name] >= LEVELS[here]
            ]
    assert not upwards


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
