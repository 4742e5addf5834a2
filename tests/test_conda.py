"""An activated conda environment does not affect what is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faketools import FakeTools

from gccost.measuring import toolchains
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO

pytestmark = pytest.mark.slow

# Variables that could affect a build, with conda's values or more harmful ones.
SETTINGS = {
    "CFLAGS": "-march=nocona -O2",
    "CGO_CFLAGS": "-march=nocona -O2",
    "CGO_ENABLED": "0",
    "CGO_LDFLAGS": "-L/conda/lib",
    "CONDA_PREFIX": "/conda",
    "CPPFLAGS": "-DNDEBUG -isystem /conda/include",
    "GOAMD64": "v3",
    "GOARCH": "386",
    "GODEBUG": "gctrace=1",
    "GOFLAGS": "-modcacherw -buildmode=pie",
    "GOGC": "off",
    "GOMAXPROCS": "1",
    "GOMEMLIMIT": "9",
    "GOOS": "windows",
    "GOROOT": "/conda/go",
    "GOTOOLCHAIN": "local",
    "LDFLAGS": "-Wl,-rpath,/conda/lib",
}
NOT_SET = {"GOOS", "GOARCH", "GOGC", "GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GOAMD64"}


def test_only_the_release_of_each_case_is_used_and_no_setting(tools: FakeTools):
    built = tools.folder / "built-with"
    tools.do(build=f"env >> '{built}'\n")
    done = tools.gccost("measure", **SETTINGS)
    assert done.returncode == 0, done.stderr
    values: dict[str, set[str]] = {}
    for name, value in re.findall(r"^(GO\w*|CGO_\w+|CC)=(.*)$", built.read_text(), re.M):
        values.setdefault(name, set()).add(value)
    assert {Path(root).name for root in values["GOROOT"]} == {
        f"toolchain@{toolchains._module_version(go)}" for go in (DOCUMENT_GO, TODAY_GO)
    }
    assert not any("nocona" in flags for flags in values["CGO_CFLAGS"])
    assert values["GOTOOLCHAIN"] == {"local"}
    assert values["CGO_ENABLED"] == {"1"}
    assert values["GOFLAGS"] == {""}
    assert not {*NOT_SET, "CGO_LDFLAGS"} & values.keys()
