"""Damaged run files: the good part is used, and the bad part is reported."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recordings
from campaigns import (
    LEMIRE,
    TINY,
    after,
    assert_complete,
    assert_every_sample_is_there,
    gccost,
    page_of,
    planned,
)
from conftest import EXAMPLES, FakeMachine, tried
from hypothesis import given
from hypothesis import strategies as st

from gccost import opening, paths
from gccost.errors import GccostError
from gccost.judging import ledger, published, reference
from gccost.judging.recording import Recording
from gccost.measuring import (
    benchfmt,
    campaign,
    gctrace,
    profiles,
    runs,
    toolchains,
)
from gccost.measuring.cases import AUTO, BUDGETS, FREE
from gccost.measuring.toolchains import TODAY_GO
from gccost.notebook import OpenedStudy
from gccost.settings import Settings
from gccost.showing import notice
from gccost.studies import STUDIES, precision


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    run = recordings.record(tmp_path_factory.mktemp("recorded"), rounds=3)
    return Recording.load(LEMIRE, run)


@pytest.fixture
def copy(recorded: Recording, tmp_path: Path) -> runs.Run:
    """A copy of the recorded run, to be damaged."""
    return runs.Run(shutil.copytree(recorded.run.folder, tmp_path / recorded.run.name))


def same_samples(one: Recording, other: Recording) -> bool:
    left, right = (r.frame.drop(columns=["line"]).reset_index(drop=True) for r in (one, other))
    return left.equals(right[left.columns])


NAME = "BenchmarkAllocateFree/go=1.27.4/gogc=100/setting=published-2\t1600000"


@pytest.mark.parametrize(
    "line",
    [
        f"{NAME}\tNaN ns/op\t4 round".encode(),
        f"{NAME}\t80 ns/op\t4 ro".encode() + NAME.encode(),
        b"\x00\xff\xfe\x00 garbage \x80",
    ],
)
def test_a_bad_line_is_reported_on_the_page_and_the_rest_is_used(
    recorded: Recording, copy: runs.Run, line: bytes
) -> None:
    path = copy.samples
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:50], line, b"\n", *whole[50:]]))
    spoilt = Recording.load(LEMIRE, copy)
    assert same_samples(spoilt, recorded)
    assert len(spoilt.problems) == 1
    assert "A line could not be used" in page_of(spoilt)
    assert "samples.txt:51" in page_of(spoilt)


@pytest.mark.parametrize(
    "more", ["\t80 ms/op\t4 round", "\t80 ns/op", "\t80 ns/op\t1e18 round", "\t80 ns/op\t0 round"]
)
def test_samples_with_a_wrong_unit_or_round_are_ignored(
    recorded: Recording, copy: runs.Run, more: str
) -> None:
    copy.append([NAME + more])
    spoilt = Recording.load(LEMIRE, copy)
    for variant in (FREE, AUTO):
        assert spoilt.cost(variant, TODAY_GO) == recorded.cost(variant, TODAY_GO)


def test_the_page_lists_a_limited_number_of_problems(copy: runs.Run) -> None:
    with copy.samples.open("ab") as file:
        file.write(b"BenchmarkX\n" * 1000)
    shown = page_of(Recording.load(LEMIRE, copy))
    assert shown.count("A line could not be used") == notice.SHOWN_PROBLEMS
    assert f"{1000 - notice.SHOWN_PROBLEMS} more lines" in shown


def test_garbage_in_the_results_file_loses_no_sample(machine: FakeMachine) -> None:
    plan = planned()
    told = 0

    def spoil(done: float, total: float, what: str) -> None:
        nonlocal told
        told += 1
        if told % 10 == 0:
            with campaign.find(plan).samples.open("ab") as file:  # type: ignore[union-attr]
                file.write(b"\xff\x00 no text\nBenchmarkAllocateFree 3\n")

    run = campaign.measure(plan, spoil)
    assert len(run.reading().errors) >= 8
    assert_every_sample_is_there(run)


def test_measuring_resumes_after_the_results_are_overwritten(machine: FakeMachine) -> None:
    plan = planned()
    with pytest.raises(KeyboardInterrupt):
        campaign.measure(plan, after(30))
    run = campaign.find(plan)
    assert run is not None
    run.samples.write_bytes(b"\x00" * 4096)
    assert campaign.measure(plan) == run
    assert_complete(run)


def test_an_unreadable_run_is_reported_and_skipped(machine: FakeMachine) -> None:
    old = campaign.measure(planned())
    description = old.folder / "run.json"
    description.write_text(description.read_text().replace('"format": 2', '"format": 1'))
    why = "remove the folder and measure"
    before = old.samples.read_bytes()

    done = gccost("measure", "--only=lemire")
    assert done.exit_code == 0
    assert f"The run {old.name} is skipped: " in done.stderr
    assert why in done.stderr
    assert "To fix it: " in done.stderr
    (new,) = runs.all_runs(paths.runs())
    assert new != old
    assert_complete(new)
    assert old.samples.read_bytes() == before
    shown = opening.shown(STUDIES["lemire"], Settings("measure", BUDGETS["tiny"]))
    assert any(old.name in told for told in shown.notices)

    compared = gccost("compare", str(new.folder), str(old.folder))
    assert compared.exit_code == 1
    assert why in compared.stderr


# --- single damaged bytes -----------------------------------------------------------


def broken(path: Path) -> None:
    """Damage the first compressed byte, so that the data are not a deflate stream."""
    data = path.read_bytes()
    path.write_bytes(data[:10] + bytes([data[10] | 0b110]) + data[11:])


@pytest.mark.parametrize("read", [profiles.read, gctrace.read], ids=["profile", "gctrace"])
def test_a_damaged_byte_gives_an_error_that_names_the_file(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "of-a-case.gz"
    if read is profiles.read:
        recordings.write_profile(path, recordings.STACKS)
    else:
        path.write_bytes(gzip.compress("\n".join([recordings.TRACE] * 3).encode(), mtime=0))
    whole, data = read(path), path.read_bytes()
    named, unharmed = set(), 0
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:
            assert read(path) == whole  # some header bytes are ignored
            unharmed += 1
        except GccostError as fault:
            named.add(fault.location)
    assert named == {str(path)}
    assert unharmed < 10


def test_a_damaged_profile_is_reported_and_skipped(tmp_path: Path) -> None:
    run = recordings.record(tmp_path, rounds=3)
    whole = Recording.load(LEMIRE, run)
    path = min(run.folder.glob("profiles/*"))
    broken(path)
    spoilt = Recording.load(LEMIRE, run)
    (problem,) = spoilt.problems
    assert problem.startswith(f"{path}: this is not a CPU profile that Go wrote: Error -3")
    left = sum(len(of) for of in spoilt.cpu_profiles.values())
    assert left == sum(len(of) for of in whole.cpu_profiles.values()) - 1


# --- every kind of file under data/ ---------------------------------------------------


def flipped(data: bytes, at: float) -> bytes:
    place = int(at * (len(data) - 1))
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a byte at the start": lambda data: flipped(data, 0),
    "a byte in the middle": lambda data: flipped(data, 0.5),
    "the last byte": lambda data: flipped(data, 1),
    "truncated": lambda data: data[: len(data) // 2 + (data[len(data) // 2 - 1] == 10)],
    "the last newline": lambda data: data[:-1],
    "empty": lambda data: b"",
}
PUBLISHED = sorted(path.name for path in paths.PUBLISHED.glob("*.[ct][sx][vt]"))


def told(read: Callable[[], object]) -> str:
    """The error that reading raises."""
    with pytest.raises(GccostError) as damaged:
        read()
    return str(damaged.value)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_damaged_published_file_is_named(
    name: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (paths.PUBLISHED / name).read_bytes()
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    (tmp_path / name).write_bytes(DAMAGES[damage](data))
    read = published.table if name.endswith(".csv") else published.text
    said = told(lambda: read(name.removesuffix(".csv")))
    assert said.startswith(f"{tmp_path / name}: ")
    assert "To fix it: restore it: git checkout" in said
    if name == "claims.csv":
        assert name in told(lambda: ledger.rows({}, [LEMIRE]))


def test_a_published_table_with_a_letter_in_a_number_or_without_a_claim_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (paths.PUBLISHED / "claims.csv").read_text()
    monkeypatch.setattr(paths, "PUBLISHED", tmp_path)
    for old, new in (("8.667", "8.b67"), ("\nL1,", "\nl1,"), ("\nL2a,", "\nL1,")):
        (tmp_path / "claims.csv").write_text(data.replace(old, new))
        assert "claims.csv" in told(lambda: ledger.rows({}, [LEMIRE]))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["releases.csv", "costs.csv", "reference.json"])
def test_a_damaged_table_of_ours_is_named(
    name: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = {"releases.csv": paths.RELEASES}.get(name, paths.reference() / name)
    (tmp_path / name).write_bytes(DAMAGES[damage](original.read_bytes()))
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    monkeypatch.setattr(paths, "RELEASES", tmp_path / name)
    readers: dict[str, Callable[[], object]] = {
        "releases.csv": toolchains._pinned,
        "costs.csv": reference._known,
        "reference.json": reference.recorded,
    }
    assert name in told(readers[name])


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["run.json", "samples.txt", "slices", "profiles", "gctraces"])
def test_a_damaged_file_of_a_recorded_run_is_named_and_the_others_are_shown(
    kind: str, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recordings.record(tmp_path, rounds=2)
    trace = gzip.compress("\n".join([recordings.TRACE] * 9).encode(), mtime=0)
    for path, data in ((run.slices("a"), b"3.5\n4.25\n"), (run.gctrace("a"), trace)):
        path.parent.mkdir()
        path.write_bytes(data)
    run.finish("standard", run.manifest()["finished"]["standard"])
    if (kind, damage) == ("run.json", "the last newline"):
        return  # it is still the same JSON
    path = run.folder / kind
    path = path if path.is_file() else min(path.iterdir())
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    said = " ".join(runs.skipped(tmp_path))
    if kind != "run.json":
        shown = opening.shown(STUDIES["lemire"], Settings("replay"))
        said = notice.notice([shown.recording], shown.mode, shown.notices).text  # of the page
        assert opening.rows({"lemire": shown}, "lemire")
    assert (kind if path.suffix == ".gz" else path.relative_to(run.folder).as_posix()) in said
    assert run.name in said
    if kind == "slices":
        assert path.name in told(lambda: run.read_slices("a"))


def test_a_changed_file_of_a_recorded_run_is_named_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path))
    run = recordings.record(tmp_path, rounds=2)
    run.samples.write_bytes(run.samples.read_bytes().replace(b"1 elapsed-s", b"2 elapsed-s", 1))
    notices = " ".join(opening.shown(STUDIES["lemire"], Settings("replay")).notices)
    assert f"samples.txt of the run {run.name} was changed after measuring ended" in notices


def test_a_damaged_file_costs_its_own_chart_and_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = recordings.recorded(tmp_path, "precision")
    path = recording.run.slices(
        precision.measured_by(precision.BASELINE, precision.OURS, "quiet", "1").on(TODAY_GO)
    )
    path.parent.mkdir()
    path.write_bytes(b"3.5\n4.x\n")
    assert OpenedStudy(recording, "replay", ()).slices.empty
    assert path.name in capsys.readouterr().out


def test_no_command_ends_in_a_traceback_if_the_releases_are_damaged(tmp_path: Path) -> None:
    damaged = tmp_path / "releases.csv"
    damaged.write_bytes(flipped(paths.RELEASES.read_bytes(), 0.5))
    script = (
        "import sys, pathlib\nfrom gccost import paths\n"
        "paths.RELEASES = pathlib.Path(sys.argv[1])\nfrom gccost.cli import main\n"
        "for command in sys.argv[2:]:\n"
        "    try:\n        main([command])\n"
        "    except SystemExit as ended:\n        print(command, 'ended with', ended.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, damaged, "doctor", "measure", "compare", "replay"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GCCOST_RUNS": str(tmp_path), "GCCOST_REPORT": str(tmp_path)},
        timeout=300,
    )
    assert [line for line in done.stdout.splitlines() if "ended with" in line] == [
        f"{command} ended with {code}"
        for command, code in {"doctor": 0, "measure": 1, "compare": 1, "replay": 1}.items()
    ], done.stderr
    assert str(damaged) in "".join(done.stdout.split())  # the doctor's
    assert done.stderr.count(f"gccost: {damaged}: the file is damaged") == 3


# --- arbitrary input ----------------------------------------------------------


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)


def places_in(value: Any) -> Iterator[tuple[Any, ...]]:
    """Every path into a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *rest) for rest in places_in(inner))


