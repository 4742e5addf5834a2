"""The right Go release and C compiler are found, verified and run, whatever the settings."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from faketools import script

from gccost import paths
from gccost.cases import versions
from gccost.cases.versions import DOCUMENT_GO, GO_RELEASES, TODAY_GO
from gccost.errors import GccostError, MissingTool
from gccost.measuring import toolchains, tools
from gccost.studies import STUDIES

RIGHT_SUM = "h1:" + base64.b64encode(bytes(32)).decode()
WRONG_SUM = "h1:" + base64.b64encode(bytes([1] * 32)).decode()


def test_every_release_used_by_a_study_is_listed():
    used = {release for each in STUDIES.values() for release in each.releases}
    assert used | {DOCUMENT_GO, TODAY_GO} <= {*GO_RELEASES, *versions.JDK_RELEASES}


def test_releases_in_words_are_in_the_order_of_their_age():
    given = ["jdk-25", "1.27.4", "jdk-9", "1.9.7", "jdk-11", "jdk-25"]
    assert versions.titles(given) == ["Go 1.9.7", "Go 1.27.4", "JDK 9", "JDK 11", "JDK 25"]


# --- Go -------------------------------------------------------------------------

# It says that it is Go {version}; `answer` is what it does with another release.
GO = """echo "$* $GOTOOLCHAIN $GOPROXY" >> {log}
case "$*" in
    "env GOVERSION GOROOT") echo go{version}; echo {goroot} ;;
    "env GOROOT") {answer} ;;
    "env GOOS GOARCH") echo linux; echo amd64 ;;
    "mod download"*) echo '{{"Sum": "h1:c"}}' ;;
    *) echo '{{"GOPROXY": "https://proxy.invalid"}}' ;;
esac"""


@pytest.fixture
def go(bare, tmp_path):
    """A function that puts a Go on PATH; its calls are in the file `calls`."""

    def make(answer: str = "exit 1", version: str = "1.27.4") -> Path:
        goroot = tmp_path / "goroot"
        text = GO.format(version=version, goroot=goroot, answer=answer, log=tmp_path / "calls")
        (bare / "go").symlink_to(script(goroot / "bin/go", text))
        return goroot

    return make


@pytest.mark.parametrize(("version", "drives"), [("1.21", True), ("1.20.14", False)])
def test_the_go_on_path_finds_releases_from_1_21_on(go, version, drives):
    driver = toolchains.Toolchain(version, go("echo /usr/lib/go-1.9", version), "system")
    assert toolchains.find_driver() == (driver if drives else None)
    own = toolchains.Toolchain("1.9.7", Path("/usr/lib/go-1.9"), "system")
    assert toolchains.find("1.9.7") == (own if drives else None)


@pytest.mark.parametrize(
    ("recorded", "platform", "why"),
    [
        (RIGHT_SUM, "linux-amd64", ""),
        (WRONG_SUM, "plan9-mips", ""),  # nothing is pinned
        (WRONG_SUM, "linux-amd64", "is not the pinned"),
        ("", "linux-amd64", "No such file"),
    ],
)
def test_a_release_is_used_if_its_sum_is_the_pinned_one(
    go, monkeypatch, tmp_path, recorded, platform, why
):
    monkeypatch.setattr(toolchains, "GO_RELEASES", {"1.9.9": {"linux-amd64": RIGHT_SUM}})
    module = f"v0.0.1-go1.9.9.{platform}"
    goroot = tmp_path / "mod/golang.org" / f"toolchain@{module}"
    record = tmp_path / "mod/cache/download/golang.org/toolchain/@v" / f"{module}.ziphash"
    record.parent.mkdir(parents=True)
    if recorded:
        record.write_text(recorded)
    go(f"echo '{goroot}'")
    for get in (toolchains.find, toolchains.fetch):
        if why:
            with pytest.raises(GccostError, match=why):
                get("1.9.9")
        else:
            assert get("1.9.9") == toolchains.Toolchain("1.9.9", goroot, "module proxy")


def test_a_missing_release_is_reported_with_what_go_says(go, tmp_path):
    go("echo go: downloading >&2; echo go: no network >&2; exit 1")
    assert toolchains.find(TODAY_GO) is None
    with pytest.raises(MissingTool, match=rf"^Go {TODAY_GO}: .*\(go: no network\).*when online"):
        toolchains.fetch(TODAY_GO)
    asked = [call for call in (tmp_path / "calls").read_text().splitlines() if TODAY_GO in call]
    proxies = [call.split()[-1] for call in asked]
    assert proxies == ["file:///nowhere", "https://proxy.invalid"]  # fetched only if not found


@pytest.mark.parametrize(
    "said",
    [
        "go: module cache not found: neither GOMODCACHE nor GOPATH is set",
        "build cache is required, but could not be located: GOCACHE is not defined and neither "
        "$XDG_CACHE_HOME nor $HOME are defined",
    ],
)
def test_a_missing_home_is_named_instead_of_the_network(go, said):
    go(f"echo '{said}' >&2; exit 1")
    with pytest.raises(MissingTool) as raised:
        toolchains.fetch(TODAY_GO)
    assert "no folder" in raised.value.message
    assert "set HOME" in raised.value.hint
    assert "online" not in str(raised.value)


@pytest.mark.parametrize("answer", ["", "devel", "go1.27.4", r"\377\376\n/\n", "no program"])
def test_a_go_with_unusable_output_is_skipped(bare, answer):
    script(bare / "go", f"printf '{answer}'")
    if answer == "no program":
        (bare / "go").write_bytes(b"\x7fELF")
    assert toolchains.find("1.27.4") is None
    assert toolchains.find_driver() is None


def test_a_release_is_pinned_once_in_the_order_of_releases(go, tmp_path, monkeypatch):
    go()
    releases = tmp_path / "releases.csv"
    before = "release,platform,sum\n1.9.7,linux-amd64,h1:a\n{}1.20.14,linux-amd64,h1:b\n"
    releases.write_text(before.format(""))
    monkeypatch.setattr(paths, "RELEASES", releases)
    for version in (TODAY_GO, "newest", "../1.20"):
        with pytest.raises(GccostError):
            toolchains.pin(version)
    line = toolchains.pin("1.10.7")
    assert line == "1.10.7,linux-amd64,h1:c"
    assert releases.read_text() == before.format(f"{line}\n")


# Settings that could affect a build, as in an activated conda environment or more harmful.
SETTINGS = """CGO_CFLAGS=-march=nocona CGO_ENABLED=0 CGO_LDFLAGS=-L/conda/lib GOAMD64=v3 GOARCH=386
GODEBUG=gctrace=1 GOFLAGS=-modcacherw GOGC=off GOMAXPROCS=1 GOMEMLIMIT=9 GOOS=windows
GOROOT=/conda/go GOTOOLCHAIN=local GOWORK=/x"""


def test_no_setting_of_the_user_changes_a_build(go, bare, monkeypatch):
    for setting in SETTINGS.split():
        monkeypatch.setenv(*setting.split("=", 1))
    go()
    compiler = compiler_on(bare, "cc")
    made = toolchains.Toolchain("1.9.7", Path("/go"), "system").environment()
    assert {k: v for k, v in made.items() if k.startswith(("CC", "CGO_", "GO"))} == {
        "CC": str(compiler),
        "CGO_ENABLED": "1",
        "GOENV": "off",
        "GOFLAGS": "",
        "GOPROXY": "https://proxy.invalid",  # of `go env`
        "GOROOT": "/go",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


# --- C --------------------------------------------------------------------------


def compiler_on(path: Path, name: str) -> Path:
    """Put this machine's compiler on a bare PATH."""
    real = shutil.which("cc", path=os.defpath)
    if real is None:
        pytest.skip("no C compiler on this machine")
    return script(path / name, f'PATH={os.defpath} exec {real} "$@"')


