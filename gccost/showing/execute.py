"""Reproducible execution of notebooks: the same data give the same file.

A notebook runs in a fresh kernel of the interpreter that runs this module, whatever
kernels are registered; it is forked where that is possible. A Go notebook runs in the Go kernel
of this environment. The written file has the cells and their outputs, but no times, widget state
or versions.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import nbformat
import psutil
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.connect import port_names
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, KernelSpec
from jupyter_client.manager import AsyncKernelManager
from matplotlib import font_manager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert.filters import strip_ansi
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode

from gccost.cases.settings import Settings
from gccost.errors import GccostError, MissingTool
from gccost.files import reading, write_whole
from gccost.progress import Progress, until_done, unwatched
from gccost.showing import forked, gokernel, tables

# The kernel metadata of the written notebook, without what changes with a language release. It is
# what the kernel of .venv says of itself: JupyterLab shows a notebook with any other as unsaved.
_PYTHON = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": NATIVE_KERNEL_NAME,
    },
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
_GO = {
    "kernelspec": {"display_name": "Go", "language": "go", "name": gokernel.NAME},
    "language_info": {"file_extension": ".go", "name": "go", "pygments_lexer": "go"},
}
_CELL_METADATA = ("gccost", "jupyter", "tags")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_INCOMPLETE = "incomplete"  # the id of a cell that says what a notebook lacks
_RUNNING = "It was still running when this page was written. Reload the page in a minute."

_KERNEL = "gccost-kernel-"
_THREADS = "notebook-"

# Seconds. A machine that is busy measuring starts kernels slowly and delivers their last
# outputs late.
_START = 180
_LAST_OUTPUT = 60


def execute_all(
    notebooks: Mapping[Path, Path],
    settings: Settings,
    *,
    at_once: int = 1,
    on_end: Callable[[str], object] = lambda stem: None,
    progress: Progress = unwatched,
) -> dict[str, GccostError]:
    """Run notebooks, `at_once` at a time, and write each to the file that it is mapped to.

    They start in order, and `on_end` is called with the stem of each that has run, in a thread
    of its own. A kernel works in the notebook's own folder, so that relative paths are valid
    wherever the output is, which must not be the notebook itself: until it has run, it says that
    it is running.

    A notebook fails if a cell raises an error or writes to stderr, or if its kernel dies.
    Its file then has what ran before, and says why it failed; the other notebooks run on.
    Returns the errors by stem; they name the cell. All kernels and their children have ended
    when this returns or raises. Call it in the main thread.
    """
    failed: dict[str, GccostError] = {}
    for notebook, into in notebooks.items():
        _write(incomplete(title_of(notebook), _RUNNING), into)
    shared = _shared()
    environment = _environment(shared, settings)
    if forked.IS_POSSIBLE:
        forked.prepare(environment, shared)
    _execute_all(notebooks, environment, failed, at_once, on_end, progress)
    return failed


def _execute_all(
    notebooks: Mapping[Path, Path],
    environment: Mapping[str, str],
    failed: dict[str, GccostError],
    at_once: int,
    on_end: Callable[[str], object],
    progress: Progress,
) -> None:
    """Run notebooks, with the environment of their kernels; add the errors to `failed`."""

    def one(notebook: Path, into: Path) -> None:
        node = title_of(notebook)
        try:
            node = read_notebook(notebook)
            _execute(notebook, node, environment)
        except GccostError as error:
            failed[notebook.stem] = error
            node = incomplete(node, str(error))
        _write(node, into)
        on_end(notebook.stem)

    with ThreadPoolExecutor(at_once, _THREADS) as pool:
        try:
            running = {pool.submit(one, *job): job[0].stem for job in notebooks.items()}
            until_done(running, progress, "running", "notebooks")
            for each in running:
                each.result()
        except BaseException:  # Ctrl-C, for example, at any moment
            pool.shutdown(wait=False, cancel_futures=True)
            while any(thread.name.startswith(_THREADS) for thread in threading.enumerate()):
                for child in psutil.Process().children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        child.kill()
                time.sleep(0.1)
            raise


def _write(node: NotebookNode, into: Path) -> None:
    write_whole(into, f"{nbformat.writes(node)}\n".encode())


def _execute(notebook: Path, node: NotebookNode, environment: Mapping[str, str]) -> None:
    """Run a notebook in place. Raises GccostError if it fails, after what ran is in place."""
    for cell in node.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    try:
        _run(notebook, node, environment)
    finally:
        _normalise(node)
    for cell in node.cells:
        outputs = cell.get("outputs", [])
        said = "".join(output.text for output in outputs if output.get("name") == "stderr")
        if said:
            raise GccostError(
                f"it wrote to stderr: {' '.join(said.split())}",
                f"{notebook.name}, cell {cell.execution_count}",
                "change what causes the message, or print it to stdout if readers need it",
            )


def title_of(notebook: Path) -> NotebookNode:
    """A notebook with only the title of this one: its name, if it cannot be read."""
    title = f"# {notebook.stem}"
    with suppress(GccostError):
        for cell in read_notebook(notebook).cells[:1]:
            title = cell.source.partition("\n")[0]
    return NotebookNode(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(title, id="title")])
    )


def incomplete(node: NotebookNode, why: str) -> NotebookNode:
    """A notebook with a box below its title that says why it lacks something."""
    data, _ = tables.warnings([why], "This chapter is incomplete")._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", data=data)
    box = nbformat.v4.new_code_cell("", id=_INCOMPLETE, outputs=[output])
    others = [cell for cell in node.cells if cell.id != _INCOMPLETE]
    node.cells = [*others[:1], box, *others[1:]]
    return node


def is_whole(node: NotebookNode) -> bool:
    """Whether an executed notebook ran without a failure."""
    return all(cell.id != _INCOMPLETE for cell in node.cells)


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook of nbformat 4.5 or later, of which each cell has an id.

    The ids that are made for older ones would differ each time. Raises GccostError if the
    file is missing, is not a notebook or lacks ids.
    """
    with reading(path):
        try:
            node: NotebookNode = nbformat.reader.reads(path.read_text(encoding="utf-8"))
            nbformat.validate(node)
            ids = [cell.get("id") for cell in node.cells]
        except (nbformat.ValidationError, AttributeError, KeyError):
            raise ValueError("it is not a Jupyter notebook") from None
        if None in ids or len(set(ids)) < len(ids):
            why = "its cells lack unique ids, so links cannot point to them"
            raise GccostError(why, str(path), "open it in JupyterLab (make lab) and save it")
    return node


