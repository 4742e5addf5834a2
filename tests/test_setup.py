"""The lock files, `scripts/setup`, the Makefile and the doctor.

In the tests of `scripts/setup`, a script that records its calls replaces Python and uv,
so they need no network and install nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
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
from faketools import PATIENCE, script, wait_for
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gccost import paths

ROOT = paths.ROOT
LOCKS = sorted(ROOT.glob("locks/*.lock"))
BASE, TESTS = "locks/requirements.lock", "locks/test.lock"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECLARED = {Requirement(text).name for text in PROJECT["dependencies"]}
RUN_BY = "".join((ROOT / name).read_text() for name in ("Makefile", "scripts/setup"))
# Packages that conda-forge names differently from PyPI.
CONDA_NAMES = yaml.safe_load((ROOT / "scripts" / "conda-names.yml").read_text())
# Packages in the conda environment only: compilers and installation tools.
CONDA_ONLY = {"python", "go", "c-compiler", "openjdk", "make", "pip", "setuptools"}
NEWS = "@jupyterlab/apputils-extension:notification"  # the extension that asks about news


def pins(lock: Path) -> list[Requirement]:
    lines = lock.read_text().splitlines()
    return [Requirement(line.rstrip(" \\")) for line in lines if line and line[0] not in " #"]


# --- what is installed ------------------------------------------------------------------


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
    for name in roots & packages.keys() - sys.stdlib_module_names:
        assert DECLARED & {canonicalize_name(package) for package in packages[name]}, name


# What is run, not imported.
COMMANDS = {"jupyterlab", "uv"}


def test_every_declared_dependency_is_imported_or_run():
    text = "".join(path.read_text() for path in (ROOT / "gccost").rglob("*.py"))
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        text += "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    roots = set(re.findall(r"^ *(?:import|from) (\w+)", text, re.M))
    packages = metadata.packages_distributions()
    imported = {canonicalize_name(name) for root in roots for name in packages.get(root, ())}
    run = {name for name in COMMANDS if re.search(rf"\b{name}\b", RUN_BY)}
    assert run == COMMANDS
    assert DECLARED - imported == COMMANDS


def test_conda_pins_the_locked_direct_dependencies():
    locked = {pin.name: str(pin.specifier)[2:] for pin in pins(ROOT / BASE)}
    versions = {}
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        if isinstance(entry, str):
            name, _, versions[name] = entry.partition("=")
            spec = rattler.MatchSpec(entry, strict=True)  # as conda reads it
            assert spec.name.normalized == name
            assert str(spec.version or "") in (versions[name], f"{versions[name]}.*")
    wanted = {CONDA_NAMES.get(name, name): locked[name] for name in DECLARED}
    assert {name: pin for name, pin in versions.items() if name not in CONDA_ONLY} == wanted


# --- scripts/setup ----------------------------------------------------------------------

STAND_IN = r"""#!/bin/sh
# Answers like Python and uv, and records the calls.
echo "$*" >>"$LOG"
case "$*" in
    *version_info*) exit "${UNSUPPORTED:-0}" ;;
    *ensurepip*) exit "${NO_VENV:-0}" ;;
    *base_executable*) echo "$0" ;;
    *"-m venv "*) mkdir -p .cache/venv/bin .cache/venv/site && ln -s "$0" .cache/venv/bin/python ;;
    *"pip config list"*) printf '%s' "${PIP_SAYS:-}" ;;
    *"pip install"*) cp .cache/uv.lock bootstrap.lock && cp "$0" .cache/venv/bin/uv ;;
    *purelib*) echo .cache/venv/site ;;
    *"pip sync"*)
        env | grep -E '^(UV_|SSL_CERT_FILE)' >sync.env
        : >reached; while [ -e hold ]; do sleep 0.05; done; exit "${SYNC_FAILS:-0}" ;;
