"""The lock files, `scripts/setup`, the Makefile and the doctor.

In the tests of `scripts/setup`, a script that records its calls replaces Python and uv,
so they need no network and install nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest
import rattler
import yaml
from campaigns import SIGNALS
from faketools import wait_for
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gccost import paths
from gccost.doctor import MISSING, OK, Finding, render

ROOT = paths.ROOT
LOCKS = sorted(ROOT.glob("requirements*.lock"))


# Packages that conda-forge names differently from PyPI.
CONDA_NAMES = yaml.safe_load((ROOT / "scripts" / "conda-names.yml").read_text())
# Packages in the conda environment only: compilers and installation tools.
CONDA_ONLY = {"python", "go", "c-compiler", "openjdk", "make", "pip", "setuptools"}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def pins(*locks: Path) -> list[Requirement]:
    lines = [line for lock in locks for line in lock.read_text().splitlines()]
    return [Requirement(line.rstrip(" \\")) for line in lines if line and line[0] not in " #"]


def version(pin: Requirement) -> str:
    return str(pin.specifier).removeprefix("==")


# --- the locks ----------------------------------------------------------------------


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_locks_pin_one_hashed_version_of_each_package(lock):
    assert [name for name, n in Counter(pin.name for pin in pins(lock)).items() if n > 1] == []
    for block in re.split(r"\n(?=\S)", lock.read_text().strip()):
        assert "==" in block.splitlines()[0]
        assert "--hash=sha256:" in block
        assert not re.search(r"://|--(?!hash=)| @ |/|^-", block), block


def test_every_import_is_a_declared_dependency():
    text = "".join(path.read_text() for path in (ROOT / "gccost").rglob("*.py"))
    roots = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.M)) - {"gccost"}
    packages = metadata.packages_distributions()
    declared = {Requirement(text).name for text in project()["project"]["dependencies"]}
    for name in roots & packages.keys() - sys.stdlib_module_names:
        assert declared & {canonicalize_name(package) for package in packages[name]}, name


# --- the conda environment ------------------------------------------------------------


def conda() -> dict[str, str]:
    """The packages in environment.yml: name to version, which is empty if not pinned."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    names = [entry.partition("=") for entry in listed if isinstance(entry, str)]
    return {name: version for name, _, version in names}


def test_conda_pins_the_locked_direct_dependencies():
    locked = {pin.name: version(pin) for pin in pins(ROOT / "requirements.lock")}
    wanted = {
        CONDA_NAMES.get(name, name): locked[name]
        for name in (Requirement(text).name for text in project()["project"]["dependencies"])
    }
    found = {name: version for name, version in conda().items() if name not in CONDA_ONLY}
    assert found == wanted


def test_conda_parses_every_spec_as_intended():
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    for entry in listed:
        if isinstance(entry, str):
            name, _, version = entry.partition("=")
            spec = rattler.MatchSpec(entry, strict=True)
            assert spec.name.normalized == name
            assert (str(spec.version) if spec.version else "") in (version, f"{version}.*")


# --- scripts/setup ----------------------------------------------------------------------

STAND_IN = r"""#!/bin/sh
# Answers like Python and uv, and records the calls.
echo "$*" >>"$LOG"
case "$*" in
    *version_info*) exit "${UNSUPPORTED:-0}" ;;
    *ensurepip*) exit "${NO_VENV:-0}" ;;
    *base_executable*) echo "$0" ;;
    *"-m venv --clear .venv"*)
        rm -rf .venv && mkdir -p .venv/bin .venv/site && cp "$0" .venv/bin/python ;;
    *"pip config list"*) printf '%s' "${PIP_SAYS:-}" ;;
    *"pip install"*) cp .cache/uv.lock bootstrap.lock && cp "$0" .venv/bin/uv ;;
    *purelib*) echo .venv/site ;;
    *"pip sync"*) env | grep -E '^(UV_|SSL_CERT_FILE)' >sync.env; exit "${SYNC_FAILS:-0}" ;;
esac
"""


