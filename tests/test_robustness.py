"""docs/tried.md lists what was tried to break gccost, with the tests that try it again."""

from __future__ import annotations

import ast
import re

from gccost import paths


def test_every_line_of_the_table_has_a_test_that_exists():
    text = (paths.ROOT / "docs" / "tried.md").read_text()
    attempts, trials = text.split('<a id="trials"></a>')
    assert "`test_" not in trials
    lines = attempts.splitlines()
    rows = [line for line in lines if line.startswith("| ") and "| test |" not in line]
    assert len(rows) > 30
    for row in rows:
        tests = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row.split(" | ")[-1])
        assert tests, row
        for module, name in tests:
            tree = ast.parse((paths.ROOT / "tests" / module).read_text())
            assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
