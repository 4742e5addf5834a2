"""Reading CPU profiles as Go writes them."""

import gzip
import math
from pathlib import Path

import pytest
from recordings import write_profile as write

from gccost.errors import GccostError
from gccost.measuring import profiles


def test_share_counts_stacks_that_contain_a_function(tmp_path: Path) -> None:
    path = write(tmp_path / "p", [(["main", "a", "b"], 30), (["main", "a"], 20), (["gc"], 50)])
    profile = profiles.read(path)
    assert profile.total == 100
    assert profile.share(["a"]) == 0.5
    assert profile.share(["b", "gc"]) == 0.8
    assert profile.share(["main", "a"]) == 0.5  # a stack that holds both counts once


def test_inlined_calls_are_part_of_the_stack(tmp_path: Path) -> None:
    message = profiles._message()()
    message.sample_type.add(type=1, unit=2)
    message.string_table.extend(["", "cpu", "nanoseconds", "caller", "inlined"])
    message.function.add(id=1, name=3)
    message.function.add(id=2, name=4)
    location = message.location.add(id=7)
    location.line.add(function_id=2)  # the innermost comes first
    location.line.add(function_id=1)
    message.sample.add(location_id=[7], value=[10])
    path = tmp_path / "p"
    path.write_bytes(gzip.compress(message.SerializeToString()))
    assert profiles.read(path).stacks == ((("caller", "inlined"), 10),)


def test_a_profile_without_samples_has_no_shares(tmp_path: Path) -> None:
    profile = profiles.read(write(tmp_path / "p", []))
    assert math.isnan(profile.share(["a"]))


@pytest.mark.parametrize(
    "data", [b"", b"garbage", gzip.compress(b"\xff" * 40, mtime=0), b"\x1f\x8b\x08"]
)
def test_a_file_that_is_not_a_profile_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "not-a-profile"
    path.write_bytes(data)
    with pytest.raises(GccostError, match="not-a-profile: this is not a CPU profile"):
        profiles.read(path)


def test_a_profile_in_another_unit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GccostError, match="it holds samples/count, cpu/bytes, not cpu/nanoseconds"):
        profiles.read(write(tmp_path / "p", [(["a"], 1)], unit="bytes"))


def test_share_supports_within_of_and_prefixes(tmp_path: Path) -> None:
    stacks = [
        (["loop", "malloc", "sweep"], 10),
        (["loop", "link"], 30),
        (["background", "sweep"], 60),
    ]
    profile = profiles.read(write(tmp_path / "p", stacks))
    assert profile.share(["sweep"]) == 0.7
    assert profile.share(["sweep"], within=["malloc"]) == 0.1
    assert profile.share(["link"], of=["loop"]) == 0.75
    assert profile.share(["sweep"], within=["malloc"], of=["loop"]) == 0.25
    assert math.isnan(profile.share(["link"], of=["elsewhere"]))
    assert profile.share(["mall*", "li*"]) == 0.4
    assert profile.share(["(*"]) == 0


def test_holds_finds_the_benchmark_in_the_stacks(tmp_path: Path) -> None:
    profile = profiles.read(write(tmp_path / "p", [(["testing.run", "x/y.BenchmarkThis"], 1)]))
    assert profile.holds(".BenchmarkThis")
    assert not profile.holds(".BenchmarkThat")
