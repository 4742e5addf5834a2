"""Processes that never outlive us: however we end, what we started ends too."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any


class ProcessGroup:
    """A process group that ends when it is let go, and when we are no more.

    In it a keeper reads from a pipe that only we hold open. Whatever ends us,
    SIGKILL included, the kernel closes the pipe, and the keeper ends the group
    with everything that was started in it. Commands may be run from several
    threads at once.
    """

    def __enter__(self) -> ProcessGroup:
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", "read -r _; kill -9 0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_all()
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        """Like subprocess.Popen, with text and nothing to read."""
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
        """Like subprocess.run, with what the command prints captured.

        If the limit in seconds passes, or a signal ends us, everything on the group ends.
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
        # Once the keeper is waited for, its number may come to be another's. A
        # group of which only dead processes are left is refused on macOS.
        if self._keeper.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._keeper.pid, signal.SIGKILL)


def run(
    command: list[str], *, limit: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run one command on a group of its own; see `ProcessGroup.run`."""
    with ProcessGroup() as group:
        return group.run(command, limit=limit, **options)


def ask(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    limit: float | None = 60,
    errors: str = "replace",
) -> subprocess.CompletedProcess[str] | None:
    """A short command and what it printed; None if it is missing, fails or hangs.

    None too where `errors` is "strict" and it printed no text. On a busy machine
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
