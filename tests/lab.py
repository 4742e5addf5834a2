"""A JupyterLab for the tests."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil
from faketools import PATIENCE, wait_for

from gccost import paths

# Render every cell, also those far below the window.
TRACKER = {"windowingMode": "none", "autoSaveInterval": 1e6}
TRACKER_FILE = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"


@dataclass(frozen=True)
class Lab:
    """A running server; `folder` is the clone that it serves."""

    folder: Path
    url: str
    token: str
    pid: int

    def of(self, notebook: str) -> str:
        """The URL that opens a notebook in an empty workspace."""
        return f"{self.url}lab/tree/notebooks/{notebook}.ipynb?token={self.token}&reset"


@contextmanager
def lab(folder: Path, environment: Mapping[str, str]) -> Iterator[Lab]:
    """A JupyterLab as `make lab` starts it, on a copy of the notebooks without output."""
    (folder / "notebooks").mkdir(parents=True)
    (folder / "gosrc").symlink_to(paths.GOSRC)
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        node = nbformat.read(path, as_version=4)
        for cell in node.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(node, folder / "notebooks" / path.name)
    settings = folder / "settings" / TRACKER_FILE
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(TRACKER))
    variables = {
        **environment,
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [*command(), "--no-browser", "--port=0", f"--notebook-dir={folder}"],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
        )
    try:
        wait_for(lambda: _said(folder) or server.poll() is not None)
        about = _said(folder)
        assert about, (folder / "log").read_text()
        yield Lab(folder, about["url"], about["token"], server.pid)
    finally:
        kernels = psutil.Process(server.pid).children(recursive=True)
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
        for kernel in kernels:
            with suppress(psutil.NoSuchProcess):
                kernel.kill()


def command() -> list[str]:
    """The command of `make lab`, without the notebook that it opens."""
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    said = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "lab"],
        cwd=paths.ROOT,
        env={name: value for name, value in os.environ.items() if name not in outer},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (words,) = re.findall(r"^\S+python (-m jupyterlab .*) notebooks/00-results\.ipynb$", said, re.M)
    return [sys.executable, *words.split()]


def _said(folder: Path) -> dict:
    for path in (folder / "runtime").glob("jpserver-*.json"):
        with suppress(ValueError):  # half written
            return json.loads(path.read_text())
    return {}
