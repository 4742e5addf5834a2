"""JupyterLab shows the output of notebooks that git has or gccost executed, and no others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import nbformat
from click.testing import CliRunner
from nbformat.sign import NotebookNotary

from gccost import cli, paths


def written(path: Path, html: str) -> Path:
    output = nbformat.v4.new_output("display_data", {"text/html": html})
    cell = nbformat.v4.new_code_cell("1", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    return path


def trusted(path: Path) -> bool:
    return bool(NotebookNotary().check_signature(nbformat.read(path, as_version=4)))


def test_only_notebooks_as_git_has_them_are_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    folder = tmp_path / "clone" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.setattr(paths, "NOTEBOOKS", folder)
    kept, changed = (written(folder / f"{name}.ipynb", name) for name in ("kept", "changed"))
    assert CliRunner().invoke(cli.main, ["trust"]).exit_code == 0
    assert not trusted(kept)  # there is no git
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "x")):
        subprocess.run(["git", "-C", folder.parent, *command], check=True)
    written(changed, "<script>")
    new = written(folder / "new.ipynb", "new")
    executed = written(folder / "executed.ipynb", "executed")
    cli._sign([executed])
    assert CliRunner().invoke(cli.main, ["trust"]).exit_code == 0
    assert [trusted(each) for each in (kept, executed, changed, new)] == [True, True, False, False]
    written(executed, "executed, and edited later")
    assert not trusted(executed)
