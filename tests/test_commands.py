"""Every command that a page, a help text or a message prints, and the test that runs it.

TESTED has a row per kind of command: a pattern, and the tests that run such commands as printed and
check what is said of them; or the reason why no test can. A command without a row fails a test, and
so does a row without a command.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

import gccost
from gccost import cli, paths
from gccost.cases.versions import TODAY_GO
from gccost.measuring import builds, toolchains
from gccost.run import profiles

TESTS = Path(__file__).parent

# What begins a command, on a page; in a message its words follow others, so they say more.
PROGRAMS = (
    r"(?:[A-Z_]+=\S* )*(?:\.venv/bin/\S+|(?:scripts|findings)/[\w.-]+|/usr/bin/time|make|go|gofmt"
    r"|curl|dask|docker|ssh|scp|benchstat|uv|pip|git|apt-get|python|gccost|conda|cd|unzip|zstd"
    r"|iconv|PROGRAM)"
)
IN_A_MESSAGE = (
    r"(?:/usr/bin/time -|(?:[A-Z_]+=\S* )*\b(?:python -m gccost|gccost (?:add|agree|check|doctor"
    r"|explain|fleet|kernel|measure|pack|read|release|replay|report)|make (?:clean|doctor|kernel"
    r"|lab|measure|replay|report|setup|test)|go (?:build|clean|env|get|mod|run|test|tool|vet)"
    r"|git (?:checkout|commit|status)|curl -|iconv -|zstd -|unzip [A-Z]"
    r"|dask (?:scheduler|worker) [A-Z-]|apt-get install|GODEBUG=\S+ PROGRAM|scripts/\w+"
    r"|rm \.venv|benchstat -))"
)
_FENCE = re.compile(r"^```(?:sh|bash)?\n(.*?)^```", re.MULTILINE | re.DOTALL)

NETWORK = "reason: needs a network, or changes what only its owner has"
HOURS = "reason: takes hours"
ROOT = "reason: changes the machine"
BROWSER = "reason: opens a browser on what it shows"
NAME = "reason: the name of a command, not one to copy"

PLAIN = "test_commands.py::test_printed_benchmarks_print_results"
EXAMPLE = "test_commands.py::test_the_commands_for_own_benchmarks_lead_to_an_answer"
UNPACK = "test_commands.py::test_what_converts_a_file_makes_it_readable"
GCCOST = "test_documents.py::test_every_printed_command_of_gccost_is_one"
MAKE = "test_commands.py::test_every_printed_make_command_reaches_what_it_runs"
FLEET = "test_fleet.py::test_dask_as_printed_listens_on_loopback_only"
CURL = "test_documents.py::test_the_printed_curl_commands_report_a_servers_error"
OURS = "test_commands.py::test_our_own_commands_run_as_printed"
VETTED = "test_check.py::test_the_rules_find_the_planted_cases_on_each_release"
OVERLAY = "test_commands.py::test_the_commands_of_the_overlay_build_a_program"
MEMORY = "test_commands.py::test_the_peak_of_memory_is_printed"
MERGED = "test_commands.py::test_two_profiles_are_merged_as_printed"
RESTORED = "test_commands.py::test_damaged_data_is_restored_as_printed"

TESTED = {
    r".*\bdask (scheduler|worker)\b.*--host 127.*": [FLEET],
    r".* -m gccost fleet .*": [FLEET, GCCOST],
    r"curl -f '?-?.*http://localhost:.*": [CURL],
    r".*gccost read docs/.*|.*gccost explain docs/.*": [
        "test_documents.py::test_a_documents_examples_are_what_the_command_prints"
    ],
    r".*gccost read bench\.txt|.*gccost explain cpu\.p.*|go test -bench \. -count 6 > bench\.txt|"
    r"go test -cpuprofile cpu\.pb\.gz -bench \.|go mod edit .*": [EXAMPLE],
    r".*gccost (read FILE|explain (PROFILE|server\.pb\.gz))": [GCCOST, EXAMPLE],
    r".*gccost check -C .*": [
        GCCOST,
        "test_check.py::test_a_module_is_checked_without_its_headers",
    ],
    r"cd gosrc/check && go build -o /tmp/check .*": [VETTED],
    r".*-m gccost check": [
        "test_check.py::test_nothing_is_found_in_a_module_that_registers_nothing"
    ],
    r".*gccost (pack|.* add \*).*|scp .*": [
        "test_pack.py::test_a_pack_needs_only_the_standard_library_and_its_run_can_be_added"
    ],
    r".*-m gccost add( data.*)?": [GCCOST, "test_adding.py::test_add_copies_the_run"],
    r".*-m gccost agree": [GCCOST, "test_agreement.py"],
    r".*-m gccost kernel --live": [
        GCCOST,
        "test_gokernel.py::test_every_notebook_runs_without_errors",
    ],
    r".*-m gccost release 1.*": [
        GCCOST,
        "test_toolchains.py::test_a_release_is_pinned_once_in_the_order_of_releases",
    ],
    r"python -m gccost re(play|port)": [GCCOST, MAKE],
    r"make [a-z-]+( ONLY=\w*)?( BUDGET=\w+)?": [MAKE],
    r"make measure BUDGET=standard FIXED=1": [
        "test_campaign.py::test_a_fixed_plan_asks_no_question"
    ],
    r".*-m gccost\.saved": ["test_explain.py::test_the_kept_shares_are_those_of_the_recorded_runs"],
    r".*-m pytest .*|scripts/leave-one-out .*": [OURS],
    r"(cd gosrc && |GOMAXPROCS=48 )?go test .*-bench \S.*": [PLAIN],
    r"cd gosrc && go run \./overlay -o .*|go run \./overlay .*|GOROOT=.* go build -overlay.*": [
        OVERLAY
    ],
    r".*fixes\.py (queued|stop) .*": [
        "test_upstream.py::test_the_fix_of_a_report_applies_to_every_variant"
    ],
    r".*fixes\.py locks .*": [
        "test_upstream.py::test_the_mistakes_that_the_test_of_locks_notices_apply"
    ],
    r"GODEBUG=checkfinalizers=1 PROGRAM": [
        "test_go.py::test_what_the_readme_of_slab_says_of_checkfinalizers_holds"
    ],
    r"/usr/bin/time -v PROGRAM": [MEMORY],
    r"iconv .*|zstd .*|unzip FILE": [UNPACK],
    r"go tool pprof -proto .* > .*": [MERGED],
    r"git checkout (-- )?.*": [RESTORED],
    r"go (test \./\.\.\.|vet)": [
        "test_go.py::test_vet_finds_nothing",
        "test_go.py::test_go_tests_pass",
    ],
    r"go test -race \./\.\.\.": ["test_go.py::test_what_others_use_is_race_free"],
    r"go test \./overlay": ["test_go.py::test_go_tests_pass"],
    r"scripts/address https://.*": ["test_citing.py::test_one_command_sets_the_address_everywhere"],
    r"go tool pprof -http=.*|go tool trace FILE": BROWSER,
    r"apt-get install .*|conda .*": ROOT,
    r"ssh .*|go get .*@latest|git tag .*|git commit .*|scripts/wild .*|go clean -modcache": NETWORK,
    r"GCCOST_OVERLAY_TESTS=1 .*|.*measure\.py .*|scripts/runtime-tests .*|cd YOUR_GO_TREE .*|"
    r"cd gosrc && go run (\./overlay -series|overlay/upstream/queued\.go).*": HOURS,
    r"gccost .*|go (build|doc|get|env|mod|1|test|tool)\b.*|git status|curl -f reports .*": NAME,
}


@cache
def pages() -> dict[str, str]:
    """All texts that print commands, by place: pages, notebooks' prose, and the package's texts."""
    found = {}
    for pattern in ("*.md", "docs/*.md", "data/**/*.md", "gosrc/**/*.md", "findings/*.md"):
        for path in paths.ROOT.glob(pattern):
            found[str(path.relative_to(paths.ROOT))] = path.read_text(encoding="utf-8")
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        found[path.name] = "\n".join(prose)
    return found


@cache
def messages() -> dict[str, list[str]]:
    """The texts in the package's code, and the help of its commands, by place."""
    found = {f"{name} --help": [each.help or ""] for name, each in cli.main.commands.items()}
    for path in (paths.ROOT / "gccost").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        said = (each.value for each in ast.walk(tree) if isinstance(each, ast.Constant))
        found[path.name] = [each for each in said if isinstance(each, str)]
    return found