def named_outputs(path: Path) -> dict[str, dict[str, str]]:
    """The data of each named chart and table of an executed notebook, by media type."""
    outputs = (out for cell in read_notebook(path).cells for out in cell.get("outputs", []))
    about = ((out, out.get("metadata", {}).get("gccost", {})) for out in outputs)
    return {each.get("chart") or each["table"]: out.data for out, each in about if each}


class _KernelManager(AsyncKernelManager):
    """A manager of two kernels: this interpreter, and the Go kernel of this clone."""

    async def _async_pre_start_kernel(self, **more: Any) -> tuple[list[str], dict[str, Any]]:
        if self.kernel_name == NATIVE_KERNEL_NAME and forked.IS_POSSIBLE:
            self.kernel_id = str(uuid.uuid4())
            self.provisioner = forked.Forked(
                kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self
            )
        return await super()._async_pre_start_kernel(**more)

    @property
    def kernel_spec(self) -> KernelSpec:
        if self.kernel_name == NATIVE_KERNEL_NAME:
            return KernelSpec(**get_kernel_dict())
        spec = gokernel.find()
        if spec is None:
            raise MissingTool("is not built", "the Go kernel", "make kernel")
        return spec


def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for a kernel; its sockets' paths have a limit of about a hundred bytes."""
    return tempfile.TemporaryDirectory(prefix=f"{_KERNEL}{os.getpid()}-", dir="/tmp")


@cache
def _shared() -> str:
    """A folder for what all kernels need, for as long as this process runs."""
    folder = tempfile.mkdtemp(prefix=f"{_KERNEL}{os.getpid()}-", dir="/tmp")
    _remove_leftovers(Path(folder).parent)
    # After multiprocessing, at -100, has removed what it put there.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)
    return folder


