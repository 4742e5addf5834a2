"""Many machines: `gccost measure` in the clone of each one, as a task of its Dask worker.

A task measures, and returns the machine's run as an archive. If a worker dies, its samples are in
the run folder of its machine. Dask repeats the task when a worker of that machine is back, and
the run resumes. How long Dask waits for one, and how it encrypts, are settings of Dask.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError

from distributed import Client, as_completed
from distributed.comm.addressing import get_address_host

from gccost import paths, processes
from gccost.errors import GccostError
from gccost.progress import Say
from gccost.run import runs

CONNECT_SECONDS = 10
# Without an address, Dask's servers and dashboards listen on all interfaces.
_START = "start it with: dask scheduler --host 127.0.0.1 --dashboard-address 127.0.0.1:0"


def measured(budget: str, only: str) -> bytes:
    """Measure in the clone of this worker, and return the run as an archive.

    Raises GccostError, with the last line of what the command said, if it measured nothing.
    """
    began = time.time()
    command = [sys.executable, "-m", "gccost", "measure", f"--budget={budget}", f"--only={only}"]
    done = processes.run(command, cwd=paths.ROOT)
    by_time = {}
    for run in runs.all_runs(paths.runs()):
        by_time[run.samples_txt.stat().st_mtime] = run
    last = max(by_time, default=0.0)
    if last < began:
        said = done.stderr.strip().rpartition("\n")[2].removeprefix("gccost: ")
        raise GccostError(said or f"gccost measure ended with {done.returncode}")
    return by_time[last].archive().read_bytes()


def measure(
    scheduler: str, budget: str, only: str, machines: int, say: Say
) -> Iterator[tuple[str, bytes]]:
    """Measure on every machine that has a worker; yield each one's address and archived run.

    Waits for so many workers first. The archive of a machine that fails is empty, and `say` gets
    the reason. Raises GccostError if the scheduler cannot be reached.
    """
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # it logs tracebacks
    try:
        client = Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise GccostError(f"the scheduler cannot be reached: {error}", scheduler, _START) from None
    with client:
        came = len(client.nthreads())
        if came < machines:
            say(f"waiting for workers: {came} of {machines} are there")
        client.wait_for_workers(machines)
        hosts = sorted(set(map(get_address_host, client.nthreads())))
        say(f"measuring on {', '.join(hosts)}")
        if len(hosts) < machines:
            say(f"workers of one address are one machine: {len(hosts)} of {machines}")
        tasks = {
            client.submit(measured, budget, only, workers=[host], pure=False): host
            for host in hosts
        }
        for task in as_completed(tasks):
            archive = b""
            try:
                came = task.result()
                archive = came if isinstance(came, bytes) else b"not an archive"
            except (Exception, CancelledError) as error:  # whatever a worker raised
                say(f"{tasks[task]}: {error}; what it measured is in its own run folder")
            yield tasks[task], archive
