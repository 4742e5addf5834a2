"""The frames of a study: samples, costs, ratios, shares, and what a wrong question answers."""

from __future__ import annotations

import inspect
import math
import re
from operator import truediv
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import recordings
from pandas.api.types import is_float_dtype, is_integer_dtype
from pandas.testing import assert_frame_equal

import gccost
from gccost import paths
from gccost.cases import jobs
from gccost.cases.settings import Settings
from gccost.cases.versions import TODAY_GO
from gccost.costs import metrics
from gccost.costs.costs import RECORDED, VALUES
from gccost.costs.method import Figure, Sitting
from gccost.costs.samples import of_run
from gccost.errors import GccostError, nearest
from gccost.judging import ledger, opening
from gccost.judging.carrying import by_machine, with_others
from gccost.judging.quantities import Ratio
from gccost.notebook import OpenedStudy
from gccost.run import benchfmt
from gccost.showing import drawing
from gccost.showing.artifact import appendix
from gccost.showing.quoting import MISSING
from gccost.studies import CLAIMS, STUDIES

PAIR = ("finalizer frees", "manual free")
ENDS = ["ratio", "ratio_low", "ratio_high"]


@pytest.fixture(autouse=True)
def replay(monkeypatch) -> None:
    monkeypatch.setenv("GCCOST_MODE", "replay")


@pytest.fixture(scope="module")
def lemire() -> OpenedStudy:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GCCOST_MODE", "replay")
        return gccost.open("lemire")


@pytest.fixture(scope="module")
def today(lemire: OpenedStudy) -> pd.DataFrame:
    """The costs on today's release by variant."""
    return lemire.costs(gc="on", release=lemire.today).set_index("variant")


def synthetic(folder: Path, name: str = "lemire", **more: object) -> OpenedStudy:
    return OpenedStudy(recordings.recorded(folder, name, **more))


def test_the_ledger_of_the_recorded_run_is_the_golden_one_and_that_of_the_artifact_appendix():
    shown = opening.every(STUDIES.values(), Settings("replay"))
    rows = with_others(ledger.shown(shown, STUDIES.values()), by_machine([*STUDIES.values()]))
    golden = (Path(__file__).parent / "golden" / "ledger.csv").read_text(encoding="utf-8")
    assert ledger.table(rows).to_csv(index=False, lineterminator="\n") == golden
    text = appendix(rows, shown.values())
    pages = re.findall(r"\]\((\S+)\.html\)", text)
    assert {"01-lemire", "09-how-sure"} <= {*pages} <= {p.stem for p in paths.NOTEBOOKS.iterdir()}
    listed = re.findall(r"(?m)^\| ([A-Z]\d+\w?) \|.* \| (.+) \|$", text)
    assert [claim for claim, _ in listed] == list(CLAIMS)
    today = {row.claim.id: row.said for row in rows if row.toolchain == f"Go {TODAY_GO}"}
    assert {
        claim: today[claim] for claim, text in listed if f"**{today.get(claim)}**" in text
    } == today


@pytest.mark.parametrize("name", ["lemire", "addcleanup", "siebenmann", "weimer", "remedies"])
def test_groupby_of_the_keys_and_cost_reproduce_the_costs(name):
    study = gccost.open(name)
    costs = study.costs()
    assert not costs.duplicated(costs.columns.intersection(study.keys)).any()
    cases = study.samples().groupby(study.keys, dropna=False, observed=True, sort=False)
    by_hand = cases.apply(gccost.cost).dropna(subset="value").reset_index()
    by_hand = by_hand.astype({"rounds": int, "n": int})
    assert set(costs[["figure"]].to_string(header=False, index=False).split()) == {"…"}
    costs = costs.drop(columns="figure")  # the values of sittings, to derive from
    assert_frame_equal(by_hand[costs.columns], costs, check_exact=True, check_dtype=False)


def test_what_a_study_varies_is_a_key_also_of_filtered_samples(tmp_path):
    study = synthetic(tmp_path, "siebenmann", rounds=2)
    assert study.keys == ["release", "variant", "experiment", "setting", "words"]
    on = study.samples(gc="on").groupby(study.keys, dropna=False, observed=True)
    assert len(on.apply(gccost.cost)) == len(study.costs(gc="on"))


