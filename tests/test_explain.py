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
ALL = list(explain.REMEDIES)


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
        ("lib.Open", "runtime.AddCleanup", 0.35, 0.3),
        ("lib.Close", "runtime.Cleanup.Stop", 0.04, 0.04),
        ("main.main", "unique.Make", 0.01, 0.0),
    ]
    # Savings exclude cleanup functions and weak pointers.
    none = (0.71 - 0.02 - 0.1) * (1 - 0.01 / 0.4)
    saves = [none, 0.34 * 7 / 8, none * explain.slabs_save(), 0.34]
    remedies = answer["remedies"].values()
    assert [each["saves"] for each in remedies] == pytest.approx(saves, rel=1e-5)
    assert [0.71 - each["remains"] for each in remedies] == pytest.approx(saves, rel=1e-4)


def registered_by(opener: str, walk: int = 300, rest: int = 0) -> Stacks:
    """A profile with so many samples of an opener, in the walk and in the rest of AddCleanup."""
    period = 10_000_000
    return [
        (["main.main", opener, ADD, SPLICE], walk * period),
        (["main.main", opener, ADD], rest * period),
        (["runtime.bgsweep", SWEEP, "runtime.freeSpecial"], 500 * period),
        (["main.main"], period),
    ]


@pytest.mark.parametrize(
    ("stacks", "remedies"),
    [
        # An estimate takes ten samples.
        (registered_by("lib.Open", 10), ALL),
        (registered_by("lib.Open", 9, 1), ["none", "slabs"]),
        (registered_by("lib.Open", 9), []),
        (registered_by("lib.Open", 0), []),
        # Types of Go register even if they are closed.
        (registered_by("os.newFile"), ["no_walk"]),
        (registered_by("net.(*netFD).setAddr"), ["no_walk"]),
        (registered_by("os/exec.Command"), ["no_walk"]),
        (registered_by("crypto/internal/boring.NewHMAC"), ["no_walk"]),
        (registered_by("osquery.Open"), ALL),
        (registered_by("example.com/net.Open"), ALL),
    ],
)
def test_a_remedy_is_proposed_for_what_it_can_save(stacks, remedies, tmp_path):
    answer = of(write_profile(tmp_path / "p", stacks))
    assert list(answer["remedies"]) == remedies
    text = "\n".join(explain.lines(answer))
    assert [name for name, title in explain.REMEDIES.items() if title in text] == remedies


NO_WALK = [each for each in NEW if SPLICE not in each[0]]
CLEANUPS = ["cleanup", "weak handle and cleanup", "weak handle", "profile sample"]


@pytest.mark.parametrize(
    ("stacks", "walk", "separate", "specials", "says"),
    [
        (NEW, 0.34, True, CLEANUPS, "lib.Open (runtime.AddCleanup, the walk 30.0 %)"),
        (OLD, 0.3, False, ["finalizer"], "The walk takes less"),  # an upper bound
        (NO_WALK, 0, True, CLEANUPS, "0 %      of it, the walk"),
        ([(["main.main", "runtime.mallocgcTiny"], 5)], 0, True, [], "no sample is in their code"),
        (
            [(["main.main", "runtime.mallocgc", "runtime.setprofilebucket"], 5)],
            0,
            False,
            ["profile sample"],
            "nothing is proposed",
        ),
    ],
)
def test_what_a_profile_shows_and_what_it_cannot_is_said(
    stacks, walk, separate, specials, says, tmp_path
):
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert (answer["parts"]["walk"], answer["walk_is_separate"]) == (walk, separate)
    assert list(dict.fromkeys(kind["special"] for kind in answer["kinds"])) == specials
    said = called(str(path)).stdout
    assert says in said
    assert all(
        f"{kind['program']} (" in said and kind["remedy"] in said for kind in answer["kinds"]
    )


@pytest.mark.parametrize("setting", ["AllocateAuto", "AllocateCleanup"])
def test_recorded_profiles_are_explained(setting):
    path = min(paths.reference().glob(f"*/profiles/{setting},*profile=cpu-*"))
    answer = of(path)
    assert 0.3 < answer["share"] < 1
    assert answer["parts"]["registering"] > answer["parts"]["walk"] > 0
    assert answer["call_sites"][0]["function"] == f"gccost/cstr.{setting}"
    assert "gosrc/slab" in called(str(path)).stdout


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"stacks": OLD, "unit": "bytes"}, "it holds samples/count, cpu/bytes, not cpu"),
        ({"stacks": [([], 1)]}, "it has no function names"),
        ({"stacks": []}, "it has no samples"),
        (b"", "it holds nothing, not cpu"),
        (b"\x7fELF\x02\x01\x01", "not a CPU profile"),
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
