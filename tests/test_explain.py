"""The cost of finalizers, cleanups and weak pointers in a Go CPU profile, and bad input."""

from __future__ import annotations

import cProfile
import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from recordings import Stacks, write_profile

from gccost import cli, explain, paths
from gccost.measuring import profiles

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


def of(path: Path) -> dict[str, Any]:
    return explain.explain(explain.load(str(path)))


def called(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["explain", *arguments])


def test_innermost_function_decides_what_a_profile_says(tmp_path: Path) -> None:
    answer = of(write_profile(tmp_path / "p", NEW))
    more = {"walk": 0.34, "functions": 0.1, "sweep_loop": 0.015, "rest": 0.29}
    assert answer["parts"] == PHASES | more
    assert answer["share"] == pytest.approx(sum(PHASES.values()))
    assert answer["walk_is_separate"]
    # Call sites are outside the runtime.
    assert [tuple(site.values()) for site in answer["call_sites"]] == [
        ("lib.Open", "runtime.AddCleanup", 0.35, 0.3),
        ("lib.Close", "runtime.Cleanup.Stop", 0.04, 0.04),
        ("main.main", "unique.Make", 0.01, 0.0),
    ]
    # Savings exclude cleanup functions and weak pointers.
    none = (0.71 - 0.02 - 0.1) * (1 - 0.01 / 0.4)
    wanted = {"none": none, "larger_handles": 0.34 * 7 / 8}
    wanted |= {"slabs": none * explain.slabs_save(), "no_walk": 0.34}
    assert {name: each["saves"] for name, each in answer["remedies"].items()} == pytest.approx(
        wanted, rel=1e-5
    )
    for each in answer["remedies"].values():
        assert each["saves"] + each["remains"] == pytest.approx(0.71, rel=1e-5)


def proposed(path: Path, stacks: Stacks) -> list[str]:
    """The remedies that are proposed; the text and the JSON agree on them."""
    answer = of(write_profile(path, stacks))
    text = "\n".join(explain.lines(answer))
    assert list(answer["remedies"]) == [
        name for name, title in explain.REMEDIES.items() if title in text
    ]
    assert bool(answer["remedies"]) == ("What would help" in text)
    return list(answer["remedies"])


@pytest.mark.parametrize(
    ("function", "remedies"),
    [
        ("os.newFile", ["no_walk"]),
        ("net.(*netFD).setAddr", ["no_walk"]),
        ("os/exec.Command", ["no_walk"]),
        ("crypto/internal/boring.NewHMAC", ["no_walk"]),
        ("osquery.Open", list(explain.REMEDIES)),
        ("example.com/net.Open", list(explain.REMEDIES)),
    ],
)
def test_types_of_go_register_even_if_closed(
    function: str, remedies: list[str], tmp_path: Path
) -> None:
    stacks: Stacks = [
        (["main.main", "lib.Open", function, "runtime.SetFinalizer", SPLICE], 300),
        (["runtime.bgsweep", SWEEP, "runtime.freeSpecial"], 100),
        (["main.main"], 1),
    ]
    assert proposed(tmp_path / "p", stacks) == remedies


@pytest.mark.parametrize(
    ("walk", "rest", "remedies"),
    [(10, 0, list(explain.REMEDIES)), (9, 1, ["none", "slabs"]), (9, 0, []), (0, 0, [])],
)
def test_an_estimate_takes_ten_samples(
    walk: int, rest: int, remedies: list[str], tmp_path: Path
) -> None:
    period = 10_000_000
    stacks: Stacks = [
        (["lib.Open", ADD, SPLICE], walk * period),
        (["lib.Open", ADD], rest * period),
        (["runtime.bgsweep", SWEEP, "runtime.freeSpecial"], 500 * period),
        (["main.main"], period),
    ]
    assert proposed(tmp_path / "p", stacks) == remedies


