"""The charts of chapter 02: where a finalizer's time goes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from gccost import rounding
from gccost.judging import published
from gccost.judging.claims.quantities import Share
from gccost.judging.claims.stacks import (
    ALLOCATING,
    CALLING_C,
    COLLECTING,
    FINALIZING,
    LINKING_IN,
    LOCKING,
    SETTING,
)
from gccost.judging.models import Line, line, objects_in_span
from gccost.judging.recording import Recording
from gccost.measuring.experiments.base import AUTO, FREE, HEAP_FREE, Arm, Ratio, profiled
from gccost.measuring.experiments.siebenmann import SIZES, sized, until_free
from gccost.measuring.profiles import Profile
from gccost.measuring.toolchains import TODAY_GO
from gccost.showing.charts.old import (
    NAMES,
    Curve,
    Dots,
    Mark,
    below,
    canvas,
    colour,
    costs,
    diamonds,
    dot_plot,
    draw,
    headline,
    in_percent,
    name_ends,
    nothing,
    plain_ticks,
    points,
    release,
    row,
    ticks_between,
    timings,
)
from gccost.showing.figures import BLUE, GREEN, INK, ORANGE, PURPLE, Chart, finish, style
from gccost.stats import Estimate, amount

WORD = 8  # bytes of a pointer
MECHANISMS = ("Allocate", "Finalize", "Cleanup")


def _newest(recording: Recording) -> str:
    """Today's release, or the newest that was measured."""
    return TODAY_GO if TODAY_GO in recording.releases else (*recording.releases, TODAY_GO)[-1]


# --- What each way to free costs ---------------------------------------------------


def heap(recording: Recording) -> Chart:
    """How much of a finalizer's cost is that its handle is on the heap."""
    parts = [part for go in recording.releases if (part := _of_the_heap(recording, go)) is not None]
    title = (
        "Of what a finalizer adds to a manual free, that its handle is on the heap explains "
        + " and ".join(parts)
    )
    return timings(
        recording,
        "siebenmann-heap",
        costs((FREE, HEAP_FREE, AUTO), FREE, {}),
        title if parts else "How much of a finalizer's cost is the heap's was not measured",
        "wall time per operation (ns); in brackets: against a manual free",
    )


def _of_the_heap(recording: Recording, go: str) -> str | None:
    by_heap, all_of_it = (recording.added(Ratio(arm, FREE), go) for arm in (HEAP_FREE, AUTO))
    if not by_heap.samples or not all_of_it.samples:
        return None
    if all_of_it.value <= 0:
        return f"nothing on Go {go}, where it adds nothing"
    if by_heap.value <= 0:
        return f"nothing on Go {go}"
    return f"{rounding.percent(by_heap.value / all_of_it.value)} on Go {go}"


# --- The profile -------------------------------------------------------------------

_EMPTY = "EmptyFinalizer"
# What is drawn: the functions, what they must stand within, and the document's
# rows of its own profile that are the same share.
PROFILE: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "SetFinalizer": (SETTING, (), ("SetFinalizer",)),
    "of it, linking in\n(addspecial)": (LINKING_IN, (), ()),
    "collecting": (COLLECTING, (), ("GC",)),
    "of it, triggered\nby allocating": (COLLECTING, ALLOCATING, ("GC triggered by allocation",)),
    "of it, finding,\nqueueing, running": (
        FINALIZING,
        (),
        ("processing and running finalizers",),
    ),
    "locks (lock2,\nunlock2)": (LOCKING, (), ("runtime.lock2", "runtime.unlock2")),
}