esac
"""


class Clone:
    """A clone that contains only the set-up, with a stand-in for Python and uv.

    While it has a file `hold`, a set-up does not get beyond fetching.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("scripts/setup", BASE, TESTS):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        script(folder.parent / "stand-in", STAND_IN)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a set-up in its own process group."""
        for name in ("log", "reached"):
            (self.folder / name).unlink(missing_ok=True)
        own = {"LOG": str(self.folder / "log"), "PYTHON": str(self.folder.parent / "stand-in")}
        return subprocess.Popen(
            [self.folder / "scripts" / "setup", *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **own, **environment},
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def setup(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """The exit code and the messages of a set-up."""
        return self.ended(self.start(*arguments, **environment))

    def ended(self, started: subprocess.Popen[str]) -> tuple[int, str]:
        said = started.communicate(timeout=PATIENCE)[1]
        return started.returncode, said

    def held(self) -> subprocess.Popen[str]:
        """A set-up that is fetching."""
        (self.folder / "hold").touch()
        started = self.start()
        assert wait_for((self.folder / "reached").exists)
        return started

    @property
    def asked(self) -> str:
        """The last set-up's calls of Python and uv; empty if there were none."""
        return log.read_text() if (log := self.folder / "log").exists() else ""


@pytest.fixture
def clone(tmp_path) -> Clone:
    return Clone(tmp_path / "a clone")


def test_a_fresh_clone_is_installed_from_the_lock_with_checked_hashes(clone):
    code, said = clone.setup()
    assert code == 0, said
    assert re.search(r"about \d+ MB to download, [\d.]+ [MG]B on disk", said)
    assert "-m venv " in clone.asked
    assert re.search(r"pip sync .*--require-hashes .* locks/requirements\.lock$", clone.asked, re.M)
    assert (clone.folder / ".venv/site/gccost.pth").read_text() == "../../../..\n"
    (settings,) = (clone.folder / ".venv").glob("**/lab/settings/overrides.json")
    assert json.loads(settings.read_text()) == {NEWS: {"fetchNews": "false"}}
    assert re.search(r"pip install .*--no-deps --require-hashes", clone.asked)
    (pin,) = pins(clone.folder / "bootstrap.lock")
    assert pin.name == "uv"
    assert "--hash=sha256:" in (clone.folder / "bootstrap.lock").read_text()


BOTH = f"{BASE} {TESTS}"


@pytest.mark.parametrize(
    ("first", "lock", "second", "locks"),
    [
        ("", "", "", ""),
        ("test", "", "", ""),
        ("", "", "test", BOTH),
        ("", "# changed\n", "", BASE),
        ("test", "# changed\n", "", BOTH),
    ],
)
def test_a_second_setup_updates_the_environment_only_if_needed(clone, first, lock, second, locks):
    clone.setup(*first.split())
    with (clone.folder / BASE).open("a") as file:
        file.write(lock)
    assert clone.setup(*second.split())[0] == 0
    assert "-m venv" not in clone.asked
    assert (re.findall(r"pip sync .*?/python +(.*)", clone.asked) or [""]) == [locks]
    assert bool(clone.asked) == bool(locks)


@pytest.mark.parametrize(
    ("lack", "said"),
    [
        ("UNSUPPORTED", "needs a Python 3.11 to 3.14"),
        ("NO_VENV", "python3-venv"),
        ("SYNC_FAILS", "run it again when online"),
        ("a link", "remove the link (rm .venv)"),
        ("another", "setup: another set-up fills .venv here"),
    ],
)
def test_a_failed_setup_suggests_a_fix_and_can_be_repeated(clone, tmp_path, lack, said):
    held = clone.held() if lack == "another" else None
    if lack == "a link":  # what another clone works with is never emptied
        (tmp_path / "kept").touch()
        (clone.folder / ".venv").symlink_to(tmp_path)
    code, lines = clone.setup(**{lack: "1"})
    assert code == 1
    assert said in lines.splitlines()[-1]
    if held:
        (clone.folder / "hold").unlink()
        assert clone.ended(held)[0] == 0
    elif lack == "a link":
        assert (tmp_path / "kept").exists()
        (clone.folder / ".venv").unlink()
    assert clone.setup()[0] == 0
    assert bool(clone.asked) == (lack != "another")


def test_a_moved_clone_keeps_its_environment_and_a_failed_update_keeps_the_old_one(clone):
    clone.setup()
    (clone.folder / ".venv/mine").touch()
    clone.folder = clone.folder.rename(clone.folder.with_name("moved"))
    assert clone.setup() == (0, "")
    with (clone.folder / BASE).open("a") as file:
        file.write("# changed\n")
    assert clone.setup(SYNC_FAILS="1")[0] == 1
    assert (clone.folder / ".venv/gccost-setup").exists()
    assert (clone.folder / ".venv/mine").exists()


