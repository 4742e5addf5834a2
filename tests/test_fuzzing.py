"""Runs and archives at random: each is added or refused in one message that names it.

`GCCOST_EXAMPLES=250` tries 10,000.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import random
import resource
import shutil
import tarfile
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import recordings
from campaigns import page_of

from gccost.errors import GccostError
from gccost.judging import reference
from gccost.judging.machines import by_machine, facts, frame, machines
from gccost.judging.recorded import recorded
from gccost.judging.recording import Recording
from gccost.measuring import languages, runs
from gccost.measuring.runs import Run
from gccost.studies import STUDIES

EXAMPLES = 40 * int(os.environ.get("GCCOST_EXAMPLES", "1"))
FIRST = int(os.environ.get("GCCOST_FIRST", "0"))
MOST_MEMORY = 500 << 20
ALL = list(STUDIES.values())

VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 1.5, 2**63, 10**30, 1e308, "", "x", "\x1b[2J", "\u202e", "\ud800"),
    *("<script>", "../../x", "a" * 200_000, [], {}, [[]], {"": None}, [1] * 1000, "${x}", "\0"),
    "2026-02-31T25:00:00Z",
]
FIELDS = [b"NaN", b"1e17", b"0", b"-1", b"1e-9", b"9" * 400, b"\xff", b"", b"1 x", b"2 ns/op"]
CONTENTS = [b"", b"x", b"[" * 100_000, bytes(3 << 20), b"0\n" * 999_999, gzip.compress(bytes(9))]
NAMES = ["run", "profiles/a.pb.gz", "gctraces/x.txt.gz", "more/x", "profiles/\n"]
RECORDS = [
    *("path=/etc/x", "path=../x", "path=", "size=-1", "size=99999999999", "size=x", "mtime=nan"),
    *("mtime=1e400", "uid=x", "GNU.sparse.map=1,2,3", "GNU.sparse.major=1", "linkpath=/"),
    *("GNU.sparse.size=1e9", "GNU.sparse.numblocks=99999999", "hdrcharset=BINARY", "charset=x"),
    "path=" + "a/" * 5000,
]


def seal(run: Run) -> None:
    """Set the digests as measuring would have, if the manifest has any."""
    path = run.folder / "run.json"
    with suppress(ValueError, TypeError, OSError, RecursionError):
        manifest = json.loads(path.read_bytes())
        manifest["digests"] = run._digests()
        manifest["digests"]["run.json"] = runs._digest_of(manifest)
        path.write_bytes(json.dumps(manifest).encode())


def in_manifest(run: Run, chance: random.Random) -> None:
    path = run.folder / "run.json"
    manifest = json.loads(path.read_bytes())
    for _ in range(chance.randint(1, 3)):
        at: Any = manifest
        while True:
            key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if not (isinstance(at[key], dict | list) and at[key] and chance.random() < 0.7):
                break
            at = at[key]
        at[key] = deepcopy(chance.choice(VALUES))
        if chance.random() < 0.2:
            del at[key]
        if not manifest:
            break
    path.write_bytes(json.dumps(manifest).encode())


def in_samples(run: Run, chance: random.Random) -> None:
    lines = run.samples_txt.read_bytes().splitlines(keepends=True)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(lines))
        fields = lines[at].split(b"\t")
        fields[chance.randrange(len(fields))] = chance.choice(FIELDS)
        lines[at] = b"\t".join(fields)
    run.samples_txt.write_bytes(b"".join(lines) * chance.choice([1, 1, 1, 0, 30]))


def in_a_file(run: Run, chance: random.Random) -> None:
    path = chance.choice([path for path in run.folder.rglob("*") if path.is_file()])
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data) + 1)
    match chance.randrange(5):
        case 0:
            data[at : at + 1] = chance.randbytes(1)
        case 1:
            del data[at:]
        case 2:
            data[:] = chance.choice(CONTENTS)
        case 3:
            path.unlink()
            path.symlink_to("/etc/passwd")
            return
        case 4:
            path = run.folder / chance.choice(NAMES)
            path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def in_bytes(data: bytearray, chance: random.Random) -> None:
    """Damage an archive; before it is compressed, mostly its headers and what they claim."""
    for _ in range(chance.randint(1, 4)):
        block = 512 * chance.randrange(len(data) // 512) if len(data) > 512 else 0
        match chance.randrange(4):
            case 0:
                data[block + chance.randrange(min(512, len(data)))] ^= 1 << chance.randrange(8)
            case 1:
                del data[chance.randrange(len(data) // 2, len(data)) :]
            case _:
                entry = tarfile.TarInfo(chance.choice(NAMES))
                entry.type = bytes([chance.choice(b"0123456789DKLNSVXgx")])
                entry.size = chance.choice([0, 1, 511, 1 << 20, 3 << 30, 1 << 60])
                record = chance.choice(RECORDS)
                text = f"{chance.choice([len(record) + 4, 9, 0])} {record}\n".encode()
                padded = text.ljust(-(-len(text) // 512) * 512, b"\0")
                data[block:block] = entry.tobuf(tarfile.GNU_FORMAT) + padded


xz = partial(lzma.compress, preset=0)


def packed(run: Run) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(run.folder, run.name)
    return stream.getvalue()


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Run:
    run = recordings.record(tmp_path_factory.mktemp("sound"), rounds=1)
    path = run.gctrace("a")
    path.parent.mkdir()
    path.write_bytes(gzip.compress(b"gc 1"))
    printed = {"command": "go", "output": "1", "date": "2026-01-01T00:00:00Z"}
    run.update(shell={"lemire-plain": printed}, troubles={"x": ["y"]})  # noqa: S604
    run.finish("standard", "it was made up", [])
    return run


def damaged(sound: Run, place: Path, chance: random.Random) -> Path:
    """A copy of a run, or an archive of one, damaged at random."""
    run = Run(shutil.copytree(sound.folder, place / "run" / sound.name))
    if chance.random() < 0.9:
        chance.choice([in_manifest, in_samples, in_a_file])(run, chance)
        if chance.random() < 0.8:
            seal(run)
    data = bytearray(packed(run))
    if chance.random() >= 0.8:
        return run.folder
    if chance.random() < 0.5:
        in_bytes(data, chance)
    packers = (partial(gzip.compress, compresslevel=1), xz, bz2.compress, bytes)
    data = bytearray(chance.choice(packers)(bytes(data)))
    if chance.random() < 0.2:
        in_bytes(data, chance)
    given = place / "run.tar"
    given.write_bytes(data)
    return given


def test_random_runs_and_archives_are_added_or_refused_in_a_message(
    sound: Run, tmp_path, monkeypatch
):
    hashes = {study: languages.source_hashes(study) for study in ALL}
    monkeypatch.setattr(languages, "source_hashes", hashes.__getitem__)
    before = [resource.getrusage(who).ru_maxrss for who in (0, resource.RUSAGE_CHILDREN)]
    ends: Counter[str] = Counter()
    for number in range(FIRST, FIRST + EXAMPLES):
        chance = random.Random(number)
        place = tmp_path / "example"
        given = damaged(sound, place, chance)
        monkeypatch.setenv("GCCOST_REFERENCE", str(place / "reference"))
        for each in runs.all_runs(place / "run"):  # of one's own: it may be shown
            with suppress(GccostError):
                page_of(Recording(STUDIES["lemire"], each)).encode()
        try:
            reference.add(given, ALL)
        except GccostError as refused:
            said = str(refused)
            assert sound.name in said or str(given) in said, (number, said)
            assert ". To fix it: " in said, number
            assert said.isprintable(), (number, said)
            ends["refused"] += 1
        else:
            compared = machines(by_machine(recorded()), ALL)
            assert frame(compared).to_html() + facts(compared).to_html(), number
            ends["added"] += 1
        assert {p.name for p in place.iterdir()} <= {"run", "run.tar", "reference"}, number
        shutil.rmtree(place)
    print(dict(ends))
    assert ends["refused"] > EXAMPLES / 2
    assert ends["added"] > EXAMPLES / 100
    after = [resource.getrusage(who).ru_maxrss for who in (0, resource.RUSAGE_CHILDREN)]
    print(f"most memory: {after[0] >> 10} MiB here, {after[1] >> 10} MiB in a child")
    grown = [(now - then) << 10 for now, then in zip(after, before, strict=True)]
    assert max(grown) < MOST_MEMORY