def test_the_first_working_c_compiler_is_used(bare, monkeypatch):
    assert tools.find_c_compiler() is None
    script(bare / "cc", "exit 1")
    working = compiler_on(bare, "gcc")
    for given, command in (("", [working]), ('cc "', [working]), ("gcc -O1", [working, "-O1"])):
        monkeypatch.setenv("CC", given)
        compiler = tools.find_c_compiler()
        assert compiler.command == tuple(map(str, command))
        assert compiler.version
        assert compiler.source == "system"


def test_a_c_compiler_whose_version_is_not_utf_8_is_used(bare):
    script(bare / "cc", r"printf 'compil\351 1.0\n'")
    assert tools.find_c_compiler().version.encode()


def test_the_ziglang_wheel_replaces_a_missing_c_compiler(bare, tmp_path):
    real, told = compiler_on(bare, "elsewhere"), tmp_path / "told"
    # It is told `cc` and two options that others do not know.
    does = f'echo "$*" >> {told}; shift 3; {real} "$@"'
    zig = script(tools.FOLDER / "ziglang" / "ziglang" / "zig", does)
    said: list[str] = []
    compiler = tools.c_compiler(said.append)
    # Its first program takes minutes, so a line says what goes on.
    assert said == [
        "C compiler: the first program of zig cc takes minutes, because it builds its libc"
    ]
    assert tools.c_compiler(said.append) == compiler
    assert len(said) == 1
    assert compiler.source == "ziglang wheel"
    assert "-mcpu=baseline -UNDEBUG" in compiler.version  # the run's manifest has it
    command = Path(compiler.command[0])
    assert str(zig) in command.read_text()
    unresolved = "-Wl,--unresolved-symbols=ignore-all"
    subprocess.run([command, "--version", unresolved, "a b"], check=False, capture_output=True)
    *_, last = told.read_text().splitlines()
    assert last == "cc -mcpu=baseline -UNDEBUG --version -Wl,-z,undefs a b"


def test_a_script_for_zig_of_an_older_version_is_replaced(bare):
    script(tools.FOLDER / "ziglang" / "ziglang" / "zig", "exit 1")
    older = script(tools.FOLDER / "ziglang" / "zig-cc", 'exec zig cc "$@"')
    assert tools.find_c_compiler() is None
    assert "-mcpu=baseline" in older.read_text()
