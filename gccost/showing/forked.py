"""Kernels that start at once: each is forked from one process that has prepared what all need.

That process imports what notebooks import, and opens the studies, so that samples are read once
for all of them (see `gccost.prepared`). It runs no cell: a kernel is as fresh as one that
is started anew.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Mapping
from multiprocessing import connection, forkserver
from multiprocessing.context import ForkServerProcess
from multiprocessing.process import BaseProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

IS_POSSIBLE = "forkserver" in multiprocessing.get_all_start_methods()
_INTERRUPT = [signal.SIGINT]


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
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
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


def _end_with(parent: BaseProcess) -> None:
    """End this process when the one that runs the notebooks has ended, if it was killed."""
    connection.wait([parent.sentinel])
    os._exit(1)
