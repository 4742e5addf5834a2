"""The verdicts of all recorded machines, next to each other; their samples are never pooled."""

from __future__ import annotations

from collections.abc import Sequence

from gccost.costs.recorded import recorded, words
from gccost.costs.recording import Recording
from gccost.judging import ledger
from gccost.judging.claims import Study
from gccost.judging.ledger import Row
from gccost.run.runs import Run


def by_machine(studies: Sequence[Study]) -> dict[str, list[Row] | str]:
    """The ledger of each recorded machine, or why it cannot be judged, by the machine in words.

    A study is shown from the machine's newest run that holds it. Test runs, whose N were scaled,
    are left out. Empty unless two machines are recorded.
    """
    held: dict[str, dict[str, Run]] = {}
    for run in recorded():
        manifest = run.manifest()
        if manifest["scale"] == 1:
            of = held.setdefault(manifest["fingerprint"], {})
            of.update(dict.fromkeys(run.studies, run))
    ledgers: dict[str, list[Row] | str] = {}
    for fingerprint, runs in held.items() if len(held) > 1 else ():
        known = next(iter(runs.values())).manifest()["machine"]
        cpus = known.get("allowed_cpus")
        label = f"{words(known.get('cpu'))[:40]}, {cpus} CPUs ({fingerprint[:6]})"
        chosen = [study for study in studies if study.name in runs]
        try:
            recordings = {each.name: Recording(each, runs[each.name]) for each in chosen}
            ledgers[label] = ledger.rows(recordings, chosen)
        except Exception as error:  # a stranger's run may break anything
            ledgers[label] = f"cannot be judged: {type(error).__name__}: {error}"
    return ledgers
