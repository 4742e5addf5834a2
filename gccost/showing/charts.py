"""The style and output formats of every chart.

A chart is an SVG whose colours follow the page (light or dark), an alt text for where
JupyterLab does not trust the notebook, and its data as CSV.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from gccost.costs import method
from gccost.judging import rounding
from gccost.showing import provenance

INK, MUTED, GRID = "#1f2328", "#59636e", "#d1d9e0"

VAGUE = "#767676"  # of figures whose interval is too wide for their colour

# The hues of Okabe and Ito, as dark as text on white must be; a dark page has lighter ones.
BLUE, ORANGE, GREEN, PURPLE = "#0067a3", "#b34700", "#00765a", "#97358a"

_NAMES = {INK: "ink", MUTED: "muted", GRID: "grid", VAGUE: "vague"}
_NAMES |= {"#333333": "ink"}  # seaborn's, in a legend of sizes
_NAMES |= {BLUE: "blue", ORANGE: "orange", GREEN: "green", PURPLE: "purple"}

# Each ink's marker, and the same in text, so that no chart is told by colour alone.
MARKERS: Mapping[str, tuple[str, str]] = {
    BLUE: ("o", "●"),
    ORANGE: ("s", "■"),
    GREEN: ("^", "▲"),
    PURPLE: ("P", "✚"),
    INK: ("v", "▼"),
    MUTED: ("*", "★"),
}

STYLE: Mapping[str, Any] = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.formatter.min_exponent": 6,  # 60 on a log axis, not 6×10¹
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelcolor": INK,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "figure.facecolor": "none",
    "figure.dpi": 110,
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "gccost",
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.left": False,
}
STORY = ("headlines", "lemire-cost", "why-span", "runtime-cost", "remedies-cost")
"""The charts that tell the story, which a report also writes as PNG."""
PICTURES = "GCCOST_PICTURES"
"""The environment variable with the folder of these files."""
SAYS = "says: "
"""What the id of a mark begins with that says something if one points at it."""
WIDTH = 5.8  # inches; readable on a phone, where a chart is as wide as the page


@dataclass(frozen=True, repr=False)
class Chart:
    """A finished chart: its name, the finding as its title, alt text, and data.

    Where no picture can be shown, it is its alt text.
    """

    name: str
    title: str
    alt: str
    data: pd.DataFrame
    svg: str
    figure: Figure = field(compare=False)

    def __repr__(self) -> str:
        return self.alt

    @property
    def png(self) -> bytes:
        """The same picture as PNG, for where no SVG can be shown."""
        raster = io.BytesIO()
        dpi = self.figure.dpi
        self.figure.set_layout_engine("none")  # what is laid out stays as it is
        with style():
            self.figure.set(facecolor="white")
            FigureCanvasAgg(self.figure).print_png(raster, metadata={"Software": None})
        self.figure.set(dpi=dpi)
        return raster.getvalue()

    def csv(self) -> str:
        """The data as CSV, with rounded numbers, and the run, machine and date of each row."""
        first = self.data.head(1)  # of a column of costs, every value is for derive
        for_derive = [name for name in first if isinstance(first[name].squeeze(), method.Figure)]
        written = provenance.stated(self.data.drop(columns=for_derive))
        for column in written.select_dtypes("number"):
            known = written[column].astype(float)  # a key that a case lacks is NA
            written[column] = known.map(rounding.written)
        return str(written.to_csv(index=False, lineterminator="\n"))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        bundle = {
            "image/svg+xml": self.svg,
            "text/plain": self.alt,
            "text/csv": self.csv(),
        }
        return bundle, {"gccost": {"chart": self.name, "title": self.title}}


def as_file(svg: str) -> str:
    """An SVG for a file of its own, where no page gives it colours."""
    return re.sub(r"var\(--\w+, (#\w+)\)", r"\1", svg)


def style() -> Any:
    """A context manager that applies the charts' style."""
    import seaborn as sns  # takes a second to load

    settings: dict[Any, Any] = {**sns.axes_style("whitegrid"), **STYLE}
    return mpl.rc_context(settings)


def finish(figure: Figure, *, name: str, title: str, alt: str, data: pd.DataFrame) -> Chart:
    """Make a chart of a drawn figure."""
    vector = io.StringIO()
    dpi = figure.dpi
    # Not by savefig, which lays out and draws everything once more before it does so.
    with style():
        FigureCanvasSVG(figure).print_svg(vector, metadata={"Date": None, "Creator": None})
    figure.set(dpi=dpi)  # which the canvas changed
    svg = _for_a_page(vector.getvalue(), name)
    return Chart(name, title, f"{title}. {alt}", data, svg, figure)


def _for_a_page(svg: str, name: str) -> str:
    """Return the SVG element with unique ids and the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(rf"<g id=(['\"]){SAYS}(.*?)\1>", r"<g><title>\2</title>", svg)
    # Round coordinates to a hundredth of a point; text between tags is unchanged.
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), svg)
    svg = _DOTS.sub(_as_paths, svg)
    # Matplotlib names shapes by a hash of their exact coordinates, whose last bits vary.
    shapes: dict[str, str] = {}
    svg = re.sub(
        r"\b([mp])[0-9a-f]{10}\b", lambda m: shapes.setdefault(m[0], f"{m[1]}{len(shapes)}"), svg
    )
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    # If the page defines no background, a dark page must not show through.
    svg = svg.replace("<svg ", '<svg style="background: var(--paper, #ffffff)" ', 1)
    for colour, name in _NAMES.items():
        svg = re.sub(rf"(?<=[:\s]){colour}", f"var(--{name}, {colour})", svg)
    return svg


# The dots of a line's raw samples: copies of a circle, in one style.
_DOTS = re.compile(
    r'<g( clip-path="[^"]*")>'
    r'((?:\s*<use xlink:href="#(\w+)"[^>]* style="fill: (#\w+); fill-opacity: ([\d.]+)"/>)+)\s*</g>'
)


def _as_paths(dots: re.Match[str]) -> str:
    """Draw dots as a few paths of points with round ends, which take a tenth of the bytes.

    A path has one opacity, so dots that overlap, which is darker, are in different paths.
    """
    clip, uses, circle, colour, opacity = dots.groups()
    (radius,) = re.findall(rf'id="{circle}" d="M 0 ([\d.]+)', dots.string)
    width = 2 * float(radius)
    paths: list[list[tuple[float, float]]] = []
    for at in re.findall(r' x="([^"]+)" y="([^"]+)"', uses):
        dot = float(at[0]), float(at[1])
        for path in paths:
            if all(math.dist(dot, other) >= width for other in path):
                path.append(dot)
                break
        else:
            paths.append([dot])
    style = f"fill: none; stroke: {colour}; stroke-opacity: {opacity}; stroke-width: {width:g}"
    end = f'"{clip} style="{style}; stroke-linecap: round"/>'
    drawn = ""
    for path in paths:
        points = "".join(f"M{x:g} {y:g}h0" for x, y in path)
        drawn += f'<path d="{points}{end}'
    return drawn
