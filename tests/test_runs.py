"""Run folders survive full disks, interruptions and invalid files."""

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
    """A valid manifest as JSON, with these fields changed."""
    texts = {"created": "2026-01-01T00:00:00Z", "fingerprint": "0" * 12, "method": ""}
    names: dict[str, object] = {name: {} for name in runs._BY_NAME}
    sound = {"format": 2, "machine": {}, "warnings": [], "scale": 1.0, "seed": 1, **texts, **names}
    return json.dumps(sound | more)


@pytest.fixture
def run(tmp_path: Path) -> runs.Run:
    return runs.create(tmp_path / "runs", machine={}, fingerprint="0123456789ab", warnings=[])


def test_append_writes_whole_lines(run: runs.Run) -> None:
    run.append(["a: 1", "b: 2"])
    run.append(["c: 3"])
    assert run.samples.read_text() == "a: 1\nb: 2\nc: 3\n"


def test_only_an_unfinished_line_is_dropped(run: runs.Run) -> None:
    run.append(["a: 1"])
    with run.samples.open("a") as file:
        file.write("Benchmark")
    run.drop_unfinished_line()
    run.drop_unfinished_line()
    assert run.samples.read_text() == "a: 1\n"


def test_a_full_disk_leaves_no_partial_line(run: runs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.append(["a: 1"])
    write = os.write

    def half(handle: int, data: bytes) -> int:
        write(handle, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(GccostError, match="free some disk space"):
        run.append(["b: 2"])
    monkeypatch.undo()
    assert run.samples.read_text() == "a: 1\n"


def test_runs_of_the_same_second_get_separate_folders(tmp_path: Path) -> None:
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
        ('{"format": 2, "warnings": ["\\ud800"]}', "this is not JSON"),
        ("[]", "not a run's manifest"),
        ('{"format": 99}', "format 99"),
        ('{"format": 2}', "missing required field `created`"),
        (described(warnings=[3]), r"Expected `str`, got `int` - at `\$\.warnings\[0\]`"),
        (described(troubles=[]), r"Expected `object`, got `array` - at `\$\.troubles`"),
        (described(failed={"x": "y"}), r"Expected `array`, got `str` - at `\$\.failed\[\.\.\.\]`"),
        (described(seed="1"), r"Expected `int`, got `str` - at `\$\.seed`"),
        (described(scale=math.nan), "this is not JSON"),
        (described(scale=-1), r"Expected `float` > 0.0 - at `\$\.scale`"),
        (described(created="2026-13-45T00:00:00Z"), r"Unexpected text - at `\$\.created`"),
        (described(fingerprint="none"), r"Unexpected text - at `\$\.fingerprint`"),
        (described(method="\x1b[31m"), r"Unexpected text - at `\$\.method`"),
        (described(warnings=["a \u202eb"]), r"Unexpected text - at `\$\.warnings\[0\]`"),
        (described(warnings=["x" * 100_001]), r"`str` of length <= 100000 - at `\$\.warnings"),
        (described(missing={"a\nb": ""}), r"Unexpected text - at `key` in `\$\.missing`"),
        (described(machine={"architecture": "pdp11"}), r"value 'pdp11' - at `\$\.machine\.arch"),
        (described(machine={"allowed_cpus": 0}), r"`int` >= 1 - at `\$\.machine\.allowed_cpus`"),
        (described(machine={"allowed_cpus": "2"}), r"got `str` - at `\$\.machine\.allowed_cpus`"),
        (described(machine={"cpu_quota": "1.5"}), r"got `str` - at `\$\.machine\.cpu_quota`"),
        (described(machine={"memory": "much"}), r"got `str` - at `\$\.machine\.memory`"),
        (described(machine={"memory_limit": []}), r"`array` - at `\$\.machine\.memory_limit`"),
        (
            described(finished={"quick": {}}),
            r"missing required field `because` - at `\$\.finished\[\.\.\.\]`",
        ),
    ],
)
def test_an_invalid_manifest_is_reported(run: runs.Run, text: str, why: str) -> None:
    (run.folder / "run.json").write_text(text)
    with pytest.raises(GccostError, match=why) as error:
        run.manifest()
    assert "run.json" in error.value.location


