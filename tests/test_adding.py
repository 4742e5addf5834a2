"""Only complete runs of the current programs are added to the reference."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import re
import shutil
import tarfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import recordings
from click.testing import CliRunner

import gccost
from gccost import cli, notebook, paths
from gccost.errors import GccostError
from gccost.judging import reference
from gccost.judging.recording import Recording
from gccost.measuring import incoming, runs
from gccost.measuring.cases import AUTO, FREE
from gccost.measuring.machine import fingerprint
from gccost.measuring.runs import Run
from gccost.measuring.toolchains import TODAY_GO
from gccost.opening import reference as shown
from gccost.studies import STUDIES

ALL = list(STUDIES.values())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.setenv("GCCOST_MODE", "replay")
    return tmp_path / "runs"


def refused(source: Path, why: str) -> GccostError:
    """The error with which a run or an archive is refused; nothing is added."""
    before = list(paths.reference().glob("[!.]*"))
    with pytest.raises(GccostError, match=why) as error:
        reference.add(source, ALL)
    assert list(paths.reference().glob("[!.]*")) == before
    return error.value


def test_add_copies_the_run_and_records_its_costs(folder):
    run = recordings.record(folder)
    for source in (run.folder, archive(run)):  # adding it again replaces its costs
        copy, caveats = reference.add(source, ALL)
        assert caveats == []
        assert shown(STUDIES["lemire"]).folder == copy.folder
        assert reference._contents(copy.folder) == reference._contents(run.folder)
    costs = pd.read_csv(paths.reference() / "costs.csv")
    assert list(costs["run"]) == [run.name]
    assert costs.loc[0, "AllocateFree"] == pytest.approx(0.98 * 80, rel=0.05)


@pytest.mark.parametrize(
    ("variant", "factor", "slow"),
    [("AllocateFree", 1.05, False), ("AllocateFree", 1.2, True), ("AllocateCleanup", 1.3, True)],
)
def test_add_refuses_a_run_slower_than_similar_machines(folder, variant, factor, slow):
    reference.add(recordings.record(folder).folder, ALL)
    later = recordings.record(folder, ns={variant: factor * recordings.NS[variant]})
    if slow:
        refused(later.folder, rf"refused as a reference: {variant} takes .* ns")
    else:
        assert reference.add(later.folder, ALL)[0].samples.exists()


def test_another_machine_replaces_the_main_one_only_on_request(folder):
    main, _ = reference.add(recordings.record(folder).folder, ALL)
    twice = {name: 2 * ns for name, ns in recordings.NS.items()}
    other, caveats = reference.add(recordings.record(folder, cpus=1, ns=twice).folder, ALL)
    assert len(caveats) == 2  # it is slower than a machine that differs only in its CPUs
    assert shown(STUDIES["lemire"]).name == main.name
    assert [run.name for run in reference.recorded()] == [other.name, main.name]
    shutil.copytree(main.folder, tiny := paths.reference() / f"3{main.name}")
    Run(tiny).update(scale=0.005)
    assert shown(STUDIES["lemire"]).name == main.name  # chapters never show a test's run
    fresh = recordings.record(folder, cpus=4)
    (paths.reference() / "costs.csv").unlink()
    reference.add(fresh.folder, ALL, main=True)
    assert shown(STUDIES["lemire"]).name == fresh.name


def test_add_stores_the_run_to_run_spreads_of_a_run_with_three_sittings(folder):
    def sitting(number: int, metrics: recordings.Metrics, off: float) -> None:
        metrics["sitting"] = 1 + (number - 1) % 4
        metrics["ns/op"] *= 1 + off * metrics["sitting"]
        for name in ("slices-ns/op", "slice-p05-ns/op"):
            if name in metrics:
                metrics[name] *= 1 + off * metrics["sitting"]

    calm = recordings.record(folder, change=lambda case, n, metrics: sitting(n, metrics, 0.0))
    reference.add(calm.folder, ALL)
    spreads = pd.read_csv(paths.reference() / "sittings.csv").set_index("kind")["run_to_run"]
    assert {"finalizer", "cleanup", "slices"} < set(spreads.dropna().index)
    assert spreads.max() < 0.01
    other = recordings.record(folder, change=lambda case, n, metrics: sitting(n, metrics, -0.05))
    reference.add(other.folder, ALL)
    spreads = pd.read_csv(paths.reference() / "sittings.csv").set_index("kind")["run_to_run"]
    assert 0.03 < spreads["finalizer"] < 0.12
    # A run with one sitting takes them over.
    alone = Recording.load(STUDIES["lemire"], recordings.record(folder, rounds=4))
    assert alone.lines.of("finalizer").run_to_run == pytest.approx(spreads["finalizer"])


def test_add_says_that_a_run_was_a_test_and_keeps_its_costs_out(folder):
    run = recordings.record(folder, cpus=4)
    run.update(scale=1 - 1e-9)  # not whole, but the same numbers of operations
    _, caveats = reference.add(run.folder, ALL)
    assert any("tiny budget" in caveat for caveat in caveats)
    assert not (paths.reference() / "costs.csv").exists()


def test_machines_leave_out_a_study_whose_programs_have_changed(folder, monkeypatch, capsys):
    monkeypatch.setenv("GCCOST_MODE", "replay")
    for cpus, changed in ((2, {}), (4, {"cstr": "0" * 64})):
        run = recordings.record(folder, cpus=cpus)
        copy, _ = reference.add(run.folder, ALL)
        copy.update(programs={**copy.manifest()["programs"], **changed})
    assert set(gccost.machines()["machine"]) == {"Made-up CPU (2 CPUs)"}
    assert "lemire are left out of" in capsys.readouterr().out


# --- Altered runs ----------------------------------------------------------------------


def replaced(name: str, old: str, new: str) -> Callable[[Run], None]:
    def change(run: Run) -> None:
        path = run.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    return change


def ended(run: Run) -> None:
    """Finish a run as a campaign does, recording the digest of its samples."""
    run.finish("standard", "it was made up", [])


def then_ended(change: Callable[[Run], object]) -> Callable[[Run], None]:
    """A change that measuring itself would have made, so that the digests are right."""
    return lambda run: (change(run), ended(run))[1]


def bomb(run: Run) -> None:
    path = run.folder / "gctraces" / "x.txt.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(bytes(incoming.MOST_BYTES + 1)))


def line(more: str) -> Callable[[Run], None]:
    """A line of a sample of our cases."""
    name = f"BenchmarkAllocateFree/go={TODAY_GO}/gogc=100/setting=published-2"
    return then_ended(lambda run: run.append([f"{name}\t1600000\t{more}"]))


def units(run: Run) -> None:
    """Lines with 900 units."""
    names = (" ".join(f"1 x{i}_{k}" for i in range(9)) for k in range(100))
    run.append([f"BenchmarkX 1 {each}" for each in names])


def in_manifest(*path: str, value: object) -> Callable[[Run], None]:
    """Set a field of the manifest, whose digest is then right."""

    def change(run: Run) -> None:
        manifest: Any = {**run.manifest()}
        at = manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        manifest["digests"]["run.json"] = runs._digest_of(manifest)
        (run.folder / "run.json").write_text(json.dumps(manifest))

    return change


ALTERED: list[tuple[Callable[[Run], object], str]] = [
    (replaced("run.json", '"allowed_cpus": 2', '"allowed_cpus": 64'), "does not match"),
    (replaced("run.json", '"cstr": "', '"cstr": "0'), "other sources of cstr"),
    (replaced("run.json", reference.METHOD, "by eye"), "another version of gccost"),
    (replaced("run.json", '"format": 4', '"format": 1'), "the run has format 1"),
    (lambda run: run.update(finished={}), "it is unfinished"),
    (lambda run: run.append(["x"]), "samples.txt was changed after measuring ended"),
    (replaced("run.json", "It is made up", "It is true"), "run.json was changed after"),
    (lambda run: run.profile("x", 1).write_bytes(gzip.compress(b"")), "profiles was changed"),
    (lambda run: run.profile("x", 1).write_bytes(b"x"), "x-001.pb.gz is damaged"),
    (then_ended(lambda run: run.append(["BenchmarkX 5"])), "a line of its samples is damaged"),
    (then_ended(replaced("samples.txt", "\t0 c-misfreed", "\t1 c-misfreed")), "do not add up"),
    (line("0.01 ns/op\t1 round"), "a time is not between 0.1 ns and 1 h"),
    (line("80 ns/op\t1 round\t3601 elapsed-s"), "a time is not between"),
    (line("80 ns/op\t1.5 round"), "the round is not a whole number"),
    (line("80 ns/op\t" + "\t".join(f"1 x{i}" for i in range(200))), "or 200 values"),
    (then_ended(units), "more than 600 units"),
    (then_ended(lambda run: run.samples.write_text("")), "no usable sample of its studies"),
    (in_manifest("more", value=1), "an unknown field: more"),
    (in_manifest("finished", "standard", "studies", value=["x"]), "unknown studies: x"),
    (in_manifest("warnings", value=["\x1b[2J"]), r"warnings\[0\] is .*, not a text"),
    (lambda run: run.samples.unlink(), "it holds no samples"),
    (lambda run: (run.folder / "run").write_text("rm -rf /"), "holds 'run', which is not part"),
    (lambda run: (run.folder / "slices").symlink_to("/etc"), "holds 'slices', which"),
    (lambda run: os.mkfifo(run.folder / "slices"), "holds 'slices', which"),
    (bomb, "unpacks to more than 16 MiB"),
]


# --- Archives --------------------------------------------------------------------------


def archive(run: Run, *more: tuple[tarfile.TarInfo, bytes]) -> Path:
    path = run.folder.with_name("run.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(run.folder, run.name)
        for entry, data in more:
            entry.size = len(data) or entry.size
            tar.addfile(entry, io.BytesIO(data))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def header(name: str, size: int, kind: bytes, data: bytes = b"") -> bytes:
    """A header of an archive with any claim about its size, and data after it."""
    made = entry(name, kind)
    made.size = size
    return made.tobuf(tarfile.GNU_FORMAT) + data.ljust(-(-len(data) // 512) * 512, b"\0")


def pax(*records: str) -> bytes:
    """A pax header with these records, and a file of a run to which it applies."""
    data = "".join(f"{len(record) + 4} {record}\n" for record in records).encode()
    return header("x", len(data), tarfile.XHDTYPE, data) + header(f"{A_RUN}/run.json", 0, b"0")


A_RUN = "20260101T000000-012345"
HOSTILE: dict[str, bytes] = {
    "a long name of 3 GiB": header("././@LongLink", 3 << 30, tarfile.GNUTYPE_LONGNAME),
    "a time that is no number": pax("mtime=nan", "path=x"),
    "an infinite time": pax("mtime=inf"),
    "an owner that is no number": pax("uid=x"),
    "a sparse file": pax("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.size=9"),
    "a sparse map": pax("GNU.sparse.map=9,9,x", "GNU.sparse.size=99"),
    "an old sparse map": header(f"{A_RUN}/run.json", 512, tarfile.GNUTYPE_SPARSE, b"\xff" * 512),
    "a chain of headers": header("x", 0, tarfile.XHDTYPE) * 100_000,
    "a chain of long names": header("x", 1, tarfile.GNUTYPE_LONGNAME, b"y") * 50_000,
    "a negative size": header(f"{A_RUN}/run.json", -512, b"0"),
    "a file twice": header(f"{A_RUN}/run.json", 0, b"0") * 2,
    "a device": header(f"{A_RUN}/run.json", 0, tarfile.CHRTYPE),
    "a name with control characters": header(f"{A_RUN}/\x1b[2J\u202e", 0, b"0"),
    "nothing but a folder": header(A_RUN, 0, tarfile.DIRTYPE),
    "no archive": b"no archive" * 1000,
    "nothing": b"",
    "a pax header of 400 MiB": header("x", 3 << 30, tarfile.XHDTYPE) + bytes(400 << 20),
}
ENTRIES = {
    "out of the folder": entry("{run}/../../escaped"),
    "at the root": entry("/etc/escaped"),
    "a link": entry("{run}/samples.txt", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": entry("{run}/slices/a.txt", tarfile.LNKTYPE, "{run}/../../escaped"),
    "a pipe": entry("{run}/slices/a.txt", tarfile.FIFOTYPE),
    "markup": entry("{run}/slices/<b>.txt"),
    "a program": entry("{run}/run.sh"),
    "another run": entry("another/run.json"),
}


def hostile(what: str) -> Callable[[Run], Path]:
    """An archive with these bytes, compressed."""

    def make(run: Run) -> Path:
        path = run.folder.with_name("run.tar.xz")
        path.write_bytes(lzma.compress(HOSTILE[what], preset=0))
        return path

    return make


def with_entry(what: str) -> Callable[[Run], Path]:
    """An archive of the run with one more entry."""

    def make(run: Run) -> Path:
        bad = deepcopy(ENTRIES[what])
        bad.name, bad.linkname = (text.format(run=run.name) for text in (bad.name, bad.linkname))
        return archive(run, (bad, b""))

    return make


def large(run: Run) -> Path:
    return archive(run, (entry(f"{run.name}/slices/a.txt"), bytes(incoming.MOST_BYTES + 1)))


def many(run: Run) -> Path:
    return archive(run, *[(entry(f"{run.name}/slices", tarfile.DIRTYPE), b"")] * 20_001)


def truncated(run: Run) -> Path:
    path = archive(run)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def pipe(run: Run) -> Path:
    path = run.folder.with_name("run.tar.gz")
    os.mkfifo(path)
    return path


ARCHIVES: list[tuple[Callable[[Run], Path], str]] = [
    *((hostile(what), "more than 320 MiB" if "400" in what else ": ") for what in HOSTILE),
    *((with_entry(what), "is not part|folders, not a run's|twice") for what in ENTRIES),
    (large, "a.txt unpacks to more than 16 MiB"),
    (many, "unpacks to more than 256 MiB or 20,000 files"),
    (truncated, "it is not an archive of a run"),
    (pipe, "it is neither a folder nor a file"),
]


def altered(change: Callable[[Run], object]) -> Callable[[Run], Path]:
    return lambda run: (change(run), run.folder)[1]


@pytest.mark.parametrize(
    ("attack", "why"), [*((altered(change), why) for change, why in ALTERED), *ARCHIVES]
)
def test_add_refuses_an_attack_in_one_line_with_a_hint(folder, attack, why):
    source = attack(recordings.record(folder, rounds=1))
    error = refused(source, why)
    assert error.location.startswith((str(source), source.name))
    assert error.hint
    assert str(error).isprintable()
    assert "Traceback" not in str(error)
    assert "scratch" not in str(error)
    assert not list(folder.parent.rglob("escaped"))


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
    ended(run)
    run.update(warnings=["another"])
    error = refused(run.folder, "another run of this name is recorded")
    assert "remove it first: rm -r" in error.hint
    assert before == reference._contents(copy.folder)


def test_the_recorded_runs_are_plausible():
    for run in runs.all_runs(paths.ROOT / "data" / "reference"):
        assert run.altered() == []
        assert not list(incoming.faults(run))


# --- Comparing machines ------------------------------------------------------------------


@pytest.fixture
def two(folder) -> pd.DataFrame:
    """Two recorded machines; the second has more CPUs, and finalizers are cheap on it."""
    reference.add(recordings.record(folder).folder, ALL)
    one = gccost.machines()
    assert set(one["agree"]) == {"decided on one machine only", "undecided"}
    assert one["p"].isna().all()
    reference.add(recordings.record(folder, cpus=16, ns={"AllocateAuto": 240.0}).folder, ALL)
    return gccost.machines()


def test_verdicts_are_compared_between_machines(two, tmp_path):
    assert list(two["machine"].unique()) == ["Made-up CPU (2 CPUs)", "Made-up CPU (16 CPUs)"]
    rows = two.set_index(["id", "release"]).sort_index()
    for release in ("Go 1.20.14", "Go 1.27.4"):
        assert set(rows.loc[("L1", release), "agree"]) == {"depends on the machine"}
    assert set(rows.loc[("L2a", "Go 1.27.4"), "agree"]) == {"holds where decided"}
    assert rows.loc[("L1", "Go 1.27.4"), "p"].max() < 0.01
    done = CliRunner().invoke(cli.main, ["compare", "--csv", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert "Made-up CPU (16 CPUs)" in done.stdout
    written = pd.read_csv(tmp_path / "out.csv").set_index(["id", "release"])
    assert set(written.loc[("L1", "Go 1.27.4"), "agree"]) == {"depends on the machine"}
    assert written.loc[("L1", "Go 1.27.4"), "value"].nunique() == 2


@pytest.mark.usefixtures("two")
def test_machines_that_differ_in_their_cpus_only_are_one_computer(folder):
    reference.add(recordings.record(folder, cpu="Another").folder, ALL)
    facts = gccost.computers().T
    assert facts["run"].is_unique
    by_cpu = facts.groupby("CPU")["computer"]
    assert list(by_cpu.nunique()) == [1, 1]
    assert facts["computer"].nunique() == 2


def test_compare_fails_without_a_recorded_run(folder):
    done = CliRunner().invoke(cli.main, ["compare"])
    assert done.exit_code == 1
    assert "there is no recorded run" in done.output


MARKUP = (
    "</pre><img src=x onerror=alert(1)>\n```\n<script>alert(1)</script> [a](javascript:b) "
    "**bold** `c` $\\href{javascript:alert(1)}{x}$ \\(x\\) &lt;"
)


def with_markup(folder: Path) -> Run:
    """An added run each of whose texts holds markup that a page or JupyterLab could run."""
    run = recordings.record(folder)
    line = MARKUP.replace("\n", " ")
    manifest = run.manifest()
    machine = dict(manifest["machine"])
    machine |= dict.fromkeys(("cpu", "release", "kernel", "libc", "virtualisation"), line)
    machine |= dict.fromkeys(("governor", "container", "system", "c_compiler", "python"), line)
    machine["caches"] = {line: 1024}
    lost = AUTO.on(TODAY_GO)
    samples = run.samples.read_text().splitlines(keepends=True)
    run.samples.write_text("".join(each for each in samples if f"{lost}-" not in each))
    run.append(["BenchmarkX<img/onerror=alert(1)> 1 1 ns/op<script>", f"cpu: {line}"])
    release = {TODAY_GO: MARKUP, line: MARKUP}
    run.update(
        machine=machine,
        fingerprint=fingerprint(machine),
        compilers={"C compiler": line, line: line},
        warnings=[MARKUP],
        missing={"1.20.14": MARKUP, line: MARKUP},
        failed={lost: [MARKUP], line: [MARKUP]},
        troubles={lost: [MARKUP], FREE.on(TODAY_GO): [MARKUP], line: [MARKUP]},
        random_layout=dict.fromkeys(release, False),
    )
    printed = {"command": "go test", "output": MARKUP, "date": "2026-01-01T00:00:00Z"}
    run.update(**{"shell": {"lemire-plain": printed, line: printed}, "done": [line]})
    run.finish("standard", line, [])
    name = f"{run.name[:16]}{fingerprint(machine)[:6]}"
    run.folder.rename(folder / name)
    return Run(folder / name)


def test_markup_in_any_text_of_a_run_is_shown_literally(folder: Path) -> None:
    reference.add(with_markup(folder).folder, ALL)
    opened, every, machines = gccost.open("lemire"), gccost.results(), gccost.machines()
    assert not set("<>$`*[]\\") & set(opened.machine + "".join(machines["machine"]))
    shown = [
        *(opened._repr_mimebundle_()[0], every._repr_mimebundle_()[0]),
        *(each._repr_mimebundle_()[0] for each in (every.ledger(), every.first_screen())),
        *(opened.judge(claim)._repr_mimebundle_()[0] for claim in ("L1", "L2a")),
        *({"text/html": each._repr_html_()} for each in (gccost.computers(), opened.verdicts)),
    ]
    assert sum("onerror" in each["text/html"] for each in shown) >= 5
    for bundle in shown:
        assert set(bundle) <= {"text/html", "text/plain", "text/csv"}
        page = bundle["text/html"]
        assert not re.search(r"<(img|script)|</pre>.", page)
        assert "$" not in page or "mathjax_ignore" in page.partition(">")[0]


def test_a_run_that_fails_later_costs_its_own_column(two, monkeypatch, capsys):
    _, broken = gccost.computers().loc["run"]
    load = Recording.load

    def fail(study, run):
        if run.name == broken:
            raise ZeroDivisionError("a surprise")
        return load(study, run)

    monkeypatch.setattr(Recording, "load", fail)
    notebook._judged.cache_clear()
    left = gccost.machines()
    notebook._judged.cache_clear()
    assert set(left["machine"]) == {two["machine"].iloc[0]}
    assert f"{broken} cannot be shown: ZeroDivisionError: a surprise" in capsys.readouterr().out
