"""Small campaigns on fake machines, for tests that interrupt them or damage their runs."""

from __future__ import annotations

import itertools
import re
import signal

from click.testing import CliRunner, Result
from faketools import FakeTools, wait_for

from gccost import cli
from gccost.cases import jobs
from gccost.cases.cases import BUDGETS
from gccost.costs import samples
from gccost.costs.recording import Recording
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.questions import questions
from gccost.judging.rules import Label
from gccost.measuring import planning
from gccost.progress import MEASURING, Progress
from gccost.run import runs
from gccost.showing import notice
from gccost.studies import STUDIES

LEMIRE = STUDIES["lemire"]
PRECISION = STUDIES["precision"]
TINY = BUDGETS["tiny"]
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
RESUMES = "gccost: Interrupted. Completed samples are saved; the same command resumes."


def planned() -> planning.Plan:
    """The cases of lemire at the tiny budget, on the fake machine."""
    return planning.plan([LEMIRE], TINY, questions([LEMIRE], TINY))


def after(calls: int) -> Progress:
    """A progress callback that interrupts measuring at the sample after this many."""
    left = itertools.count(calls, -1)

    def progress(done: float, total: float, what: str, unit: str = MEASURING) -> None:
        if unit == MEASURING and next(left) == 0:
            raise KeyboardInterrupt

    return progress


def assert_complete(run: runs.Run) -> None:
    """Check that the run is finished and holds every sample of the first rounds and no other."""
    assert run.reading().errors == []
    assert "lemire" in run.manifest()["finished"]["tiny"]["studies"]
    pool = {job["name"]: job for job in LEMIRE.within(TINY)}
    plan = planning.Plan({"lemire": pool}, TINY, planning.settled, {})
    frame = samples.of_run(run).frame
    assert len(frame) == len(run.reading().samples)
    assert frame.groupby(["name", "round"]).size().to_dict() == {
        (name, number): jobs.processes(job)
        for name, job in pool.items()
        for number in range(1, plan.rounds(job) + 1)
    }


def assert_only_lost(study: Study, run: runs.Run, lost: str, why: str) -> None:
    """Check that a run has all cases but those with this in their names, and says why not."""
    assert run.reading().errors == []
    recording = Recording(study, run)
    due = {job["name"] for job in study.within(TINY)}
    lacking = due - {*recording.frame["name"]}
    assert lacking == {name for name in due if lost in name} != set()
    assert re.search(rf"{why}.*(it is|its cases are) skipped", page_of(recording))
    for row in ledger.rows({study.name: recording}, [study]):
        needed = {jobs.name(case, row.release) for case in row.claim.quantity.cases}
        if needed & lacking and not row.claim.system:
            assert row.verdict.label is Label.UNMEASURED
            assert why in row.verdict.reason


def assert_no_process_stays(tools: FakeTools) -> None:
    assert wait_for(lambda: not tools.processes()), tools.processes()


def gccost(*arguments: str) -> Result:
    """Run a gccost command in this process, on the fake machine."""
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def page_of(recording: Recording) -> str:
    """A chapter's notice about the run that it shows."""
    return notice.notice([recording]).text
