"""Reproducible execution of notebooks: the same data give the same file.

A notebook runs in a fresh kernel of the interpreter that runs this module, whatever
kernels are registered. A Go notebook runs in the Go kernel of this environment. The
written file has the cells and their outputs, but no times, widget state or versions.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import re
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode

from gccost.errors import GccostError, MissingTool
from gccost.files import write_whole
from gccost.measuring.settings import Settings
from gccost.showing import gokernel

# The kernel metadata of the written notebook: enough for JupyterLab to choose a kernel and
# for a forge to highlight the code, but nothing that changes with a language release.
_PYTHON = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": NATIVE_KERNEL_NAME,
    },
    "language_info": {
        "file_extension": ".py",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
_GO = {
    "kernelspec": {"display_name": "Go", "language": "go", "name": gokernel.NAME},
    "language_info": {"file_extension": ".go", "name": "go", "pygments_lexer": "go"},
}
_CELL_METADATA = ("gccost", "jupyter", "tags")
_WIDGET = "application/vnd.jupyter.widget-view+json"

# Seconds. A machine that is busy measuring starts kernels slowly and delivers their last
# outputs late.
_START = 180
_LAST_OUTPUT = 60


def execute_all(
    notebooks: Mapping[Path, Path],
    settings: Settings,
    *,
    at_once: int = 1,
    on_start: Callable[[Path], None] = lambda notebook: None,
    on_stderr: Callable[[str], object] | None = None,
) -> None:
    """Run notebooks, `at_once` at a time, and write each to the file that it is mapped to.

    Notebooks start in order, and `on_start` is called with each. A kernel works in the
    notebook's own folder, so that relative paths are valid wherever the output is, which
    may be the notebook itself. With `on_stderr` the cells' standard error (a progress line,
    for example) goes there immediately, and not into the notebook.

    A notebook is written atomically, and only if every cell succeeds. If one fails, the
    running ones are stopped, and those already written remain. All kernels and their
    children have ended when this returns or raises. Call it in the main thread, without
    a running event loop.

    Raises GccostError with notebook and cell if a cell fails or a kernel dies;
    KeyboardInterrupt or SystemExit after SIGINT or SIGTERM.
    """
    turns = asyncio.Semaphore(at_once)

    async def one(notebook: Path, into: Path) -> None:
        async with turns:
            on_start(notebook)
            await _execute(notebook, into, settings, on_stderr)

    async def every() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        # As asyncio.run handles SIGINT. Otherwise `timeout` and `kill` would orphan the
        # kernels' children.
        before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(task.cancel))
        try:
            # Unlike gather, a group waits for cancelled tasks, and so for their kernels.
            async with asyncio.TaskGroup() as group:
                for job in notebooks.items():
                    group.create_task(one(*job))
        finally:
            signal.signal(signal.SIGTERM, before)

    try:
        asyncio.run(every())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None


async def _execute(
    notebook: Path, into: Path, settings: Settings, on_stderr: Callable[[str], object] | None
) -> None:
    node = read_notebook(notebook)
    with (
        tempfile.TemporaryDirectory(prefix="gccost-kernel-") as scratch,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as last_words,
    ):
        environment = {
            **os.environ,
            # Make the result independent of the user's IPython start-up files and of
            # the order of sets of strings.
            "IPYTHONDIR": scratch,
            "PYTHONHASHSEED": "0",
            **settings.variables(),
        }
        await _run(notebook, node, environment, last_words, on_stderr)
    _normalise(node)
    write_whole(into, f"{nbformat.writes(node)}\n".encode())


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook of nbformat 4.5 or later.

    Older notebooks have no cell ids, and generated ids would differ each time.

    Raises GccostError if the file is missing, is not a notebook or lacks ids.
    """
    try:
        node: NotebookNode = nbformat.reader.reads(path.read_text(encoding="utf-8"))
        version = nbformat.reader.get_version(node)
        ids = [cell.get("id") for cell in node.get("cells", [])]
        if version < (4, 5) or None in ids or len(set(ids)) < len(ids):
            raise GccostError(
                "its cells lack unique ids, so links cannot point to them",
                str(path),
                "open it in JupyterLab (make lab) and save it",
            )
        nbformat.validate(node)
    except FileNotFoundError:
        raise GccostError(
            "there is no such notebook", str(path), f"git checkout -- {path}"
        ) from None
    except (
        nbformat.ValidationError,
        nbformat.reader.NotJSONError,
        UnicodeDecodeError,
        AttributeError,
        KeyError,
    ) as error:
        raise GccostError(
            f"this is not a Jupyter notebook ({_first_line(str(error))})",
            str(path),
            f"git checkout -- {path}",
        ) from None
    return node


def named_outputs(path: Path) -> dict[str, dict[str, str]]:
    """The data of each named chart and table of an executed notebook, by media type."""
    outputs = (out for cell in read_notebook(path).cells for out in cell.get("outputs", []))
    about = ((out, out.get("metadata", {}).get("gccost", {})) for out in outputs)
    return {each.get("chart") or each["table"]: out.data for out, each in about if each}


