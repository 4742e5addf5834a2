"""Which run a study shows, also with releases missing or runs interrupted."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
import recordings
from conftest import FakeMachine

import gccost
from gccost import notebook, paths, sitting
from gccost.cases import jobs, versions
from gccost.cases.cases import BUDGETS
from gccost.cases.settings import Settings
from gccost.cases.versions import DOCUMENT_GO, TODAY_GO
from gccost.errors import GccostError
from gccost.measuring import jdks, languages, toolchains
from gccost.notebook import OpenedStudy
from gccost.progress import unwatched
from gccost.showing import programs
from gccost.studies import STUDIES


@pytest.fixture
def reference(tmp_path, monkeypatch):
    monkeypatch.setenv("GCCOST_REFERENCE", str(tmp_path / "reference"))
    monkeypatch.delenv("GCCOST_ONLY", raising=False)
    monkeypatch.setenv("GCCOST_MODE", "measure")
    return recordings.record(tmp_path / "reference")


def measure() -> OpenedStudy:
    return gccost.measure("lemire", "tiny")


def notice(study: OpenedStudy) -> str:
    return str(study._repr_mimebundle_()[0]["text/plain"])


@pytest.mark.parametrize("missing", [DOCUMENT_GO, TODAY_GO])
def test_a_chapter_works_with_one_release_missing(
    machine: FakeMachine, reference, missing, monkeypatch
):
    machine.missing = {missing}
    asked: list[str] = []
    monkeypatch.setattr(programs, "run", lambda of, command, go: asked.append(go) or "printed\n")
    opened = measure()
    assert opened.mode == "measure"
    assert versions.title(missing) not in opened.releases
    assert "cannot be fetched" in notice(opened)
    assert opened.shell("go version").empty
    assert asked == list(opened.recording.releases)
    gap = opened.compare("finalizer frees", "manual free", gc="on")
    # One process is hardly a figure, but it is of the release that was measured.
    here = [release for release in (DOCUMENT_GO, TODAY_GO) if release != missing]
    assert gap.source.to_dict() == {
        versions.title(missing): "recorded",
        versions.title(*here): "",
    }
    assert opened.judge("L1").text.count("(recorded)") == 1
    machine.missing = set()
    assert len(measure().releases) == 2


def test_open_never_measures(machine: FakeMachine, reference):
    opened = gccost.open("lemire")
    assert opened.mode == "replay"
    assert "make report" in notice(opened)
    assert not machine.built
    measure()
    built = list(machine.built)
    assert gccost.open("lemire").mode == "measure"
    assert machine.built == built


def test_an_older_run_of_your_own_is_shown_if_the_newest_lacks_the_study(
    machine: FakeMachine, reference
):
    older = measure().recording.run
    newer = recordings.record(older.folder.parent, "addcleanup")
    assert newer.name != older.name
    assert gccost.open("lemire").run == older.name
    assert gccost.open("addcleanup").run == newer.name


def test_a_trial_is_shown_and_says_so_unless_there_is_another_run(
    machine: FakeMachine, reference, monkeypatch
):
    trial = measure().recording.run
    monkeypatch.setenv("GCCOST_BUDGET", "quick")
    opened = gccost.open("lemire")
    assert (opened.run, opened.mode) == (trial.name, "measure")
    assert "a trial" in notice(opened)
    whole = recordings.record(trial.folder.parent, "lemire")
    assert gccost.open("lemire").run == whole.name
    assert gccost.open("lemire", run=trial.name).run == trial.name


def test_changed_programs_are_told_and_begin_a_new_run(
    machine: FakeMachine, reference, monkeypatch
):
    tiny = Settings("measure", BUDGETS["tiny"], "lemire")
    run = measure().recording.run
    said: list[str] = []
    sitting.measure(tiny, said.append, lambda name: nullcontext(unwatched))
    assert "a new run" not in "".join(said)
    for each in (run, reference):
        each.update(programs={"cstr": "other sources"})
    opened = gccost.open("lemire")
    assert opened.run == run.name
    assert "have changed since this run was measured" in notice(opened)
    sitting.measure(tiny, said.append, lambda name: nullcontext(unwatched))
    assert f"cstr: changed since {run.name}, so a new run is begun" in said
    monkeypatch.setenv("GCCOST_MODE", "replay")
    assert "have changed since this run was recorded" in notice(gccost.open("lemire"))


def test_a_study_without_a_notebook_is_said_to_have_none(reference, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    (tmp_path / "00-results.ipynb").touch()
    said: list[str] = []
    assert len(sitting.notebooks(Settings("measure", only="lemire"), said.append)) == 1
    assert "there is no chapter notebooks/01-lemire.ipynb" in "\n".join(said)


def test_the_reason_for_a_recorded_run_is_the_true_one(machine: FakeMachine, reference):
    instead = notice(gccost.open("lemire"))
    assert "You have no run of your own, so a recorded run is shown." in instead
    assert "To measure: make report" in instead
    opened = measure()
    assert "interrupted before" not in notice(opened)
    opened.recording.run.update(finished={})  # as if it were interrupted
    shown = gccost.open("lemire")
    assert shown.mode == "replay"
    assert f'gccost.open("lemire", run="{opened.run}")' in notice(shown)
    unfinished = gccost.open("lemire", run=opened.run)
    assert unfinished.mode == "measure"
    assert "was interrupted before its budget" in notice(unfinished)


def test_a_run_is_chosen_by_its_name(machine: FakeMachine, reference):
    measure()
    listed = gccost.runs().set_index("run")
    assert list(listed.source.sort_values()) == ["recorded", "your run"]
    assert set(listed.studies) == {"lemire"}
    assert set(listed.budget) == {"standard", "tiny"}
    opened = gccost.open("lemire", run=reference.name)
    assert (opened.run, opened.mode) == (reference.name, "replay")
    for wrong, why in (("1999", "there is no run"), ("2", "there are 2 runs")):
        with pytest.raises(GccostError, match=why) as raised:
            gccost.open("lemire", run=wrong)
        assert reference.name in raised.value.hint
    with pytest.raises(GccostError, match="holds lemire, not jmh"):
        gccost.open("jmh", run=reference.name)


def test_a_new_case_is_measured(machine: FakeMachine, reference, monkeypatch):
    measure()
    of = STUDIES["lemire"]
    more = replace(of, cases=f"{of.cases} tiny AllocateFree/gogc=50/go=today")
    monkeypatch.setattr(notebook, "declared", lambda name: more)
    added = jobs.name("AllocateFree/gogc=50", TODAY_GO)
    assert len(measure().recording.processes(added)) == jobs.PROCESSES


def test_the_recorded_run_is_shown_without_any_release(machine: FakeMachine, reference):
    machine.missing = {DOCUMENT_GO, TODAY_GO}
    opened = measure()
    assert opened.mode == "replay"
    assert opened.recording.run.name == reference.name
    assert "Measuring is not possible here" in notice(opened)


def test_recorded_output_is_shown_where_a_command_cannot_run(
    machine: FakeMachine, reference, capsys
):
    reference.store_shell("plain", "go test", "BenchmarkAllocateFree-2 \t 1000 \t 60.5 ns/op\n")
    opened = measure()
    assert opened.mode == "measure"
    machine.missing = {DOCUMENT_GO, TODAY_GO}  # after `make remove`, without a network
    assert list(opened.shell("go test").ns) == [60.5]
    shown = capsys.readouterr().out
    assert f"Go {TODAY_GO} cannot be fetched" in shown
    assert "recorded on" in shown


def test_source_shows_a_diff():
    shown = gccost.source("libraries/native/trees/slabs.diff").markdown
    assert shown.startswith("```diff\n// gosrc/libraries/native/trees/slabs.diff\n")
    assert "\n-\truntime.SetFinalizer(base, (*BaseTree).Close)\n" in shown
    assert "\nindex " not in shown


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(
    ("ask", "known"),
    [
        (lambda: toolchains.fetch("1.99"), "1.9"),
        (lambda: jdks.fetch("jdk-9"), "jdk-11"),
        (lambda: Settings.read({"GCCOST_BUDGET": "quik"}), "quick"),
        (lambda: Settings.read({"GCCOST_MODE": "mesure"}), "measure"),
    ],
    ids=range(4),
)
def test_an_unknown_name_is_answered_with_known_ones(ask, known):
    with pytest.raises(GccostError) as error:
        ask()
    assert known in error.value.hint


def test_an_own_run_of_a_release_that_no_table_has_names_it(tmp_path, reference, monkeypatch):
    monkeypatch.setenv("GCCOST_RUNS", str(tmp_path / "runs"))
    run = recordings.record(tmp_path / "runs")
    for file in (run.jobs_csv, run.samples_txt):
        file.write_text(file.read_text().replace(TODAY_GO, "1.99.1"))
    said = notice(gccost.open("lemire"))
    assert f"The run {run.name} has samples of Go 1.99.1, which data/releases.csv does not" in said
    assert "gccost release 1.99.1" in said
    assert "does not list" not in notice(gccost.open("siebenmann"))


def test_a_plain_command_shows_what_it_prints_and_not_what_the_go_command_replays():
    go = languages.of(STUDIES["lemire"])
    said = programs.run("echo '# runtime' >&2; echo BenchmarkX 1 2 ns/op", go, TODAY_GO)
    assert said == "BenchmarkX 1 2 ns/op\n"
    with pytest.raises(GccostError, match="the command failed:\nout\nbecause"):
        programs.run("echo out; echo because >&2; exit 1", go, TODAY_GO)
