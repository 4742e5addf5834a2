"""The cost of finalizers, cleanups and weak pointers in a Go CPU profile, and bad input."""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from recordings import Stacks, write_profile

from gccost import cli, explain, paths, processes, saved
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
CLOSE = ["net", "larger_handles", "slabs", "no_walk"]
EITHER = ["net", "none", "larger_handles", "slabs", "no_walk"]
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
    # Savings exclude cleanup functions and weak pointers. Callers close some objects (40 samples
    # in Stop) and forget others (50 in running cleanups): chapter 8 measured no such mixture.
    none = (0.71 - 0.02 - 0.1) * (1 - 0.01 / 0.4)
    saves = {"net": None, "none": none, "larger_handles": 0.34 * 7 / 8}
    saves |= {"slabs": None, "no_walk": 0.34}
    remedies = answer["remedies"]
    assert answer["objects_are"] == "either"
    assert [*remedies] == [*saves]
    for name, part in saves.items():
        assert remedies[name]["saves"] == (part and pytest.approx(part, rel=1e-4))
        assert remedies[name]["remains"] == (part and pytest.approx(0.71 - part, rel=1e-4))
    # Freeing earlier saves more than a profile shows.
    bounds = {"net": "", "none": "lower", "larger_handles": "", "slabs": "", "no_walk": ""}
    assert {name: each["bound"] for name, each in remedies.items()} == bounds
    assert (
        "40 samples of callers that remove a finalizer or cleanup, 50 of running them"
        in (remedies["net"]["evidence"])
    )
    assert "Two profiles of this program may give two answers" in called(str(path)).stdout
    assert "≥ 57.5 %" in called(str(path)).stdout


def registered_by(opener: str, walk: int = 300, rest: int = 0) -> Stacks:
    """A profile with so many samples of an opener, in the walk and in the rest of AddCleanup."""
    return [
        (["main.main", opener, ADD, SPLICE], walk),
        (["main.main", opener, ADD], rest),
        (["runtime.bgsweep", SWEEP, "runtime.freeSpecial"], 500),
        (["main.main"], 1),
    ]


def closed(removing: int, running: int, by: str = "main.main") -> Stacks:
    """A profile of objects whose Close removes their finalizer."""
    return [
        (["main.main", "lib.Open", SET, "runtime.addfinalizer", "runtime.addspecial", SPLICE], 900),
        ([by, "lib.(*X).Close", SET, "runtime.removefinalizer", "runtime.removespecial"], removing),
        (["runtime.runFinalizers"], running),
    ]


@pytest.mark.parametrize(
    ("stacks", "remedies"),
    [
        # An estimate takes ten samples.
        (registered_by("lib.Open", 10), ALL),
        (registered_by("lib.Open", 9, 1), ["none", "slabs"]),
        # Longer handles make a short walk no shorter.
        (registered_by("lib.Open", 51, 49), ALL),
        (registered_by("lib.Open", 49, 51), ["none", "slabs", "no_walk"]),
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
        (closed(80, 7), CLOSE),
        (closed(80, 40), EITHER),
        (closed(8, 7), EITHER),
        (closed(7, 80), ALL),
        # The Close that a finalizer or cleanup calls is none of a caller.
        (closed(80, 7, by="runtime.runFinalizers"), ALL),
        (closed(80, 7, by="runtime.runfinq"), ALL),
        (closed(80, 7, by="runtime.runCleanups"), ALL),
    ],
)
def test_a_remedy_is_proposed_for_what_it_can_save(stacks, remedies, tmp_path):
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert list(answer["remedies"]) == remedies
    text = called(str(path)).stdout
    assert [name for name, title in explain.REMEDIES.items() if title in text] == remedies
    assert all(each["evidence"] in text for each in answer["remedies"].values())
    # Whatever it finds, it says what it cannot find.
    assert all(f"{what}: {command}" in text for what, command in explain.NOT_SHOWN.items())


def test_estimates_are_those_of_objects_that_end_alike(tmp_path):
    kinds = {"closed": closed(80, 7), "forgotten": closed(0, 80), "either": closed(80, 40)}
    found = {}
    for ends, stacks in kinds.items():
        answer = of(write_profile(tmp_path / ends, stacks))
        assert answer["objects_are"] == ends
        remedies = answer["remedies"].items()
        found[ends] = {name: each["saves"] for name, each in remedies if name in ("net", "slabs")}
    assert found["either"] == {"net": None, "slabs": None}
    registering = 980 / 987
    assert found["closed"]["net"] == pytest.approx(registering * saved.share(saved.NET), rel=1e-4)
    assert found["closed"]["slabs"] == pytest.approx(saved.share(saved.CLOSED_SLABS), rel=1e-4)
    assert found["forgotten"] == {"slabs": pytest.approx(saved.share(saved.SLABS), rel=1e-4)}
    assert 0 < saved.share(saved.NET) < 1


