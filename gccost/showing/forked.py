"""Processes that start at once: each is forked from one that has prepared what all need.

That one imports what notebooks import, and opens the studies, so that samples are read and judged
once for all of them (see `gccost.prepared`). It runs no cell: a kernel is as fresh as one that
is started anew. Other work on the same data, such as the pages, runs in such processes, too.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from gccost.errors import GccostError

IS_POSSIBLE = "forkserver" in multiprocessing.get_all_start_methods()
_INTERRUPT = [signal.SIGINT]
_is_prepared = threading.Event()

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def prepare(environment: Mapping[str, str], folder: str) -> None:
    """Start the process with this environment, if it does not run. Call it in the main thread.

    Its socket is in the folder, which must stay as long as this process does.
    """
    before = dict(os.environ)
    os.environ.update(environment)
    usual, tempfile.tempdir = tempfile.tempdir, folder
    # Ctrl-C reaches every process of the terminal. This one must not print a traceback of it: it
    # ends with its kernels.
    signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)
    try:
        forkserver.set_forkserver_preload(["gccost.prepared"])
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
        tempfile.tempdir = usual
        os.environ.clear()
        os.environ.update(before)
    _is_prepared.set()


def each(
    function: Callable[[_Job], _Result], jobs: Iterable[_Job], at_once: int = 1
) -> list[_Result]:
    """What a function of a module returns for each job, in order, `at_once` at a time.

    It is called in forked processes, if the one that they fork from was prepared.
    """
    if not _is_prepared.is_set():
        return [*map(function, jobs)]
    with ThreadPoolExecutor(at_once) as pool:
        return [*pool.map(partial(_elsewhere, function), jobs)]


def _elsewhere(function: Callable[[_Job], _Result], job: _Job) -> _Result:
    """What a function returns for a job, in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, function, job))
    process.start()
    theirs.close()  # or its end would not be seen
    try:
        result, error = ours.recv()
    except EOFError:
        hint = "check that memory is free, and run it again"
        raise GccostError("a process ended too early", function.__name__, hint) from None
    finally:
        process.join()
    if error is not None:
        raise error
    return cast("_Result", result)


def _answer(theirs: Connection, function: Callable[[_Job], object], job: _Job) -> None:
    """Send what a function returns for a job, or what it raises."""
    _end_if_alone()
    result, error = None, None
    try:
        result = function(job)
    except Exception as raised:
        error = raised
    theirs.send((result, error))


class Forked(LocalProvisioner):
    """Starts the kernel of this interpreter by a fork."""

    async def launch_kernel(self, cmd: list[str], **more: Any) -> KernelConnectionInfo:
        """Start the kernel. It needs the connection file of the command, and nothing else."""
        manager: Any = self.parent
        about = (manager.connection_file, more["cwd"], more["env"])
        kernel: Any = _Kernel(target=_serve, args=about)
        kernel.start()
        self.process = kernel
        self.pid = kernel.pid
        self.pgid = kernel.pid
        self.cwd = more["cwd"]
        return self.connection_info


class _Kernel(ForkServerProcess):
    """A process with what jupyter_client asks of one that it started."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self) -> int | None:
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        if self.pid is not None:
            os.kill(self.pid, number)


def _serve(file: str, folder: str, environment: Mapping[str, str]) -> None:
    """Be a kernel, in the forked process."""
    _end_if_alone()
    os.setsid()  # a signal to the kernel reaches what it has started, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it warns of unencrypted local sockets

    from ipykernel.kernelapp import IPKernelApp

    # Without a parent it prints how to end it by hand.
    IPKernelApp.launch_instance(["-f", file, f"--IPKernelApp.parent_handle={os.getppid()}"])


def _end_if_alone() -> None:
    """End this process when the one that asked for it has ended, if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    connection.wait([parent.sentinel])
    os._exit(1)
