"""An activated conda environment, without conda.

A prefix with the files of conda-forge's packages, and the variables set by activating it.
Variables that could affect a build have conda's values or more harmful ones.
"""

from __future__ import annotations

from pathlib import Path

import fakejdks
from faketools import script

GO = "1.26.0"
C_COMPILER = "x86_64-conda-linux-gnu-cc (conda-forge gcc 14.3.0) 14.3.0"

# A Go that downloads releases as modules, from {store}, and refuses to switch to one:
# it requires GOTOOLCHAIN=local.
_GO = """#!/bin/sh
refuse() { echo "go: toolchain not available" >&2; exit 1; }
[ "$GOTOOLCHAIN" = local ] || refuse
for last; do :; done
case "$1 $2" in
'version '*) echo 'go version go{go} linux/amd64' ;;
'env GOROOT') echo '{prefix}/go' ;;
'env -json') printf '{"GOMODCACHE": "%s"}' "$GOMODCACHE" ;;
'mod download')
  into=$GOMODCACHE/golang.org/$(basename "$last")
  mkdir -p "$(dirname "$into")"
  cp -R "{store}/$(basename "$last")" "$into" || refuse
  echo "$last" >> '{prefix}/downloaded'
  printf '{"Dir": "%s", "Sum": "%s"}' "$into" "$(cat "$into/sum")" ;;
*) refuse ;;
esac
"""
_CC = f"""#!/bin/sh
[ "$1" != --version ] || echo '{C_COMPILER}'
"""


def make(prefix: Path, store: Path) -> dict[str, str]:
    """Make a prefix with Go, a C compiler and a JDK; return its variables, except PATH.

    `store` holds the Go releases that can be downloaded: `toolchain@…`, with their `sum`.
    """
    go = _GO.replace("{go}", GO).replace("{prefix}", str(prefix)).replace("{store}", str(store))
    for name, text in (("go/bin/go", go), ("bin/x86_64-conda-linux-gnu-cc", _CC)):
        script(prefix / name, text)
    (prefix / "bin" / "go").symlink_to("../go/bin/go")
    home = fakejdks.make(prefix / "lib" / "jvm", "21.0.9-conda")
    return {
        "CC": str(prefix / "bin" / "x86_64-conda-linux-gnu-cc"),
        "CFLAGS": f"-march=nocona -O2 -isystem {prefix}/include",
        "CGO_CFLAGS": "-march=nocona -O2",
        "CGO_ENABLED": "0",
        "CGO_LDFLAGS": f"-L{prefix}/lib",
        "CONDA_DEFAULT_ENV": "gccost",
        "CONDA_GO_COMPILER": "1",
        "CONDA_PREFIX": str(prefix),
        "CONDA_SHLVL": "1",
        "CPPFLAGS": f"-DNDEBUG -isystem {prefix}/include",
        "GOAMD64": "v3",
        "GOARCH": "386",
        "GODEBUG": "gctrace=1",
        "GOFLAGS": "-modcacherw -buildmode=pie",
        "GOGC": "off",
        "GOMAXPROCS": "1",
        "GOMEMLIMIT": "9",
        "GOOS": "windows",
        "GOROOT": str(prefix / "go"),
        "GOTOOLCHAIN": "local",
        "JAVA_HOME": str(home),
        "JAVA_LD_LIBRARY_PATH": str(home / "lib" / "server"),
        "LDFLAGS": f"-Wl,-rpath,{prefix}/lib -L{prefix}/lib",
    }


def path(prefix: Path, before: str) -> str:
    """PATH, with the prefix activated."""
    return f"{prefix / 'bin'}:{before}"
