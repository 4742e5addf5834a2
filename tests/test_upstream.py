"""The reports of bugs in Go's runtime: their patches apply, with what else the overlay changes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gccost import paths
from gccost.cases.versions import TODAY_GO

pytestmark = pytest.mark.slow

UPSTREAM = paths.GOSRC / "overlay" / "upstream"
SPEC = importlib.util.spec_from_file_location("fixes", UPSTREAM / "fixes.py")
assert SPEC
assert SPEC.loader
fixes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fixes)


@pytest.mark.parametrize("variant", ["", "hint", "index", "plus"])
@pytest.mark.parametrize("report", ["stop", "queued"])
def test_the_fix_of_a_report_applies_to_every_variant(report, variant, tmp_path):
    blocks = dict(fixes.BLOCK.findall((UPSTREAM / f"{report}.md").read_text()))
    assert {"fix", "test"} <= blocks.keys()
    runtime = fixes.Runtime(TODAY_GO, variant, tmp_path)
    patches = [blocks[name] for name in ("fix", "late") if name in blocks]
    before, after = runtime.replaced, runtime.patched("patched", patches)
    assert {name for name in after if after[name] != before.get(name)} == {
        str(runtime.goroot / file) for patch in patches for file in fixes.FILE.findall(patch)
    }


def test_the_mistakes_that_the_test_of_locks_notices_apply(tmp_path):
    blocks = dict(fixes.BLOCK.findall((UPSTREAM / "locks.md").read_text()))
    assert {"test", "export"} <= blocks.keys()
    mistakes = [text for text in blocks.values() if fixes.FILE.match(text)]
    assert len(mistakes) == 2
    runtime = fixes.Runtime(TODAY_GO, "index", tmp_path)
    for number, text in enumerate(mistakes):
        patched = runtime.patched(str(number), [text])
        name = str(runtime.goroot / "src/runtime/mspecialindex.go")
        before, after = (
            Path(files[name]).read_text().count("lock(&at.lock)")
            for files in (runtime.replaced, patched)
        )
        assert after == before - 2
