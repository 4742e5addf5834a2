"""Finalizers and cleanups in a user's module: what is found, what it costs, and bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from gccost import check, cli, paths, processes
from gccost.cases.versions import TODAY_GO
from gccost.measuring import builds, toolchains

PLANTED = paths.GOSRC / "check" / "testdata" / "src"
HANDLE = """package wrapper

// #include "a_header_that_is_not_here.h"
import "C"
import "runtime"

type handle struct{ p *C.thing }

func New() *handle {
	h := &handle{C.make_thing()}
	runtime.SetFinalizer(h, func(h *handle) { C.free_thing(h.p) })
	return h
}

func (h *handle) Use() int { return int(C.use(h.p)) }
"""


@pytest.fixture
def module(tmp_path) -> Path:
    """A user's module: a wrapper of a C library whose header is missing."""
    return made(tmp_path / "module", {"handle.go": HANDLE})


def made(folder: Path, files: dict[str, str], go_mod: str = "module wrapper\n\ngo 1.24\n") -> Path:
    for name, text in ({"go.mod": go_mod} | files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def called(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["check", "-C", str(folder), *arguments])


def answer(folder: Path, *arguments: str) -> dict[str, Any]:
    ran = called(folder, "--json", *arguments)
    assert ran.exit_code == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def rules(folder: Path, *arguments: str) -> set[str]:
    return {each["rule"] for each in answer(folder, *arguments)["findings"]}


# --- Quick: nothing is built ----------------------------------------------


def test_a_price_is_that_of_the_release_or_of_the_next_measured_one():
    assert check.prices_for("1.27")[0] == TODAY_GO
    assert check.prices_for("1.24")[0].startswith("1.25.")
    assert check.prices_for("1.99")[0] == TODAY_GO
    _, prices = check.prices_for("1.27")
    assert prices["SetFinalizer"][8] > 1.5 * prices["SetFinalizer"][64]
    assert prices["manual free"][0] < prices["SetFinalizer"][64]


def test_a_finding_of_unknown_size_has_no_price():
    _, prices = check.prices_for("1.27")
    found = {"api": "SetFinalizer", "class": -1}
    assert check._cost(found, prices) is None
    assert check._cost(found | {"class": 40}, prices) == check._cost(found | {"class": 48}, prices)


@pytest.mark.parametrize("release", ["1.99", "2.0", "go1.24", "1.24.x", "new"])
def test_an_unknown_release_is_refused(release, module):
    ran = called(module, "--go", release)
    assert ran.exit_code == 2
    assert f"there is no Go release {release!r}" in ran.stderr


def test_an_unknown_rule_is_refused(module):
    ran = called(module, "--fail-on", "finalizers")
    assert ran.exit_code == 2
    assert "name one of use-after-free, " in ran.stderr


def test_the_program_and_the_command_have_the_same_rules():
    text = (paths.GOSRC / "check" / "rules" / "rules.go").read_text(encoding="utf-8")
    assert text.count('"') > 0
    page = CliRunner().invoke(cli.main, ["check", "--help"]).stdout
    for rule in check.RULES:
        assert rule in page
        sources = (paths.GOSRC / "check" / "rules").glob("*.go")
        assert any(f'= "{rule}"' in each.read_text(encoding="utf-8") for each in sources)


def test_a_folder_without_a_module_is_refused(tmp_path):
    ran = called(tmp_path)
    assert ran.exit_code == 2
    assert "there is no go.mod in this folder or above it" in ran.stderr
    assert called(tmp_path / "none").exit_code == 2


def wild(name: str) -> pd.DataFrame:
    return pd.read_csv(paths.ROOT / "data" / f"{name}.csv")


def test_the_counts_of_public_modules_fit_together():
    modules, registered = wild("wild"), wild("wild/registrations")
    assert modules["module"].is_unique
    assert modules["sum"].str.fullmatch(r"h1:[A-Za-z0-9+/]{43}=").all()
    assert set(modules["module"]) == set(registered["module"])
    shares = wild("wild/shares").set_index("quantity")
    assert shares.loc["never-runs", "of"] == len(registered)
    assert shares.loc["small", "of"] == (registered["bytes"] >= 0).sum()
    share = shares["count"] / shares["of"]
    assert share.between(shares["low"], shares["high"]).all()
    assert (shares["verdict_low"] <= shares["low"]).all()
    assert set(wild("wild/claims")["quantity"]) <= set(shares.index)


def test_no_place_of_the_rules_on_use_and_close_is_kept():
    for path in (paths.ROOT / "data" / "wild").glob("*.csv"):
        assert ".go" not in path.read_text(encoding="utf-8")
        with_modules = "module" in pd.read_csv(path).columns
        assert with_modules == (path.stem == "registrations")


def test_the_planted_cases_are_those_of_the_table():
    for row in wild("wild/planted").itertuples():
        folder = PLANTED / row.rule.replace("-", "")
        first = (folder / "planted.go").read_text(encoding="utf-8")
        later = (folder / "later.go").read_text(encoding="utf-8")
        assert first.count("\n// Case ") == row.first_cases
        assert later.count("\n// Case ") == row.later_cases
        other = (folder / "other.go").read_text(encoding="utf-8")
        assert other.count("\n// Case ") == row.other_cases
        missed = other.count(", missed") + other.count("(harm, not checked")
        assert missed == row.other_missed_at_first
        wrong = missed + other.count("(harmless, reported")
        assert row.other_cases - wrong == row.other_right_at_first


# --- Slow: the program is built -------------------------------------------


@pytest.mark.slow
def test_a_module_is_checked_without_its_headers(module):
    found = answer(module)
    assert [(each["rule"], each["place"]) for each in found["findings"]] == [
        ("expensive-size", "handle.go:11"),
        ("use-after-free", "handle.go:15"),
    ]
    assert found["module"] == "wrapper"
    assert found["prices_of"].startswith("1.25.")
    assert found["problems"] == []
    text = called(module).stdout
    assert "handle.go:15: use after free: nothing uses h once C.use has begun" in text
    assert "to fix it: runtime.KeepAlive(h) after the call" in text
    assert "it costs: a finalizer on 8 bytes" in text


@pytest.mark.slow
def test_a_build_fails_on_the_rules_that_it_names(module):
    assert called(module).exit_code == 0
    assert called(module, "--fail-on", "never-runs").exit_code == 0
    assert called(module, "--fail-on", "never-runs", "--fail-on", "use-after-free").exit_code == 3
    ran = called(module, "--fail-on", "any")
    assert ran.exit_code == 3
    assert "found expensive-size, use-after-free" in ran.stderr


@pytest.mark.slow
def test_nothing_is_found_in_a_module_that_registers_nothing(tmp_path):
    folder = made(tmp_path, {"a.go": "package a\n\nfunc F() {}\n"})
    assert answer(folder)["findings"] == []
    assert "1 package, 3 lines; finalizers and cleanups registered: 0" in called(folder).stdout


@pytest.mark.slow
def test_a_file_that_does_not_parse_is_refused(module):
    made(
        module,
        {"broken.go": 'package wrapper\n\nimport "runtime"\n\nfunc F( { runtime.SetFinalizer'},
    )
    ran = called(module)
    assert ran.exit_code == 2
    assert "broken.go:5" in ran.stderr


@pytest.mark.slow
def test_a_package_that_registers_nothing_is_refused_if_it_does_not_parse(tmp_path):
    ran = called(made(tmp_path, {"a.go": "package a\n\nfunc F( {}\n"}))
    assert ran.exit_code == 2
    assert "a.go:3" in ran.stderr


@pytest.mark.slow
def test_what_lacks_a_type_is_not_checked_and_said(module):
    file = """package wrapper

import (
	"runtime"

	"example.org/absent"
)

type other struct{ of absent.Thing }

func NewOther() *other {
	o := new(other)
	runtime.SetFinalizer(o, absent.Free)
	return o
}
"""
    made(module, {"other.go": file})
    found = answer(module)
    assert any("absent" in each["message"] for each in found["problems"])
    unchecked = {each["rule"] for each in found["unchecked"] if "other.go" in each["place"]}
    assert unchecked == {
        "blocks-all",
        "close-pays",
        "expensive-size",
        "never-runs",
        "use-after-free",
    }
    assert "not checked for expensive-size: other.go:13" in called(module).stdout
    assert {"expensive-size", "use-after-free"} <= rules(module)


@pytest.mark.slow
def test_build_tags_choose_the_files(module):
    tagged = HANDLE.replace("package", "//go:build extra\n\npackage", 1).replace("handle", "extra")
    made(module, {"extra.go": tagged.replace("New", "NewExtra")})
    assert len(answer(module)["registrations"]) == 1
    assert len(answer(module, "--tags", "extra")["registrations"]) == 2


@pytest.mark.slow
def test_a_package_of_c_files_only_is_no_go_package(tmp_path):
    ran = called(made(tmp_path, {"thing.c": "int thing;\n"}))
    assert ran.exit_code == 2
    assert "no package has Go files to check" in ran.stderr


@pytest.mark.slow
def test_vendored_code_gives_types_and_is_not_checked(tmp_path):
    vendored = 'package lib\n\nimport "runtime"\n\ntype T struct{ P *int }\n\n'
    vendored += (
        "func New() *T { t := new(T); runtime.SetFinalizer(t, func(*T) { t.P = nil }); return t }\n"
    )
    own = 'package own\n\nimport (\n\t"runtime"\n\n\t"example.org/lib"\n)\n\n'
    own += "type O struct{ lib.T }\n\nfunc New(f func(*O)) { runtime.SetFinalizer(new(O), f) }\n"
    files = {
        "own.go": own,
        "vendor/example.org/lib/lib.go": vendored,
        "vendor/modules.txt": "# example.org/lib v1.0.0\n## explicit; go 1.24\nexample.org/lib\n",
    }
    go_mod = "module own\n\ngo 1.24\n\nrequire example.org/lib v1.0.0\n"
    found = answer(made(tmp_path, files, go_mod))
    assert [each["bytes"] for each in found["registrations"]] == [8]
    assert {each["place"] for each in found["findings"]} == {"own.go:11"}


@pytest.mark.slow
def test_generic_code_is_checked(tmp_path):
    file = """package box

import "runtime"

type Box[T any] struct{ value *T }

func New[T any](value *T, free func(*T)) *Box[T] {
	b := &Box[T]{value}
	runtime.SetFinalizer(b, func(*Box[T]) { free(b.value) })
	return b
}
"""
    assert rules(made(tmp_path, {"box.go": file})) == {"never-runs", "expensive-size"}


@pytest.mark.slow
def test_a_release_that_the_module_names_and_go_lacks_is_gos_own_error(tmp_path):
    folder = made(tmp_path, {"a.go": "package a\n"}, "module a\n\ngo 1.99\n")
    ran = called(folder)
    assert ran.exit_code == 2
    assert "1.99" in ran.stderr


@pytest.mark.slow
def test_a_tiny_object_with_a_cleanup_is_a_fault_of_go_1_25_and_earlier(tmp_path):
    file = 'package a\n\nimport "runtime"\n\ntype id struct{ n uint64 }\n\n'
    file += "func New() { runtime.AddCleanup(&id{1}, func(int) {}, 7) }\n"
    folder = made(tmp_path, {"a.go": file})
    assert rules(folder) == {"never-runs"}
    assert rules(folder, "--go", "1.26") == set()


@pytest.mark.slow
def test_an_argument_without_a_type_is_no_fault(tmp_path):
    file = 'package a\n\nimport "runtime"\n\ntype id struct{ n uint64 }\n\n'
    file += "func New() { runtime.AddCleanup(&id{1}, func(*int) {}, nil) }\n"
    assert rules(made(tmp_path, {"a.go": file})) == set()


def test_a_failure_of_the_program_is_not_the_users():
    done = CompletedProcess(["check"], 2, "", "panic: a fault\n\ngoroutine 1 [running]:\n")
    error = check._failed(done, Path("/module"))
    assert error.exit_code == 1
    assert "panic: a fault" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.24.13", "1.25.14", "1.26.11", TODAY_GO])
def test_the_rules_find_the_planted_cases_on_each_release(version, tmp_path):
    builds.fetch_modules([check.PROGRAM])
    toolchain = toolchains.fetch(version)
    environment = toolchain.environment()
    done = processes.run(
        [str(toolchain.go), "test", "./..."], cwd=paths.GOSRC / check.PROGRAM, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # As a tool of go vet, on the same cases.
    folder = made(tmp_path / "planted", {}, "module planted\n\ngo 1.24\n")
    shutil.copytree(PLANTED / "useafterfree", folder / "useafterfree")
    tool = tmp_path / "check"
    build = [str(toolchain.go), "build", "-o", str(tool), "."]
    assert not processes.run(build, cwd=paths.GOSRC / check.PROGRAM, env=environment).returncode
    vet = [str(toolchain.go), "vet", f"-vettool={tool}", "./..."]
    done = processes.run(vet, cwd=folder, env=environment)
    text = "".join(each.read_text() for each in (PLANTED / "useafterfree").glob("*.go"))
    assert done.stderr.count("use after free") == text.count('// want "use after free')
