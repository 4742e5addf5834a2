"""Fake JDKs: scripts that answer like real ones and run what a test sets."""

from __future__ import annotations

from pathlib import Path

from faketools import script

# A JVM: its last two arguments are the benchmark and the number of operations; `line` prints
# a result.
JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2026-01-01' >&2; exit; fi
for last; do name=$n; n=$last; done
[ "$n" -gt 0 ] || n=1000
line() {
  printf 'Benchmark%s-2\\t%s\\t%s ns/op\\t40000000 peak-rss-bytes\\t' "$1" "$n" "${ns:-10}"
  printf '0 registered/op\\t0 held/op\\t0 registered-drained/op\\t0 held-drained/op\\t'
  printf '1 opened\\t1 native-allocated\\t1 native-freed\\t0 leaked\\n'
}
"""
# A compiler that only creates a class file.
JAVAC = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -d ] && into=$2; shift; done
mkdir -p "$into" && : > "$into/Main.class"
"""


def make(home: Path, version: str, behaviour: str = 'line "$name"', javac: bool = True) -> Path:
    """Make a JDK of a version in a folder; return the folder."""
    scripts = {"java": JAVA.replace("{version}", version) + behaviour + "\n"}
    if javac:
        scripts["javac"] = JAVAC
    for name, text in scripts.items():
        script(home / "bin" / name, text)
    return home
