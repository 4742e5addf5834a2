"""`make lab` lets JupyterLab show the output of notebooks as git has them, and of no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from gccost import paths
from gccost.showing import reporting

GIT = ("git", "-c", "user.name=x", "-c", "user.email=x@example.org")


def written(path: Path, html: str) -> Path:
    output = nbformat.v4.new_output("display_data", {"text/html": html})
    cell = nbformat.v4.new_code_cell("1", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def trusted(path: Path) -> bool:
    return bool(NotebookNotary().check_signature(nbformat.read(path, as_version=4)))


def trust(clone: Path) -> None:
    """Run the command of `make lab` that trusts notebooks."""
    asked = ["make", "--dry-run", "--no-print-directory", f"python={sys.executable}", "lab"]
    said = subprocess.check_output(asked, cwd=paths.ROOT, text=True).replace("\\\n", "")
    (command,) = (line for line in said.splitlines() if "jupyter trust" in line)
    subprocess.run(["sh", "-c", command], cwd=clone, check=True)


def test_only_notebooks_as_git_has_them_are_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    folder = tmp_path / "clone" / "notebooks"
    folder.mkdir(parents=True)
    kept, changed = (written(folder / f"{name}.ipynb", name) for name in ("kept", "changed"))
    trust(folder.parent)
    assert not trusted(kept)  # there is no git
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        subprocess.run([*GIT, *command], cwd=folder.parent, check=True)
    written(changed, "<script>")
    new = written(folder / "new.ipynb", "new")
    executed = written(folder / "executed.ipynb", "executed")
    reporting.sign(executed)
    trust(folder.parent)
    assert [trusted(each) for each in (kept, executed, changed, new)] == [True, True, False, False]
    written(executed, "executed, and edited later")
    assert not trusted(executed)


def test_a_home_that_cannot_be_written_ends_no_replay(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "file" / "jupyter"))
    reporting.sign(written(tmp_path / "own.ipynb", "own"))