def _run(notebook: Path, node: NotebookNode, environment: Mapping[str, str]) -> None:
    """Run every code cell of `node` in place."""
    client = NotebookClient(
        node,
        kernel_name=gokernel.NAME if gokernel.is_go(node) else NATIVE_KERNEL_NAME,
        kernel_manager_class=_KernelManager,
        resources={"metadata": {"path": str(notebook.parent.resolve())}},
        timeout=None,
        startup_timeout=_START,
        iopub_timeout=_LAST_OUTPUT,
        raise_on_iopub_timeout=True,
    )
    with _folder() as scratch:
        _use_sockets(client, scratch)
        own = {**environment, "IPYTHONDIR": scratch}
        try:
            # The launcher's log warns of unencrypted local sockets.
            asyncio.run(client.async_execute(env=own, stderr=subprocess.DEVNULL))
        except OSError as error:  # some name no file
            error.filename = error.filename or scratch
            raise
        except CellExecutionError as error:
            raise _cell_failed(notebook, client.code_cells_executed, error) from None
        except (DeadKernelError, RuntimeError) as error:
            number = client.code_cells_executed
            location = f"{notebook.name}, cell {number}" if number else notebook.name
            hint = "check that memory and disk are free, and run it again"
            raise GccostError(str(error).strip(), location, hint) from None
        finally:  # nbclient leaves it registered if the kernel could not start
            atexit.unregister(client._cleanup_kernel)


def _remove_leftovers(place: Path) -> None:
    """Remove the kernels' folders of processes that were killed."""
    for folder in place.glob(f"{_KERNEL}*"):
        number = folder.name.removeprefix(_KERNEL).partition("-")[0]
        if number.isdecimal() and not psutil.pid_exists(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _use_sockets(client: NotebookClient, scratch: str) -> None:
    """Reach the kernel through sockets in its folder.

    TCP ports are chosen before the kernel opens them, so another process may take one meanwhile.
    """
    file = Path(scratch, "kernel.json")
    client.config.KernelManager.transport = "ipc"
    client.config.KernelManager.connection_file = str(file)
    if client.kernel_name == gokernel.NAME:  # gophernotes names its sockets as if they were ports
        for number in range(1, len(port_names) + 1):
            file.with_name(f"kernel-ipc-{number}").symlink_to(f"kernel-ipc:{number}")


def _environment(folder: str, settings: Settings) -> dict[str, str]:
    """The kernels' environment, in which the result does not depend on the user's settings."""
    # matplotlib looks for fonts once, which can take seconds, and says so on stderr: here, so
    # that no notebook does.
    fonts = f"fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(font_manager.fontManager, Path(folder, fonts))
    return {
        **os.environ,
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MPLCONFIGDIR": folder,
        "PYTHONHASHSEED": "0",  # the order of sets of strings
        **settings.variables(),
    }


def _cell_failed(notebook: Path, number: int, error: CellExecutionError) -> GccostError:
    """The error to show for a cell that raised an error.

    A GccostError is passed on unchanged. For any other error it has the kernel's message
    and the line of the cell.
    """
    location = f"{notebook.name}, cell {number}"
    if error.ename in ("GccostError", "MissingTool", "DiskFull"):
        return GccostError(str(error.evalue), location)
    # An error in Go has only its message, which contains the line.
    trace = strip_ansi(error.traceback or "")
    if line := re.findall(rf"Cell In\s*\[{number}\], line (\d+)", trace):
        location += f", line {line[-1]}"
    said = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    return GccostError(said, location, "run this chapter in JupyterLab (make lab) to investigate")


def _normalise(node: NotebookNode) -> None:
    """Remove everything from an executed notebook that differs from run to run."""
    if gokernel.is_go(node):
        node.metadata = nbformat.from_dict({**_GO, "gccost": gokernel.stamp(node)})
    else:
        node.metadata = nbformat.from_dict(_PYTHON)
    node.nbformat, node.nbformat_minor = 4, 5
    count = itertools.count(1)
    for cell in node.cells:
        metadata = {name: cell.metadata[name] for name in _CELL_METADATA if name in cell.metadata}
        cell.metadata = nbformat.from_dict(metadata)
        if cell.cell_type != "code":
            continue
        ran = bool(cell.source.strip())
        cell.execution_count = next(count) if ran else None
        cell.outputs = cell.outputs if ran else []
        CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, 0)
        for output in cell.outputs:
            if "text" in output:  # a shell cell writes to a pseudo-terminal
                output.text = output.text.replace("\r\n", "\n")
            if "execution_count" in output:
                output.execution_count = cell.execution_count
            if "data" in output:
                output.data.pop(_WIDGET, None)
