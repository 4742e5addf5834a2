"""Running a notebook, so that the same data give the same file.

A notebook runs in a fresh kernel of the very interpreter that runs this module,
whatever kernels the machine knows by the same name; a Go notebook in the Go kernel
that is registered in its environment. What is written holds the cells and their
outputs and nothing of the occasion: no time, no widget state, no version of the
language. Two runs that compute the same are the same bytes.
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
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, TypeVar

import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbconvert.filters import strip_ansi
from nbformat import NotebookNode

from gccost import gokernel
from gccost.errors import GccostError, MissingTool
from gccost.files import write_whole
from gccost.showing import controls

Mode = Literal["measure", "replay"]
T = TypeVar("T")

# What the written notebook says of its kernel: enough for JupyterLab to choose
# one and for a forge to highlight the code, and nothing that changes with a
# release of the language.
_PYTHON = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
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

# Seconds. A machine that is busy measuring starts a kernel slowly and delivers
# its last outputs late; neither may be what fails a chapter.
_START = 180
_LAST_OUTPUT = 60


@dataclass(frozen=True, slots=True)
class ExecutedNotebook:
    """A notebook that ran to its end.

    `path` is the file that was written, `cells` how many code cells ran and
    `seconds` how long that took, the kernel's start included.
    """

    path: Path
    cells: int
    seconds: float


def execute(
    notebook: Path,
    into: Path,
    *,
    mode: Mode,
    environment: Mapping[str, str],
    on_cell: Callable[[int, int], None] | None = None,
    on_stderr: Callable[[str], None] | None = None,
) -> ExecutedNotebook:
    """Run `notebook` from top to bottom and write it, with its outputs, to `into`.

    The kernel works in the notebook's own folder, so that relative paths hold
    wherever `into` lies; `into` may be `notebook` itself. It sees this
    process's environment, `environment` on top of it and `GCCOST_MODE=mode`.
    Before each code cell `on_cell` is called with the cell's number, from 1,
    and how many there are. With `on_stderr` the cells' standard error goes
    there as it comes (a progress line, say) and not into the notebook.

    Nothing is written unless every cell succeeds, and then the whole file at
    once. The kernel and what it started are gone when this returns, however it
    returns. Not to be called from within a running event loop.

    Raises GccostError, naming notebook and cell, when a cell fails or the
    kernel dies; KeyboardInterrupt or SystemExit when a signal ended it.
    """
    job = _executed(notebook, into, mode, environment, on_cell, on_stderr)
    return _to_the_end(job)


def execute_all(
    notebooks: Mapping[Path, Path],
    *,
    mode: Mode,
    at_once: int,
    on_start: Callable[[Path], None] | None = None,
    on_stderr: Callable[[str], None] | None = None,
) -> list[ExecutedNotebook]:
    """Run notebooks, each into the file that it is mapped to, so many at once.

    As `execute` does each. They are begun in order, and `on_start` is called with each
    then. When one fails those that still run are ended, and those that were written stay.
    """

    async def all_of_them() -> list[ExecutedNotebook]:
        turns = asyncio.Semaphore(at_once)

        async def one(notebook: Path, into: Path) -> ExecutedNotebook:
            async with turns:
                if on_start is not None:
                    on_start(notebook)
                return await _executed(notebook, into, mode, {}, None, on_stderr)

        try:
            # Unlike gather, it waits for those that it ends, and their kernels.
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(one(*job)) for job in notebooks.items()]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    return _to_the_end(all_of_them())


def _to_the_end(job: Coroutine[Any, Any, T]) -> T:
    """Run a job in an event loop of its own; SIGTERM ends it as SIGINT does."""

    async def cancelled_by_termination() -> T:
        with _termination_cancels():
            return await job

    try:
        return asyncio.run(cancelled_by_termination())
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None


async def _executed(
    notebook: Path,
    into: Path,
    mode: Mode,
    environment: Mapping[str, str],
    on_cell: Callable[[int, int], None] | None,
    on_stderr: Callable[[str], None] | None,
) -> ExecutedNotebook:
    started = time.monotonic()
    node = read_notebook(notebook)
    with (
        tempfile.TemporaryDirectory(prefix="gccost-kernel-") as scratch,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as last_words,
    ):
        variables = {
            **os.environ,
            # Without these two the user's own IPython start-up files, and the
            # order of a set of strings, would be part of the result.
            "IPYTHONDIR": scratch,
            "PYTHONHASHSEED": "0",
            controls.HEADLESS: "1",
            **environment,
            "GCCOST_MODE": mode,
        }
        cells = await _run(notebook, node, variables, last_words, on_cell, on_stderr)
    _normalise(node)
    write_whole(into, f"{nbformat.writes(node)}\n".encode())
    return ExecutedNotebook(into, cells, time.monotonic() - started)


def read_notebook(path: Path) -> NotebookNode:
    """The notebook at `path`, which must be of nbformat 4.5 or later.

    Older ones have no cell ids, and ids made here would differ each time.

    Raises GccostError when the file is missing, is no notebook or lacks ids.
    """
    try:
        node: NotebookNode = nbformat.reader.reads(path.read_text(encoding="utf-8"))
        version = nbformat.reader.get_version(node)
        ids = [cell.get("id") for cell in node.get("cells", [])]
        if version < (4, 5) or None in ids or len(set(ids)) < len(ids):
            raise GccostError(
                "its cells do not each have an id of their own, so no link could point to them",
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


class _ThisPython(AsyncKernelManager):
    """A kernel manager that knows one kernel: the interpreter that runs this."""

    options: ClassVar = ["--HistoryManager.hist_file=:memory:"]

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(**get_kernel_dict())


class _ThisGo(AsyncKernelManager):
    """A kernel manager that knows one kernel: the Go kernel that this clone built."""

    options: ClassVar[list[str]] = []

    @property
    def kernel_spec(self) -> KernelSpec:
        spec = gokernel.find()
        if spec is None:
            raise MissingTool("is not built", "the Go kernel", "make kernel")
        return spec


class _Client(NotebookClient):
    """A client that can hand standard error on while the cell still runs."""

    on_stderr: Callable[[str], None] | None = None

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
    on_cell: Callable[[int, int], None] | None,
    on_stderr: Callable[[str], None] | None,
) -> int:
    """Run every code cell of `node` in place; how many they were."""
    manager = _ThisGo() if gokernel.is_go(node) else _ThisPython()
    client = _Client(
        node, km=manager, timeout=None, iopub_timeout=_LAST_OUTPUT, raise_on_iopub_timeout=True
    )
    client.on_stderr = on_stderr
    todo = [
        (index, cell)
        for index, cell in enumerate(node.cells)
        if cell.cell_type == "code" and cell.source.strip()
    ]
    number = 0
    if _loopback_is_down():  # else it would be waited for in vain
        raise GccostError("the kernel cannot start", notebook.name, _LOOPBACK_MEND)
    try:
        await manager.start_kernel(
            cwd=str(notebook.parent.resolve()),
            env=environment,
            stderr=last_words,
            extra_arguments=manager.options,
        )
        client.kc = manager.client()
        client.kc.start_channels()
        await client.kc.wait_for_ready(timeout=_START)
        client.kc.allow_stdin = False
        for number, (index, cell) in enumerate(todo, start=1):
            if on_cell is not None:
                on_cell(number, len(todo))
            await client.async_execute_cell(cell, index)
    except CellExecutionError as error:
        raise _cell_failed(notebook, number, error) from None
    except (DeadKernelError, RuntimeError) as error:
        task = asyncio.current_task()
        # nbclient takes its own cancelling for the kernel's death.
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        exit_code = await manager.provisioner.poll() if manager.provisioner else None
        raise _kernel_failed(notebook, number, error, exit_code, last_words) from None
    finally:
        end = asyncio.ensure_future(_shut_down(manager, client))
        try:
            await asyncio.shield(end)
        except asyncio.CancelledError:  # by a signal, or for another notebook that failed
            await end
            raise
    return len(todo)


@contextmanager
def _termination_cancels() -> Iterator[None]:
    """Turn SIGTERM into a cancelled task, as asyncio.run does with SIGINT.

    Otherwise `timeout` and `kill` would leave the kernel's children behind.
    """
    task = asyncio.current_task()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def cancel(*_: object) -> None:
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGTERM, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def _shut_down(manager: AsyncKernelManager, client: NotebookClient) -> None:
    """End the kernel and whatever it started, politely at first."""
    if client.kc is not None:
        client.kc.stop_channels()
    if not manager.has_kernel:
        return
    if await manager.is_alive():
        # It goes to the kernel's whole process group, as Ctrl-C in a terminal
        # would: a benchmark that still runs ends, and the run folder is closed.
        await manager.interrupt_kernel()
    await manager.shutdown_kernel()


def _cell_failed(notebook: Path, number: int, error: CellExecutionError) -> GccostError:
    """What the user sees of a cell that raised.

    An error of ours already says thing, place and mend: it is passed on as it
    is. Of any other the kernel's own words are kept, and the line of the cell.
    """
    place = f"{notebook.name}, cell {number}"
    if error.ename in ("GccostError", "MissingTool", "DiskFull"):
        return GccostError(str(error.evalue), place)
    # Of an error in Go there is no more than what it says, with the line in that.
    trace = strip_ansi(error.traceback or "")
    line = re.findall(rf"Cell In\s*\[{number}\], line (\d+)", trace)
    if line:
        place += f", line {line[-1]}"
    said = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
    return GccostError(said, place, "run this chapter in JupyterLab (make lab) to look into it")


def _kernel_failed(
    notebook: Path, number: int, error: Exception, exit_code: int | None, last_words: IO[str]
) -> GccostError:
    """What the user sees when the kernel did not start (`number` is 0) or died at a cell."""
    place = f"{notebook.name}, cell {number}" if number else notebook.name
    thing = "the kernel died" if number else "the kernel did not start"
    if exit_code is None:
        thing += f": {_first_line(str(error))}"
    elif exit_code < 0:
        thing += f", ended by {signal.Signals(-exit_code).name}"
    last_words.seek(0)
    # The launcher's own log (it warns of unencrypted local sockets) is no cause.
    said = [line for line in last_words.read().split("\n") if line and not line.startswith("[")]
    if said:
        thing += f"; the last it said was: {said[-1].strip()}"
    mend = "see that memory and disk are free, and run it again"
    return GccostError(thing, place, _LOOPBACK_MEND if _loopback_is_down() else mend)


_LOOPBACK_MEND = (
    "the loopback interface is down, and a kernel is talked to over 127.0.0.1: "
    "bring it up (as root: ip link set lo up) and run it again"
)


def _loopback_is_down() -> bool:
    """Whether a TCP socket on 127.0.0.1 cannot be bound or not be reached."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        # Without files or memory to spare none can be made, whatever the interface.
        return error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)
    return False


def _normalise(node: NotebookNode) -> None:
    """Take out of an executed notebook all that is of the occasion."""
    if gokernel.is_go(node):
        node.metadata = nbformat.from_dict({**_GO, "gccost": gokernel.stamp(node)})
    else:
        node.metadata = nbformat.from_dict(_PYTHON)
    node.nbformat, node.nbformat_minor = 4, 5
    count = itertools.count(1)
    for cell in node.cells:
        kept = {name: cell.metadata[name] for name in _CELL_METADATA if name in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
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
    """Join what stands between two displays to one stdout and one stderr.

    How the text was cut, and which of the two came first, is the kernel's
    timing and not the notebook's.
    """
    for is_stream, group in itertools.groupby(outputs, lambda out: out.output_type == "stream"):
        if not is_stream:
            yield from group
            continue
        pieces = list(group)
        for name in ("stdout", "stderr"):
            text = "".join(piece.text for piece in pieces if piece.name == name)
            # A shell cell writes to a pseudo-terminal, which ends lines its own
            # way; and of a line that was drawn over, the last state is the text.
            text = re.sub(r"^.*\r", "", text.replace("\r\n", "\n"), flags=re.MULTILINE)
            if text:
                yield nbformat.v4.new_output("stream", name=name, text=text)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