class _KernelManager(AsyncKernelManager):
    """A manager of two kernels: this interpreter, and the Go kernel of this clone."""

    @property
    def kernel_spec(self) -> KernelSpec:
        if self.kernel_name == NATIVE_KERNEL_NAME:
            return KernelSpec(**get_kernel_dict())
        spec = gokernel.find()
        if spec is None:
            raise MissingTool("is not built", "the Go kernel", "make kernel")
        return spec


class _Client(NotebookClient):
    """A client that can forward standard error while a cell runs."""

    on_stderr: Callable[[str], object] | None = None

    def process_message(
        self, msg: dict[str, Any], cell: NotebookNode, cell_index: int
    ) -> NotebookNode | None:
        is_stderr = msg["msg_type"] == "stream" and msg["content"]["name"] == "stderr"
        if is_stderr and self.on_stderr is not None:
            self.on_stderr(msg["content"]["text"])
            return None
        return super().process_message(msg, cell, cell_index)


async def _run(
    notebook: Path,
    node: NotebookNode,
    environment: dict[str, str],
    last_words: IO[str],
    on_stderr: Callable[[str], object] | None,
) -> None:
    """Run every code cell of `node` in place."""
    if _loopback_is_down():  # the kernel would never answer
        raise GccostError("the kernel cannot start", notebook.name, _LOOPBACK_HINT)
    manager = _KernelManager(
        kernel_name=gokernel.NAME if gokernel.is_go(node) else NATIVE_KERNEL_NAME
    )
    client = _Client(
        node,
        km=manager,
        resources={"metadata": {"path": str(notebook.parent.resolve())}},
        timeout=None,
        iopub_timeout=_LAST_OUTPUT,
        raise_on_iopub_timeout=True,
    )
    client.on_stderr = on_stderr
    try:
        # async_execute would install signal handlers for a single notebook.
        await client.async_start_new_kernel(env=environment, stderr=last_words)
        client.kc = manager.client()
        client.kc.start_channels()
        await client.kc.wait_for_ready(timeout=_START)
        client.kc.allow_stdin = False
        for index, cell in enumerate(node.cells):
            await client.async_execute_cell(cell, index)
    except CellExecutionError as error:
        raise _cell_failed(notebook, client.code_cells_executed, error) from None
    except (DeadKernelError, RuntimeError) as error:
        task = asyncio.current_task()
        # nbclient reports its own cancellation as the kernel's death.
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        exit_code = await manager.provisioner.poll() if manager.provisioner else None
        number = client.code_cells_executed
        raise _kernel_failed(notebook, number, error, exit_code, last_words) from None
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        if manager.has_kernel:
            # Interrupts the kernel's process group first, as Ctrl-C in a terminal would, so
            # that a running benchmark ends and its run folder is closed.
            end = asyncio.ensure_future(manager.shutdown_kernel())
            try:
                await asyncio.shield(end)
            except asyncio.CancelledError:  # by a signal, or because another notebook failed
                await end
                raise


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


def _kernel_failed(
    notebook: Path, number: int, error: Exception, exit_code: int | None, last_words: IO[str]
) -> GccostError:
    """The error to show for a kernel that did not start (`number` is 0) or died at a cell."""
    location = f"{notebook.name}, cell {number}" if number else notebook.name
    message = "the kernel died" if number else "the kernel did not start"
    if exit_code is None:
        message += f": {_first_line(str(error))}"
    elif exit_code < 0:
        message += f", ended by {signal.Signals(-exit_code).name}"
    last_words.seek(0)
    # Skip the launcher's own log, which warns of unencrypted local sockets.
    said = [line for line in last_words.read().split("\n") if line and not line.startswith("[")]
    if said:
        message += f"; its last message: {said[-1].strip()}"
    hint = "check that memory and disk are free, and run it again"
    return GccostError(message, location, _LOOPBACK_HINT if _loopback_is_down() else hint)


_LOOPBACK_HINT = (
    "the loopback interface is down, and a kernel is talked to over 127.0.0.1: "
    "bring it up (as root: ip link set lo up) and run it again"
)


def _loopback_is_down() -> bool:
    """Whether a TCP socket on 127.0.0.1 cannot be bound or reached."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        # A lack of files or memory also prevents sockets.
        return error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
    return False


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
        cell.outputs = list(_coalesced(cell.outputs)) if ran else []
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = cell.execution_count
            if "data" in output:
                output.data.pop(_WIDGET, None)


def _coalesced(outputs: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
    """Join the outputs between two displays to one stdout and one stderr.

    The splitting and the order of the two streams depend on timing. nbclient's own joining
    would also move text before the display that it follows.
    """
    for is_stream, group in itertools.groupby(outputs, lambda out: out.output_type == "stream"):
        if not is_stream:
            yield from group
            continue
        pieces = list(group)
        for name in ("stdout", "stderr"):
            text = "".join(piece.text for piece in pieces if piece.name == name)
            # A shell cell writes to a pseudo-terminal, with its own line endings. Of an
            # overwritten line only the last state counts.
            text = re.sub(r"^.*\r", "", text.replace("\r\n", "\n"), flags=re.MULTILINE)
            if text:
                yield nbformat.v4.new_output("stream", name=name, text=text)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
