"""The notebooks' interface, also with releases missing or runs interrupted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import recordings
from conftest import FakeMachine

from gccost import study
from gccost.errors import GccostError
from gccost.judging.recording import Recording
from gccost.measuring import jdks, toolchains
from gccost.measuring.cases import AUTO, FREE, Ratio, Variant
from gccost.measuring.toolchains import DOCUMENT_GO, TODAY_GO
from gccost.settings import Settings
from gccost.studies import CHARTS, STUDIES

LEMIRE = ["control", *(name for name in CHARTS if name.startswith("lemire"))]


@pytest.fixture
def reference(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.delenv("GCCOST_ONLY", raising=False)
    monkeypatch.setenv("GCCOST_MODE", "measure")
    return recordings.record(tmp_path / "reference")


@pytest.mark.parametrize("missing", [DOCUMENT_GO, TODAY_GO])
def test_a_chapter_works_with_one_release_missing(
    machine: FakeMachine, reference, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.missing = {missing}
    asked: list[str] = []
    monkeypatch.setattr(study, "_shell", lambda of, command, go: asked.append(go) or "printed\n")
    opened = study.open_study("lemire")
    assert opened.mode == "measure"
    assert missing not in opened.releases
    assert any(missing in notice for notice in opened.notices)
    assert "cannot be fetched" in opened.notice().text
    assert opened.shell("plain", "go version").text
    assert asked == list(opened.releases)
    for name in LEMIRE:
        opened.chart(name)
    assert "not measured" in opened.verdicts().text
    assert opened.costs(FREE, AUTO, under=FREE).text


def test_a_release_is_measured_once_available(machine: FakeMachine, reference) -> None:
    machine.missing = {DOCUMENT_GO}
    assert study.open_study("lemire").releases == (TODAY_GO,)
    machine.missing = set()
    assert study.open_study("lemire").releases == (DOCUMENT_GO, TODAY_GO)


def test_a_new_case_is_measured(
    machine: FakeMachine, reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.open_study("lemire")
    of = STUDIES["lemire"]
    added = replace(of.cases[0], variant=replace(FREE, gogc="50"))
    more = replace(of, cases=(*of.cases, added))
    monkeypatch.setattr(study, "declared", lambda name: more)
    again = study.open_study("lemire")
    assert len(again.recording.samples(added.variant, added.release)) == added.processes


def test_the_recorded_run_is_shown_without_any_release(machine: FakeMachine, reference) -> None:
    machine.missing = {DOCUMENT_GO, TODAY_GO}
    opened = study.open_study("lemire")
    assert opened.mode == "replay"
    assert opened.run.name == reference.name
    assert "Measuring is not possible here" in opened.notice().text


def test_replay_reports_changed_programs(reference, monkeypatch: pytest.MonkeyPatch) -> None:
    reference.update(programs={"cstr": "other sources"})
    monkeypatch.setenv("GCCOST_MODE", "replay")
    opened = study.open_study("lemire")
    assert opened.mode == "replay"
    assert "have changed since this run was recorded" in opened.notice().text


def test_the_notice_reports_an_interrupted_run(machine: FakeMachine, reference) -> None:
    opened = study.open_study("lemire")
    assert "interrupted before" not in opened.notice().text
    opened.run.update(finished={})
    again = study.OpenStudy("measure", Recording.load(STUDIES["lemire"], opened.run), ())
    assert "was interrupted before its budget was spent" in again.notice().text


def test_only_significant_changes_are_stated(reference, monkeypatch) -> None:
    monkeypatch.setenv("GCCOST_MODE", "replay")
    opened = study.open_study("lemire")
    off = Ratio(Variant("AllocateAuto", gogc="off"), AUTO)
    assert opened.changed(off, TODAY_GO, "saves", "costs").startswith("saves ")
    same = Ratio(replace(AUTO, control="relinked"), AUTO)
    assert "no significant difference" in opened.changed(same, TODAY_GO, "saves", "costs")


def test_source_shows_functions_unchanged() -> None:
    shown = study.source("cstr/cstr.go", "Free", "AllocateAuto").markdown
    assert shown.startswith("```go\n// gosrc/cstr/cstr.go\n")
    assert "// Free frees a block" in shown
    assert "func Free(c *C.char) { C.cstr_free(c) }" in shown
    assert shown.rstrip().endswith("return answer\n}\n```")
    with pytest.raises(GccostError, match="no function Nothing"):
        study.source("cstr/cstr.go", "Nothing")


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(
    ("ask", "known"),
    [
        (lambda: toolchains.fetch("1.99"), "name one of 1.9.7, "),
        (lambda: toolchains.fetch("; rm"), "name one of 1.9.7, "),
        (lambda: jdks.fetch("jdk-9"), "name one of jdk-11, jdk-17, jdk-21, jdk-25"),
        (lambda: Settings.read({"GCCOST_BUDGET": "quik"}), "name one of tiny, quick, standard"),
        (lambda: Settings.read({"GCCOST_MODE": "mesure"}), "name one of measure, replay"),
        (lambda: study.open_study("lemur"), f"name one of {', '.join(STUDIES)}"),
        (lambda: study.open_study("lemire").chart("lemire-coast"), "lemire-cost"),
        (lambda: study.open_study("lemire").row("L1", "1.99"), f"L4 on {TODAY_GO}"),
    ],
    ids=range(8),
)
def test_an_unknown_name_lists_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[], object], known: str
) -> None:
    monkeypatch.setenv("GCCOST_MODE", "replay")
    with pytest.raises(GccostError) as error:
        ask()
    assert known in str(error.value)