def test_a_filter_may_be_a_number_or_its_text():
    cloudflare = gccost.open("cloudflare")
    for value in (1, "1"):
        assert set(cloudflare.costs(goroutines=value).goroutines) == {1}
    assert len(gccost.open("late").costs(rate=1000)) == len(gccost.open("late").costs(rate="1000"))


def test_the_programs_own_functions_are_a_phase(lemire: OpenedStudy):
    assert "functions" in set(lemire.shares().part)


def test_every_filter_is_a_column_of_samples(lemire: OpenedStudy):
    samples = lemire.samples(gogc=100)
    assert set(samples["gogc"]) == {100}
    assert samples.columns.is_unique


def lower_quartile(values: pd.Series) -> float:
    return float(np.quantile(values, 0.25, method="median_unbiased"))


def by_sitting(samples: pd.DataFrame) -> pd.Series:
    """The cost of a case in each sitting that counts, in plain pandas."""
    rounds = samples.groupby(["sitting", "round"])["ns"].apply(lower_quartile)
    sittings = rounds.groupby("sitting").agg([lower_quartile, "size"])
    return sittings.loc[sittings["size"] >= 3, "lower_quartile"]


def test_claims_are_judged_from_the_figures_of_compare_which_are_plain_pandas(lemire: OpenedStudy):
    recording = lemire.recording
    rows = ledger.shown({"lemire": recording}, [recording.study])
    rows = [row for row in rows if isinstance(row.claim.quantity, Ratio)]
    assert len(rows) >= 6
    for row in rows:
        over, under = (
            {name: jobs.job(case, TODAY_GO)[name] for name in ("variant", "gc")}
            for case in row.claim.quantity.cases
        )
        gap = lemire.compare(over, under).loc[row.toolchain]
        ends = (row.estimate.value, row.estimate.low, row.estimate.high)
        assert tuple(gap[ENDS]) == pytest.approx(ends, 1e-6)
        ratios = truediv(
            *(
                by_sitting(recording.processes(jobs.name(case, row.release)))
                for case in row.claim.quantity.cases
            )
        )
        assert np.exp(np.log(ratios).mean()) == pytest.approx(ends[0], 1e-12)


def test_every_metric_of_a_recorded_run_is_in_the_table():
    recorded = set()
    for path in paths.reference().glob("*/samples.txt"):
        for sample in benchfmt.read(path).samples.values():
            recorded |= set(sample.metrics)
    for name in recorded - {"round", "sitting"}:
        # One of a series, or of an earlier method.
        apart = re.search(r"\d|^slice|^probe", name)
        assert apart or metrics.column(name) in metrics.SCALES, name


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        ("MB_per_s", [10, 100, 1000], 400),  # a rate: by the time of an operation
        ("parse_ns", [10, 100, 1000], 25),  # the lower quartile
        ("parse_ns", [10, math.nan, 100, 1000], 25),
        ("score", [1, 2, 30], 2),  # the median
        ("score", [-1, 0, 5], 0),
    ],
)
def test_any_column_of_numbers_has_a_cost(metric, values, expected):
    cost = gccost.cost(pd.DataFrame({metric: values}), metric)
    assert cost["value"] == pytest.approx(expected)
    assert cost["low"] < cost["value"] < cost["high"]


@pytest.mark.parametrize("metric", ["ns", "errors_per_s", "p99_ns", "peak_rss_bytes"])
@pytest.mark.parametrize(
    ("values", "value"), [([0, 0, 0, 0, 9], 0), ([0, 0], 0), ([-1, -3, 4], -1)]
)
def test_zeros_and_negative_values_count_and_are_said(metric, values, value, capsys):
    cost = gccost.cost(pd.DataFrame({metric: values}), metric)
    assert (cost["value"], cost["n"]) == (value, len(values))
    count = sum(each <= 0 for each in values)
    assert f"{metric}: {count} of {len(values)} values are zero" in capsys.readouterr().out
    assert math.isnan(gccost.derive(lambda a: a, cost)["value"])
    assert "signed=True" in capsys.readouterr().out
    assert gccost.derive(lambda a: a, cost, signed=True)["value"] == value


def test_zeros_of_a_study_are_said(tmp_path, capsys):
    study = synthetic(tmp_path, rounds=3)
    names = study.samples(gc="on")["name"]
    study.recording.shown.loc[names.iloc[0], "cpu_ns"] = 0.0
    study.costs("cpu_ns", gc="on")
    zeros = sum(names == names.iloc[0])
    assert f"cpu_ns: {zeros} of {len(names)} values are zero" in capsys.readouterr().out