def profile(recording: Recording) -> Chart:
    """Where the time of an empty finalizer goes."""
    printed = published.table("siebenmann-profile").set_index("share")["percent"].astype(float)
    panels: dict[str, list[Dots]] = {}
    data, titled, said = [], [], []
    for go in recording.releases:
        arm = profiled(_EMPTY)
        if not recording.profiles(arm, go):
            continue
        for name, (functions, within, rows) in PROFILE.items():
            marks = [Mark(float(printed[list(rows)].sum()))] if rows else []
            flat = name.replace("\n", " ")
            share = Share(arm, functions, within)
            estimate = in_percent(recording.share(share, go))
            values = [100 * float(v) for v in recording.shares(share, go)]
            label = f"{rounding.plain(estimate.value)} %"
            dots = Dots(name, values, estimate, label, marks=marks)
            panels.setdefault(release(recording, go), []).append(dots)
            data.append(row(flat, go, estimate, unit="%"))
            said.append(f"Go {go}, {flat} {label}")
        setting, collecting = (
            rounding.percent(recording.share(Share(arm, functions), go).value)
            for functions in (SETTING, COLLECTING)
        )
        titled.append(f"{setting} is SetFinalizer and {collecting} collecting on Go {go}")
    if not panels:
        return nothing("siebenmann-profile", "The empty finalizer was not profiled")
    title = "Of an empty finalizer's CPU time " + "; ".join(titled)
    with style():
        figure, _ = dot_plot(
            panels,
            title,
            "share of the CPU profile whose stacks hold it (%); shares overlap\n"
            "hollow diamonds: as published, on a machine that is not named",
            most=100,
        )
        plt.close(figure)
    alt = "A dot plot of shares of the CPU profile, which overlap: " + "; ".join(said)
    return finish(
        figure, name="siebenmann-profile", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


# --- The flame graph ---------------------------------------------------------------

_DEPTH = 14  # of frames drawn
_LEAST = 0.007  # share of the time below which a frame is not drawn
_KINDS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("SetFinalizer", SETTING, BLUE),
    ("collecting", COLLECTING, ORANGE),
    ("calling C", CALLING_C, GREEN),
)
_OTHER = "#b6bdc5"
_BLACK, _WHITE = "#000000", "#ffffff"  # on a frame's own colour, whatever the page's


@dataclass
class Frame:
    """A function on a stack, with the time of all stacks that go through it there."""

    name: str
    time: int = 0
    callees: dict[str, Frame] = field(default_factory=dict)


def merged(profiles: Sequence[Profile]) -> Frame:
    """The stacks of all profiles as one tree, from the outermost function."""
    root = Frame("all")
    for found in profiles:
        for stack, time in found.stacks:
            root.time += time
            frame = root
            for name in stack:
                frame = frame.callees.setdefault(name, Frame(name))
                frame.time += time
    return root


@dataclass(frozen=True)
class Box:
    """A frame's place in a flame graph; left and width are shares of the whole."""

    path: tuple[str, ...]
    left: float
    width: float
    kind: str

    @property
    def depth(self) -> int:
        return len(self.path)

    @property
    def shown(self) -> str:
        return self.path[-1].removeprefix("runtime.")


def boxes(root: Frame) -> Iterator[Box]:
    """The frames that are drawn, the dearest first and left."""
    if root.time:
        yield from _boxes(root, (), 0.0, "the rest", root.time)


def _boxes(
    frame: Frame, above: tuple[str, ...], left: float, kind: str, whole: int
) -> Iterator[Box]:
    for callee in sorted(frame.callees.values(), key=lambda f: (-f.time, f.name)):
        width = callee.time / whole
        if width < _LEAST:
            continue
        path = (*above, callee.name)
        own = next((k for k, functions, _ in _KINDS if callee.name in functions), kind)
        yield Box(path, left, width, own)
        if len(path) < _DEPTH:
            yield from _boxes(callee, path, left, own, whole)
        left += width


def flame(recording: Recording) -> Chart:
    """The stacks of the empty finalizer's profiles, the outermost function at the top."""
    go, arm = _newest(recording), profiled(_EMPTY)
    found = list(recording.profiles(arm, go).values())
    drawn = list(boxes(merged(found)))
    if not drawn:
        return nothing("siebenmann-flame", f"The empty finalizer was not profiled on Go {go}")
    setting, collecting = (
        rounding.percent(recording.share(Share(arm, functions), go).value)
        for functions in (SETTING, COLLECTING)
    )
    title = (
        f"An empty finalizer on Go {go}: {setting} of the CPU time is under SetFinalizer, "
        f"{collecting} under collecting"
    )
    depth = max(box.depth for box in drawn)
    inks = {kind: ink for kind, _, ink in _KINDS} | {"the rest": _OTHER}
    with style():
        figure, (axes,) = canvas([0.62 * depth + 0.6])
        for box in drawn:
            _frame(axes, box, inks[box.kind])
        axes.set_xlim(0, 100)
        axes.set_ylim(depth + 0.05, -1.0)
        axes.set_yticks([])
        axes.grid(visible=False)
        left = 0.0
        for kind in dict.fromkeys(box.kind for box in drawn):
            axes.add_patch(Rectangle((left, -0.75), 2, 0.5, color=inks[kind], linewidth=0))
            axes.text(left + 2.7, -0.5, kind, va="center", fontsize=9)
            left += 5 + 1.4 * len(kind)
        axes.set_xlabel(
            "share of the CPU time (%); each function stands below the one that called it,\n"
            f"what is under {rounding.plain(100 * _LEAST, 1)} % or deeper than {_DEPTH} is left out"
        )
        headline(figure, title)
        plt.close(figure)
    data = pd.DataFrame(
        [
            {
                "depth": box.depth,
                "function": box.path[-1],
                "called_by": box.path[-2] if box.depth > 1 else "",
                "left_percent": 100 * box.left,
                "percent": 100 * box.width,
                "kind": box.kind,
                "go": go,
            }
            for box in drawn
        ]
    )
    widest = sorted(drawn, key=lambda box: (-box.width, box.depth, box.path))[:12]
    alt = f"A flame graph of {len(drawn)} frames; the widest: " + ", ".join(
        f"{box.shown} {rounding.percent(box.width)}" for box in widest
    )
    return finish(figure, name="siebenmann-flame", title=title, alt=alt + ".", data=data)


