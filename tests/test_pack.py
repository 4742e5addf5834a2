"""A pack measures on a machine without compilers, and refuses an unsuitable machine."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import fakejdks
import pytest
from conftest import FakeMachine
from faketools import script, wait_for

from gccost import paths
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.judging.claims import Study
from gccost.judging.questions import asked
from gccost.measuring import machine as hardware
from gccost.measuring import pack, packed
from gccost.measuring.campaign import finished
from gccost.measuring.cases import BUDGETS
from gccost.measuring.languages import of
from gccost.measuring.runs import all_runs
from gccost.studies import STUDIES

LEMIRE, TINY = STUDIES["lemire"], BUDGETS["tiny"]


def make(output: Path, study: Study = LEMIRE) -> Path:
    """Make and unpack a pack of a study whose programs are scripts."""
    pack.make([study], TINY, asked([study]), output)
    with tarfile.open(output) as tar:
        tar.extractall(output.parent, filter="data")
    return output.parent / "gccost-pack"


@pytest.fixture
def unpacked(machine: FakeMachine, tmp_path) -> Path:
    machine.behaviour = '[ -z "$profile" ] || : | gzip > "$profile"; line "$name"'
    return make(tmp_path / "gccost-pack.tar.xz")


@contextmanager
def started(
    folder: Path, command: str = '"$0"', python: str = f'exec {sys.executable} -S "$@"'
) -> Iterator[subprocess.Popen[str]]:
    """Start the pack from a shell with the standard library only; -S hides installed packages."""
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec {command}", folder / "run"],
        env={"PATH": os.defpath, "PYTHON": str(script(folder.parent / "python", python))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def run(folder: Path, **how: str) -> subprocess.CompletedProcess[str]:
    """Run the pack to its end; see `started`."""
    with started(folder, **how) as process:
        said, complaint = process.communicate()
    return subprocess.CompletedProcess([], process.returncode, said, complaint)


def test_a_pack_needs_only_the_standard_library_and_its_run_can_be_added(
    unpacked, tmp_path, monkeypatch
):
    done = run(unpacked)
    assert done.returncode == 0, done.stderr
    (measured,) = all_runs(unpacked / "data" / "runs")
    assert "lemire" in measured.studies
    assert not measured.reading().errors
    made = json.loads((unpacked / "pack.json").read_text())
    assert {len(files) for files in made["binaries"].values()} == {of(LEMIRE).layouts}
    assert finished(measured, packed.plan(made, hardware.describe(), {}))
    # Every claim gets more rounds until the last look.
    assert len(packed.standing(measured, made).open_questions) == len(made["claims"])
    archive = measured.folder.with_name(f"{measured.name}.tar.gz")
    assert f"gccost add {archive.name}" in done.stdout
    again = run(unpacked)  # nothing is left to measure
    assert again.returncode == 0
    assert "round" not in again.stderr

    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    copy, _ = reference.add(archive, list(STUDIES.values()))
    assert "lemire" in copy.studies
    assert copy.manifest()["compilers"] == {"C compiler": "cc 1.0"}


def test_an_interrupted_pack_resumes(unpacked):
    place = unpacked / "data" / "runs"
    with started(unpacked) as process:
        assert wait_for(lambda: any(r.samples_txt.exists() for r in all_runs(place)))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert "resume with: ./run" in said
    (kept,) = all_runs(place)
    before = kept.samples_txt.read_bytes()
    # A full disk, too; in units of 1 or 0.5 KiB, depending on the shell.
    done = run(unpacked, command='sh -c "ulimit -f 8; exec $0"')
    assert done.returncode == 1
    assert "ulimit -f" in done.stderr
    assert run(unpacked).returncode == 0
    (after,) = all_runs(place)
    assert after.samples_txt.read_bytes().startswith(before)
    assert not after.reading().errors


@pytest.fixture
def java(machine: FakeMachine, jvms, tmp_path, monkeypatch) -> Path:
    """An unpacked pack of weimer on a machine that has only JDKs 11 and 25."""
    for version in ("11.0.1", "25.0.1"):
        fakejdks.make(jvms / version, version)
    monkeypatch.delenv("GCCOST_RUNS")
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    folder = make(tmp_path / "gccost-pack.tar.xz", STUDIES["weimer"])
    monkeypatch.setattr(paths, "ROOT", folder)
    return folder


@pytest.mark.parametrize("lost", ["", "11.0.1"])
def test_a_java_pack_uses_the_jdks_of_the_target(java, tmp_path, capsys, lost):
    if lost:
        shutil.rmtree(tmp_path / "jvm" / lost)
    assert packed.main() == 0
    (measured,) = all_runs(java / "data" / "runs")
    assert "weimer" in measured.studies
    assert not measured.reading().errors
    manifest = measured.manifest()
    assert manifest["compilers"]["javac"] == "25.0.1"
    assert set(manifest["random_layout"]) == ({"jdk-25"} if lost else {"jdk-11", "jdk-25"})
    assert set(manifest["missing"]) == ({"jdk-11"} if lost else set())
    assert ("not measured: JDK 11: it is not on this" in capsys.readouterr().err) == bool(lost)


def test_a_java_pack_fails_without_a_jdk_and_if_it_is_damaged(java, tmp_path, capsys):
    shutil.rmtree(tmp_path / "jvm")
    assert packed.main() == 1
    assert "nothing can be measured" in capsys.readouterr().err
    next((java / "programs").rglob("*.class")).write_text("#")
    with pytest.raises(GccostError, match="the program is damaged"):
        packed.load(java)


# --- Unsuitable machines and packs ---------------------------------------------------------


def changed(**more: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "pack.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | more))

    return change


def cut(folder: Path) -> None:
    program = next((folder / "programs").iterdir())
    program.write_text(program.read_text() + "#")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed(goarch="s390x"), "the pack is for Linux on s390x"),
        (changed(glibc="2.999"), r"need glibc 2\.999 or newer, this machine has glibc"),
        (changed(format=0), "the pack has format 0"),
        (lambda folder: (folder / "pack.json").write_text("[1]"), "the pack cannot be read"),
        (cut, "the program is damaged"),
        (lambda folder: next((folder / "programs").iterdir()).unlink(), "cannot be read"),
    ],
)
def test_an_unsuitable_or_damaged_pack_is_refused(unpacked, change, why):
    change(unpacked)
    with pytest.raises(GccostError, match=why):
        packed.load(unpacked)


def test_a_musl_system_or_a_noexec_mount_is_reported(unpacked, monkeypatch):
    changed(glibc="2.34")(unpacked)
    with monkeypatch.context() as patch:
        patch.setattr(platform, "libc_ver", lambda: ("", ""))
        with pytest.raises(GccostError, match=r"need glibc 2\.34 or newer, .* another C library"):
            packed.load(unpacked)
    for program in (unpacked / "programs").iterdir():
        program.chmod(0o644)  # as a noexec mount makes it
    done = run(unpacked)
    assert done.returncode == 1
    assert "no program can be started here: Permission denied" in done.stderr
    assert "not mounted noexec" in done.stderr


def test_run_refuses_arguments_and_an_old_python(unpacked):
    for how, said in (
        ({"command": '"$0" --help'}, "usage: ./run"),
        ({"python": "exit 1"}, "older than Python 3.11"),
    ):
        done = run(unpacked, **how)
        assert done.returncode == 1
        assert said in done.stderr


def test_an_unknown_target_is_refused(tmp_path):
    with pytest.raises(GccostError, match="no target 'z80'"):
        pack.make([], TINY, [], tmp_path / "x.tar.xz", goarch="z80")
