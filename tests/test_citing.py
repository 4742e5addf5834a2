"""What a citation says, and the command that sets the repository's public address."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from gccost import paths

CITATION = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
OURS = "https://github.com/someone/a.copy"
FILES = (".gitignore", "README.md", "CITATION.cff", "docs/elsewhere.md", "scripts/address", "gosrc")
FILES += ("notebooks/08-instead.ipynb",)


def test_the_citation_and_the_package_agree():
    package = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    assert CITATION["version"] == package["version"]
    assert CITATION["license"] == package["license"]
    assert CITATION["authors"] == package["authors"]


@pytest.fixture
def copy(tmp_path) -> Path:
    """A repository with what holds the address."""
    for name in FILES:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = paths.ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    return tmp_path


def addressed(copy: Path, url: str) -> str:
    """Everything in the copy after its address was set."""
    subprocess.run([copy / "scripts" / "address", url], cwd=copy, check=True)
    listed = subprocess.check_output(["git", "ls-files"], cwd=copy, text=True).splitlines()
    return "".join((copy / name).read_text() for name in listed if name != "scripts/address")


def test_one_command_sets_the_address_everywhere(copy):
    addressed(copy, "https://gitlab.com/another/first")
    text = addressed(copy, f"{OURS}.git")
    assert "example.org/gccost/slab" not in text
    assert "gitlab.com/another" not in text
    assert "is a placeholder" not in text
    assert "no public address" not in text
    assert text.count("go get github.com/someone/a.copy/gosrc/slab@latest") == 1
    assert f"\ngit clone {OURS} && cd a.copy\nmake report " in text
    assert f"\nrepository-code: {OURS}\nlicense: " in text
    badge = r"badge_logo.svg\)\]\(https://mybinder.org/v2/gh/someone/a.copy/HEAD\?urlpath=lab/tree/(\S+)\)"
    assert (paths.ROOT / re.findall(badge, text)[0]).exists()
    assert "\nmodule github.com/someone/a.copy/gosrc/slab\n" in f"\n{text}"
    if go := shutil.which("go"):
        for module in ("gosrc", "gosrc/slab"):
            subprocess.check_output([go, "list", "-deps", "-test", "./..."], cwd=copy / module)
        assert subprocess.check_output([Path(go).with_name("gofmt"), "-l", copy]) == b""


@pytest.mark.parametrize("url", ["", "github.com/a/b", "https://example.org/a/b", f"{OURS}/tree"])
def test_an_unusable_address_changes_nothing(copy, url):
    done = subprocess.run([copy / "scripts" / "address", url], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "https://github.com/OWNER/REPOSITORY" in done.stderr
    assert subprocess.check_output(["git", "diff", "--stat"], cwd=copy) == b""
