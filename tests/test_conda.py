"""An activated conda environment: its tools are used, and it does not affect results."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import fakeconda
from faketools import FakeTools

from gccost.measuring import toolchains
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO


def test_only_the_release_of_each_case_is_used_and_no_setting(tools: FakeTools, tmp_path) -> None:
    """conda-forge's Go sets GOTOOLCHAIN=local and would refuse to switch."""
    prefix, store = tmp_path / "envs" / "gccost", tmp_path / "store"
    releases = {go: f"toolchain@{toolchains._module_version(go)}" for go in (DOCUMENT_GO, TODAY_GO)}
    # The document's release must be downloaded.
    name = releases[DOCUMENT_GO]
    records = tools.folder / "mod/cache/download/golang.org/toolchain/@v"
    store.mkdir()
    shutil.move(tools.folder / "mod" / "golang.org" / name, store / name)
    shutil.move(records / f"{name.partition('@')[2]}.ziphash", store / name / "sum")
    activated = fakeconda.make(prefix, store) | {"PATH": fakeconda.path(prefix, os.defpath)}

    said = re.sub(r"\n {12,}", " ", tools.gccost("doctor", **activated).stdout)
    found = dict(re.findall(r"^ok +(\S.*?)  +(.+)$", said, re.M))
    assert found["Go"] == f"{fakeconda.GO} (system) in {prefix}/go"
    assert found["C compiler"] == f"{fakeconda.C_COMPILER} (system)"
    assert found["javac"] == f"21.0.9-conda in {prefix}/lib/jvm"
    assert found["JDK 21"] == f"21.0.9-conda (system) in {prefix}/lib/jvm"

    built = tools.folder / "built-with"
    tools.do(build=f"env >> '{built}'\n")
    done = tools.gccost("measure", **activated)
    assert done.returncode == 0, done.stderr
    assert set((prefix / "downloaded").read_text().split()) == {f"golang.org/{name}"}
    assert {s.keys["go"] for s in tools.the_run().reading().samples.values()} == set(releases)
    assert tools.the_run().manifest()["machine"]["c_compiler"] == fakeconda.C_COMPILER
    values: dict[str, set[str]] = {}
    for name, value in re.findall(r"^(GO\w*|CGO_\w+|CC)=(.*)$", built.read_text(), re.M):
        values.setdefault(name, set()).add(value)
    assert {Path(root).name for root in values.pop("GOROOT")} == set(releases.values())
    assert not any("nocona" in flags for flags in values.pop("CGO_CFLAGS"))
    own = {"GOTOOLCHAIN": "local", "CC": activated["CC"], "CGO_ENABLED": "1", "GOFLAGS": ""}
    assert {name: values[name] for name in own} == {name: {own[name]} for name in own}
    bent = {"GOOS", "GOARCH", "GOGC", "GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GOAMD64"}
    assert not {*bent, "CGO_LDFLAGS"} & values.keys()
