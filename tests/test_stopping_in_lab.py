"""Measuring in a notebook can be stopped in every way that JupyterLab has, and resumes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest
from faketools import PATIENCE, FakeTools, wait_for
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from gccost import paths

pytestmark = pytest.mark.slow

CELL = 'import gccost\ngccost.measure("lemire", budget="quick")'
BETWEEN = 7  # samples from one ending to the next
ENDINGS = {
    "interrupt": lambda kernel: kernel.interrupt_kernel(),
    "restart": lambda kernel: kernel.restart_kernel(),
    "kill": lambda kernel: kernel.provisioner.process.kill(),
    "shut down": lambda kernel: kernel.shutdown_kernel(),
}


@contextmanager
def started(tools: FakeTools) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """A kernel as JupyterLab starts it, and a client of it."""
    environment = {**tools.environment(), "GCCOST_MODE": "measure"}
    # Without recorded sittings, whose spread would leave questions open until the budget is spent.
    environment["GCCOST_REFERENCE"] = str(tools.folder / "nothing-recorded")
    kernel = KernelManager()
    kernel.start_kernel(env=environment, cwd=str(paths.ROOT))
    client = kernel.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield kernel, client
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
        kernel.cleanup_resources()


def measuring(tools: FakeTools) -> list[psutil.Process]:
    """The programs under measurement, and what belongs to them."""
    with suppress(psutil.NoSuchProcess):
        return [one for one in tools.processes() if "python" not in one.name()]
    return measuring(tools)  # one has just ended


def test_stopped_measurements_clean_up_and_resume(tools: FakeTools):
    """One run, stopped four times and resumed each time."""
    before = b""
    for number, (name, end) in enumerate(ENDINGS.items(), start=1):
        tools.from_the(BETWEEN, of="sample")
        with started(tools) as (kernel, client):
            client.execute(CELL)
            assert wait_for((tools.folder / "reached").exists), name
            end(kernel)
            assert wait_for(lambda: not measuring(tools)), (name, measuring(tools))
        recorded = tools.the_run().samples_txt.read_bytes()
        assert recorded.startswith(before), "earlier samples were lost"
        assert recorded.count(b"\nBenchmark") == number * (BETWEEN - 1)
        before = recorded
    tools.do()
    with started(tools) as (kernel, client):
        reply = client.execute_interactive(CELL, timeout=PATIENCE, output_hook=lambda said: None)
    assert reply["content"]["status"] == "ok", reply
    after = tools.the_run().samples_txt.read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)
    assert wait_for(lambda: not tools.processes()), tools.processes()