def test_rows_without_a_partner_are_said(lemire, capsys):
    costs = lemire.costs(gc="on", release=lemire.today).set_index("variant")
    gccost.derive(truediv, costs.loc[[*PAIR]], costs.loc[[PAIR[1]]])
    assert capsys.readouterr().out.endswith(
        "1 rows left out, which not all frames have: finalizer frees\n"
    )


def test_derive_is_the_delta_method(lemire: OpenedStudy, today: pd.DataFrame):
    gap = lemire.compare(*PAIR, gc="on").loc[lemire.today]
    finalizer, free = (today.loc[name] for name in PAIR)
    ratio = gccost.derive(lambda a, b: a / b, finalizer, free)
    assert tuple(ratio[["value", "low", "high"]]) == pytest.approx(tuple(gap[ENDS]))
    doubled = gccost.derive(lambda a: 2 * a, free)
    assert doubled.low / free.low == pytest.approx(2, 1e-3)
    half = gccost.derive(lambda a, b: a / b, finalizer, doubled)
    direct = gccost.derive(lambda a, b: a / (2 * b), finalizer, free)
    assert tuple(half[VALUES]) == pytest.approx(tuple(direct[VALUES]), rel=1e-5)


def test_one_round_has_no_interval_and_none_has_no_row(tmp_path):
    costs = synthetic(tmp_path / "one", rounds=1).costs(gc="on")
    alone = costs["variant"] == "finalizer frees"  # nothing shows how much its processes differ
    assert alone.any()
    assert costs.loc[alone, ["low", "high"]].isna().all(axis=None)
    nothing = OpenedStudy(recordings.empty(tmp_path / "none", "lemire"))
    empty = (nothing.samples(), nothing.costs(), nothing.shares({"C": ["runtime.cgocall"]}))
    assert all(each.empty for each in (*empty, nothing.controls, nothing.stacks))
    assert nothing.compare(*PAIR, gc="on").ratio.isna().all()
    assert (nothing.verdicts.query("id != 'L3'").verdict == "not measured").all()


def test_a_variant_that_was_not_measured_is_named_and_its_row_is_empty(tmp_path, capsys):
    def without(job, number: int, values: dict[str, float]) -> None:
        if job["benchmark"] == "AllocateAuto":
            values.clear()

    study = synthetic(tmp_path, change=without)
    gap = study.compare(*PAIR, gc="on")
    lacking = ", ".join(study.releases)
    words = f"finalizer frees: no run holds it on {lacking}\n"
    assert capsys.readouterr().out == words
    assert gap.ratio.isna().all()
    assert (gap.n == 0).all()
    assert all(is_float_dtype(gap[name]) for name in gap if name.startswith(("ratio", "more")))
    assert all(is_integer_dtype(gap[name]) for name in ("rounds", "n"))
    assert study.compare({"gc": pd.NA}, "manual free", gc="on").ratio.isna().all()
    assert study.costs(variant="finalizer frees").empty
    assert "finalizer frees: no run holds it" in capsys.readouterr().out


def test_a_value_of_a_filter_that_the_run_lacks_is_told_with_those_that_it_has(tmp_path, capsys):
    study = synthetic(tmp_path, "remedies", rounds=1, cpus=2)
    assert study.samples(goroutines=32).empty
    assert "; it has goroutines 1, " in capsys.readouterr().out


# --- Wrong questions ------------------------------------------------------------------

