"""Only complete runs of the current programs are added to the reference."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import recordings

import gccost
from gccost import paths
from gccost.cases import jobs
from gccost.cases.versions import TODAY_GO
from gccost.costs import busy, method, samples
from gccost.costs.recorded import nearest, recorded
from gccost.costs.recording import Recording
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.judging.carrying import by_machine
from gccost.judging.opening import reference as shown
from gccost.run import incoming, runs
from gccost.run.manifest import fingerprint
from gccost.run.runs import Run
from gccost.showing import results
from gccost.studies import STUDIES

ALL = list(STUDIES.values())


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.setenv("GCCOST_MODE", "replay")
    monkeypatch.setattr(incoming, "MOST_BYTES", 4 << 20)
    return tmp_path / "runs"


def refused(source: Path, why: str) -> GccostError:
    """The error with which a run or an archive is refused; nothing is added."""
    before = list(paths.reference().glob("[!.]*"))
    with pytest.raises(GccostError, match=why) as error:
        reference.add(source, ALL)
    assert list(paths.reference().glob("[!.]*")) == before
    return error.value


def added(folder: Path, **more: Any) -> tuple[Run, tuple[str, ...]]:
    """A recorded run, and the caveats of adding it."""
    return reference.add(recordings.record(folder, **more).folder, ALL)


def test_add_copies_the_run(folder):
    run = recordings.record(folder)
    for source in (run.folder, archive(run)):  # adding it again changes nothing
        copy, caveats = reference.add(source, ALL)
        assert caveats == []
        assert shown(STUDIES["lemire"]).folder == copy.folder
        assert reference._contents(copy.folder) == reference._contents(run.folder)


def test_another_machine_replaces_the_main_one_only_on_request(folder):
    main, _ = added(folder)
    other, _ = added(folder, cpus=1)
    assert [run.name for run in recorded()] == [other.name, main.name]
    shutil.copytree(main.folder, tiny := paths.reference() / f"3{main.name}")
    Run(tiny).update(scale=0.005)
    assert shown(STUDIES["lemire"]).name == main.name  # chapters never show a test's run
    fresh, _ = reference.add(recordings.record(folder, cpus=4).folder, ALL, main=True)
    assert shown(STUDIES["lemire"]).name == fresh.name


def test_a_run_takes_the_run_to_run_spreads_of_the_recorded_one(folder):
    def spread(off: float) -> float:
        def sitting(case: object, number: int, metrics: recordings.Metrics) -> None:
            metrics["sitting"] = 1 + (number - 1) % 4
            metrics["ns/op"] *= 1 + off * metrics["sitting"]

        added(folder, rounds=12, change=sitting)
        alone = recordings.record(folder, rounds=4)  # with one sitting
        cost = Recording(STUDIES["lemire"], alone).cost(jobs.name("AllocateAuto", TODAY_GO))
        return math.sqrt(method.moderated_spread(cost, signed=False).variance)

    assert spread(0.0) < 0.01
    assert 0.03 < spread(-0.05) < 0.12


def test_add_says_that_a_run_was_a_test(folder):
    run = recordings.record(folder, cpus=4)
    run.update(scale=1 - 1e-9)  # not whole, but the same numbers of operations
    _, [caveat] = reference.add(run.folder, ALL)
    assert "tiny budget" in caveat


# --- Altered runs ----------------------------------------------------------------------


def replaced(name: str, old: str, new: str) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        path = run.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


def then_ended(change: Callable[[Run], object]) -> Callable[[Run], None]:
    """A change that measuring itself would have made, so that the digests are right."""
    return lambda run: (change(run), run.finish("standard", "it was made up", []))[1]


def bomb(run: Run) -> None:
    path = run.folder / "gctraces" / "x.txt.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(bytes(incoming.MOST_BYTES + 1)))


def line(more: str, n: int = 1_600_000) -> Callable[[Run], None]:
    """A line of a sample of our cases."""
    name = f"BenchmarkAllocateFree/go={TODAY_GO}/gogc=100/setting=published-2"
    return then_ended(lambda run: run.append([f"{name}\t{n}\t{more}"]))


def doubled(run: Run) -> None:
    lines = run.samples_txt.read_text().splitlines()
    run.append(line.replace("\t", "  ") for line in lines if line.startswith("Benchmark"))


def units(run: Run) -> None:
    """Lines with 900 units."""
    run.append("BenchmarkX 1 " + " ".join(f"1 x{i}_{k}" for i in range(9)) for k in range(100))


def in_manifest(value: object, *keys: str) -> Callable[[Run], None]:
    """Set a field of the manifest, whose digest is then right."""

    def change(run: Run) -> None:
        manifest = at = dict(run.manifest())
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value
        manifest["digests"]["run.json"] = runs._digest_of(manifest)
        (run.folder / "run.json").write_text(json.dumps(manifest))

    return change


NO_ROUNDS = ("", "\t0 round", "\t1.5 round", "\t1e18 round")
ALTERED: list[tuple[Callable[[Run], object], str]] = [
    (replaced("run.json", '"allowed_cpus": 2', '"allowed_cpus": 64'), "does not match"),
    (replaced("run.json", '"cstr": "', '"cstr": "0'), "other sources of cstr"),
    (replaced("run.json", '"cstr": "', '"gone": "'), "other sources of gone"),
    (replaced("run.json", reference.METHOD, "by eye"), "another version of gccost"),
    (replaced("run.json", '"format": 4', '"format": 1'), "the run has format 1"),
    (lambda run: run.update(finished={}), "it is unfinished"),
    (lambda run: run.append(["x"]), "samples.txt was changed after measuring ended"),
    (replaced("run.json", "Test OS", "Best OS"), "run.json was changed after"),
    (lambda run: run.profile("x", 1).write_bytes(gzip.compress(b"")), "profiles was changed"),
    (lambda run: run.profile("x", 1).write_bytes(b"x"), "x-001.pb.gz is damaged"),
    (then_ended(lambda run: run.append(["BenchmarkX 5"])), "a line of its samples is damaged"),
    (then_ended(replaced("samples.txt", "\t0 c-misfreed", "\t1 c-misfreed")), "do not add up"),
    (line("0.01 ns/op\t1 round"), "a time is not between 0.1 ns and 1 h"),
    (line("80 ns/op\t1 round\t3601 elapsed-s"), "a time is not between"),
    (line("80 ns/op\t1 round\t1 c-allocated\t1 c-freed\t1 c-unfreed-drained"), "do not add up"),
    *((line(f"80 ns/op{more}"), "round is not a whole number") for more in NO_ROUNDS),
    *(
        (then_ended(replaced("jobs.csv", old, new)), f"jobs.csv has another {what} of")
        for old, new, what in (
            (",manual free,", ",finalizer frees,", "variant"),
            (f",{TODAY_GO},", ",1.0.0,", "release"),
            (",stock,100,", ",stock,400,", "gogc"),
            ("=1600000x,", "=2x,", "argv"),
            (",1600000,0,", ",0,0,", "argv, n"),
        )
    ),
    (line("80 ns/op\t1 round", n=1), "the sample has 1 operations, and its job has 1600000"),
    (then_ended(doubled), r"samples.txt:\d+: this is the sample of line \d+ again"),
    (
        then_ended(replaced("jobs.csv", "AllocateFree/", "\x1b[2J/")),
        "line .*name is .*, not a line",
    ),
    (then_ended(replaced("jobs.csv", "1600000x", "\x1b[2J")), "line .*argv is .*, not a text"),
    (line("80 ns/op\t" + "\t".join(f"1 x{i}" for i in range(200))), "or 200 values"),
    (then_ended(units), "more than 600 units"),
    (then_ended(lambda run: run.samples_txt.write_text("")), "it holds no usable sample"),
    (in_manifest(1, "more"), "an unknown field: more"),
    (in_manifest(["x"], "finished", "standard", "studies"), "unknown studies: x"),
    (in_manifest(["\x1b[2J"], "warnings"), r"warnings\[0\] is .*, not a text"),
    (lambda run: run.samples_txt.unlink(), "it holds no samples"),
    (lambda run: (run.folder / "run").write_text("rm -rf /"), "holds 'run', which is not part"),
    (lambda run: (run.folder / "gctraces").symlink_to("/etc"), "holds 'gctraces', which"),
    (lambda run: os.mkfifo(run.folder / "gctraces"), "holds 'gctraces', which"),
    (bomb, "unpacks to more than 4 MiB"),
]


# --- Archives --------------------------------------------------------------------------


def archive(run: Run, *more: tuple[tarfile.TarInfo, bytes]) -> Path:
    path = run.folder.with_name("run.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(run.folder, run.name)
        for entry, data in more:
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def header(size: int, kind: bytes, data: bytes = b"", name: str = "run.json") -> bytes:
    """A header of an archive with any claim about its size, and data after it."""
    made = entry(f"20260101T000000-012345/{name}", kind)
    made.size = size
    return made.tobuf(tarfile.GNU_FORMAT) + data.ljust(-(-len(data) // 512) * 512, b"\0")


def pax(*records: str) -> bytes:
    """A pax header with these records, and a file of a run to which it applies."""
    data = "".join(f"{len(record) + 4} {record}\n" for record in records).encode()
    return header(len(data), tarfile.XHDTYPE, data) + header(0, b"0")


def sparse(size: int) -> bytes:
    """A sparse file that says only its size."""
    made = bytearray(header(0, tarfile.GNUTYPE_SPARSE))
    made[483:494], made[148:156] = b"%011o" % size, b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


HOSTILE = {
    "a long name of 3 GiB": header(3 << 30, tarfile.GNUTYPE_LONGNAME),
    "a time that is no number": pax("mtime=nan", "path=x"),
    "an infinite time": pax("mtime=inf"),
    "an owner that is no number": pax("uid=x"),
    "a sparse file": pax("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.size=9"),
    "a sparse map": pax("GNU.sparse.map=9,9,x", "GNU.sparse.size=99"),
    "holes only": sparse(99),
    "an old sparse map": header(512, tarfile.GNUTYPE_SPARSE, b"\xff" * 512),
    "a chain of headers": header(0, tarfile.XHDTYPE) * 100_000,
    "a chain of long names": header(1, tarfile.GNUTYPE_LONGNAME, b"y") * 50_000,
    "a negative size": header(-512, b"0"),
    "a file twice": header(0, b"0") * 2,
    "a device": header(0, tarfile.CHRTYPE),
    "control characters": header(0, b"0", name="\x1b[2J\u202e"),
    "nothing but a folder": header(0, tarfile.DIRTYPE, name=""),
    "no archive": b"no archive" * 1000,
    "nothing": b"",
    "a pax header of 5 MiB": header(3 << 30, tarfile.XHDTYPE) + bytes(5 << 20),
}
ENTRIES = {
    "out of the folder": ("{run}/../../escaped",),
    "at the root": ("/etc/escaped",),
    "a link": ("{run}/samples.txt", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": ("{run}/gctraces/a.txt.gz", tarfile.LNKTYPE, "{run}/../../escaped"),
    "a pipe": ("{run}/gctraces/a.txt.gz", tarfile.FIFOTYPE),
    "markup": ("{run}/gctraces/<b>.txt.gz",),
    "a program": ("{run}/run.sh",),
    "another run": ("another/run.json",),
}


def hostile(what: str) -> Callable[[Run], Path]:
    """An archive with these bytes, compressed."""

    def make(run: Run) -> Path:
        path = run.folder.with_name("run.tar.gz")
        path.write_bytes(gzip.compress(HOSTILE[what]))
        return path

    return make


def with_entry(what: str) -> Callable[[Run], Path]:
    """An archive of the run with one more entry."""

    def make(run: Run) -> Path:
        name, *more = ENTRIES[what]
        bad = entry(name.format(run=run.name), *more)
        bad.linkname = bad.linkname.format(run=run.name)
        return archive(run, (bad, b""))

    return make


def large(run: Run) -> Path:
    run.samples_txt.write_bytes(bytes(incoming.MOST_BYTES + 1))
    return run.folder


def large_archive(run: Run) -> Path:
    return archive(Run(large(run)))


def large_profiles(run: Run) -> Path:
    for number in (1, 2):  # too much only together
        path = run.profile("large", number)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(bytes(3 << 20)))
    return run.folder


def of_xz(run: Run) -> Path:
    path = archive(run)
    path.write_bytes(lzma.compress(gzip.decompress(path.read_bytes()), preset=0))
    return path


def truncated(run: Run) -> Path:
    path = archive(run)
    os.truncate(path, path.stat().st_size // 2)
    return path


def pipe(run: Run) -> Path:
    path = run.folder.with_name("run.tar.gz")
    os.mkfifo(path)
    return path


def altered(change: Callable[[Run], object]) -> Callable[[Run], Path]:
    return lambda run: (change(run), run.folder)[1]


ATTACKS = [
    *((altered(change), why) for change, why in ALTERED),
    *((hostile(what), "more than 4 MiB" if "5 MiB" in what else ": ") for what in HOSTILE),
    *((with_entry(what), "is not part|twice|another run|not the name") for what in ENTRIES),
    (hostile("holes only"), "is not part"),
    (hostile("a file twice"), "twice"),
    (large, "unpacks to more than 4 MiB"),
    (large_archive, "unpacks to more than 4 MiB"),
    (large_profiles, "unpacks to more than 4 MiB"),
    (of_xz, "it is not an archive of a run, which is a .tar.gz"),
    (truncated, "it is not an archive of a run"),
    (pipe, "it is neither a folder nor a file"),
]


@pytest.mark.parametrize(("attack", "why"), ATTACKS)
def test_add_refuses_an_attack_in_one_line_with_a_hint(folder, attack, why):
    source = attack(recordings.record(folder, rounds=1))
    error = refused(source, why)
    assert error.location.startswith((str(source), source.name))
    assert error.hint
    assert str(error).isprintable()
    assert not re.search("Traceback|scratch", str(error))
    assert not list(folder.parent.rglob("escaped"))


def test_an_archive_is_added_without_the_filter_that_old_pythons_lack(folder, monkeypatch):
    monkeypatch.delattr(tarfile, "data_filter", raising=False)  # as in 3.11.2
    monkeypatch.delattr(tarfile.TarFile, "extractall")
    run = recordings.record(folder, rounds=1)
    copy, _ = reference.add(archive(run), ALL)
    assert reference._contents(copy.folder) == reference._contents(run.folder)


def test_an_error_in_an_archive_names_the_archive(folder):
    run = recordings.record(folder, rounds=1)
    (run.folder / "run.json").write_text("{")
    error = refused(path := archive(run), "the file is damaged")
    assert error.location == f"{path}: run.json"
    assert "scratch" not in str(error)


def test_a_run_of_the_same_name_and_other_contents_is_refused(folder):
    run = recordings.record(folder)
    copy, _ = reference.add(run.folder, ALL)
    before = reference._contents(copy.folder)
    run.finish("standard", "it was made up", [])
    run.update(compilers={"javac": "another"})
    error = refused(run.folder, "another run of this name is recorded")
    assert "remove it first: rm -r" in error.hint
    assert before == reference._contents(copy.folder)


def test_the_recorded_runs_are_plausible():
    for run in runs.all_runs(paths.ROOT / "data" / "reference"):
        assert run.altered() == []
        assert not list(incoming.faults(run))


def test_the_loaded_run_was_busy_and_has_a_recorded_run_beside_it():
    (run,) = runs.all_runs(paths.ROOT / "data" / "loaded")
    assert run.altered() == []
    assert not list(incoming.faults(run))
    assert (busy.delays(samples.of_run(run).frame) > busy.BUSY).all()
    assert nearest(run) == []
    machine, programs = (run.manifest()[name] for name in ("fingerprint", "programs"))
    beside = [each.manifest() for each in recorded() if each.manifest()["fingerprint"] == machine]
    assert any(programs.items() <= each["programs"].items() for each in beside)


# --- Several machines -------------------------------------------------------------------


@pytest.fixture
def two(folder) -> list[str]:
    """The names of two recorded machines; on the second, which has more CPUs, L1 fails."""
    added(folder)
    assert gccost.results().machines() is None
    added(folder, cpus=16, ns={"AllocateAuto": 240.0})
    return [f"Made-up CPU, {cpus} CPUs" for cpus in (2, 16)]


def test_the_verdicts_of_two_machines_are_next_to_each_other(two):
    lines = gccost.results().machines().text.splitlines()
    _, _, *labels, _ = re.split("  +", lines[1].strip())
    machines = [label.rpartition(" (")[0] for label in labels]
    today = re.compile(r"(?:L1)? +Go 1\.27\.4 +(.*?)  +(.*)")
    told = dict(zip(machines, next(filter(None, map(today.match, lines))).groups(), strict=True))
    assert " holds " in told[two[0]]
    assert " does not hold " in told[two[1]]


def test_a_run_that_fails_later_costs_its_own_column(two, monkeypatch):
    def fail(recording: Recording) -> None:
        if recording.run.manifest()["machine"]["allowed_cpus"] == 16:
            raise ZeroDivisionError("a \x1b[2J surprise")

    monkeypatch.setattr(Recording, "__post_init__", fail)
    shown = results.machines(by_machine(ALL)).text
    assert two[1] in shown
    assert re.search(r"cannot be judged: .*: a \[2J surprise", shown)


MARKUP = (
    "</pre><img src=x onerror=alert(1)>\n```\n<script>alert(1)</script> [a](javascript:b) "
    "**bold** `c` $\\href{javascript:alert(1)}{x}$ \\(x\\) &lt;"
)


def with_markup(folder: Path) -> Run:
    """A run each of whose texts holds markup that a page or JupyterLab could run."""
    run = recordings.record(folder)
    line = MARKUP.replace("\n", " ")
    texts = "cpu release kernel libc virtualisation governor container system c_compiler python"
    machine = dict(run.manifest()["machine"]) | dict.fromkeys(texts.split(), line)
    machine["caches"] = {line: 1024}
    lost, other = (jobs.name(f"Allocate{what}", TODAY_GO) for what in ("Auto", "Free"))
    samples = run.samples_txt.read_text().splitlines(keepends=True)
    run.samples_txt.write_text("".join(each for each in samples if f"{lost}-" not in each))
    run.append([f"cpu: {line}"])
    printed = {"command": "go test", "output": MARKUP, "date": "2026-01-01T00:00:00Z"}
    run.update(
        machine=machine,
        fingerprint=fingerprint(machine),
        compilers={"C compiler": line, line: line},
        missing={"1.20.14": MARKUP, line: MARKUP},
        failed={lost: [MARKUP], line: [MARKUP]},
        troubles={lost: [MARKUP], other: [MARKUP], line: [MARKUP]},
        random_layout={TODAY_GO: False, line: False},
        done=[line],
    )
    run.update(**{"shell": {"lemire-plain": printed, line: printed}})
    run.finish("standard", line, [])
    name = f"{run.name[:16]}{fingerprint(machine)[:6]}"
    return Run(run.folder.rename(folder / name))


def test_markup_in_any_text_of_a_run_is_shown_literally(folder):
    reference.add(with_markup(folder).folder, ALL)
    added(folder, cpus=16)
    opened, every = gccost.open("lemire"), gccost.results()
    machines = every.machines()
    assert not set("<>$`*[]\\") & set(opened.machine + "".join(by_machine(ALL)))
    shown = [opened, every, every.ledger(), every.first_screen(), machines]
    shown += map(opened.judge, ("L1", "L2a"))
    bundles = [each._repr_mimebundle_()[0] for each in shown]
    bundles.append({"text/html": opened.verdicts._repr_html_()})
    assert sum("onerror" in each["text/html"] for each in bundles) >= 5
    for bundle in bundles:
        assert set(bundle) <= {"text/html", "text/plain", "text/csv"}
        page = bundle["text/html"]
        assert not re.search(r"<(img|script)|</pre>.", page)
        assert "$" not in page or "mathjax_ignore" in page.partition(">")[0]
