"""Run folders survive full disks, interruptions and invalid files."""

from __future__ import annotations

import errno
import json
import os
import tarfile
from pathlib import Path

import pytest
import recordings

from gccost.errors import GccostError
from gccost.run import runs
from gccost.run.schema import LONGEST


def described(**more: object) -> str:
    """A valid manifest as JSON, with these fields changed."""
    texts = {"created": "2026-01-01T00:00:00Z", "fingerprint": "0" * 12, "method": ""}
    names = ("programs", "compilers", "random_layout", "missing", "failed", "troubles", "finished")
    sound = {"format": 4, "machine": {}, "warnings": [], "sittings": []} | {"scale": 1.0, "seed": 1}
    return json.dumps(sound | texts | {name: {} for name in names} | more)


@pytest.fixture
def run(tmp_path) -> runs.Run:
    return runs.create(tmp_path / "runs", machine={}, fingerprint="0123456789ab")


def test_only_whole_lines_are_kept(run, monkeypatch):
    synced: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", synced.append)
        run.append(["a: 1", "b: 2"])
    assert synced
    whole = run.samples_txt.read_bytes()
    assert whole == b"a: 1\nb: 2\n"
    with run.samples_txt.open("a") as file:
        file.write("Benchmark")
    for _ in range(2):
        run.drop_unfinished_line()
        assert run.samples_txt.read_bytes() == whole
    write = os.write

    def half(handle: int, data: bytes) -> int:
        write(handle, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(GccostError, match="free some disk space"):
        run.append(["c: 3"])
    assert run.samples_txt.read_bytes() == whole


def test_runs_of_the_same_second_get_separate_folders(tmp_path):
    made = {runs.create(tmp_path, machine={}, fingerprint="ab" * 6) for _ in range(3)}
    assert len(made) == len(runs.all_runs(tmp_path)) == 3


def test_a_folder_that_cannot_be_read_is_named(run, monkeypatch):
    iterdir = Path.iterdir

    def refused(path: Path):
        if path == run.folder:
            raise PermissionError(errno.EACCES, "Permission denied")
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    assert runs.all_runs(run.folder.parent) == []
    [said] = runs.skipped(run.folder.parent)
    assert f"The run {run.name} is skipped" in said
    assert "Permission denied" in said


def test_a_sample_that_is_there_twice_is_not_used(tmp_path):
    run = recordings.record(tmp_path, rounds=1)
    lines = run.samples_txt.read_text().splitlines()
    run.append(lines[-1:])
    twice = {len(lines) + 1: f"this is the sample of line {len(lines)} again"}
    assert run.unusable() == twice


def test_an_archive_is_written_whole(run, monkeypatch):
    before = run.archive().read_bytes()

    def fails(*_: object):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "add", fails)
    with pytest.raises(GccostError, match="free some disk space"):
        run.archive()
    assert run.folder.with_name(f"{run.name}.tar.gz").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "the file is damaged or cannot be read: Expecting"),
        ("[]", "manifest is no object"),
        (described(format=99), "format 99"),
        ('{"format": 4}', "manifest lacks created"),
        (described(more=1), "manifest has an unknown field: more"),
        (described(troubles=[]), "manifest.troubles is no object"),
        (described(warnings={}), "manifest.warnings is no list"),
        (described(scale=-1), "manifest.scale is -1, not a number above 0"),
        (described(seed=True), "manifest.seed is True, not a whole number"),
        (described(created="2026-02-30T00:00:00Z"), "manifest.created is .*, not a date"),
        (described(method="\x1b[31m"), "manifest.method is .*, not a line"),
        (described(warnings=["a \u202eb"]), r"manifest.warnings\[0\] is .*, not a text"),
        (described(warnings=["\ud800"]), r"manifest.warnings\[0\] is .*, not a text"),
        (described(warnings=["x" * 100_001]), r"manifest.warnings\[0\] is .*, not a text"),
        (described(missing={"a\nb": ""}), "a name in manifest.missing is .*, not a line"),
        (described(machine={"architecture": "pdp11"}), "architecture is 'pdp11', not x86_64"),
        (described(machine={"memory": "much"}), "memory is 'much', not a whole number"),
        (described(machine={"memory": None}), "memory is None, not a whole number"),
        (described(finished={"quick": {}}), "manifest.finished.quick lacks because"),
    ],
)
def test_an_invalid_manifest_is_reported(run, text, why):
    (run.folder / "run.json").write_text(text)
    with pytest.raises(GccostError, match=why) as error:
        run.manifest()
    assert "run.json" in error.value.location


def test_a_manifest_is_never_written_invalid(run):
    (run.folder / "run.json").write_text(described(programs={"x": "k"}))
    run.update(seed=7)
    assert (run.manifest()["programs"], run.manifest()["seed"]) == ({"x": "k"}, 7)
    assert "x" not in run.studies
    run.update(finished={"quick": {"because": "", "studies": ["x"]}})
    assert run.studies == ["x"]
    before = (run.folder / "run.json").read_bytes()
    with pytest.raises(GccostError, match=r"this cannot be stored: manifest\.compilers"):
        run.update(compilers={"cc": "x" * 1001})
    assert (run.folder / "run.json").read_bytes() == before


def test_samples_are_read_again_after_an_append(run):
    line = "BenchmarkX/go=1.27.4 100 3 ns/op 1 round"
    run.append([line])
    assert run.reading() is run.reading()
    run.append([line])
    assert len(run.reading().samples) == 2


def test_unseen_characters_of_output_are_replaced_when_it_is_written(run):
    run.store_shell("plain", "make", "\x1b[31mred\n\u202etxt\ttab")
    stored = run.manifest()["shell"]["plain"]
    assert (stored["command"], stored["output"]) == ("make", "\ufffd[31mred\n\ufffdtxt\ttab")
    assert stored["date"].endswith("Z")
    run.store_shell("plain", "make", "x" * (LONGEST + 1))
    assert run.manifest()["shell"]["plain"]["output"] == "x" * LONGEST


def test_a_changed_file_of_a_finished_run_is_named(run):
    run.append(["a: 1"])
    for path in (run.profile("a", 1), run.gctrace("a")):
        path.parent.mkdir()
        path.write_bytes(b"1")
    run.finish("quick", "", ["x"])
    run.store_shell("plain", "echo 1", "1\n")  # afterwards, by a notebook
    assert run.altered() == []
    manifest = run.folder / "run.json"
    manifest.write_text(manifest.read_text().replace("echo 1", "echo 2"))
    for name in ("profiles/a-001.pb.gz", "gctraces/a.txt.gz", "samples.txt"):
        (run.folder / name).write_bytes(b"2")
    assert run.altered() == ["gctraces", "profiles", "run.json", "samples.txt"]
    run.samples_txt.unlink()
    assert "samples.txt" in run.altered()


def test_an_interrupted_sitting_keeps_what_it_measured_before(run):
    assert run.sit("quick", ["one"]) == run.sit("standard", ["two"]) == 1
    assert run.manifest()["sittings"][0]["studies"] == ["one", "two"]
    run.finish("standard", "the budget is spent", ["two"])
    assert run.sit("quick", ["one"]) == 2
    assert run.manifest()["sittings"][1]["studies"] == ["one"]