def on_page(text: str) -> list[str]:
    """The commands of a page: the lines of its blocks of code, and what stands in backticks."""
    blocks = "\n".join(_FENCE.findall(text)).replace("\\\n", " ")
    lines = [line.removeprefix("$ ").strip() for line in blocks.split("\n")]
    lines += re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    return [line for line in lines if re.match(rf"{PROGRAMS} +\S", line)]


@cache
def commands() -> dict[str, list[str]]:
    """Every printed command, with the places that print it."""
    found: dict[str, list[str]] = {}
    for place, text in pages().items():
        for command in on_page(text):
            found.setdefault(re.sub(r"\s+# .*", "", command), []).append(place)
    for place, texts in messages().items():
        for text in texts:
            for match in re.finditer(rf"({IN_A_MESSAGE})[^\n`]*", text):
                found.setdefault(_plain(match[0]), []).append(place)
    return found


def _plain(command: str) -> str:
    """A command without the comment or the sentence that follows it."""
    command = re.sub(r"\s+# .*", "", command)
    return re.split(
        r"(?<=\w)(?:[,;:.)]\s|[.,;:)]$| \(| (?:or it|to|shows|says|does|ended) )", command
    )[0].strip()


def kind_of(command: str) -> str:
    """The pattern of the first row that a command matches; empty without one."""
    return next((row for row in TESTED if re.fullmatch(row, command)), "")


