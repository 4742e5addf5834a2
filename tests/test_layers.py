"""Each gccost module imports only from its own layer or an earlier one."""

from __future__ import annotations

import ast
import subprocess
import sys

from gccost import paths

LAYERS = (
    {"errors", "estimates", "files", "paths", "processes", "stats"},
    {"rounding"},
    {"measuring"},
    {"gokernel", "judging", "settings"},
    {"simulation", "showing"},
    {"studies"},
    {"choosing", "doctor", "explain", "precision", "study"},
    {"cli", "__main__"},
)
LEVELS = {name: level for level, names in enumerate(LAYERS) for name in names}


def test_no_module_imports_from_a_later_layer() -> None:
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
                if LEVELS[name] > LEVELS[here]
            ]
    assert not upwards


def test_the_command_line_loads_nothing_slow() -> None:
    program = "import sys, gccost.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    slow = {"IPython", "distributed", "matplotlib", "numpy", "pandas", "scipy", "seaborn"}
    assert not slow & set(loaded.stdout.split())