PIN = ["main.call", "runtime.(*Pinner).Pin", "runtime.(*Pinner).Pin.func1"]
MS = "vendor/github.com/microsoft/go-crypto-openssl/openssl"


@pytest.mark.parametrize(
    ("stack", "what", "advice"),
    [
        (PIN, "runtime.Pinner", "one Pinner for all pointers of a call"),
        (["lib.Read", "os.ReadFile", "os.Open", "os.newFile"], "os.ReadFile", "keep what was read"),
        (["lib.List", "os.ReadDir", "os.openDir", "os.newFile"], "os.ReadFile", ""),
        (
            ["lib.Run", "os/exec.(*Cmd).Start", "os.Pipe", "os.newFile"],
            "os/exec",
            "fewer processes",
        ),
        (["lib.Run", "os.StartProcess", "os.newHandleProcess"], "os.Process", "Wait"),
        (["lib.Open", "os.Open", "os.newFile"], "os.File", "keep files open"),
        (["lib.Dial", "net.(*Dialer).Dial", "net.(*netFD).init"], "net.Conn", "keep connections"),
        (["lib.Get", "crypto/tls.(*weakCertCache).newCert"], "crypto/tls", "resume sessions"),
        (
            ["lib.Sign", "crypto/ed25519.Sign", "crypto/internal/fips140cache.(*Cache[int]).Get"],
            "crypto/ecdsa and ed25519",
            "keep the key",
        ),
        (["lib.Sum", "crypto/hmac.New", f"{MS}.NewHMAC"], "crypto of BoringCrypto", "Reset"),
        (["lib.Key", "crypto/internal/backend.NewKey"], "crypto of BoringCrypto", "Reset"),
        (["lib.Copy", "internal/poll.Splice", "internal/poll.newPipe"], "splice", "none needed"),
        (["lib.Root", "os.OpenRoot", "os.newRoot"], "os.Root", "keep the Root open"),
        (["lib.Name", "unique.Make[go.shape.string]"], "unique.Make", "keep handles"),
        (["lib.Get", "syscall/js.makeValue"], "syscall/js", "receive numbers"),
        (["lib.New", "container/ring.New"], "other types of Go's packages", ""),
    ],
)
def test_what_can_be_done_about_what_gos_packages_register_is_said(stack, what, advice, tmp_path):
    stacks: Stacks = [
        (["main.main", *stack, SET, "runtime.addfinalizer", "runtime.addspecial", SPLICE], 290),
        (["runtime.runFinalizers"], 50),
    ]
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    # Closing, padding and slabs are no remedy there.
    assert [*answer["remedies"]] == ["no_walk"]
    (found,) = answer["go_registers"]
    assert found["what"].startswith(what)
    assert advice in found["remedy"]
    assert found["share"] == answer["registered_anyway"] == pytest.approx(290 / 340, rel=1e-4)
    assert f"{found['what']}: {found['remedy']}" in called(str(path)).stdout


GO, HOME = "/usr/lib/go-vendor/src/", "/home/me/"
OWN = ["lib.Open"]


@pytest.mark.parametrize(
    ("function", "file", "runtime", "is_go"),
    [
        # A vendor's toolchain has packages that upstream's has not.
        ("crypto/internal/openssl.New", f"{GO}crypto/internal/openssl/key.go", GO, True),
        ("os.newFile", f"{GO}os/file_unix.go", GO, True),
        # Modules may be named like Go's packages.
        ("os/tools.New", f"{HOME}os/tools/x.go", GO, False),
        ("net.New", f"{HOME}net/x.go", GO, False),
        # With -trimpath, names and versions of modules decide.
        ("os.newFile", "os/file_unix.go", "", True),
        ("net.New", "net@v1.0.0/x.go", "", False),
        ("example.org/lib.New", "example.org/lib@v1.0.0/x.go", "", False),
        # An autogenerated method has no file.
        ("os.(*File).Open", "<autogenerated>", GO, True),
        # The runtime is not a user's package of this name.
        ("example.org/runtime.New", f"{HOME}runtime/x.go", GO, False),
    ],
)
def test_gos_own_functions_are_told_by_the_toolchains_folder(
    function, file, runtime, is_go, tmp_path
):
    files = {function: file, SET: f"{runtime}runtime/mfinal.go"}
    stacks: Stacks = [(["main.main", function, SET], 100)]
    answer = of(write_profile(tmp_path / "p", stacks, files=files))
    assert answer["call_sites"][0]["own"] != is_go
    assert bool(answer["go_registers"]) == is_go