@pytest.mark.parametrize("own", ["", "https://uv.invalid/simple"])
def test_uv_inherits_what_pip_was_told_but_its_own_settings_rule(clone, own):
    clone.setup(
        PIP_SAYS="global.index-url='https://file.invalid/simple'\n"
        "global.cert='/some/ca.pem'\n"
        ":env:.index-url='https://env.invalid/simple'\n"
        "global.extra-index-url='https://more.invalid/simple'\n",
        UV_DEFAULT_INDEX=own,
    )
    lines = (clone.folder / "sync.env").read_text().splitlines()
    expected = {
        "UV_DEFAULT_INDEX": own or "https://env.invalid/simple",
        "UV_INDEX": "https://more.invalid/simple",
        "SSL_CERT_FILE": "/some/ca.pem",
        "UV_SYSTEM_CERTS": "true",
    }
    assert dict(line.split("=", 1) for line in lines).items() >= expected.items()


@pytest.mark.parametrize("sent", SIGNALS)
def test_an_interrupted_setup_is_repeated(clone, sent):
    started = clone.held()
    os.killpg(started.pid, sent)
    assert clone.ended(started)[0] != 0
    (clone.folder / "hold").unlink()
    assert clone.setup()[0] == 0
    assert "pip sync" in clone.asked
    clone.setup()
    assert clone.asked == ""


# --- the Makefile ---------------------------------------------------------------------


@pytest.fixture
def workshop(tmp_path):
    """A clone whose set-up does nothing and whose Python prints its arguments."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name, text in {
        "scripts/setup": "",
        ".venv/bin/python": 'echo "$* budget=$GCCOST_BUDGET only=$GCCOST_ONLY"',
    }.items():
        script(tmp_path / name, text)
    return tmp_path


def make(folder: Path, *arguments: str) -> str:
    # Remove the variables of a `make test` that may be running this.
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GCCOST_BUDGET", "GCCOST_ONLY")
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    command = ["make", "-C", folder, "--no-print-directory", *arguments]
    return subprocess.check_output(command, env=environment, text=True)


def test_make_lists_every_target_with_a_description(workshop):
    listed = re.findall(r"^  make ([\w-]+) +\S", make(workshop), re.M)
    declared = re.findall(r"^\.PHONY: (\S+)", (workshop / "Makefile").read_text(), re.M)
    assert listed == [name for name in declared if not name.startswith("setup")]
    assert {"report", "replay", "test", "lab", "doctor", "measure", "clean"} <= set(listed)


def test_variables_reach_the_command(workshop):
    for target in ("report", "replay", "measure"):
        said = make(workshop, target, "BUDGET=tiny", "ONLY=lemire")
        assert f"-m gccost {target} budget=tiny only=lemire" in said
    for target in ("report", "replay"):
        assert f"-m gccost {target} --open budget= only=" in make(workshop, target, "OPEN=1")


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


def test_the_doctor_says_what_is_missing_without_any_tools(tmp_path):
    program = "from gccost.cli import main; main(['doctor'])"
    environment = {"PATH": str(tmp_path), "GOMODCACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment |= {"HOME": str(tmp_path)}
    said = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
    assert re.search(r"^missing +C compiler", said, re.M) or "ziglang" in said
    assert "Fix: " in said


# --- the image ------------------------------------------------------------------------


def test_the_image_fetches_with_the_files_copied_until_then(tmp_path):
    copied = (ROOT / "Dockerfile").read_text().partition("RUN python -m gccost fetch")[0]
    for sources, target in re.findall(r"^COPY --chown=\S+ (.+) (\S+)$", copied, re.M):
        folder = tmp_path / target
        folder.mkdir(parents=True, exist_ok=True)
        for source in sources.split():
            if source.endswith("/"):
                shutil.copytree(ROOT / source, folder, dirs_exist_ok=True)
            else:
                for path in ROOT.glob(source):
                    shutil.copy(path, folder)
    environment = {"PATH": os.environ["PATH"], "GOPROXY": "off", "PYTHONPATH": str(tmp_path)}
    offline = subprocess.run(
        [sys.executable, "-m", "gccost", "fetch", "--only", "lemire"],
        cwd=tmp_path,
        env=environment | {"HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert offline.returncode == 1
    assert re.search(r"^gccost: Go \S+: cannot be fetched", offline.stderr, re.M), offline.stderr
