"""What docs/ shows is what the commands print, and every printed command is tested somewhere."""

from __future__ import annotations

import ast
import http.server
import json
import re
import shlex
import shutil
import subprocess
import threading

import click
import pytest
from click.testing import CliRunner

from gccost import cli, explain, paths
from gccost.cases.cases import BUDGETS
from gccost.studies import STUDIES

DOCS = paths.ROOT / "docs"
_EXAMPLE = re.compile(r"\$ \.venv/bin/python -m gccost ([^\n]+)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(("name", "examples"), [("read.md", 2), ("explain.md", 1)])
def test_a_documents_examples_are_what_the_command_prints(name, examples, monkeypatch):
    monkeypatch.chdir(paths.ROOT)
    found = _EXAMPLE.findall((DOCS / name).read_text(encoding="utf-8"))
    assert len(found) == examples
    for command, shown in found:
        done = CliRunner().invoke(cli.main, shlex.split(command))
        assert (done.exit_code, done.stdout) == (0, shown)


def test_the_table_of_what_gos_packages_register_is_that_of_the_data():
    text = (DOCS / "explain.md").read_text(encoding="utf-8")
    *known, _ = explain._of_go_registers().items()
    rows = [f"| {what} | {row['registers']} | {row['remedy']} |" for what, row in known]
    assert "\n".join(rows) in text


def texts() -> dict[str, str]:
    """The prose of all pages that print commands, and the commands' own help, by place."""
    ours = ("*.md", "docs/*.md", "data/**/*.md", "gosrc/**/*.md")
    pages = {
        str(path.relative_to(paths.ROOT)): path.read_text(encoding="utf-8")
        for pattern in ours
        for path in paths.ROOT.glob(pattern)
    }
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        pages[path.name] = "\n".join(prose)
    for name, command in cli.main.commands.items():
        pages[f"gccost {name} --help"] = command.help or ""
    for path in (paths.ROOT / "gccost").rglob("*.py"):
        strings = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        said = (each.value for each in strings if isinstance(each, ast.Constant))
        pages[path.name] = "\n".join(each for each in said if isinstance(each, str))
    return pages


PAGES = texts()


def printed(pattern: str) -> list[tuple[str, str]]:
    """What pages print that matches a pattern, with the page."""
    return [
        (page, match[0].strip())
        for page, text in PAGES.items()
        for match in re.finditer(pattern, text, re.MULTILINE)
    ]


PLACEHOLDERS = {"<run>": "r", "PROFILE": "cpu.pb.gz", "FILE": "bench.txt"}


def test_every_printed_command_of_gccost_is_one():
    commands = printed(r"(?<=python -m gccost )[a-z][^`\n#]*")
    assert len(commands) > 20
    for page, words in commands:
        for placeholder, instead in PLACEHOLDERS.items():
            words = words.replace(placeholder, instead)
        name, *arguments = shlex.split(re.sub(r"[.,;:]$|\{.*", "", words.split(" && ")[0]))
        command = cli.main.commands.get(name)
        assert command, f"{page}: {words}"
        files = {"exists": False, "dir_okay": True}
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                vars(parameter.type).update(files)
        if page.endswith(".py") and not arguments:
            continue  # they are filled in
        try:
            command.make_context(name, arguments)
        except click.UsageError as error:
            pytest.fail(f"{page}: {words}: {error.message}")


def test_every_printed_make_target_and_script_is_there():
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    made = printed(r"(?<=`)make [a-z-]+[^`\n]*(?=`)")
    made += [each for each in printed(r"^make [a-z-]+[^`\n#]*") if each[0].endswith(".md")]
    assert len(made) > 30
    for page, words in made:
        target, *settings = words.split()[1:]
        assert target in targets, f"{page}: {words}"
        for setting in settings:
            name, _, value = setting.partition("=")
            known = {"ONLY": [*STUDIES, "mine"], "BUDGET": BUDGETS, "OPEN": "1"}
            if name in known and "<" not in value and "{" not in value:
                assert value in known[name], f"{page}: {words}"
    for page, script in printed(r"(?<![\w/.-])(?<!\.venv/)scripts/[a-z][\w-]*"):
        assert (paths.ROOT / script).is_file(), f"{page}: {script}"


LISTENS = r"(?:--(?:ip|host|publish|dashboard-address)[= ]|-http=)\S+"
LOOPBACK = re.compile(r"(127\.0\.0\.\d+|localhost)(:|$)")


def test_what_listens_does_so_on_loopback():
    own = "".join(f"{name}\n" for name in ("Makefile",))
    makefile = "\n".join((paths.ROOT / name).read_text(encoding="utf-8") for name in own.split())
    PAGES["Makefile"] = makefile
    options = printed(LISTENS)
    assert len(options) >= 12
    for page, option in options:
        address = re.split(r"[= ]", option, maxsplit=1)[1]
        assert LOOPBACK.match(address.strip("`'\",;)")), f"{page}: {option}"
    # What opens a port names its address.
    for page, line in printed(
        r"^.*\b(dask (scheduler|worker)|jupyterlab|pprof -http|docker run).*$"
    ):
        if "docker run" in line and "publish" not in line:
            continue
        if re.search(r"dask worker|dask scheduler|-m jupyterlab|pprof -http|docker run", line):
            assert re.search(LISTENS, line), f"{page}: {line}"


class Server(http.server.BaseHTTPRequestHandler):
    """A program with net/http/pprof, whose profile another request is taking."""

    def do_GET(self) -> None:
        self.send_response(500)
        self.end_headers()
        self.wfile.write(b"Could not enable CPU profiling: cpu profiling already in use\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not on this machine")
def test_the_printed_curl_commands_report_a_servers_error(tmp_path):
    commands = printed(r"curl (?=-)[^`\n]*?(?:'http[^']*'|http\S+)")
    assert len(commands) >= 4
    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page, command in commands:
            here = re.sub(r"localhost:(PORT|6060)", f"127.0.0.1:{server.server_port}", command)
            words = shlex.split(here.rstrip('",;.'))
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 22, f"{page}: {command}"
            assert "500" in done.stderr
            assert not list(tmp_path.iterdir()), f"{page}: {command}"
        server.shutdown()