@pytest.mark.parametrize("leaf", ["runtime.addspecial", "runtime.removespecial"])
def test_a_walk_that_inlining_hides_is_an_upper_bound(leaf, tmp_path):
    stacks: Stacks = [
        (["main.main", "lib.Open", SET, "runtime.addfinalizer", leaf], 74),
        (["main.main", "lib.Open", SET, "runtime.mallocgcSmallNoscan"], 36),
        (["runtime.runFinalizers"], 30),
    ]
    path = write_profile(tmp_path / "p", stacks)
    answer = of(path)
    assert not answer["walk_is_separate"]
    remedies = answer["remedies"]
    assert remedies["no_walk"]["saves"] == pytest.approx(74 / 140, rel=1e-4)
    assert [name for name, each in remedies.items() if each["bound"] == "upper"] == [
        "larger_handles",
        "no_walk",
    ]
    text = called(str(path)).stdout
    assert "The walk takes less: this profile does not separate it" in text
    assert "≤ 52.9 %" in text


def test_a_walk_that_is_not_there_takes_no_time_if_inlined_calls_are_expanded(tmp_path):
    stacks: Stacks = [
        (["main.main", "lib.Open", SET, "runtime.addfinalizer", "runtime.addspecial"], 74),
        (["main.main", "lib.Open", SET, "runtime.mallocgcSmallNoscan"], 36),
    ]
    path = write_profile(tmp_path / "p", stacks)
    message = profiles._message()()
    message.ParseFromString(gzip.decompress(path.read_bytes()))
    message.location[0].line.add(function_id=1)  # inlined into itself, say
    path.write_bytes(message.SerializeToString())
    answer = of(path)
    assert answer["walk_is_separate"]
    assert answer["parts"]["walk"] == 0
    assert [*answer["remedies"]] == ["none", "slabs"]


def test_long_type_arguments_are_shortened_and_the_end_stays(tmp_path):
    cache = f"lib.(*Cache[go.shape.uint8,go.shape.struct {{ {'x' * 300} [8]int }}]).Get"
    stacks: Stacks = [(["main.main", cache, SET], 60), (["main.main", cache, ADD], 40)]
    text = called(str(write_profile(tmp_path / "p", stacks))).stdout
    assert "lib.(*Cache[...]).Get (runtime.SetFinalizer), called by main.main" in text
    assert "lib.(*Cache[...]).Get (runtime.AddCleanup), called by main.main" in text


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
    ("limit", "code"), [("40%", 0), ("39.9%", 3), ("0%", 3), ("40", 2), ("nan%", 2), ("101%", 2)]
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
        ("cpu/nanoseconds", [(3e9,), (7e9,)], 0.1, 10),
        ("cpu/nanoseconds", [(3_000_000_001,), (7e9 - 1,)], 0.5, 10),  # of no period
        ("samples/count cpu/nanoseconds", [(0, 2**62), (0, 2**63 - 1)], 1, 1.38350580552822e10),
    ],
)
def test_the_size_of_a_sample_is_that_of_the_counts(kinds, values, one_sample, seconds, tmp_path):
    path = tmp_path / "p"
    path.write_bytes(profile_of(kinds, [[int(value) for value in each] for each in values]))
    answer = of(path)
    assert (answer["one_sample"], answer["cpu_seconds"]) == (one_sample, pytest.approx(seconds))
    assert called(str(path)).exit_code == 0


@pytest.mark.parametrize(
    ("period", "one_sample"),
    [(10_000_000, 0.001), (0, 0.1), (1_000_000_000, 0.1), (5_000_000_000, 0.1)],
)
def test_without_counts_the_period_says_what_a_sample_is(period, one_sample, tmp_path):
    path = tmp_path / "p"
    values = [[3_000_000_000], [6_000_000_000], [1_000_000_000]]
    path.write_bytes(profile_of("cpu/nanoseconds", values, period))
    answer = of(path)
    assert answer["one_sample"] == one_sample
    assert ("none" in answer["remedies"]) == (one_sample < 0.11)


