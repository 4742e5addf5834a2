"""What docs/ shows is what the commands print, and every printed command is tested somewhere."""

from __future__ import annotations

import re
import shlex

import pytest
from click.testing import CliRunner

from gccost import cli, explain, paths

DOCS = paths.ROOT / "docs"
_EXAMPLE = re.compile(r"\$ \.venv/bin/python -m gccost ([^\n]+)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(("name", "examples"), [("read.md", 2), ("explain.md", 1)])
def test_a_documents_examples_are_what_the_command_prints(name, examples, monkeypatch):
    monkeypatch.chdir(paths.ROOT)
    found = _EXAMPLE.findall((DOCS / name).read_text(encoding="utf-8"))
    assert len(found) == examples
    for command, shown in found:
        done = CliRunner().invoke(cli.main, shlex.split(command))
        assert (done.exit_code, done.stdout) == (0, shown)


def test_the_table_of_what_gos_packages_register_is_that_of_the_data():
    text = (DOCS / "explain.md").read_text(encoding="utf-8")
    *known, _ = explain._of_go_registers().items()
    rows = [f"| {what} | {row['registers']} | {row['remedy']} |" for what, row in known]
    assert "\n".join(rows) in text