def _frame(axes: Axes, box: Box, ink: str) -> None:
    left, width = rounding.rounded(100 * box.left), rounding.rounded(100 * box.width)
    axes.add_patch(
        Rectangle(
            (left, box.depth - 1), width, 0.94, facecolor=ink, edgecolor=_WHITE, linewidth=0.4
        )
    )
    letters = int(0.98 * width) - 1  # at this size of the letters and width of the figure
    name = box.shown if len(box.shown) <= letters else box.shown[: letters - 1] + "…"
    if letters >= 4:
        axes.text(
            left + 0.5,
            box.depth - 0.52,
            name,
            va="center",
            fontsize=7.5,
            color=_WHITE if ink == BLUE else _BLACK,
        )


# --- Cycles until the memory is gone ---------------------------------------------------

_CYCLES = {"Plain": 1.0, "Cleanup": None, "Finalizer": 2.0}  # as published


def cycles(recording: Recording) -> Chart:
    """How many garbage collections it takes until a dropped object's memory is gone."""
    panels: dict[str, list[Dots]] = {}
    data, titled, said = [], [], []
    for go in recording.releases:
        found = {}
        for what, figure_ in _CYCLES.items():
            arm = until_free(what)
            estimate = recording.amount(arm, go, "gc-cycles-to-free")
            if not estimate.samples:
                continue
            name = NAMES[arm.benchmark]
            found[name] = _cycles_label(estimate.value)
            points = list(recording.samples(arm, go)["gc-cycles-to-free"].dropna())
            marks = [Mark(figure_)] if figure_ is not None else []
            dots = Dots(name, points, estimate, found[name], colour(arm), marks)
            panels.setdefault(release(recording, go), []).append(dots)
            data.append(row(arm.benchmark, go, estimate, unit="cycles"))
            said.append(f"Go {go}, {name} {rounding.plain(estimate.value)}")
        if found:
            titled.append(", ".join(f"{name} {n}" for name, n in found.items()) + f" on Go {go}")
    if not panels:
        return nothing(
            "siebenmann-cycles", "How many collections free a dropped object was not measured"
        )
    title = "Garbage collections until a dropped object's memory is gone: " + "; ".join(titled)
    with style():
        figure, all_axes = dot_plot(
            panels, title, "garbage collections (GC cycles)\nhollow diamonds: as published"
        )
        most = max(axes.get_xlim()[1] for axes in all_axes)
        for axes in all_axes:
            axes.set_xticks(range(int(most) + 1))
        plt.close(figure)
    alt = "A dot plot of GC cycles: " + "; ".join(said)
    return finish(
        figure, name="siebenmann-cycles", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


def _cycles_label(cycles: float) -> str:
    return rounding.count(cycles) if cycles.is_integer() else rounding.plain(cycles)


# --- The object's size ------------------------------------------------------------------


def _levels(recording: Recording, benchmark: str, gogc: str, go: str, metric: str) -> Curve | None:
    """A benchmark's metric over the object's size; None if nothing was measured."""
    xs, estimates, values = [], [], []
    for words in SIZES:
        arm = sized(benchmark, words, gogc)
        estimate = recording.level(arm, go, metric)
        if estimate.samples:
            xs.append(float(WORD * words))
            estimates.append(estimate)
            values.append(list(recording.samples(arm, go)[metric].dropna()))
    name = NAMES[benchmark] + (", GC off" if gogc == "off" else "")
    ink = colour(Arm(benchmark))
    return Curve(name, xs, estimates, values, ink, dashed=gogc == "off") if xs else None


def _published_sizes() -> pd.DataFrame:
    """The published curve: a column per benchmark (ns), indexed by bytes."""
    table = published.table("siebenmann-sizes")
    table = table.assign(bytes=WORD * table["words"])
    found: pd.DataFrame = table.pivot_table(
        index="bytes", columns="variant", values="ns_per_op"
    ).astype(float)
    return found


def _added(recording: Recording, go: str, gogc: str = "100") -> dict[int, Estimate]:
    """What a finalizer adds at each size that was measured, in ns, by bytes."""
    found = {
        WORD * words: recording.added(
            Ratio(sized("Finalize", words, gogc), sized("Allocate", words, gogc)), go
        )
        for words in SIZES
    }
    return {size: estimate for size, estimate in found.items() if estimate.samples}


def sizes(recording: Recording) -> Chart:
    """The time per operation over the object's size, with and without a finalizer."""
    curves = {
        go: [
            curve
            for gogc in ("100", "off")
            for name in MECHANISMS
            if (curve := _levels(recording, name, gogc, go, "ns/op")) is not None
        ]
        for go in recording.releases
    }
    curves = {go: found for go, found in curves.items() if found}
    if not curves:
        return nothing("siebenmann-sizes", "No object size was measured")
    printed = _published_sizes()
    titled = []
    for go in curves:
        added = {size: estimate.value for size, estimate in _added(recording, go).items()}
        if len(added) < 2:
            continue
        least, most = (pick(added, key=lambda size: added[size]) for pick in (min, max))
        titled.append(
            f"{rounding.nanoseconds(added[most])} at {most:,} bytes (most) and "
            f"{rounding.nanoseconds(added[least])} at {least:,} (least) on Go {go}"
        )
    title = "A finalizer adds " + "; ".join(titled)
    if not titled:
        title = "What a finalizer adds over the object's size was not measured"
    data = [
        row(c.name, go, e, bytes=x, unit="ns/op")
        for go, found in curves.items()
        for c in found
        for x, e in zip(c.xs, c.estimates, strict=True)
    ]
    with style():
        figure, all_axes = canvas([12] * len(curves))
        for axes, (go, found) in zip(all_axes, curves.items(), strict=True):
            _over_sizes(axes, found)
            for name in printed:
                xs, ys = list(printed.index), list(printed[name])
                axes.plot(xs, ys, color=PURPLE, linewidth=0.8, zorder=1)
                diamonds(axes, [(x, y, "D") for x, y in zip(xs, ys, strict=True)])
            axes.set_yscale("log")
            axes.set_title(release(recording, go))
        low = min(axes.get_ylim()[0] for axes in all_axes)
        high = max(axes.get_ylim()[1] for axes in all_axes)
        for axes, found in zip(all_axes, curves.values(), strict=True):
            axes.set_ylim(low, high)
            plain_ticks(axes, "y", ticks_between(low, high))
            axes.set_ylabel("ns per operation (log)")
            name_ends(axes, [(c.estimates[-1].value, c.name, c.colour) for c in found])
        below(
            figure,
            "object size (bytes, log); thin dashed: with the GC off\n"
            "hollow purple diamonds: as published, with a finalizer above, without below",
        )
        headline(figure, title)
        plt.close(figure)
    alt = "A line chart of the time per operation over the object's size: " + _said(curves)
    return finish(
        figure, name="siebenmann-sizes", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


def _over_sizes(axes: Axes, curves: Sequence[Curve]) -> None:
    for curve in curves:
        draw(axes, curve)
    axes.set_xscale("log", base=2)
    axes.set_xlim(WORD / 1.25, WORD * SIZES[-1] * 1.25)
    places = [WORD * words for words in SIZES]
    axes.set_xticks(places, [f"{x:,}" for x in places])
    axes.minorticks_off()


def _said(curves: dict[str, list[Curve]]) -> str:
    return "; ".join(
        f"Go {go}, {c.name}: "
        + ", ".join(
            f"{rounding.nanoseconds(e.value)} at {x:,.0f} bytes"
            for x, e in zip(c.xs, c.estimates, strict=True)
        )
        for go, found in curves.items()
        for c in found
    )


# --- A line in the objects of a span ---------------------------------------------------

_FITTED_UP_TO = 256  # bytes: above, what it takes to fill the object hides the rest
_FIT_COLOURS = (BLUE, ORANGE, GREEN)


def fit(recording: Recording) -> Chart:
    """What a finalizer adds against how many objects share a span, with lines fitted."""
    printed = _published_sizes().loc[:_FITTED_UP_TO]
    gap = printed["Finalize"] - printed["Allocate"]
    document = recording.experiment.document
    counts = [float(objects_in_span(int(size), document)) for size in gap.index]
    theirs = line(counts, gap.to_numpy())
    ours: dict[str, tuple[dict[int, Estimate], Line]] = {}
    for go in recording.releases:
        added = {s: e for s, e in _added(recording, go).items() if s <= _FITTED_UP_TO}
        xs = [float(objects_in_span(size, go)) for size in added]
        fitted = line(xs, [e.value for e in added.values()])
        if math.isfinite(fitted.slope):
            ours[go] = added, fitted
    if not ours:
        return nothing(
            "siebenmann-fit", "What a finalizer adds was measured at too few sizes to fit a line"
        )
    title = "What a finalizer adds for each object more in the span: "
    title += ", ".join(f"{_slope(fitted)} on Go {go}" for go, (_, fitted) in ours.items())
    title += f" (published: {_slope(theirs)})"
    data: list[dict[str, object]] = []
    ends: list[tuple[float, str, str]] = []
    said = [_fitted("published", theirs)]
    with style():
        figure, (axes,) = canvas([13])
        right = max(counts)
        axes.plot([0, right], [theirs.at(0), theirs.at(right)], color=PURPLE, linewidth=0.9)
        diamonds(axes, [(x, y, "D") for x, y in zip(counts, gap, strict=True)])
        ends.append((theirs.at(right), _fitted("published", theirs), PURPLE))
        for i, (go, (added, fitted)) in enumerate(ours.items()):
            ink = _FIT_COLOURS[i % len(_FIT_COLOURS)]
            xs = [float(objects_in_span(size, go)) for size in added]
            estimates = list(added.values())
            raw = [_by_round(recording, size, go) for size in added]
            points(axes, Curve(go, xs, estimates, raw, ink))
            axes.scatter(xs, [rounding.rounded(e.value) for e in estimates], s=30, color=ink)
            axes.plot([0, right], [fitted.at(0), fitted.at(right)], color=ink, linewidth=1.6)
            ends.append((fitted.at(right), _fitted(f"Go {go}", fitted), ink))
            data += [
                row(
                    "Finalize - Allocate",
                    go,
                    estimate,
                    objects_in_span=x,
                    bytes=size,
                    unit="ns",
                    slope=fitted.slope,
                    intercept=fitted.intercept,
                    r2=fitted.r2,
                )
                for x, (size, estimate) in zip(xs, added.items(), strict=True)
            ]
            said.append(
                _fitted(f"Go {go}", fitted)
                + " through "
                + ", ".join(
                    f"{rounding.nanoseconds(e.value)} at {x:,.0f} objects"
                    for x, e in zip(xs, estimates, strict=True)
                )
            )
        axes.set_xlim(0, right * 1.03)
        highest = [e.value for added, _ in ours.values() for e in added.values()]
        axes.set_ylim(0, 1.25 * max(*highest, *gap))
        axes.set_ylabel("added by a finalizer (ns)")
        below(
            figure,
            f"objects in a span, for sizes of {_FITTED_UP_TO} bytes (left) down to 8 (right)\n"
            "hollow purple diamonds: as published, with their line",
        )
        name_ends(axes, ends, gap=0.17)
        headline(figure, title)
        plt.close(figure)
    alt = "A scatter chart with fitted lines: " + "; ".join(said).replace("\n", " ")
    return finish(
        figure, name="siebenmann-fit", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


def _by_round(recording: Recording, size: int, go: str) -> list[float]:
    words = size // WORD
    allocated = recording.level(sized("Allocate", words), go).value
    return [float(v - allocated) for v in recording.values(sized("Finalize", words), go)]


def _slope(found: Line) -> str:
    return rounding.nanoseconds(found.slope)


def _fitted(name: str, found: Line) -> str:
    sign = "+" if found.slope >= 0 else "−"
    formula = f"{rounding.plain(found.intercept)} {sign} {rounding.plain(abs(found.slope))} ns each"
    return f"{name}\n{formula}\nr² {rounding.plain(found.r2)}"


# --- Page faults -----------------------------------------------------------------------


def faults(recording: Recording) -> Chart:
    """Page faults per operation over the object's size, with the GC on and off."""
    go = _newest(recording)
    found: dict[tuple[str, str], Curve] = {}
    times: dict[tuple[str, str], Curve] = {}
    for gogc in ("100", "off"):
        for name in ("Allocate", "Finalize"):
            time = _levels(recording, name, gogc, go, "ns/op")
            if time is not None:
                times[name, gogc] = time
                found[name, gogc] = _faulted(recording, name, gogc, go)
    if not found:
        return nothing("siebenmann-faults", f"No object size was measured on Go {go}")
    title = _faults_title(found, times, go)
    data: list[dict[str, object]] = []
    with style():
        figure, (axes,) = canvas([14])
        for key, curve in found.items():
            draw(axes, curve)
            for x, estimate, ns in zip(
                curve.xs, curve.estimates, times[key].estimates, strict=True
            ):
                data.append(
                    row(
                        key[0],
                        go,
                        estimate,
                        gogc=key[1],
                        bytes=x,
                        unit="faults/op",
                        ns_per_op=ns.value,
                    )
                )
        _over_sizes(axes, [])
        highest = max(e.value for curve in found.values() for e in curve.estimates)
        axes.set_ylim(-0.03 * (highest or 1.0), 1.2 * (highest or 1.0))
        axes.set_ylabel("page faults per operation")
        below(figure, "object size (bytes, log); small figures: ns per operation")
        _times_at_points(axes, found, times)
        name_ends(
            axes,
            [(c.estimates[-1].value, _last(c, times[key]), c.colour) for key, c in found.items()],
            gap=0.1,
        )
        axes.set_title(release(recording, go))
        headline(figure, title)
        plt.close(figure)
    alt = "A line chart of page faults per operation over the object's size: " + "; ".join(
        f"{c.name}: "
        + ", ".join(
            f"{rounding.plain(e.value)} faults and {rounding.nanoseconds(ns.value)} at {x:,.0f} "
            "bytes"
            for x, e, ns in zip(c.xs, c.estimates, times[key].estimates, strict=True)
        )
        for key, c in found.items()
    )
    return finish(
        figure, name="siebenmann-faults", title=title, alt=alt + ".", data=pd.DataFrame(data)
    )


def _faulted(recording: Recording, name: str, gogc: str, go: str) -> Curve:
    """Page faults per operation over the object's size."""
    xs, estimates, values = [], [], []
    for words in SIZES:
        samples = recording.samples(sized(name, words, gogc), go)
        if len(samples):
            each = (samples["faults"] / samples["n"]).dropna()
            xs.append(float(WORD * words))
            estimates.append(amount(each))
            values.append([float(v) for v in each])
    title = NAMES[name] + (", GC off" if gogc == "off" else ", GC on")
    return Curve(title, xs, estimates, values, colour(Arm(name)), dashed=gogc == "off")


def _faults_title(
    found: dict[tuple[str, str], Curve], times: dict[tuple[str, str], Curve], go: str
) -> str:
    parts = []
    size = 0.0
    for gogc, words in (("off", "off"), ("100", "on")):
        key = ("Finalize", gogc)
        if key in found:
            size = found[key].xs[-1]
            parts.append(
                f"{rounding.plain(found[key].estimates[-1].value)} page faults and "
                f"{rounding.nanoseconds(times[key].estimates[-1].value)} with the GC {words}"
            )
    if not parts:
        return f"What page faults a finalizer's objects take on Go {go} was not measured"
    title = f"On Go {go} an object of {size:,.0f} bytes with a finalizer takes " + ", ".join(parts)
    if ("Finalize", "off") not in found:
        title += "; with the GC off it was not measured"
    return title


def _times_at_points(
    axes: Axes, found: dict[tuple[str, str], Curve], times: dict[tuple[str, str], Curve]
) -> None:
    """The time at the points of the finalizer's curves that lie clear of the axis."""
    lowest = 0.12 * axes.get_ylim()[1]
    for gogc, offset, side in (("off", (-6, 5), "right"), ("100", (6, -11), "left")):
        key = ("Finalize", gogc)
        if key not in found:
            continue
        curve = found[key]
        shown = zip(curve.xs, curve.estimates, times[key].estimates, strict=True)
        for x, estimate, ns in list(shown)[:-1]:
            if estimate.value > lowest:
                axes.annotate(
                    rounding.nanoseconds(ns.value),
                    (x, rounding.rounded(estimate.value)),
                    xytext=offset,
                    textcoords="offset points",
                    ha=side,
                    fontsize=8,
                    color=INK,
                )


def _last(curve: Curve, times: Curve) -> str:
    return f"{curve.name}:\n{rounding.nanoseconds(times.estimates[-1].value)}"
