"""Reading CPU profiles as Go writes them."""

import gzip
import math

import pytest
from recordings import write_profile as write

from gccost.errors import GccostError
from gccost.run import profiles


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


def test_inlined_calls_are_part_of_the_stack(tmp_path):
    message = profiles._message()()
    message.sample_type.add(type=1, unit=2)
    message.string_table.extend([b"", b"cpu", b"nanoseconds", b"caller", b"inlined"])
    location = message.location.add(id=7)
    for number, name in ((2, 4), (1, 3)):  # the innermost comes first
        message.function.add(id=number, name=name)
        location.line.add(function_id=number)
    message.sample.add(location_id=[7], value=[10])
    (tmp_path / "p").write_bytes(gzip.compress(message.SerializeToString()))
    assert profiles.read(tmp_path / "p").stacks == ((("caller", "inlined"), 10),)


def test_characters_that_hide_others_are_escaped(tmp_path):
    read = profiles.read(write(tmp_path / "p", [(["\x1b[2Jloop", "a\u202eb\n", "n" * 10**6], 1)]))
    assert read.names == {"\\x1b[2Jloop", "a\\u202eb", "n" * 10**4}


def test_stacks_of_too_many_functions_are_refused(tmp_path, monkeypatch):
    path = write(tmp_path / "p", [(["main.main"] * 100, 1)] * 400)
    monkeypatch.setattr(profiles, "MOST", 100 << 10)
    with pytest.raises(GccostError, match="too many functions"):
        profiles.read(path)