WRONG = {  # what a reader types: what is wrong, and what the hint begins with
    "gccost.open('lemir')": ("no study 'lemir'", "name one of lemire"),
    "study.samples(gcc='on')": ("no filter 'gcc'", "name one of gc"),
    "study.samples(GC='on')": ("no filter 'GC'", "name one of gc"),
    "study.samples(gogc=50)": ("no gogc 50", "name one of 100"),
    "study.samples(variant='finaliser frees')": ("no variant", "name one of finalizer frees"),
    "study.samples(variant='finalizer does nothing', gc='off')": ("no case with", "change"),
    "study.samples(release='Go 1.27')": ("no release", "name one of Go 1.27.4"),
    "study.costs('cpu')": ("no metric 'cpu'", "name one of cpu_ns"),
    "study.costs('ns/op')": ("no metric 'ns/op'", "name one of ns"),
    "study.compare(*PAIR, 'ns/op')": ("no metric 'ns/op'", "name one of ns"),
    "study.compare('manual', 'finalizer frees')": ("no variant", "name one of manual free"),
    "study.compare({'gc': ['on', 'off']}, {'gc': 'on'})": ("two costs", "name variant or gc"),
    "study.compare('finalizer frees', ['manual free'])": ("is no side", "name a variant"),
    "study.costs(['ns'])": (r"no metric \['ns'\]", "name one of ns"),
    "study.shares({'C': 'runtime.cgocall'})": ("is no list of functions", "write a list"),
    "study.shares({'C': ['runtime.cgocal']})": ("no profile has", "name one of runtime.cgocall"),
    "study.shares({'C': ['runtime.cgocall']}, of=['mian*'])": ("no profile has", ""),
    "study.shares({'C': []})": ("is no list of functions", "write"),
    "study.shares({'C': 5})": ("is no list of functions", "write"),
    "study.shares({'C': (name for name in ['main'])})": ("is no list of functions", "write"),
    "study.shares(['runtime.cgocall'])": ("does not map parts", "name each part"),
    "study.shares('runtime.cgocall')": ("does not map parts", "name each part"),
    "study.shares(within=['runtime.cgocall'])": ("within and of are for", "name the parts"),
    "study.compare([], 'manual free')": ("is no side", "name a variant"),
    "gccost.derive(math.prod)": ("nothing says which", "name costs"),
    "gccost.derive(truediv, *2 * [study.costs(gc='on')])": ("nothing says", "name costs"),
    "gccost.cost([5.1, 5.3])": ("are no frame", "name a frame"),
    "study.judge('L9')": ("no claim 'L9'", "name one of L4, L3, L1, L2a, L2b"),
    "gccost.source('cstr/cstr.go', 'Alocate')": ("Alocate", "name one of Allocate"),
    "gccost.published('lemire-timing')": ("lemire-timing", "name one of lemire-timings"),
    "gccost.cost(study.samples())": ("several values of release, variant, gc", "filter, or"),
    "gccost.cost(study.samples().merge(study.samples()))": ("several values of", "filter, or"),
    "gccost.cost(one, 'cpu')": ("no column 'cpu'", "name one of cpu_ns"),
    "gccost.cost(one, 'variant')": ("no column 'variant' of numbers", ""),
    "gccost.cost(one.drop(columns='ns'))": ("no column 'ns'", "name one of "),
    "gccost.derive(lambda a: a, 5.0)": ("no column 'figure'", "keep the column"),
}


@pytest.mark.parametrize(("asked", "answer"), WRONG.items())
def test_a_wrong_question_is_answered_with_a_hint(lemire, asked, answer):
    names = {"gccost": gccost, "math": math, "truediv": truediv, "PAIR": PAIR, "study": lemire}
    with pytest.raises(GccostError, match=answer[0]) as raised:
        eval(asked, names | {"one": lemire.samples().head(1)})  # noqa: S307 - of the table above
    assert raised.value.hint.startswith(answer[1])


def test_a_hint_has_the_nearest_first_and_all_if_they_are_few():
    assert nearest("Zzzzz", (f"v{i}" for i in range(60, 90))) == ""
    assert nearest("B", "abcd") == "name one of b, a, c, d"
    assert nearest("v7", (f"v{i}" for i in range(60, 90))) == "name one of v70, v71, v72"
    assert nearest(7, range(10, 22)).endswith("20, 21")
    assert nearest("slab", ["slabs", "slabs, closed"]) == "name one of slabs, 'slabs, closed'"


def test_every_frame_says_which_run_it_is_of(tmp_path):
    study = synthetic(tmp_path)
    names = ("controls", "stacks", "traces", "verdicts")
    frames = [study.samples(), study.costs(gc="on"), study.shares(), study.calls()]
    frames += [study.compare(*PAIR, gc="on"), *(getattr(study, name) for name in names)]
    assert {frame.attrs["run"] for frame in frames} == {study.run}


def test_help_has_all_that_a_study_gives_with_signatures():
    manual = gccost.__doc__ or ""
    for name in dir(OpenedStudy):
        member = getattr(OpenedStudy, name)
        if callable(member) and not name.startswith("_"):
            given = inspect.signature(member).parameters.values()
            bare = [each.replace(annotation=inspect.Parameter.empty) for each in given][1:]
            assert f" {name}{inspect.Signature(bare)}".replace("'", '"') in manual
        elif not name.startswith("_") and name != "name":
            assert re.search(rf"^    (\w+, )*{name}\b", manual, re.MULTILINE), name


