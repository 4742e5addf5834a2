"""A pack measures on a machine without compilers, and refuses an unsuitable machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fakejdks
import pytest
from conftest import FakeMachine
from faketools import script, wait_for

from gccost import paths
from gccost.cases import jobs
from gccost.cases.cases import BUDGETS
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.judging.claims import Study
from gccost.measuring import pack, planning
from gccost.measuring.languages import of
from gccost.run import jobtable
from gccost.run.runs import all_runs
from gccost.studies import STUDIES

LEMIRE, TINY = STUDIES["lemire"], BUDGETS["tiny"]
ALL = list(STUDIES.values())


def make(output: Path, study: Study = LEMIRE) -> Path:
    """Make and unpack a pack of a study whose programs are scripts."""
    pack.make([study], TINY, output)
    assert {path.name for path in output.parent.glob("[!.]*pack*")} == {output.name}
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
    assert {len(files) for files in made["builds"].values()} == {of(LEMIRE).layouts}
    planned = planning.plan([LEMIRE], TINY)
    assert measured.table() == planned.pool
    sampled = {sample.full_name for sample in measured.reading().samples.values()}
    assert sampled == planned.pool.keys()
    assert f"gccost add {measured.name}.tar.gz" in done.stdout
    assert run(unpacked).returncode == 0  # another sitting
    assert len(measured.manifest()["sittings"]) == 2

    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    copy, _ = reference.add(measured.folder.with_name(f"{measured.name}.tar.gz"), ALL)
    assert copy.reading().samples == measured.reading().samples
    assert copy.manifest()["compilers"] == {"C compiler": "cc 1.0"}


def test_a_pack_measures_each_of_its_layouts(unpacked, monkeypatch):
    monkeypatch.setattr(paths, "ROOT", unpacked)
    made = pack.packed_plan(pack.load(unpacked), jobtable.read(unpacked / "jobs.csv"))
    for job in made.pool.values():
        what = jobs.build(job)
        files = made.pack["builds"][pack.build_name(what)]
        layouts = range(2 * len(files))
        chosen = [made.build(what, layout, unpacked, None).name for layout in layouts]
        assert len({*files}) > 1
        assert chosen == [Path(file).name for file in files] * 2


def test_an_interrupted_packing_keeps_the_previous_pack(machine, tmp_path, monkeypatch):
    output = tmp_path / "gccost-pack.tar.xz"
    output.write_text("the previous one")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tarfile.TarFile, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make(output)
    assert output.read_text() == "the previous one"
    assert list(tmp_path.glob("*pack*")) == [output]


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
    assert pack.main() == 0
    (measured,) = all_runs(java / "data" / "runs")
    assert "weimer" in measured.studies
    assert not measured.reading().errors
    manifest = measured.manifest()
    assert manifest["compilers"]["javac"] == "25.0.1"
    assert set(manifest["random_layout"]) == ({"jdk-25"} if lost else {"jdk-11", "jdk-25"})
    assert set(manifest["missing"]) == ({"jdk-11"} if lost else set())
    assert ("not measured: JDK 11: it is not on this" in capsys.readouterr().err) == bool(lost)


def test_a_java_pack_fails_without_a_jdk(java, tmp_path, capsys):
    shutil.rmtree(tmp_path / "jvm")
    assert pack.main() == 1
    assert "nothing can be measured" in capsys.readouterr().err


# --- Unsuitable machines and packs ---------------------------------------------------------


def other_format(folder: Path) -> None:
    path = folder / "pack.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 0}))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (other_format, "it has format 0, not 5"),
        (lambda folder: (folder / "pack.json").write_text("[1]"), "the pack is damaged"),
        (lambda folder: (folder / "pack.json").unlink(), "the pack is damaged: .*No such file"),
    ],
)
def test_a_damaged_pack_is_refused(unpacked, damage, why):
    damage(unpacked)
    with pytest.raises(GccostError, match=why):
        pack.load(unpacked)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("#!/bin/sh", 0o644, "Permission denied"),  # as on a mount with noexec
        ("\x7fELF of another processor", 0o755, "Exec format error"),
        ("#!/bin/sh\necho 'version `GLIBC_2.99'\\'' not found' >&2; exit 1", 0o755, "GLIBC_2.99"),
    ],
)
def test_a_machine_that_cannot_start_the_programs_is_refused(unpacked, text, mode, why):
    for program in (unpacked / "programs").iterdir():
        program.write_text(text)
        program.chmod(mode)
    done = run(unpacked)
    assert done.returncode == 1
    assert "no program can be started here: " in done.stderr
    assert why in done.stderr
    assert "To fix it: use Linux on " in done.stderr
    assert "not mounted noexec" in done.stderr


def test_run_refuses_arguments_and_an_old_python(unpacked):
    for how, said in (
        ({"command": '"$0" --help'}, "usage: ./run"),
        ({"python": "exit 1"}, "older than Python 3.11"),
    ):
        done = run(unpacked, **how)
        assert done.returncode == 1
        assert said in done.stderr