@st.composite
def descriptions(draw: st.DrawFn, sound: dict[str, Any]) -> str | bytes:
    """A run's manifest with something removed, added or changed."""
    description = json.loads(json.dumps(sound))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(sorted(places_in(description), key=str)))
        at = description
        for key in way:
            at = at[key]
        if draw(st.booleans()):
            at[last] = draw(json_values)
        else:
            del at[last]
        if not description:
            break
    text = json.dumps(description)
    cut = draw(st.one_of(st.none(), st.integers(0, len(text))))
    return text[:cut]


@tried("a description")
@given(data=st.data())
def test_an_arbitrary_manifest_crashes_nothing(
    recorded: Recording, data: st.DataObject, tmp_path: Path
) -> None:
    run = runs.Run(tmp_path / "run")
    run.folder.mkdir(exist_ok=True)
    sound = recorded.run.manifest()
    drawn = data.draw(descriptions(sound) | st.binary(max_size=40).map(bytes), label="run.json")
    (run.folder / "run.json").write_bytes(drawn if isinstance(drawn, bytes) else drawn.encode())
    (fault,) = runs.skipped(tmp_path) or ("",)
    assert runs.all_runs(tmp_path) == ([] if fault else [run])
    if not fault:
        plan = campaign.Plan((LEMIRE,), TINY, campaign.Questions(), {}, {}, {}, {})
        assert campaign.finished(run, plan) in (True, False)
        page_of(replace(recorded, run=run)).encode()
        run.update(troubles={"a case": ["another"]})
        assert run.manifest()["troubles"] == {"a case": ["another"]}
    else:
        fault.encode()