def test_work_grows_with_the_stacks_and_not_with_their_frames(tmp_path: Path) -> None:
    def calls(count: int, depth: int) -> int:
        below = [f"lib.f{i % 9}" for i in range(depth)]
        stacks: Stacks = [([*below, f"lib.leaf{i % 7}"], 10) for i in range(count)]
        path = write_profile(tmp_path / "p", [(["lib.Open", ADD, SPLICE], 500), *stacks])
        with cProfile.Profile() as profile:
            of(path)
        return sum(entry.callcount for entry in profile.getstats())

    explain.slabs_save()
    few, more, deep = calls(1000, 50), calls(2000, 50), calls(1000, 100)
    assert more - few < 20 * 1000
    assert deep - few < 1000


@pytest.mark.parametrize(
    ("stacks", "walk", "separate", "says"),
    [
        (OLD, 0.3, False, "The walk takes less"),  # an upper bound
        ([each for each in NEW if SPLICE not in each[0]], 0, True, "No sample is in the walk"),
        (NEW[-3:], 0, True, "No finalizers, cleanups or weak pointers"),
    ],
)
def test_what_a_profile_cannot_show_is_said(
    stacks: Stacks, walk: float, separate: bool, says: str, tmp_path: Path
) -> None:
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert (answer["parts"]["walk"], answer["walk_is_separate"]) == (walk, separate)
    assert says in called(str(path)).stdout


@pytest.mark.parametrize("setting", ["AllocateAuto", "AllocateCleanup"])
def test_recorded_profiles_are_explained(setting: str) -> None:
    recorded = sorted(paths.reference().glob(f"*/profiles/{setting},*profile=cpu-*"))
    assert recorded
    for path in recorded:
        answer = of(path)
        assert 0.3 < answer["share"] < 1
        assert answer["parts"]["registering"] > answer["parts"]["walk"] > 0
        assert answer["call_sites"][0]["function"] == f"gccost/cstr.{setting}"
        assert "gosrc/slab" in called(str(path)).stdout


def proto(*names: str, kind: str = "cpu/nanoseconds", samples: int = 1) -> bytes:
    """A profile of stacks of these functions, with a value such as "cpu/nanoseconds"."""
    message = profiles._message()()
    message.string_table.extend(["", *kind.split("/"), *names])
    message.sample_type.add(type=1, unit=2)
    for i, _ in enumerate(names):
        message.function.add(id=i, name=3 + i)
        message.location.add(id=i).line.add(function_id=i)
    message.location.add(id=99)
    for _ in range(samples):
        message.sample.add(location_id=range(len(names)) or [99], value=[1])
    return bytes(message.SerializeToString())


ZIPPED = gzip.compress(proto("main.main"))
BAD = {
    "heap": (proto("main.main", kind="alloc_space/bytes"), "it holds alloc_space/bytes, not cpu"),
    "goroutine": (proto("main.main", kind="goroutine/count"), "it holds goroutine/count, not cpu"),
    "block": (proto("main.main", kind="delay/nanoseconds"), "it holds delay/nanoseconds, not cpu"),
    "empty": (b"", "it holds nothing, not cpu"),
    "truncated": (ZIPPED[:-9], "ended before"),
    "damaged": (ZIPPED[:-8] + bytes(8), "CRC check failed"),
    "stripped": (proto(), "it has no function names"),
    "idle": (proto(samples=0), "it has no samples"),
    "other": (b"\x7fELF\x02\x01\x01", "not a CPU profile"),
    "hprof": (b"JAVA PROFILE 1.0.2\0", "not a CPU profile"),
    "java": (proto("java/lang/Thread.run"), "a Java program"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_identified_and_refused(name: str, tmp_path: Path) -> None:
    data, message = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    done = called(str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"gccost: {path}: " in done.stderr
    assert message in done.stderr
    assert "To fix it: take a CPU profile of a Go program" in done.stderr


@pytest.mark.parametrize("kind", ["zeros", "zipped zeros", "a device"])
def test_a_file_larger_than_any_profile_is_not_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_json_is_printed(tmp_path: Path) -> None:
    path = write_profile(tmp_path / "p", NEW)
    assert json.loads(called("--json", str(path)).stdout) == of(path)