@pytest.mark.parametrize(
    ("stacks", "more"),
    [
        ([(["testing.tRunner", "lib.TestFib"], 100)], {}),
        ([(["main.main", "main.work"], 100)], {}),
        ([(["lib.work"], 100)], {"files": {"lib.work": "/src/lib/work.go"}}),
        ([(["work"], 100)], {"build_id": "BuildIDxxx-/actionIDxx_/actionIDxx1/contentIDx"}),
        ([], {"build_id": "3bca796797b4b72c290d7d21c005f7ff683ef9f4"}),  # no CPU time was used
    ],
)
def test_a_go_program_without_a_function_of_the_runtime_passes(stacks, more, tmp_path):
    path = write_profile(tmp_path / "p", stacks, **more)
    done = called("--fail-above", "0%", str(path))
    assert done.exit_code == 0
    assert of(path)["share"] == 0
    assert ("weak pointers: 0 %" if stacks else "no samples") in done.stdout


@pytest.mark.parametrize("root", [True, False])
def test_frames_that_pprof_makes_of_labels_hide_nothing(root, tmp_path):
    label = "lib.worker-1"
    stacks: Stacks = [
        ([label, *stack] if root else [*stack, label], samples) for stack, samples in closed(80, 7)
    ]
    plain = of(write_profile(tmp_path / "plain", closed(80, 7)))
    labelled = write_profile(tmp_path / "labelled", stacks, files={label: "thread"})
    assert of(labelled) == plain


def profile_of(kinds: str, values: list[list[int]], period: int = 0) -> bytes:
    """A profile.proto whose samples are main.New's, which registers; a label is not UTF-8."""
    message = profiles._message()()
    message.string_table.extend([b"", b"main.New", SET.encode(), b"\xd6\x14\x50"])
    for number, kind in enumerate(kinds.split()):
        message.string_table.extend(kind.encode().split(b"/"))
        message.sample_type.add(type=2 * number + 4, unit=2 * number + 5)
    if period:
        message.period = period
        message.period_type.type, message.period_type.unit = 4, 5
    for number in (1, 2):
        message.function.add(id=number, name=number)
        message.location.add(id=number).line.add(function_id=number)
    for value in values:
        message.sample.add(location_id=[2, 1], value=value)
    return message.SerializeToString()


def test_the_kept_shares_are_those_of_the_recorded_runs(tmp_path, monkeypatch):
    """If not: .venv/bin/python -m gccost.saved."""
    before = paths.SAVED_SHARES.read_bytes()
    monkeypatch.setattr(paths, "SAVED_SHARES", tmp_path / "saved-shares.csv")
    saved.write()
    assert paths.SAVED_SHARES.read_bytes() == before


def test_other_recorded_runs_than_those_of_the_kept_shares_are_read(tmp_path, monkeypatch):
    kept = saved.share(saved.NET)
    assert 0 < kept < 1
    monkeypatch.setattr(saved, "digest", lambda: "of others")
    monkeypatch.setattr(saved, "computed", {saved.NET: kept / 2}.get)
    assert saved.share.__wrapped__(saved.NET) == kept / 2


def test_explaining_loads_nothing_slow(tmp_path):
    """Neither what computes nor what draws; a recorded run is not parsed either."""
    path = write_profile(tmp_path / "cpu.pb.gz", NEW)
    shown = "import sys; print(*sys.modules)"
    code = f"from gccost import explain; explain.explain(explain.load({str(path)!r})); {shown}"
    ran = processes.run([sys.executable, "-c", code])
    assert ran.returncode == 0, ran.stderr
    assert not {"pandas", "numpy", "scipy", "gccost.costs.recording"} & set(ran.stdout.split())


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
TWO = profile_of(CPU, [[3, 3]]) * 2
PAGE = b"""<!DOCTYPE html>
<html><head><style>b { color: red }</style><title>Sign in</title></head><body></body></html>
"""
SERVER = "it is a web server's answer, which says: "


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
        (b"", "the file is empty"),
        (gzip.compress(b""), "the file is empty"),
        (TWO, "it holds several profiles"),
        (gzip.compress(TWO[: len(TWO) // 2]) * 2, "it holds several profiles"),
        (b"404 page not found\n", f"{SERVER}404 page not found. curl -f reports"),
        (
            b"Could not enable CPU profiling: cpu profiling already in use\n",
            f"{SERVER}Could not enable CPU profiling: cpu profiling already in use",
        ),
        (PAGE, f"{SERVER}Sign in"),
        (gzip.compress(PAGE + b"<p>x</p>" * 999), f"{SERVER}Sign in"),
        (b'{"error": "unauthorized"}', f'{SERVER}{{"error": "unauthorized"}}'),
        (b"PK\x03\x04" + bytes(99), "it is a zip file"),
        (b"\x28\xb5\x2f\xfd" + bytes(99), "it is compressed by zstd"),
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
    assert "curl -f -o FILE" in done.stderr


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