def test_a_valid_manifest_is_read(run: runs.Run) -> None:
    (run.folder / "run.json").write_text(described())
    assert run.manifest()["scale"] == 1


def test_a_run_in_an_older_format_is_refused_with_a_fix(run: runs.Run) -> None:
    (run.folder / "run.json").write_text(described(format=1))
    with pytest.raises(GccostError, match="format 1, this gccost reads format 2") as error:
        run.manifest()
    assert "remove the folder and measure again" in error.value.hint
    assert "no slices" in error.value.hint
    assert runs.all_runs(run.folder.parent) == []
    (told,) = runs.skipped(run.folder.parent)
    assert run.name in told


def test_an_update_keeps_other_fields(run: runs.Run) -> None:
    run.update(programs={"x": "k"})
    run.update(seed=7)
    assert run.manifest()["programs"] == {"x": "k"}
    assert run.manifest()["seed"] == 7


def test_samples_are_read_again_after_an_append(run: runs.Run) -> None:
    line = "BenchmarkX/go=1.27.4 100 3 ns/op 1 round"
    run.append([line])
    assert run.reading() is run.reading()
    run.append([line])
    assert len(run.reading().frame) == 2


def test_a_run_holds_a_study_once_a_budget_is_finished(run: runs.Run) -> None:
    assert not run.holds("x")
    summary = {"because": "", "rounds": 4, "samples": 4, "seconds": 1.0, "share_in_loops": 0.5}
    run.update(finished={"quick": {**summary, "studies": ["x"]}})
    assert run.holds("x")
    assert not run.holds("y")


def test_shell_output_is_stored_with_its_date(run: runs.Run) -> None:
    run.store_shell("plain", "echo 1", "1\n")
    stored = run.manifest()["shell"]["plain"]
    assert (stored["command"], stored["output"]) == ("echo 1", "1\n")
    assert stored["date"].endswith("Z")


def test_unseen_characters_of_output_are_replaced_when_it_is_written(run: runs.Run) -> None:
    run.store_shell("plain", "make", "\x1b[31mred\n\u202etxt\ttab")
    assert run.manifest()["shell"]["plain"]["output"] == "\ufffd[31mred\n\ufffdtxt\ttab"


def test_a_changed_file_of_a_finished_run_is_named(run: runs.Run) -> None:
    run.append(["a: 1"])
    for path in (run.slices("a/b=1"), run.profile("a", 1), run.gctrace("a")):
        path.parent.mkdir()
        path.write_bytes(b"1")
    summary = {"because": "", "rounds": 4, "samples": 4, "seconds": 1.0, "share_in_loops": 0.5}
    run.finish("quick", {**summary, "studies": ["x"]})  # type: ignore[typeddict-item]
    run.store_shell("plain", "echo 1", "1\n")  # afterwards, by a notebook
    assert run.altered() == []
    manifest = run.folder / "run.json"
    manifest.write_text(manifest.read_text().replace("echo 1", "echo 2"))
    assert run.altered() == ["run.json"]
    for name in ("slices/a,b=1.txt", "profiles/a-001.pb.gz", "gctraces/a.txt.gz", "samples.txt"):
        (run.folder / name).write_bytes(b"2")
    assert run.altered() == ["gctraces", "profiles", "run.json", "samples.txt", "slices/a,b=1.txt"]
    (run.folder / "slices/a,b=1.txt").unlink()
    assert "slices/a,b=1.txt" in run.altered()


def test_what_could_not_be_read_again_is_not_written(run: runs.Run) -> None:
    before = (run.folder / "run.json").read_bytes()
    with pytest.raises(GccostError, match=r"this cannot be stored: .* `\$\.compilers"):
        run.update(compilers={"cc": "x" * 1001})
    assert (run.folder / "run.json").read_bytes() == before