class Clone:
    """A clone that contains only the set-up, with a stand-in for Python and uv."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "scripts").mkdir(parents=True)
        for name in ("scripts/setup", "requirements.lock", "requirements-test.lock"):
            shutil.copy(ROOT / name, folder / name)
        self.log = folder / "log"
        python = folder / "stand-in"
        python.write_text(STAND_IN)
        python.chmod(0o755)

    def setup(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        self.log.unlink(missing_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        python = str(self.folder / "stand-in")
        return subprocess.run(
            [self.folder / "scripts" / "setup", *arguments],
            env={**kept, "LOG": str(self.log), "PYTHON": python, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def asked(self) -> str:
        """The last set-up's calls of Python and uv; empty if there were none."""
        return self.log.read_text() if self.log.exists() else ""

    @property
    def synced(self) -> dict[str, str]:
        """uv's settings when it installed the packages."""
        lines = (self.folder / "sync.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def clone(tmp_path):
    return Clone(tmp_path / "a clone")


def test_a_fresh_clone_is_installed_from_the_lock_with_checked_hashes(clone):
    done = clone.setup()
    assert done.returncode == 0, done.stderr
    assert re.search(r"about \d+ MB to download, [\d.]+ [MG]B on disk", done.stderr)
    assert "-m venv --clear .venv" in clone.asked
    assert re.search(r"pip sync .*--require-hashes .* requirements\.lock$", clone.asked, re.M)
    assert (clone.folder / ".venv/site/gccost.pth").read_text() == f"{clone.folder}\n"
    assert re.search(r"pip install .*--no-deps --require-hashes", clone.asked)
    (pin,) = pins(clone.folder / "bootstrap.lock")
    assert pin.name == "uv"
    assert "--hash=sha256:" in (clone.folder / "bootstrap.lock").read_text()


@pytest.mark.parametrize("again", [(), ("test",)])
def test_a_second_setup_does_nothing(clone, again):
    clone.setup(*again)
    done = clone.setup(*again)
    assert (done.returncode, done.stderr, clone.asked) == (0, "", "")


def test_plain_setup_keeps_the_test_dependencies(clone):
    clone.setup("test")
    clone.setup()
    assert clone.asked == ""


@pytest.mark.parametrize(("first", "second"), [((), ("test",)), (("test",), ())])
def test_updates_reuse_the_existing_environment(clone, first, second):
    clone.setup(*first)
    with (clone.folder / "requirements.lock").open("a") as lock:
        lock.write("# changed\n" if first else "")
    clone.setup(*second)
    assert "-m venv" not in clone.asked
    assert "requirements.lock requirements-test.lock" in clone.asked


def test_a_moved_clone_is_set_up_again(clone, tmp_path):
    clone.setup()
    moved = clone.folder.rename(tmp_path / "elsewhere")
    clone.folder, clone.log = moved, moved / "log"
    clone.setup()
    assert "-m venv --clear .venv" in clone.asked


def test_a_failed_setup_suggests_a_fix_and_can_be_repeated(clone):
    done = clone.setup(SYNC_FAILS="1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("run it again when online")
    assert clone.setup().returncode == 0
    assert "pip sync" in clone.asked


@pytest.mark.parametrize(
    ("lack", "said"), [("UNSUPPORTED", "needs a Python 3.11 to 3.14"), ("NO_VENV", "python3-venv")]
)
def test_an_unusable_python_is_refused_in_one_line(clone, lack, said):
    done = clone.setup(**{lack: "1"})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert said in line


@pytest.mark.parametrize("own", ["", "https://uv.invalid/simple"])
def test_uv_inherits_what_pip_was_told_but_its_own_settings_rule(clone, own):
    clone.setup(
        PIP_SAYS="global.index-url='https://file.invalid/simple'\n"
        "global.cert='/some/ca.pem'\n"
        ":env:.index-url='https://env.invalid/simple'\n"
        "global.extra-index-url='https://more.invalid/simple'\n",
        UV_DEFAULT_INDEX=own,
    )
    assert clone.synced["UV_DEFAULT_INDEX"] == (own or "https://env.invalid/simple")
    assert clone.synced["UV_INDEX"] == "https://more.invalid/simple"
    assert clone.synced["SSL_CERT_FILE"] == "/some/ca.pem"
    assert clone.synced["UV_SYSTEM_CERTS"] == "true"


def test_a_symlinked_environment_is_never_emptied(clone, tmp_path):
    other = tmp_path / "another clone's"
    other.mkdir()
    (other / "kept").touch()
    (clone.folder / ".venv").symlink_to(other)
    done = clone.setup("test")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.endswith("remove the link (rm .venv)")
    assert clone.asked == ""
    assert [path.name for path in other.iterdir()] == ["kept"]


# --- the Makefile ---------------------------------------------------------------------


@pytest.fixture
def workshop(tmp_path):
    """A clone whose set-up does nothing and whose Python prints its arguments."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name, text in {
        "scripts/setup": "",
        ".venv/bin/python": 'echo "$* budget=$GCCOST_BUDGET only=$GCCOST_ONLY"',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str) -> str:
    # Remove the variables of a `make test` that may be running this.
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GCCOST_BUDGET", "GCCOST_ONLY")
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    return subprocess.run(
        ["make", "-C", folder, "--no-print-directory", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_make_lists_every_target_with_a_description(workshop):
    listed = re.findall(r"^  make ([\w-]+) +\S", make(workshop), re.M)
    declared = re.findall(r"^\.PHONY: (\S+)", (workshop / "Makefile").read_text(), re.M)
    assert listed == [name for name in declared if not name.startswith("setup")]
    assert {
        *("report", "replay", "test", "lab", "doctor", "measure"),
        *("kernel", "live", "html", "docker", "docker-lab", "docker-report", "docker-test"),
        *("versions", "clean"),
    } <= set(listed)


def test_variables_reach_the_command(workshop):
    for target in ("report", "measure"):
        said = make(workshop, target, "BUDGET=tiny", "ONLY=lemire")
        assert f"-m gccost {target} budget=tiny only=lemire" in said
    for target in ("report", "replay", "html"):
        assert f"-m gccost {target} --open budget= only=" in make(workshop, target, "OPEN=1")
        assert f"-m gccost {target} budget= only=" in make(workshop, target)


def test_make_clean_keeps_runs(workshop):
    run = workshop / "data" / "runs" / "mine" / "samples.txt"
    made = workshop / "report" / "index.html"
    for path in (run, made):
        path.parent.mkdir(parents=True)
        path.touch()
    make(workshop, "clean")
    assert run.exists()
    assert not made.exists()
    assert not (workshop / ".venv").exists()


# --- the doctor -----------------------------------------------------------------------


def test_the_doctor_works_without_any_tools(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path))
    monkeypatch.setattr("gccost.measuring.toolchains._STAND_INS", tmp_path)
    script = "from gccost import doctor; print(doctor.render(doctor.examine()))"
    said = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"^missing +C compiler", said, re.M) or "ziglang" in said


def test_the_doctor_says_what_is_missing_and_how_to_fix_it():
    text = render(
        [
            Finding("Go", OK, "1.27.4"),
            Finding("C compiler", MISSING, "none", "Nothing is measured.", "get one"),
        ]
    )
    lines = text.splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["ok", "Go", "1.27.4"],
        ["missing", "C", "compiler", "none"],
    ]
    starts = [
        line.find(word) for line, word in zip(lines, ("1.27", "none", "Noth", "fix"), strict=False)
    ]
    assert starts == [21] * 4
    assert "Missing: C compiler." in lines[-1]


# --- concurrent and interrupted set-ups ------------------------------------------


@pytest.fixture
def slow(tmp_path: Path) -> Clone:
    """A clone whose set-up blocks while fetching, until `hold` is removed."""
    clone = Clone(tmp_path / "clone")
    python = clone.folder / "stand-in"
    hold = ': > reached; while [ -e hold ]; do sleep 0.05; done; exit "${SYNC_FAILS:-0}"'
    python.write_text(python.read_text().replace('exit "${SYNC_FAILS:-0}"', hold))
    (clone.folder / "hold").touch()
    return clone


def start(clone: Clone) -> subprocess.Popen[str]:
    """Start a set-up in its own process group; wait until it fetches or ends."""
    reached = clone.folder / "reached"
    reached.unlink(missing_ok=True)
    started = subprocess.Popen(
        [clone.folder / "scripts" / "setup"],
        env={**os.environ, "LOG": str(clone.log), "PYTHON": str(clone.folder / "stand-in")},
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert wait_for(lambda: reached.exists() or started.poll() is not None, seconds=20)
    return started


def test_a_concurrent_setup_is_refused(slow: Clone) -> None:
    first = start(slow)
    second = start(slow)
    fetches = second.poll() is None
    (slow.folder / "hold").unlink()
    said = second.communicate(timeout=20)[1]
    first.communicate(timeout=20)
    assert not fetches
    assert second.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith("setup: another set-up fills .venv here")
    assert first.returncode == 0
    assert slow.setup().returncode == 0
    assert slow.asked == ""


@pytest.mark.parametrize("sent", SIGNALS)
def test_an_interrupted_setup_is_repeated(slow: Clone, sent: signal.Signals) -> None:
    started = start(slow)
    os.killpg(started.pid, sent)
    started.communicate(timeout=20)
    assert started.returncode != 0
    (slow.folder / "hold").unlink()
    again = slow.setup()
    assert again.returncode == 0, again.stderr
    assert "pip sync" in slow.asked
    assert slow.setup().returncode == 0
    assert "pip sync" not in slow.asked
