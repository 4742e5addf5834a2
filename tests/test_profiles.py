"""Reading CPU profiles as Go writes them."""

import gzip
import math

import pytest
from recordings import write_profile as write

from gccost.errors import GccostError
from gccost.measuring import profiles


@pytest.fixture
def profile(tmp_path):
    stacks = [
        (["loop", "malloc", "sweep"], 10),
        (["loop", "x/y.BenchmarkThis"], 30),
        (["background", "sweep"], 60),
    ]
    return profiles.read(write(tmp_path / "p", stacks))


@pytest.mark.parametrize(
    ("asked", "share"),
    [
        ({"functions": ["sweep"]}, 0.7),
        ({"functions": ["malloc", "sweep"]}, 0.7),  # a stack that holds both counts once
        ({"functions": ["sweep"], "within": ["malloc"]}, 0.1),
        ({"functions": ["x/y.BenchmarkThis"], "of": ["loop"]}, 0.75),
        ({"functions": ["sweep"], "within": ["malloc"], "of": ["loop"]}, 0.25),
        ({"functions": ["mall*", "x/*"]}, 0.4),
        ({"functions": ["(*"]}, 0),
        ({"functions": ["sweep"], "of": ["elsewhere"]}, math.nan),
    ],
    ids=str,
)
def test_a_share_counts_the_stacks_that_contain_a_function(profile, asked, share):
    assert profile.total == 100
    assert profile.share(**asked) == pytest.approx(share, nan_ok=True)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a CPU profile"),
        (b"garbage", "not a CPU profile"),
        (gzip.compress(b"\xff" * 40, mtime=0), "not a CPU profile"),
        (b"\x1f\x8b\x08", "not a CPU profile"),
        (None, "it holds samples/count, cpu/bytes, not cpu/nanoseconds"),
    ],
)
def test_a_file_that_is_not_a_profile_is_refused(tmp_path, data, why):
    path = write(tmp_path / "not-a-profile", [(["a"], 1)], unit="bytes")
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(GccostError, match=f"not-a-profile: .*{why}"):
        profiles.read(path)


def test_inlined_calls_are_part_of_the_stack(tmp_path):
    message = profiles._message()()
    message.sample_type.add(type=1, unit=2)
    message.string_table.extend(["", "cpu", "nanoseconds", "caller", "inlined"])
    location = message.location.add(id=7)
    for number, name in ((2, 4), (1, 3)):  # the innermost comes first
        message.function.add(id=number, name=name)
        location.line.add(function_id=number)
    message.sample.add(location_id=[7], value=[10])
    (tmp_path / "p").write_bytes(gzip.compress(message.SerializeToString()))
    assert profiles.read(tmp_path / "p").stacks == ((("caller", "inlined"), 10),)
