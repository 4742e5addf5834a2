"""How many samples a second the reader of results reads into a frame.

Writes a file of made-up samples as a run's file has them (18 metrics each) to a
temporary folder, reads it, and prints the rate and the memory that it took.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from gccost.measuring.benchfmt import Sample, format_config, format_line, read

UNITS = (
    *("ns/op", "cpu-ns/op", "settled-ns/op", "settled-cpu-ns/op", "B/op", "allocs/op"),
    *("gc-cycles", "faults", "peak-rss-bytes", "c-allocated", "c-freed", "c-unfreed-loop"),
    *("c-unfreed-drained", "c-misfreed", "load", "order", "round", "unix-s"),
)
NAMES = ("AllocateFree", "AllocateDefer", "AllocateAuto", "AllocateDummy", "AllocateCleanup")
TOOLCHAINS = ("1.20.14", "1.27.4")


def lines(samples: int) -> str:
    """So many lines of results."""
    rng = np.random.default_rng(1)
    cases = [(name, go, gogc) for name in NAMES for go in TOOLCHAINS for gogc in ("100", "off")]
    text = []
    for row in range(samples):
        name, go, gogc = cases[row % len(cases)]
        values = [*rng.uniform(50, 2000, 4).round(2), *rng.integers(0, 2_000_000, 12)]
        values += [row // len(cases), 1.7e9 + row]
        keys = {"go": go, "gogc": gogc, "setting": "published"}
        metrics = dict(zip(UNITS, map(float, values), strict=True))
        text.append(format_line(Sample(name, 1_600_000, metrics, keys, procs=2)) + "\n")
    return "".join(text)


def write(path: Path, samples: int) -> None:
    """A file with so many samples: ten thousand and what it takes of copies."""
    made = min(samples, 10_000)
    text = lines(made)
    with path.open("w", encoding="utf-8") as file:
        file.write(format_config({"goos": "linux", "goarch": "amd64"}))
        for _ in range(samples // made):
            file.write(text)
        file.write(lines(samples % made))


def main() -> None:
    """Write, read, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000, help="default: a million")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples.txt")
        write(path, arguments.samples)
        start = time.perf_counter()
        reading = read(path)
        seconds = time.perf_counter() - start
        size = path.stat().st_size / 1e6
    if len(reading.frame) != arguments.samples or reading.errors:
        sys.exit(f"{len(reading.frame)} samples read, {len(reading.errors)} lines left out")
    unit = 2**30 if sys.platform == "darwin" else 2**20  # macOS counts bytes, Linux kilobytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(
        f"{len(reading.frame):,} samples of {len(UNITS)} metrics ({size:.0f} MB) "
        f"in {seconds:.1f} s: {len(reading.frame) / seconds:,.0f} samples/s, "
        f"at most {peak:.1f} GB of memory"
    )


if __name__ == "__main__":
    main()
