"""The cost of finalizers, cleanups and weak pointers in a Go CPU profile, and bad input."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from recordings import Stacks, write_profile

from gccost import cli, explain, paths
from gccost.cases import published
from gccost.run import profiles

ADD = "runtime.AddCleanup[go.shape.[]uint8,int]"
SPLICE = "runtime.(*mspan).specialFindSplicePoint"
SWEEP = "runtime.(*sweepLocked).sweep"
NEW: Stacks = [
    (["main.main", "lib.Open", ADD, "runtime.addCleanup", "runtime.addspecial", SPLICE], 300),
    (["main.main", "lib.Open", ADD, "runtime.mallocgc"], 50),
    (["main.main", "lib.Close", "runtime.Cleanup.Stop", SPLICE], 40),
    (["main.main", "unique.Make[int]", "weak.Make[int]", "runtime.getWeakHandle"], 10),
    (["main.main", "weak.Pointer[int].Value", "weak.runtime_makeStrongFromWeak"], 20),
    (["runtime.gcBgMarkWorker", "runtime.markrootSpans", "runtime.gcScanCleanup"], 80),
    (["main.main", ADD, "runtime.mallocgc", SWEEP, "runtime.freeSpecial"], 60),
    (["runtime.bgsweep", SWEEP, "runtime.freeSpecial", "runtime.(*cleanupQueue).enqueue"], 30),
    (["runtime.bgsweep", SWEEP], 10),
    (["runtime.bgsweep", SWEEP, "runtime.(*mspan).markBitsForIndex"], 5),
    (["runtime.bgsweep", SWEEP, "runtime.(*mheap).freeSpan"], 15),
    (["runtime.runCleanups", f"{ADD}.func1", "lib.Open.func1", "runtime.cgocall"], 100),
    (["runtime.runCleanups", "runtime.callCleanup[int]"], 20),
    (["main.main", ADD, "runtime.mallocgc", "runtime.setprofilebucket", "runtime.addspecial"], 5),
    (["runtime.bgsweep", SWEEP, "runtime.freeSpecial", "runtime.mProf_Free"], 5),
    (["main.main", "lib.Work"], 250),
]
OLD: Stacks = [
    (["lib.Open", "runtime.SetFinalizer", "runtime.addfinalizer", "runtime.addspecial"], 30),
    (["lib.Open", "runtime.SetFinalizer", "runtime.addspecial", "runtime.lock"], 10),
    (["runtime.runfinq", "lib.Close"], 10),
    (["lib.Work"], 48),
    (["lib.Work", "lib.Rest"], 2),
]
PHASES = {"registering": 0.4, "marking": 0.08, "sweeping": 0.06, "running": 0.15, "resolving": 0.02}
ALL = ["none", "larger_handles", "slabs", "no_walk"]
SET = "runtime.SetFinalizer"


def of(path: Path) -> dict[str, Any]:
    return explain.explain(explain.load(str(path)))


def called(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["explain", *arguments])


def test_innermost_function_decides_what_a_profile_says(tmp_path):
    path = write_profile(tmp_path / "p", NEW)
    answer = of(path)
    assert json.loads(called("--json", str(path)).stdout) == answer
    assert answer["parts"] == PHASES | {
        "walk": 0.34,
        "functions": 0.1,
        "sampling": 0.01,
        "rest": 0.28,
    }
    assert answer["share"] == pytest.approx(sum(PHASES.values()))
    assert answer["walk_is_separate"]
    # Call sites are outside the runtime.
    assert [tuple(site.values()) for site in answer["call_sites"]] == [
        ("lib.Open", "runtime.AddCleanup", "main.main", True, 0.35, 0.3, 0.0),
        ("lib.Close", "runtime.Cleanup.Stop", "main.main", True, 0.04, 0.04, 0.04),
        ("main.main", "unique.Make", "", True, 0.01, 0.0, 0.0),
    ]
    # Savings exclude cleanup functions and weak pointers.
    none = (0.71 - 0.02 - 0.1) * (1 - 0.01 / 0.4)
    saves = [none, 0.34 * 7 / 8, none * explain.slabs_save(), 0.34]
    remedies = answer["remedies"].values()
    assert [each["saves"] for each in remedies] == pytest.approx(saves, rel=1e-5)
    assert [0.71 - each["remains"] for each in remedies] == pytest.approx(saves, rel=1e-4)
    # Freeing earlier saves more than a profile shows.
    assert [name for name, each in answer["remedies"].items() if each["lower_bound"]] == ["none"]
    assert "≥ 57.5 %" in called(str(path)).stdout


def registered_by(opener: str, walk: int = 300, rest: int = 0) -> Stacks:
    """A profile with so many samples of an opener, in the walk and in the rest of AddCleanup."""
    return [
        (["main.main", opener, ADD, SPLICE], walk),
        (["main.main", opener, ADD], rest),
        (["runtime.bgsweep", SWEEP, "runtime.freeSpecial"], 500),
        (["main.main"], 1),
    ]


@pytest.mark.parametrize(
    ("stacks", "remedies"),
    [
        # An estimate takes ten samples.
        (registered_by("lib.Open", 10), ALL),
        (registered_by("lib.Open", 9, 1), ["none", "slabs"]),
        (registered_by("lib.Open", 9), []),
        (registered_by("lib.Open", 0), []),
        # Types of Go register even if they are closed, and slabs register few objects.
        (registered_by("os.newFile"), ["no_walk"]),
        (registered_by("net.(*netFD).setAddr"), ["no_walk"]),
        (registered_by("crypto/internal/boring.NewHMAC"), ["no_walk"]),
        (registered_by("owner.org/copy/slab.(*core[go.shape.*uint8]).retire"), ["no_walk"]),
        # Modules may be named like Go's packages.
        (registered_by("crypto/wallet/keys.New"), ALL),
        (registered_by("runtime/pool.New"), ALL),
        (registered_by("internal/pool.(*Pool[go.shape.struct { net.x int }]).New"), ALL),
        (registered_by("osquery.Open"), ALL),
        (registered_by("example.com/net.Open"), ALL),
        # A Close that removes the net is there already.
        (
            [
                (["lib.Open", SET, "runtime.addspecial", SPLICE], 90),
                (["lib.Close", SET, "runtime.removefinalizer"], 8),
                (["runtime.runFinalizers"], 7),
            ],
            ["net", "larger_handles", "slabs", "no_walk"],
        ),
    ],
)
def test_a_remedy_is_proposed_for_what_it_can_save(stacks, remedies, tmp_path):
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert list(answer["remedies"]) == remedies
    text = called(str(path)).stdout
    assert [name for name, title in explain.REMEDIES.items() if title in text] == remedies
    # Whatever it finds, it says what it cannot find.
    assert all(f"{what}: {command}" in text for what, command in explain.NOT_SHOWN.items())


def test_callers_of_a_helper_that_registers_are_named(tmp_path):
    track = ["lib/internal/res.Track[go.shape.int]", "lib/internal/res.track[go.shape.int]", ADD]
    stacks: Stacks = [
        (["runtime.main", "main.main", "lib.NewImage", "sync.(*Once).Do", *track], 50),
        (["main.main", "lib.NewFont", *track], 30),
        (["lib.init", "os.newFile", SET], 20),
    ]
    path = write_profile(tmp_path / "p", stacks)
    by = ", by ".join
    assert [(site["caller"], site["share"]) for site in of(path)["call_sites"]] == [
        (by([track[0], "lib.NewImage"]), 0.5),
        (by([track[0], "lib.NewFont"]), 0.3),
        ("lib.init", 0.2),
    ]
    assert "lib.NewFont" in called(str(path)).stdout


def test_slabs_that_wait_are_recognised(tmp_path):
    close = ["main.main", "owner.org/slab.Handle[go.shape.*uint8].Close"]
    stacks: Stacks = [
        ([*close, "sync.(*Mutex).Lock", "internal/sync.(*Mutex).lockSlow", "runtime.futex"], 60),
        ([*close, "main.free"], 20),
        (["main.main", "internal/sync.(*Mutex).lockSlow"], 20),
    ]
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert (answer["slabs"], answer["slabs_waiting"]) == (0.8, 0.6)
    assert "what they call: 80.0 %, of it 60.0 % waiting" in called(str(path)).stdout


@pytest.mark.parametrize(
    ("registers", "claims"),
    [
        ({"crypto/tls.(*certCache).active": SET, "syscall/js.makeValue": SET}, []),
        ({"main.New": SET, "main.NewImage": ADD}, []),
        ({"github.com/mattn/go-sqlite3.(*SQLiteConn).prepare": SET}, ["X13a"]),
        ({"github.com/tree-sitter/go-tree-sitter.newTree": SET}, ["X13b"]),
        ({"github.com/DataDog/zstd.NewCtx": SET}, ["X13c"]),
        ({"github.com/DataDog/zstd.NewCtx": "runtime.mallocgc"}, []),
        ({"lib.Use": "weak.Make[int]"}, ["X15c"]),
        ({"lib.Use": "unique.Make[int]"}, ["X15b"]),
    ],
)
@pytest.mark.parametrize("samples", [9, 10])
def test_programs_are_named_that_register_the_same(registers, claims, samples, tmp_path):
    stacks: Stacks = [
        (
            ["main.main", function, calls, "runtime.getOrAddWeakHandle"][
                : 4 if "." in calls else 3
            ],
            samples,
        )
        for function, calls in registers.items()
    ]
    kinds = published.table("kinds").set_index("claim")["program"]
    found = [kind["program"] for kind in of(write_profile(tmp_path / "p", stacks))["kinds"]]
    assert found == [*kinds[claims if samples == 10 else []]]


NO_WALK = [each for each in NEW if SPLICE not in each[0]]


@pytest.mark.parametrize(
    ("stacks", "walk", "separate", "says"),
    [
        (NEW, 0.34, True, "lib.Open (runtime.AddCleanup, the walk 30.0 %), called by main.main"),
        (OLD, 0.3, False, "The walk takes less"),  # an upper bound
        (NO_WALK, 0, True, "0 %      of it, the walk"),
        ([(["main.main", "runtime.mallocgcTiny"], 5)], 0, True, "weak pointers: 0 %"),
        ([(["runtime.mallocgc", "runtime.setprofilebucket"], 5)], 0, False, "100 %  the heap prof"),
    ],
)
def test_what_a_profile_shows_and_what_it_cannot_is_said(stacks, walk, separate, says, tmp_path):
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert (answer["parts"]["walk"], answer["walk_is_separate"]) == (walk, separate)
    assert says in called(str(path)).stdout


@pytest.mark.parametrize(
    ("limit", "code"), [("40%", 0), ("39.9%", 3), ("0%", 3), ("40", 2), ("nan%", 2), ("-1%", 2)]
)
def test_a_build_can_fail_above_a_share(limit, code, tmp_path):
    stacks: Stacks = [(["main.New", SET], 40), (["main.main"], 60)]
    path = str(write_profile(tmp_path / "p", stacks))
    done = called("--json", "--fail-above", limit, path)
    assert done.exit_code == code
    assert code == 2 or json.loads(done.stdout)["share"] == 0.4
    assert ("40.00% is above the limit" in done.stderr) == (code == 3)


@pytest.mark.parametrize(
    ("kinds", "values", "one_sample", "seconds"),
    [
        ("samples/count cpu/nanoseconds", [(300, 3e9), (700, 7e9)], 0.001, 10),
        ("samples/count", [(300,), (700,)], 0.001, None),
        ("cpu/nanoseconds", [(3e9,), (7e9,)], 0.5, 10),
        ("samples/count cpu/nanoseconds", [(0, 2**62), (0, 2**63 - 1)], 1, 1.38350580552822e10),
    ],
)
def test_the_size_of_a_sample_is_that_of_the_counts(kinds, values, one_sample, seconds, tmp_path):
    path = tmp_path / "p"
    path.write_bytes(profile_of(kinds, [[int(value) for value in each] for each in values]))
    answer = of(path)
    assert (answer["one_sample"], answer["cpu_seconds"]) == (one_sample, pytest.approx(seconds))
    assert called(str(path)).exit_code == 0


def profile_of(kinds: str, values: list[list[int]]) -> bytes:
    """A profile.proto whose samples are main.New's, which registers; a label is not UTF-8."""
    message = profiles._message()()
    message.string_table.extend([b"", b"main.New", SET.encode(), b"\xd6\x14\x50"])
    for number, kind in enumerate(kinds.split()):
        message.string_table.extend(kind.encode().split(b"/"))
        message.sample_type.add(type=2 * number + 4, unit=2 * number + 5)
    for number in (1, 2):
        message.function.add(id=number, name=number)
        message.location.add(id=number).line.add(function_id=number)
    for value in values:
        message.sample.add(location_id=[2, 1], value=value)
    return message.SerializeToString()


