"""JupyterLab as `make lab` starts it."""

from __future__ import annotations

import os

import httpx
import pytest
from browser import Browser
from faketools import PATIENCE, wait_for
from lab import command, lab
from playwright.sync_api import Page, expect

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


def test_a_notebook_that_was_only_opened_is_not_unsaved(browser: Browser, tmp_path):
    def look(at: Page) -> None:
        kernels = f"{opened.url}api/kernels?token={opened.token}"
        assert wait_for(lambda: '"idle"' in httpx.get(kernels).text)
        expect(at.get_by_text("| Idle")).to_be_visible(timeout=1000 * PATIENCE)
        expect(at.locator(".jp-mod-dirty")).to_have_count(0)

    with lab(tmp_path / "clone", os.environ) as opened:
        browser.visit(opened.of("01-lemire"), look)
