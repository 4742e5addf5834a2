"""What a JVM used is what it used itself, not its predecessors."""

from __future__ import annotations

from types import SimpleNamespace

from gccost.measuring import sampler


def usage(user: float, system: float, minor: int, major: int) -> SimpleNamespace:
    return SimpleNamespace(ru_utime=user, ru_stime=system, ru_minflt=minor, ru_majflt=major)


def test_the_usage_of_earlier_children_does_not_count():
    earlier, all_of_them = usage(10, 20, 100, 1000), usage(10.5, 20.25, 107, 1011)
    assert sampler.used(earlier, all_of_them) == {  # type: ignore[arg-type]
        "user-s": 0.5,
        "sys-s": 0.25,
        "cpu-s": 0.75,
        "faults": 18.0,
    }


def test_collections_are_counted_once_and_their_pauses_added(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "[1s] GC(0) Pause Young (Normal) 24M->1M(64M) 1.500ms\n"
        "[2s] GC(1) Concurrent Mark Cycle\n"
        "[2s] GC(1) Pause Remark 30M->30M(64M) 0.250ms\n"
        "[2s] GC(1) Pause Cleanup 30M->30M(64M) 0.250ms\n"
    )
    assert sampler.collections(log) == {"gc-cycles": 2.0, "gc-pause-s": 0.002}
    assert sampler.collections(tmp_path / "none") == {}
