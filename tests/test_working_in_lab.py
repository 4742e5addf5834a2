"""JupyterLab as `make lab` starts it."""

from __future__ import annotations

import os

import httpx
import pytest
from lab import command, lab

from gccost.showing import gokernel

pytestmark = pytest.mark.slow


def test_the_server_is_local_requires_the_token_and_knows_the_kernels(tmp_path):
    assert "--ip=127.0.0.1" in command()
    with lab(tmp_path / "clone", os.environ) as opened:
        assert opened.token
        assert opened.url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{opened.url}api/contents").status_code == 403
        start = httpx.get(opened.url, params={"token": opened.token})
        assert start.headers["location"].startswith("/lab/tree/00-results.ipynb")
        answer = httpx.get(f"{opened.url}api/kernelspecs", params={"token": opened.token})
    known = answer.json()["kernelspecs"]
    assert "python3" in known
    assert gokernel.find() is None or gokernel.NAME in known