@pytest.mark.parametrize("setting", ["AllocateAuto", "AllocateCleanup"])
def test_recorded_profiles_are_explained(setting):
    path = min(paths.reference().glob(f"*/profiles/{setting},*profile=cpu-*"))
    answer = of(path)
    assert 0.3 < answer["share"] < 1
    assert answer["parts"]["registering"] > answer["parts"]["walk"] > 0
    assert answer["call_sites"][0]["function"] == f"gccost/cstr.{setting}"
    assert "gosrc/slab" in called(str(path)).stdout


TEXT = "it is a text; to convert a CPU profile in a format of text: go tool pprof -proto"
CPU = "samples/count cpu/nanoseconds"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"stacks": OLD, "unit": "bytes"}, "it holds samples/count, cpu/bytes, not cpu"),
        ({"stacks": [([], 1)]}, "was stripped"),
        ({"stacks": []}, "used no CPU"),
        ({"stacks": [(["java/lang/ref/Finalizer.register"], 9)]}, "it is of another language"),
        (profile_of("samples/count time/nanoseconds", [[1, 1]]), "not cpu"),  # a wall clock's
        (profile_of(f"{CPU} {CPU}", [[1, 1]]), "not cpu/nanoseconds once"),  # one after another
        (profile_of(CPU, [[3, 3], [-1, -1]]), "it is the difference of two profiles"),
        (profile_of(CPU, [[1]]), "it is damaged"),
        (b"", "it holds nothing, not cpu"),
        (b"heap profile: 1: 8 [1: 8] @ heap/1048576\n", TEXT),
        ("perf script\nmüller 1 cpu-clock:\n".encode() * 99, TEXT),
        (bytes(8) + b"\3" + bytes(31), "it is a CPU profile in the format of 2016 and before"),
        (b"go 1.27 trace\0\0\0", "go tool trace"),
        (b"PERFILE2" + bytes(99), "it is a recording of perf"),
        (b"\x7fELF\x02\x01\x01", "it is a program"),
        (b"\x1f\x8b\x08", "not a CPU profile"),
        (gzip.compress(b"\xff" * 40), "not a CPU profile"),
        (gzip.compress(bytes(99))[:-9], "ended before"),
    ],
)
def test_bad_input_is_identified_and_refused(content, why, tmp_path):
    path = tmp_path / "p"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_profile(path, **content)
    done = called(str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"gccost: {path}: " in done.stderr
    assert why in done.stderr
    assert "To fix it: take a CPU profile of a Go program" in done.stderr


@pytest.mark.parametrize("kind", ["zeros", "zipped zeros", "a device"])
def test_a_file_larger_than_any_profile_is_not_read(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(profiles, "MOST", 2 << 20)
    path = tmp_path / "p"
    with path.open("wb") as file:
        file.write(gzip.compress(bytes(100 << 20)) if kind == "zipped zeros" else b"")
        file.truncate(file.tell() or 3 << 30)  # takes no room on the disk
    tracemalloc.start()
    try:
        with pytest.raises(explain.BadInput, match="larger than 2 MiB"):
            of(Path("/dev/zero") if kind == "a device" else path)
        assert tracemalloc.get_traced_memory()[1] < 5 * profiles.MOST
    finally:
        tracemalloc.stop()


def test_the_share_of_stacks_that_go_cut_is_told(tmp_path):
    deep = [f"lib.f{i}" for i in range(explain.DEEPEST)]
    path = write_profile(tmp_path / "p", [(deep, 30), (["runtime.runFinalizers", *deep[1:40]], 70)])
    answer = of(path)
    assert (answer["cut"], answer["share"]) == (0.3, 0.7)
    assert (
        "30.0 % is on stacks of which Go's profiler kept the innermost 64"
        in called(str(path)).stdout
    )
    assert of(write_profile(tmp_path / "q", NEW))["cut"] == 0
    assert "innermost 64" not in called(str(tmp_path / "q")).stdout
