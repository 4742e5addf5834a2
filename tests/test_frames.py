"""The frames of a study: samples, costs, ratios, shares, and what a wrong name says."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import recordings
from pandas.testing import assert_frame_equal

import gccost
from gccost import opening, paths
from gccost.errors import GccostError
from gccost.judging import ledger, metrics
from gccost.judging.quantities import Ratio
from gccost.measuring import benchfmt, jobs
from gccost.measuring.cases import Case
from gccost.measuring.settings import Settings
from gccost.measuring.toolchains import TODAY_GO
from gccost.notebook import OpenedStudy
from gccost.showing import drawing
from gccost.showing.artifact import appendix
from gccost.studies import CLAIMS


@pytest.fixture(autouse=True)
def replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCCOST_MODE", "replay")
    monkeypatch.delenv("GCCOST_ONLY", raising=False)


@pytest.fixture(scope="module")
def lemire() -> OpenedStudy:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCCOST_MODE", "replay")
        return gccost.open("lemire")


def synthetic(folder: Path, name: str = "lemire", **more: object) -> OpenedStudy:
    return OpenedStudy(recordings.recorded(folder, name, **more), "replay", ())


def test_the_ledger_of_the_recorded_run_is_the_golden_one_and_that_of_the_artifact_appendix():
    shown = opening.every(Settings("replay"))
    rows = opening.rows(shown)
    golden = (Path(__file__).parent / "golden" / "ledger.csv").read_text(encoding="utf-8")
    assert ledger.table(rows).to_csv(index=False, lineterminator="\n") == golden
    made = appendix(rows, (each.recording.run for each in shown.values()))
    assert made == paths.ARTIFACT.read_text(encoding="utf-8"), "run make replay"
    listed = re.findall(r"(?m)^\| ([A-Z]\d+\w?) \|", made)
    assert listed == list(CLAIMS)


@pytest.mark.parametrize("name", ["lemire", "addcleanup", "siebenmann", "weimer"])
def test_groupby_and_cost_reproduce_the_costs(name):
    opened = gccost.open(name)
    costs = opened.costs()
    keys = list(costs.columns[: list(costs.columns).index("value")])
    found = opened.samples().groupby(keys, dropna=False, observed=True, sort=False)
    by_hand = found.apply(gccost.cost).reset_index()
    whole = {"rounds": int, "n": int}
    known = by_hand.dropna(subset="value").astype(whole).reset_index(drop=True)
    assert_frame_equal(known[costs.columns], costs, check_exact=True, check_dtype=False)


def test_claims_are_judged_from_the_figures_of_compare(lemire: OpenedStudy):
    compared = 0
    sides = lemire.sides.groupby(["id", "release", "side"])
    costs = {key: gccost.cost(each)["value"] for key, each in sides}
    for row in lemire._rows:
        quantity = row.claim.quantity
        if isinstance(quantity, Ratio):
            over, under = (
                {name: jobs.keys(Case("cstr", v, TODAY_GO, 1))[name] for name in ("variant", "gc")}
                for v in quantity.variants
            )
            found = lemire.compare(over, under).loc[row.toolchain]
            ends = (row.estimate.value, row.estimate.low, row.estimate.high)
            assert tuple(found[["ratio", "ratio_low", "ratio_high"]]) == pytest.approx(ends, 1e-6)
            key = row.claim.id, row.toolchain
            assert costs[*key, "over"] / costs[*key, "under"] == pytest.approx(ends[0], 1e-6)
            compared += 1
    assert compared >= 6


def test_a_rejected_process_is_only_in_all_samples(tmp_path):
    def waits(case, number: int, values: dict[str, float]) -> None:
        if case.variant.benchmark == "AllocateAuto" and number == 3:
            values["run-delay-share"] = 0.5

    opened = synthetic(tmp_path, change=waits)
    everything = opened.samples(all=True)
    rejected = everything[everything.rejected != ""]
    assert set(rejected["round"]) == {3}
    assert set(rejected.variant) == {"finalizer frees"}
    assert len(opened.samples()) == len(everything) - len(rejected)


def test_every_metric_of_a_recorded_run_is_in_the_table():
    names = set()
    for path in paths.reference().glob("*/samples.txt"):
        for sample in benchfmt.read(path).samples.values():
            names |= set(sample.metrics)
    series = re.compile(r"at-[\d.]+-records-ns")
    for name in names - {"round", "sitting"}:
        if not series.fullmatch(name):
            metrics.kind(metrics.column(name))


def test_derive_is_the_delta_method(lemire: OpenedStudy):
    costs = lemire.costs(gc="on").query("release == @lemire.today").set_index("variant")
    gap = lemire.compare("finalizer frees", "manual free", gc="on").loc[lemire.today]
    ratio = gccost.derive(
        lambda a, b: a / b, costs.loc["finalizer frees"], costs.loc["manual free"]
    )
    assert tuple(ratio[["value", "low", "high"]]) == pytest.approx(
        tuple(gap[["ratio", "ratio_low", "ratio_high"]])
    )
    one = gccost.derive(lambda a: 2 * a, costs.loc["manual free"])
    assert one.low / costs.loc["manual free"].low == pytest.approx(2, 1e-3)


def test_rounding_costs_changes_what_is_derived_by_no_more_than_the_rounding(lemire):
    costs = lemire.costs(gc="on").set_index(["release", "variant"])
    then, today = (costs.xs(release) for release in (lemire.then, lemire.today))

    def over(digits: int) -> pd.DataFrame:
        shown = ["value", "low", "high"]
        rounded = [each.assign(**each[shown].round(digits)) for each in (today, then)]
        return gccost.derive(lambda a, b: a / b, *rounded)

    exact, rounded = over(12), over(2)
    assert_frame_equal(exact, rounded, rtol=1e-3)
    assert ((exact.low > 1) == (rounded.low > 1)).all()


def test_a_derived_figure_can_be_derived_from(lemire):
    costs = lemire.costs(gc="on").query("release == @lemire.today").set_index("variant")
    free, finalizer = costs.loc["manual free"], costs.loc["finalizer frees"]
    doubled = gccost.derive(lambda a: 2 * a, free)
    ratio = gccost.derive(lambda a, b: a / b, finalizer, doubled)
    direct = gccost.derive(lambda a, b: a / (2 * b), finalizer, free)
    assert tuple(ratio[:-1]) == pytest.approx(tuple(direct[:-1]), rel=1e-5)


def test_one_round_has_no_interval_and_none_has_no_row(tmp_path):
    costs = synthetic(tmp_path / "one", rounds=1).costs(gc="on")
    assert len(costs)
    alone = costs["variant"] == "finalizer frees"  # nothing shows how much its processes differ
    assert costs.loc[alone, ["low", "high"]].isna().all(axis=None)
    nothing = OpenedStudy(recordings.empty(tmp_path / "none", "lemire"), "replay", ())
    assert nothing.samples().empty
    assert nothing.costs().empty
    assert nothing.compare("finalizer frees", "manual free", gc="on").ratio.isna().all()
    assert nothing.shares({"C": ["runtime.cgocall"]}).empty
    assert nothing.controls.empty
    assert nothing.stacks.empty
    assert (nothing.verdicts.verdict == "not measured").all()


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda s: gccost.open("lemir"), "lemire"),
        (lambda s: s.samples(gcc="on"), "gc"),
        (lambda s: s.samples(variant="finaliser frees"), "finalizer frees"),
        (lambda s: s.samples(release="Go 1.27"), "Go 1.27.4"),
        (lambda s: s.costs("quite_ns"), "quiet_ns"),
        (lambda s: s.judge("L9"), "L1"),
        (lambda s: s.compare("manual", "finalizer frees"), "manual free"),
        (lambda s: gccost.source("cstr/cstr.go", "Alocate"), "Allocate"),
        (lambda s: gccost.published("lemire-timing"), "lemire-timings"),
        (lambda s: s.compare({"gc": ["on", "off"]}, {"gc": "on"}), ""),  # two costs of a name
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest(lemire, call, nearest):
    with pytest.raises(GccostError) as raised:
        call(lemire)
    assert raised.value.hint
    assert nearest in raised.value.hint
    assert raised.value.hint.count(",") <= 4


# --- Your own benchmarks --------------------------------------------------------------

OWN = """goos: linux
pkg: gccost/cstr
BenchmarkMine/size=8-4   1000000   60.5 ns/op   3.5 furlongs/op   8 B/op   1 allocs/op
BenchmarkAllocateFree-4   20000000   55.1 ns/op
PASS
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_own_output_is_read_as_file_and_as_text(tmp_path, end):
    text = OWN.replace("\n", end)
    path = tmp_path / "bench.txt"
    path.write_bytes(text.encode())
    for frame in (gccost.read(path), gccost.read(text)):
        assert list(frame.variant) == ["Mine", "manual free"]
        assert list(frame.mean_ns) == [60.5, 55.1]
        assert frame.furlongs_per_op[0] == 3.5
        assert list(frame.procs) == [4, 4]


