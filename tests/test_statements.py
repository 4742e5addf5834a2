"""Each sentence of the pages on what a runtime does has a program or a source that shows it.

`data/statements.csv` lists them by their first characters, with what shows each: a claim, a file of
this repository with the name of a test, a benchmark or a mode in it, or an address. A sentence
with a figure is not listed, since the figure is measured; nor is one that says nothing of a runtime
(`(no statement)`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache

import pytest

from gccost import paths
from gccost.files import read_table
from gccost.studies import CLAIMS

TABLE = paths.ROOT / "data" / "statements.csv"
# A sentence is about a runtime if it has one of these subjects and one of these verbs.
SUBJECT = re.compile(
    r"\b(runtime|collector|garbage collect\w*|finalizers?|cleanups?|AddCleanup|SetFinalizer"
    r"|Cleaners?|actions?|JVM|weak pointers?|specials?|sync\.Pool|GOGC|GOMEMLIMIT|unique"
    r"|finalize)\b"
)
VERB = re.compile(
    r"\b(runs?|collects?|frees?|keeps?|waits?|walks?|never|always|only|stops?|starts?|sees?|counts?"
    r"|calls?|registers?|queues?|returns?|allocates?|makes?|needs?|ends?|blocks?|cannot|does not"
    r"|do not|breaks?|clears?|throws?)\b"
)
DOCUMENTS = ("README.md", "docs/e*.md", "docs/tried.md", "findings/README.md")
DOCUMENTS += ("gosrc/slab/README.md", "gosrc/overlay/README.md")
PACKAGES = ("slab/slab.go", "guardian/guardian.go")  # which others use
# Chosen before the words above were: what must be drawn.
CHOSEN = (
    "The collector does not see C memory",
    "A cleanup does not receive the object, so it need not keep it alive.",
    "The runtime walks the list from its start to find the place of a new record.",
    "The JVM registers an object with `finalize` when the object is created",
    "A *Cleaner* keeps a registration for each object",
    "One goroutine runs all finalizers of a program.",
    "At most GOMAXPROCS/4 goroutines run cleanups",
    "The second goroutine for cleanups starts in a later call of `AddCleanup`",
    "The runtime also collects when the last collection was 120 s ago.",
    "It does not before a first one, nor with `GOGC=off`",
    "If what an object points to leads back to it, its finalizer never runs",
    "The runtime never returns the records of finalizers and cleanups",
    "`SetFinalizer` allocates nothing on the Go heap.",
    "Two cleanups of one object run in the order of registration on Go 1.24",
    "In a bubble of `testing/synctest` a cleanup runs *outside*",
    "An empty `finalize()` registers nothing",
    "In a loop that never yields the collector runs, and no finalizer",
    "`SetFinalizer(nil)` and `Cleanup.Stop` search the same list",
    "The finalizer does not run a second time.",
    "The collector runs when the *Go* heap is twice as large as what was live",
    "A second `SetFinalizer` on an object ends the program",
    "`GOMEMLIMIT` with `GOGC=off` collects nothing if only C memory grows.",
    "A pointer from the object's first 128 KiB",
    "An action that throws says so nowhere.",
    "An action in an inner class keeps its handle for ever",
)


def texts() -> Iterator[str]:
    """The prose of the notebooks, of documents, and of comments."""
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield source
            yield from re.findall(r'prose\(f?"""(.*?)"""', source, re.DOTALL)
    for pattern in DOCUMENTS:
        for path in sorted(paths.ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            # What a trial measured is no statement about a runtime.
            yield text.partition('<a id="trials"></a>')[0]
    for name in PACKAGES:
        lines = (paths.GOSRC / name).read_text(encoding="utf-8").splitlines()
        yield "\n".join(line.strip()[2:] if line.strip()[:2] == "//" else "" for line in lines)


@cache
def statements() -> tuple[str, ...]:
    """The sentences about a runtime, each once."""
    found = {}
    for text in texts():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-|#]|\d\. )", prose):
            for sentence in re.split(r"(?<=[.:;])\s+(?=[A-Z`*\[])", " ".join(paragraph.split())):
                measured = "{" in sentence or "gccost." in sentence
                if SUBJECT.search(sentence) and VERB.search(sentence) and not measured:
                    found[sentence] = None
    return tuple(found)


def test_the_pattern_draws_the_sentences_that_were_chosen_beforehand():
    drawn = "\n".join(statements())
    assert [each for each in CHOSEN if each not in drawn] == []


def test_every_statement_is_listed_once_with_what_shows_it():
    listed = [each["begins"] for each in read_table(TABLE)]
    of = {each: [begins for begins in listed if each.startswith(begins)] for each in statements()}
    without = [each for each, found in of.items() if len(found) != 1]
    assert without == [], f"add to {TABLE.name} what shows them"
    used = {begins for found in of.values() for begins in found}
    assert [each for each in listed if each not in used] == [], f"remove them from {TABLE.name}"
    assert len(listed) > 200


SHOWN_BY = sorted({each["shown_by"] for each in read_table(TABLE)} - {"(no statement)"})


@pytest.mark.parametrize("source", SHOWN_BY)
def test_what_shows_a_statement_exists(source):
    if source in CLAIMS or source.startswith("https://"):
        return
    place, _, name = source.partition(" ")
    path = paths.ROOT / place
    assert path.exists(), source
    files = [path] if path.is_file() else [*path.glob("*.go"), *path.glob("*.java")]
    assert name in "\n".join(file.read_text(encoding="utf-8") for file in files), source
