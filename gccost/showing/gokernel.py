"""The Go kernel for JupyterLab: gophernotes, built and registered in this environment.

`gosrc/kernel/go.mod` and `go.sum` pin its sources. Packages of gosrc/ are compiled as plugins,
which need the Go release that built the kernel, so that release is first on its PATH. The
kernel interprets Go, so it never times anything.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TYPE_CHECKING, Final

from gccost import paths, processes
from gccost.cases.sources import hash_of_go
from gccost.cases.versions import TODAY_GO
from gccost.errors import MissingTool, failed_build
from gccost.files import writing
from gccost.measuring import toolchains

if TYPE_CHECKING:  # they take a second to load
    from jupyter_client.kernelspec import KernelSpec
    from nbformat import NotebookNode

NAME: Final = "gophernotes"
MODULE: Final = paths.GOSRC / "kernel"
SECONDS: Final = 900  # after which a build counts as hung

# A package of gosrc/ in a cell: in an import, or as an argument of the go command.
_PACKAGE = re.compile(r'"(?:\.\./gosrc|\.)/([a-z0-9/]+)"')

_BUILD: Final = ("-trimpath", "-buildvcs=false", f"github.com/gopherdata/{NAME}")
_ENVIRONMENT: Final = {
    "CGO_ENABLED": "1",
    "GOENV": "off",
    "GOFLAGS": "-trimpath",
    "GOPROXY": "off",
    "GOROOT": "",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}

# The kernel would end if JupyterLab interrupted it, and its variables with it; so it does not hear
# of that, and a cell runs to its end. Each kernel gets its own GOPATH, named after its process ID,
# because the interpreter empties its GOPATH. The next kernel removes those of kernels that have
# ended.
_START: Final = """\
#!/bin/sh
here=$(dirname "$0")
for left in "$here"/gopath/*; do
    kill -0 "${left##*/}" 2>/dev/null || rm -rf "$left"
done
GOPATH=$here/gopath/$$
mkdir -p "$GOPATH"
export GOPATH
unset GODEBUG GOGC GOMEMLIMIT GOMAXPROCS
trap "" INT
exec "$here/gophernotes" "$1" >&2 # what it says of itself: a cell's output comes otherwise
"""


def folder() -> Path:
    """The folder where the kernel is registered, in this environment."""
    return Path(sys.prefix) / "share" / "jupyter" / "kernels" / NAME


def find() -> KernelSpec | None:
    """The kernel, if it is registered and matches this clone; otherwise None."""
    from jupyter_client.kernelspec import KernelSpec

    try:
        spec = KernelSpec.from_resource_dir(str(folder()))
    except (OSError, ValueError):
        return None
    fits = spec.metadata.get("gccost") == _recipe() and (folder() / NAME).is_file()
    return spec if fits else None


def make(say: Callable[[str], None] = toolchains.silent) -> Path:
    """Build and register the kernel unless that is done, and return its folder.

    Calls `say` first with the download's size and the time. Raises MissingTool if a compiler
    or source is unavailable, GccostError if the build fails.
    """
    from jupyter_client.kernelspec import KernelSpecManager

    if find() is not None:
        return folder()
    go = toolchains.fetch(TODAY_GO, say)
    environment = {**go.environment(), "GOFLAGS": "-mod=readonly"}
    say(f"the Go kernel: about 15 MB to download, 50 MB on disk, a minute to build (Go {TODAY_GO})")
    done = _go(go, environment, "mod", "download")
    if done.returncode:
        why = (done.stderr or done.stdout or "no reason is given").strip().splitlines()[-1]
        raise MissingTool(
            f"its sources cannot be fetched ({why})", "the Go kernel", "run `make kernel` online"
        )
    spec = {
        "argv": ["{resource_dir}/start", "{connection_file}"],
        "display_name": "Go",
        "language": "go",
        "env": {
            **_ENVIRONMENT,
            "CC": environment["CC"],
            "PATH": f"{go.goroot / 'bin'}:${{PATH}}",
        },
        "metadata": {"gccost": _recipe()},
    }
    with tempfile.TemporaryDirectory() as scratch, writing(folder()):
        done = _go(go, environment, "build", "-o", str(Path(scratch, NAME)), *_BUILD)
        if done.returncode:
            raise failed_build(done, "gosrc/kernel/go.mod", "make doctor", [Path(scratch)])
        Path(scratch, "kernel.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
        start = Path(scratch, "start")
        start.write_text(_START, encoding="utf-8")
        start.chmod(0o755)
        KernelSpecManager().install_kernel_spec(scratch, NAME, prefix=sys.prefix)
    return folder()


def is_go(node: NotebookNode) -> bool:
    """Whether a notebook is written in Go."""
    return bool(node.metadata.get("kernelspec", {}).get("name") == NAME)


def sources(node: NotebookNode) -> str:
    """The hex hash of a Go notebook's cells and of the packages that they name."""
    cells = "\0".join(cell.source for cell in node.cells if cell.cell_type == "code")
    programs = hash_of_go(sorted(set(_PACKAGE.findall(cells))))
    return hashlib.sha256(f"{cells}\0{programs}".encode()).hexdigest()[:16]


def stamp(node: NotebookNode) -> dict[str, str]:
    """The metadata to store with a Go notebook's output after a run; see `stored`."""
    return {"go": TODAY_GO, "date": f"{datetime.date.today()}", "sources": sources(node)}


def stored(node: NotebookNode) -> tuple[str, str]:
    """The date and release of a Go notebook's output, and why it is stale, or ""."""
    stamped = node.metadata.get("gccost", {})
    if not stamped:
        return "It has not been run yet.", ""
    stale = "Its cells or the programs that they run have changed since it ran."
    if stamped["sources"] == sources(node):
        stale = ""
    return f"Run with Go {stamped['go']} on {stamped['date']}.", stale


def _go(
    go: toolchains.Toolchain, environment: dict[str, str], *command: str
) -> CompletedProcess[str]:
    """Run the go command in the kernel's module."""
    return processes.run([str(go.go), *command], cwd=MODULE, env=environment, limit=SECONDS)


def _recipe() -> str:
    """A hash of everything that determines the build and its registration."""
    parts = [TODAY_GO, json.dumps([_BUILD, _ENVIRONMENT]), _START]
    parts += [(MODULE / name).read_text(encoding="utf-8") for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