@pytest.mark.parametrize("content", [b"", b"nothing here\n", b"\xff\xfe\x00 Benchmark", None])
def test_a_file_that_is_no_benchmark_is_named(tmp_path, content):
    path = tmp_path / "bench.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(GccostError) as raised:
        gccost.read(path)
    assert str(path) in str(raised.value)
    assert raised.value.hint


def test_what_was_not_measured_well_is_not_quoted():
    good = {"value": 2.0, "low": 1.8, "high": 2.2, "n": 3}
    assert gccost.times(good) == "2.00× (1.80 to 2.20)"
    for poor in ({"n": 2}, {"low": 0.5, "high": 2.5}, {"low": float("nan")}):
        assert gccost.times(good | poor) == "too few samples"
    assert gccost.times({}) == "not measured"
    assert gccost.number(good, 100) == "200 (180 to 220)"
    assert gccost.ns(pd.DataFrame(columns=["value", "low", "high", "n"])) == "not measured"


def test_a_sentence_that_lacks_a_figure_is_replaced_as_a_whole():
    poor = gccost.times({"value": 2.0, "low": 1.8, "high": 2.2, "n": 2})
    text = f"""**In short.** On Go 1.27 it takes **{poor}** or
{gccost.ns({})}. It is [known](a.b).

- It takes {float("nan"):.1f} %. Nor was {poor}.
- Go 1.9 costs {pd.NA}, or 3.5 ns."""
    assert (
        gccost.prose(text).markdown
        == """**In short.** Not measured: “On Go 1.27 it takes … or
….” It is [known](a.b).

- Too few samples: “It takes … %.” Too few samples: “Nor was ….”
- Too few samples: “Go 1.9 costs …, or 3.5 ns.”"""
    )


def test_a_title_that_lacks_a_figure_is_replaced_as_a_whole(monkeypatch):
    shown = []
    monkeypatch.setattr(drawing, "display", shown.append)
    with gccost.figure(
        "some", f"It takes {gccost.ns({})} on Go 1.27", pd.DataFrame({"value": [1]})
    ):
        plt.figure()
    assert [chart.title for chart in shown] == ["Not measured: “It takes … on Go 1.27”"]