def printed(row: str) -> list[str]:
    """The printed commands of a kind."""
    return [command for command in commands() if row in (kind_of(command), command)]


def of_test(test: str) -> list[str]:
    """The printed commands that a test runs."""
    rows = [row for row, tests in TESTED.items() if f"test_commands.py::{test}" in tests]
    assert rows
    return [command for row in rows for command in printed(row)]


def test_every_printed_command_has_a_test_or_a_reason():
    assert len(commands()) > 100
    unknown = {each: places for each, places in commands().items() if not kind_of(each)}
    assert not unknown
    unused = [row for row in TESTED if not printed(row)]
    assert not unused


def test_the_named_tests_are_there():
    for row, tests in TESTED.items():
        for test in [] if isinstance(tests, str) else tests:
            file, _, name = test.partition("::")
            assert f"def {name}" in (TESTS / file).read_text(encoding="utf-8"), f"{row}: {test}"
        assert isinstance(tests, list) or tests.startswith("reason: ")


# --- Commands that tests here run ---------------------------------------------------------


def run(command: str, folder: Path, **environment: str) -> str:
    """What a command prints that a shell runs."""
    done = subprocess.run(
        ["/bin/sh", "-ec", command],
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def test_every_printed_make_command_reaches_what_it_runs(tmp_path):
    """Each target is made with programs that print how they were called."""
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    said = 'echo "$(basename $0) $* budget=$GCCOST_BUDGET only=$GCCOST_ONLY"'
    for path in (paths.ROOT / "scripts").iterdir():
        script(tmp_path / "scripts" / path.name, said)
    for name in ("docker", "git", "xargs"):
        script(tmp_path / "bin" / name, said)
    made = of_test("test_every_printed_make_command_reaches_what_it_runs")
    made = [each for each in made if each.startswith("make ")]
    assert len(made) > 15
    for command in made:
        script(tmp_path / ".venv" / "bin" / "python", said)
        shown = run(command, tmp_path, PATH=f"{tmp_path}/bin:/usr/local/bin:/usr/bin:/bin")
        _, target, *settings = command.split()
        if target in ("report", "replay", "measure", "kernel", "doctor"):
            assert f"-m gccost {target}" in shown, command
        else:
            assert "budget=" in shown or not (tmp_path / ".venv").exists(), command
        for setting in settings:
            assert setting.lower() in shown, command


def answer(content: bytes, folder: Path) -> str:
    """The hint that `read` gives for a file."""
    path = folder / "FILE"
    path.write_bytes(content)
    with pytest.raises(gccost.GccostError) as raised:
        gccost.read(path)
    return f"{raised.value.message} {raised.value.hint}"


RESULTS = b"BenchmarkFree-8 \t 100 \t 61 ns/op\n"


@pytest.mark.parametrize("tool", ["iconv", "zstd", "unzip"])
def test_what_converts_a_file_makes_it_readable(tool, tmp_path):
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not on this machine")
    source = tmp_path / "FILE"
    if tool == "iconv":  # UTF-16 without the mark that tells it
        assert printed("iconv -f UTF-16 -t UTF-8")
        source.write_bytes(RESULTS.decode().encode("utf-16-le"))
        assert "iconv -f UTF-16 -t UTF-8" in answer(source.read_bytes(), tmp_path)
        run("iconv -f UTF-16 -t UTF-8 FILE > made", tmp_path)
    elif tool == "zstd":
        assert printed("zstd -d FILE")
        source.write_bytes(RESULTS)
        run("zstd -q FILE && mv FILE.zst made.zst && zstd -q -d made.zst", tmp_path)
    else:
        assert printed("unzip FILE")
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("made", RESULTS)
        run("unzip FILE", tmp_path)
    assert list(gccost.read(tmp_path / "made").ns) == [61]


def test_the_peak_of_memory_is_printed(tmp_path):
    if not Path("/usr/bin/time").exists():
        pytest.skip("GNU time is not on this machine")
    (command,) = of_test("test_the_peak_of_memory_is_printed")
    shown = run(command.replace("PROGRAM", sys.executable + " -c 'bytearray(1 << 20)'"), tmp_path)
    assert int(re.findall(r"Maximum resident set size \(kbytes\): (\d+)", shown)[0]) > 1000


def test_damaged_data_is_restored_as_printed(tmp_path):
    commands = of_test("test_damaged_data_is_restored_as_printed")
    assert len(commands) >= 2
    run("git init -q . && mkdir -p data/reference && echo good > data/reference/run.json", tmp_path)
    run("git add . && git -c user.name=a -c user.email=a@b commit -q -m a", tmp_path)
    for command in commands:
        (tmp_path / "data/reference/run.json").write_text("bad")
        where = "" if "data/reference" in command else " data/reference/run.json"
        run(command + where, tmp_path)
        assert (tmp_path / "data/reference/run.json").read_text() == "good\n"


def go_tools(version: str = TODAY_GO) -> dict[str, str]:
    """An environment in which `go` is a release, and finds the modules that were fetched."""
    toolchain = toolchains.fetch(version)
    environment = toolchain.environment()
    path = f"{toolchain.goroot}/bin:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return {**environment, "PATH": path, "GOFLAGS": "-mod=mod"}


PLACE = "/tmp/overlay"  # noqa: S108

OWN = """package own

import (
	"runtime"
	"testing"
)

type text struct{ s [64]byte }

func BenchmarkNew(b *testing.B) {
	for i := 0; i < b.N; i++ {
		t := new(text)
		runtime.SetFinalizer(t, func(*text) {})
	}
}
"""


@pytest.mark.slow
def test_the_commands_for_own_benchmarks_lead_to_an_answer(tmp_path):
    """The commands of docs/read.md, docs/explain.md and slab's README, in a user's module."""
    commands = of_test("test_the_commands_for_own_benchmarks_lead_to_an_answer")
    assert len(commands) >= 6
    environment = go_tools()
    (tmp_path / "go.mod").write_text("module own\n\ngo 1.24\n")
    (tmp_path / "own_test.go").write_text(OWN)
    (tmp_path / ".venv").symlink_to(paths.ROOT / ".venv")
    environment["PYTHONPATH"] = str(paths.ROOT)
    blocks = {name: _FENCE.findall(pages()[f"docs/{name}.md"])[0] for name in ("read", "explain")}
    shown = run(
        blocks["read"].replace("-count 6", "-benchtime 1000x -count 6"), tmp_path, **environment
    )
    assert re.search(r"benchmark +ns +low +high +n\n +New .* 6\n", shown)
    profiled = blocks["explain"].replace("-bench .", "-bench . -benchtime 200000x")
    shown = run(profiled, tmp_path, **environment)
    assert re.search(r"own\.BenchmarkNew \(runtime\.SetFinalizer", shown)
    (edit,) = [each for each in commands if each.startswith("go mod edit")]
    run(edit.replace("PATH/", f"{paths.ROOT}/"), tmp_path, **environment)
    shown = run("go doc example.org/gccost/slab", tmp_path, **environment)
    assert "Package slab frees C objects in batches" in shown


@pytest.mark.slow
def test_printed_benchmarks_print_results(tmp_path):
    """Each with few operations; their folder is gosrc, or that of the libraries."""
    commands = of_test("test_printed_benchmarks_print_results")
    assert len(commands) >= 6
    environment = go_tools()
    for command in commands:
        short = re.sub(r"-benchtime \S+", "", command).replace("-bench ", "-benchtime 100x -bench ")
        folder = paths.ROOT if command.startswith("cd ") else paths.GOSRC
        if command.endswith("./treesitter"):
            builds.fetch_modules(["libraries/treesitter"])
            folder = paths.GOSRC / "libraries"
        short = re.sub("goroutines=192", "goroutines=48", short)
        shown = run(short, folder, **{**environment, "GOFLAGS": ""})
        assert len(gccost.read(shown)) >= 1, command


@pytest.mark.slow
def test_the_commands_of_the_overlay_build_a_program(tmp_path):
    commands = of_test("test_the_commands_of_the_overlay_build_a_program")
    environment = go_tools()
    goroot = environment.get("GOROOT") or str(toolchains.fetch(TODAY_GO).goroot)
    made = [each for each in commands if "-overlay=" not in each]
    built = [each for each in commands if "-overlay=" in each]
    assert len(made) >= 3
    assert len(built) == 2
    for command in made:
        here = re.sub(f"{PLACE}|DIR", str(tmp_path), command)
        folder = paths.ROOT if command.startswith("cd ") else paths.GOSRC
        assert run(here.replace("GOROOT", goroot), folder, **{**environment, "GOFLAGS": ""})
    (tmp_path / "program").mkdir()
    (tmp_path / "program/go.mod").write_text("module program\n\ngo 1.24\n")
    (tmp_path / "program/main.go").write_text("package main\n\nfunc main() { println(1) }\n")
    for command in built:
        here = re.sub(f"{PLACE}|DIR", str(tmp_path), command)
        run(here, tmp_path / "program", **environment)
        assert run("./program", tmp_path / "program") == "1\n"
        (tmp_path / "program/program").unlink()


@pytest.mark.slow
def test_two_profiles_are_merged_as_printed(tmp_path):
    commands = of_test("test_two_profiles_are_merged_as_printed")
    assert len(commands) == 2
    shutil.copy(paths.ROOT / "docs/examples/intern.pb.gz", tmp_path / "FILE")
    once = profiles.read(tmp_path / "FILE")
    for command, times in zip(sorted(commands), (2, 1), strict=True):
        run(command.replace("PROGRAM", ""), tmp_path, **go_tools())
        assert profiles.read(tmp_path / "cpu.pb.gz").total == times * once.total


@pytest.mark.slow
def test_our_own_commands_run_as_printed():
    for command in of_test("test_our_own_commands_run_as_printed"):
        here = command.replace("data/runs/<run>", "data/reference/20261126T114217-4ce902")
        assert run(here, paths.ROOT)


if __name__ == "__main__":
    for command, places in sorted(commands().items()):
        print(f"{command:100} <- {', '.join(sorted({*places}))}")
