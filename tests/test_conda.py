"""An activated conda environment: its tools are used, and it does not affect results.

tests/test_replay.py checks that a replay there gives the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import fakeconda
import pytest
from faketools import FakeTools

from gccost.measuring import toolchains
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "envs" / "gccost"


@pytest.fixture
def activated(tools: FakeTools, prefix: Path, tmp_path: Path) -> dict[str, str]:
    """The environment's variables; the document's Go release must be downloaded."""
    store = tmp_path / "store"
    module = toolchains._module_version(DOCUMENT_GO)
    cached = tools.folder / "mod" / "golang.org" / f"toolchain@{module}"
    record = tools.folder / f"mod/cache/download/golang.org/toolchain/@v/{module}.ziphash"
    (store / cached.name).parent.mkdir()
    shutil.move(cached, store / cached.name)
    shutil.move(record, store / cached.name / "sum")
    return {
        **fakeconda.make(prefix, store),
        "PATH": fakeconda.path(prefix, os.defpath),
    }


def test_doctor_finds_the_tools_of_the_environment(
    tools: FakeTools, activated: dict[str, str], prefix: Path
) -> None:
    said = tools.gccost("doctor", **activated).stdout
    found = dict(re.findall(r"^ok +(\S.*?)  +(.+)$", re.sub(r"\n {12,}", " ", said), re.M))
    assert found["Go"] == f"{fakeconda.GO} (system) in {prefix}/go"
    assert found["C compiler"] == f"{fakeconda.C_COMPILER} (system)"
    assert found["javac"] == f"21.0.9-conda in {prefix}/lib/jvm"
    assert found["JDK 21"] == f"21.0.9-conda (system) in {prefix}/lib/jvm"
    assert "Python" in found


def test_measuring_uses_only_the_release_of_each_case(
    tools: FakeTools, activated: dict[str, str], prefix: Path
) -> None:
    """conda-forge's Go sets GOTOOLCHAIN=local and would refuse to switch."""
    built = tools.folder / "built-with"
    tools.do(build=f"env >> '{built}'\n")
    done = tools.gccost("measure", **activated)
    assert done.returncode == 0, done.stderr
    asked = (prefix / "downloaded").read_text().splitlines()
    assert asked == [f"golang.org/toolchain@{toolchains._module_version(DOCUMENT_GO)}"]
    results = tools.the_run().samples.read_text()
    for release in (DOCUMENT_GO, TODAY_GO):
        assert f"/go={release}" in results
    assert tools.the_run().manifest()["machine"]["c_compiler"] == fakeconda.C_COMPILER

    settings = re.findall(r"^(GO\w*|CGO_\w+|CC)=(.*)$", built.read_text(), re.M)
    values: dict[str, set[str]] = {}
    for name, value in settings:
        values.setdefault(name, set()).add(value)
    roots = {Path(root).name for root in values["GOROOT"]}
    assert roots == {
        f"toolchain@{toolchains._module_version(release)}" for release in (DOCUMENT_GO, TODAY_GO)
    }
    assert values["GOTOOLCHAIN"] == {"local"}
    assert values["CC"] == {activated["CC"]}
    assert values["CGO_ENABLED"] == {"1"}
    assert values["GOFLAGS"] == {""}
    assert not {"GOOS", "GOARCH", "CGO_LDFLAGS"} & values.keys()
    assert not any("nocona" in flags for flags in values["CGO_CFLAGS"])