good_line = st.builds(
    benchfmt.Sample,
    name=st.sampled_from(["AllocateFree", "AllocateAuto", "Other"]),
    n=st.sampled_from([1_600_000, 8000, 1]),
    metrics=st.dictionaries(
        st.sampled_from(["ns/op", "round", "elapsed-s", "build-s", "c-misfreed", "go", "µs"]),
        st.floats(0, 1e18),
        min_size=1,
    ),
    keys=st.just({"go": TODAY_GO, "gogc": "100", "setting": "published"})
    | st.dictionaries(st.sampled_from(["go", "gogc", "round"]), st.sampled_from(["off", "1.27.4"])),
    procs=st.sampled_from([1, 2]),
).map(lambda sample: benchfmt.format_line(sample).encode())


bad_line = st.binary(max_size=30).map(lambda junk: junk.replace(b"\n", b" "))


@tried("a run")
@given(lines=st.lists(good_line | bad_line, max_size=8), unfinished=good_line | st.just(b""))
def test_good_lines_among_arbitrary_results_are_kept(
    recorded: Recording, lines: list[bytes], unfinished: bytes, tmp_path: Path
) -> None:
    run = runs.Run(tmp_path)
    (run.folder / "run.json").write_bytes((recorded.run.folder / "run.json").read_bytes())
    whole = b"".join(line + b"\n" for line in lines)
    run.samples.write_bytes(whole + unfinished)
    run.drop_unfinished_line()
    assert run.samples.read_bytes() == whole
    good = [line for line in lines if isinstance(benchfmt.parse_line(_text(line)), benchfmt.Sample)]
    assert len(run.reading().frame) == len(good)
    loaded = Recording.load(LEMIRE, run)
    loaded.cost(FREE, TODAY_GO)
    page_of(loaded).encode()


def _text(line: bytes) -> str:
    return line.decode(errors="surrogateescape").lstrip("\ufeff")


def test_ten_thousand_examples_are_tried() -> None:
    assert sum(EXAMPLES.values()) >= 10_000
