"""Run folders survive what disks and people do to them."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path

import pytest

from gccost.errors import GccostError
from gccost.measuring import runs


def described(**more: object) -> str:
    """A run's description with something else in it."""
    sound = {"format": 1, "created": "", "fingerprint": "", "machine": {}, "warnings": []}
    return json.dumps({**sound, "experiments": {}, **more})


@pytest.fixture
def run(tmp_path: Path) -> runs.Run:
    return runs.create(tmp_path / "runs", machine={}, fingerprint="0123456789ab", warnings=[])


def test_lines_are_appended_whole(run: runs.Run) -> None:
    run.append("x", ["a: 1", "b: 2"])
    run.append("x", ["c: 3"])
    assert run.results("x").read_text() == "a: 1\nb: 2\nc: 3\n"


def test_an_unfinished_line_is_dropped_and_nothing_else(run: runs.Run) -> None:
    run.append("x", ["a: 1"])
    with run.results("x").open("a") as file:
        file.write("Benchmark")
    run.drop_unfinished_line("x")
    run.drop_unfinished_line("x")
    run.drop_unfinished_line("none")
    assert run.results("x").read_text() == "a: 1\n"


def test_a_full_disk_leaves_no_half_line(run: runs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.append("x", ["a: 1"])
    write = os.write

    def half(handle: int, data: bytes) -> int:
        write(handle, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(GccostError, match="free some disk space"):
        run.append("x", ["b: 2"])
    monkeypatch.undo()
    assert run.results("x").read_text() == "a: 1\n"


def test_two_runs_in_one_second_are_two_folders(tmp_path: Path) -> None:
    made = {runs.create(tmp_path, machine={}, fingerprint="ab" * 6, warnings=[]) for _ in range(3)}
    assert len(made) == 3
    assert len(runs.all_runs(tmp_path)) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is not JSON"),
        ("", "this is not JSON"),
        ("\0\0\0", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ('{"format": 1, "warnings": ["\\ud800"]}', "this is not JSON"),
        ("[]", "not the description of a run"),
        ('{"format": 99}', "format 99"),
        ('{"format": 1}', "it has no created"),
        (described(warnings=[3]), "an entry of warnings is not text"),
        (described(experiments=[]), "experiments is not an object"),
        (described(experiments={"x": {"seed": "1"}}), "seed is not a whole number"),
        (described(scale=math.nan), "scale is not a number"),
    ],
)
def test_a_description_that_cannot_be_used_is_named(run: runs.Run, text: str, why: str) -> None:
    (run.folder / "run.json").write_text(text)
    with pytest.raises(GccostError, match=why) as error:
        run.manifest()
    assert "run.json" in error.value.place


def test_an_update_keeps_what_was_there(run: runs.Run) -> None:
    run.update("x", key="k")
    run.update("x", seed=1)
    run.update("y", key="l")
    assert json.loads((run.folder / "run.json").read_text())["experiments"] == {
        "x": {"key": "k", "seed": 1},
        "y": {"key": "l"},
    }


def test_shell_output_is_kept_with_its_date(run: runs.Run) -> None:
    run.keep_shell("plain", "echo 1", "1\n")
    kept = run.manifest()["shell"]["plain"]
    assert (kept["command"], kept["output"]) == ("echo 1", "1\n")
    assert kept["date"].endswith("Z")
