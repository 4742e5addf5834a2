"""Child processes that end when this process ends, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

Environment = dict[str, str]


class ProcessGroup:
    """A process group that ends with its context, or with this process.

    A keeper process in the group reads from a pipe that only this process holds open.
    If this process ends, even by SIGKILL, the kernel closes the pipe and the keeper kills
    the whole group. Several threads may run commands in it.
    """

    def __enter__(self) -> ProcessGroup:
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", "read -r _; kill -9 0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._starting, self._ended = threading.Lock(), False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A process that another thread starts between the kill and the keeper's end would stay.
        with self._starting:
            self._ended = True
        self._end_all()
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        """Like subprocess.Popen, with text streams and no input.

        Raises ProcessLookupError if the group has ended.
        """
        with self._starting:
            if self._ended:
                raise ProcessLookupError("the process group has ended")
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                process_group=self._keeper.pid,
                **options,
            )

    def run(
        self, command: list[str], *, limit: float | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Like subprocess.run, with captured output.

        If the limit (seconds) passes, or a signal arrives, the whole group is killed.
        """
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        with self.start(command, **options) as process:
            try:
                output, errors = process.communicate(timeout=limit)
            except BaseException:
                self._end_all()
                raise
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def _end_all(self) -> None:
        # Kill before waiting for the keeper, whose process ID may then be reused. macOS
        # refuses to signal a group of zombies.
        if self._keeper.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._keeper.pid, signal.SIGKILL)


def run(
    command: list[str], *, limit: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run one command in its own group; see `ProcessGroup.run`."""
    with ProcessGroup() as group:
        return group.run(command, limit=limit, **options)


def ask(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    limit: float | None = 60,
    errors: str = "replace",
) -> subprocess.CompletedProcess[str] | None:
    """Run a short command and return its output; None if it is missing, fails or hangs.

    Also returns None if `errors` is "strict" and the output is not text. On a busy machine
    `java -version` takes seconds, hence `limit` (in seconds).
    """
    try:
        return subprocess.run(
            command,
            env=env,
            capture_output=True,
            text=True,
            errors=errors,
            check=True,
            timeout=limit,
        )
    except (OSError, UnicodeError, subprocess.SubprocessError):
        return None


def without(*prefixes: str) -> Environment:
    """This process's environment without the variables whose names begin so."""
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}


@contextmanager
def pinned() -> Iterator[None]:
    """Restrict processes started inside to the last CPU, which the kernel itself uses least.

    Does nothing if the system does not support that.
    """
    if not hasattr(os, "sched_getaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