def test_samples_that_lost_their_run_have_the_interval_of_their_own_scatter(tmp_path):
    study = synthetic(tmp_path)
    samples = study.samples(variant="manual free", gc="on", release=study.today)
    whole, lost = (gccost.cost(each) for each in (samples, pd.DataFrame(samples.to_dict("list"))))
    assert lost["low"] < lost["value"] < lost["high"]
    assert lost["value"] == pytest.approx(whole["value"], rel=0.01)
    few = gccost.cost(pd.DataFrame({"ns": [60.0, 61.0]}))
    assert few["value"] == pytest.approx(60)
    assert few[["low", "high"]].isna().all()


# --- Figures as text ------------------------------------------------------------------

GOOD: dict[str, Any] = {"value": 2.0, "low": 1.8, "high": 2.2, "n": 3}
DIFFERENCE = {"more": 20.0, "more_low": 4.0, "more_high": 36.0}
EXACT = GOOD | {"low": 2.0, "high": 2.0}


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (lambda: gccost.times(GOOD), "2.00× (1.80 to 2.20)"),
        (lambda: gccost.number(GOOD, 100), "200 (180 to 220)"),
        (lambda: gccost.percent(GOOD), "2.00 % (1.80 to 2.20)"),
        (lambda: gccost.ns(GOOD), "2.00 ns (1.80 to 2.20)"),
        (lambda: gccost.times(GOOD | {"source": "recorded"}), "2.00× (1.80 to 2.20; recorded)"),
        (lambda: gccost.times(EXACT | {"source": "recorded"}), "2.00× (recorded)"),
        (lambda: gccost.times(GOOD | {"low": 0.5, "high": 2.5}), "between 0.500 and 2.50×"),
        (lambda: gccost.times(GOOD | {"low": math.nan, "n": 2}), "2.00× (2 processes)"),
        (lambda: gccost.ns(GOOD | {"low": math.nan, "n": 1}), "2.00 ns (1 process)"),
        (lambda: gccost.times({}), MISSING),
        (lambda: gccost.ns(pd.DataFrame(columns=["value", "low", "high", "n"])), MISSING),
        (
            lambda: gccost.ns({"more": 20.0, "more_low": 4.0, "more_high": 36.0}),
            "20.0 ns (4.00 to 36.0)",
        ),
    ],
)
def test_a_figure_is_quoted_as_well_as_it_is_known(shown, text):
    assert shown() == text


def test_a_sentence_that_lacks_a_figure_is_left_out():
    poor = gccost.times(GOOD | {"value": math.nan})
    text = f"""**In short.** On Go 1.27 it takes **{poor}** or
{gccost.ns({})}. It is [known](a.b).

- It takes {float("nan"):.1f} %. Nor was {poor}.
- Go 1.9 costs {pd.NA}, or 3.5 ns."""
    assert gccost.prose(text).markdown == """**In short.** It is [known](a.b)."""


def test_a_title_that_lacks_a_figure_states_no_finding(monkeypatch):
    shown = []
    monkeypatch.setattr(drawing, "display", shown.append)
    title = f"It takes {gccost.ns({})} on Go 1.27"
    with gccost.chart("some", title, pd.DataFrame({"value": [1]})):
        plt.figure()
    assert [chart.title for chart in shown] == ["Measured values"]


def test_the_sittings_of_a_cost_are_those_of_the_run_that_it_is_from():
    def figure(*values: float, **more: Any) -> Figure:
        made = {float(i): Sitting(each, 0.01 * each, 5) for i, each in enumerate(values, 1)}
        return Figure(made, 5 * len(values), **more)

    both = figure(10.0, recorded=figure(20.0, 30.0))
    for source, values in (("", [10.0]), (RECORDED, [20.0, 30.0])):
        row = pd.Series({"source": source, "figure": both})
        assert list(gccost.sittings(row)["value"]) == values


def test_the_time_of_an_operation_is_also_that_of_its_process(tmp_path):
    run = recordings.record(tmp_path, rounds=3)
    frame = of_run(run).frame
    expected = 1e9 * frame["elapsed_s"] / frame["operations"]
    assert frame["elapsed_ns"].notna().any()
    pd.testing.assert_series_equal(frame["elapsed_ns"], expected, check_names=False)
