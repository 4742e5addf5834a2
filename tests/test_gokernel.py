"""The Go kernel is built from pinned sources and runs every Go notebook."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager
from measured import Made
from nbformat import NotebookNode
from notebooks_fixture import code, execute, prose, write_fixture_report

from gccost import paths
from gccost.cases.settings import Settings
from gccost.cases.versions import TODAY_GO
from gccost.errors import GccostError, MissingTool
from gccost.progress import unwatched
from gccost.showing import gokernel, reporting

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("go-*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]


@pytest.fixture(scope="session")
def kernel() -> Path:
    """The kernel's folder; the kernel is built if missing."""
    try:
        return gokernel.make(print)
    except MissingTool as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


def written_in_go(path: Path, *cells: str) -> Path:
    """A notebook of these cells, for the Go kernel."""
    node = nbformat.v4.new_notebook(
        cells=[prose("# Go", "title"), *(code(text, f"c{i}") for i, text in enumerate(cells, 1))],
        metadata={"kernelspec": {"name": gokernel.NAME, "display_name": "Go", "language": "go"}},
    )
    nbformat.write(node, path)
    return path


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


# --- the kernel -----------------------------------------------------------------------


def test_the_kernel_has_the_release_that_built_it_and_is_built_again_from_other_sources(
    kernel, monkeypatch, tmp_path
):
    spec = gokernel.find()
    assert Path(spec.resource_dir) == kernel
    first, _, rest = spec.env["PATH"].partition(os.pathsep)
    version = (Path(first).parent / "VERSION").read_text().split()[0]
    assert (version, rest) == (f"go{TODAY_GO}", "${PATH}")
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((gokernel.MODULE / name).read_bytes() + b"\n// other\n")
    monkeypatch.setattr(gokernel, "MODULE", tmp_path)
    assert gokernel.find() is None


def test_an_interrupted_kernel_keeps_its_variables(kernel):
    manager = KernelManager(kernel_name=gokernel.NAME)
    manager._kernel_spec = gokernel.find()
    manager.start_kernel(stderr=subprocess.DEVNULL)
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        printed: list[str] = []
        run = partial(
            client.execute_interactive,
            timeout=60,
            output_hook=lambda message: printed.append(message["content"].get("text", "")),
        )
        run("kept := 42")
        client.execute('import "time"; time.Sleep(2 * time.Second)')
        manager.interrupt_kernel()
        run('import "fmt"; fmt.Println("kept", kept)')
        assert "kept 42" in "".join(printed)
        assert manager.is_alive()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


# --- the notebooks --------------------------------------------------------------------


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_every_notebook_runs_without_errors(kernel, made: Made, notebook):
    ran = read(made.report / "notebooks" / notebook.name)
    for cell in ran.cells:
        assert "error" not in [output.output_type for output in cell.get("outputs", [])]
    committed = read(notebook)
    assert ran.metadata.gccost.sources == committed.metadata.gccost.sources
    assert [len(c.get("outputs", [])) for c in ran.cells] == [
        len(c.get("outputs", [])) for c in committed.cells
    ]


@pytest.mark.parametrize(
    ("cell", "why"),
    [("y := x + lost", "undefined identifier: lost"), ('panic("out of " + "x")', "out of x")],
)
def test_a_failing_cell_shows_why(kernel, tmp_path, cell, why):
    notebook = written_in_go(tmp_path / "go-bad.ipynb", "x := 1", cell)
    with pytest.raises(GccostError, match=why) as caught:
        execute(notebook, tmp_path / "ran.ipynb")
    assert caught.value.location == "go-bad.ipynb, cell 2"


def test_without_the_kernel_a_report_shows_committed_notebooks(tmp_path, monkeypatch):
    monkeypatch.setattr(gokernel, "find", lambda: None)
    notebook = written_in_go(tmp_path / "go-x.ipynb", "1")
    with pytest.raises(MissingTool, match=r"the Go kernel: is not built.*make kernel"):
        execute(notebook, tmp_path / "ran.ipynb")
    into, settings = tmp_path / "notebooks", Settings("measure")
    assert reporting.execute(NOTEBOOKS, into, settings, print, unwatched) == {}
    for path in NOTEBOOKS:
        assert (tmp_path / "notebooks" / path.name).read_bytes() == path.read_bytes()


def page(notebook: Path, out: Path) -> str:
    return (write_fixture_report([notebook], out) / "index.html").read_text("utf-8")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=NAMES)
def test_the_page_says_when_go_ran_and_whether_its_cells_have_changed_since(notebook, tmp_path):
    html = page(notebook, tmp_path / "out")
    node = read(notebook)
    assert '<span class="kd">func</span>' in html
    assert f"Run with Go {node.metadata.gccost.go} on " in html
    assert "This output is stale" not in html, f"{notebook.name}: run gccost kernel --live"
    node.cells[-2].source += "\n// changed"
    nbformat.write(node, tmp_path / notebook.name)
    assert "This output is stale" in page(tmp_path / notebook.name, tmp_path / "out")


def test_a_changed_program_makes_the_output_stale(monkeypatch):
    hashed: list[list[str]] = []
    monkeypatch.setattr(gokernel, "hash_of_go", lambda p: hashed.append(p) or "other")
    assert gokernel.stored(read(NOTEBOOKS[0]))[1] != ""
    assert hashed == [["watch"]]
