"""A JupyterLab for the tests, and a reader's actions in it."""

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
from faketools import wait_for
from playwright.sync_api import Page

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
            server.wait(60)
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


# --- a reader's actions -----------------------------------------------------------------


def run_all(page: Page) -> None:
    """Choose Run > Run All Cells when the kernel is ready, and wait until every cell has run.

    Repeat the choice if it has no effect: it may be lost while the kernel connects.
    """
    page.get_by_text(re.compile(r"\| Idle$")).first.wait_for()
    before = prompts(page)
    for _ in range(3):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name=re.compile("^Run All Cells")).first.click()
        # A second run would hide the first one's output.
        if wait_for(lambda: prompts(page) != before, 10):
            break
    assert wait_for(lambda: "[*]:" not in prompts(page))


def prompts(page: Page) -> list[str]:
    """The prompts of the code cells: "[ ]:" not run, "[*]:" queued, "[3]:" ran third."""
    found = page.locator(".jp-CodeCell .jp-InputArea-prompt").all_text_contents()
    return [text.strip() for text in found if text.strip()]


def errors(page: Page) -> list[str]:
    """The tracebacks of failed cells, and the prompts of cells that did not run."""
    said = page.locator(".jp-OutputArea-output").all_text_contents()
    found = [text[-600:] for text in said if "Traceback (most recent call last)" in text]
    return found + [text for text in prompts(page) if text == "[ ]:"]


def pictures(page: Page) -> list[int]:
    """The width of each picture in pixels."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-OutputArea-output img')].every(i => i.complete)"
    )
    return page.locator(".jp-OutputArea-output img").evaluate_all(
        "all => all.map(image => image.naturalWidth)"
    )


def charts_due(notebook: str) -> int:
    """The number of charts in the committed notebook."""
    text = (paths.NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    return text.count('"image/svg+xml": ')
