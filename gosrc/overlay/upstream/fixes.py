"""Build and run what a report of this folder says of a bug in Go's runtime, and of its fix.

    .venv/bin/python gosrc/overlay/upstream/fixes.py stop [RELEASE [VARIANT]]
    .venv/bin/python gosrc/overlay/upstream/fixes.py queued [RELEASE [VARIANT]]
    .venv/bin/python gosrc/overlay/upstream/fixes.py locks RELEASE index

The report, stop.md or queued.md, has the program, the patches and the tests; a variant is one
of gosrc/overlay. The report's tests run without and with its fix, and then its program
does, three times each. A patch `late` of the report is applied to what the program runs on,
so that a rare order of events is a frequent one. locks.md has a test and mistakes that it notices.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gccost import paths
from gccost.cases import versions
from gccost.measuring import builds, toolchains

UPSTREAM = Path(__file__).parent
BLOCK = re.compile(r"^```\w+ (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^--- a/(\S+)", re.MULTILINE)  # that a patch changes
RUNTIME = Path("src", "runtime")
TIMES = 3


class Runtime:
    """A release's package runtime, of a variant, whose files patches replace."""

    def __init__(self, release: str, variant: str, scratch: Path) -> None:
        self.toolchain, self.scratch = toolchains.fetch(release, print), scratch
        self.goroot, self.replaced = scratch / "goroot", dict[str, str]()
        # Go replaces no files of its module cache, but does through a link.
        self.goroot.symlink_to(self.toolchain.goroot)
        if variant:
            overlay = builds.overlay(self.toolchain, variant)
            for old, new in json.loads(overlay.read_text())["Replace"].items():
                self.replaced[str(self.goroot / RUNTIME / Path(old).name)] = new

    def patched(self, name: str, patches: list[str]) -> dict[str, str]:
        """The replaced files with the patches applied."""
        tree, replaced = self.scratch / name, dict(self.replaced)
        for patch in patches:
            for file in FILE.findall(patch):
                old, new = str(self.goroot / file), tree / file
                new.parent.mkdir(parents=True, exist_ok=True)
                new.write_text(Path(replaced.get(old, old)).read_text())
                replaced[old] = str(new)
            command = ["git", "apply", "--unidiff-zero", "-"]
            subprocess.run(command, input=patch, text=True, cwd=tree, check=True)
        return replaced

    def go(self, replaced: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Go that builds, with these files replaced."""
        overlay = self.scratch / "overlay.json"
        overlay.write_text(json.dumps({"Replace": replaced}))
        command, *rest = arguments
        environment = self.toolchain.environment() | {"GOROOT": str(self.goroot)}
        return subprocess.run(
            [str(self.toolchain.go), command, f"-overlay={overlay}", *rest],
            cwd=self.scratch,
            env=environment,
            text=True,
            capture_output=True,
        )

    def test(self, replaced: Mapping[str, str], blocks: Mapping[str, str]) -> str:
        """The outcome of the report's tests; the runtime's other tests are left out."""
        folder, all_files = self.goroot / RUNTIME, dict(replaced)
        for test in folder.glob("*_test.go"):
            if not test.name.startswith("export_"):
                all_files[str(test)] = ""
        for block, file in (("test", "mreport_test.go"), ("export", "export_mreport_test.go")):
            if block in blocks:
                (self.scratch / file).write_text(blocks[block])
                all_files[str(folder / file)] = str(self.scratch / file)
        return outcome(self.go(all_files, "test", "-count=1", "-timeout=5m", "runtime"))

    def run(self, name: str, replaced: Mapping[str, str], program: str) -> list[str]:
        """The outcomes of some runs of the report's program."""
        source, binary = self.scratch / "main.go", self.scratch / name
        source.write_text(program)
        built = self.go(replaced, "build", "-o", f"{binary}-program", str(source))
        if built.returncode:
            return [built.stderr]
        command = [f"{binary}-program"]
        runs = (subprocess.run(command, text=True, capture_output=True) for _ in range(TIMES))
        return [outcome(done) for done in runs]


def outcome(done: subprocess.CompletedProcess[str]) -> str:
    """What a process says first, and whether it failed."""
    said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
    telling = [line for line in said if re.search(r"_test.go:\d|fatal error|panic|wrong", line)]
    return f"exit code {done.returncode}: {(telling or said)[0].strip()[:90]}"


def notices(runtime: Runtime, blocks: Mapping[str, str]) -> dict[str, str]:
    """The outcome of a page's tests without a mistake, and with each that the page lists."""
    mistakes = {name: [text] for name, text in blocks.items() if FILE.match(text)}
    return {
        name: runtime.test(runtime.patched(name, patches), blocks)
        for name, patches in {"no mistake": [], **mistakes}.items()
    }


def main(report: str, release: str = versions.TODAY_GO, variant: str = "") -> None:
    text = (UPSTREAM / f"{report}.md").read_text(encoding="utf-8")
    blocks = dict(BLOCK.findall(text))
    if report == "locks":
        with tempfile.TemporaryDirectory(dir=paths.CACHE) as scratch:
            for mistake, said in notices(Runtime(release, variant, Path(scratch)), blocks).items():
                print(f"{mistake}: {said}")
        return
    program = blocks.get("program") or (UPSTREAM / f"{report}.go").read_text(encoding="utf-8")
    late = [blocks["late"]] if "late" in blocks else []
    print(f"{report}, {versions.title(release)}, {variant or 'stock'}")
    with tempfile.TemporaryDirectory(dir=paths.CACHE) as scratch:
        runtime = Runtime(release, variant, Path(scratch))
        for name, fix in (("without", []), ("with", [blocks["fix"]])):
            print(f"{name} the fix, tests: {runtime.test(runtime.patched(name, fix), blocks)}")
            replaced = runtime.patched(f"{name}-late", [*fix, *late])
            for said in runtime.run(name, replaced, program):
                print(f"{name} the fix, program: {said}")


if __name__ == "__main__":
    main(*sys.argv[1:])
