"""Plots by Matplotlib: SVG for a page, in the page's own colours, and PNG for all else.

The same data make the same bytes: no dates, no random ids, no fonts of the machine.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from llmpipe.core.libraries import needs
from llmpipe.reports.document import Chart, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INSTALL = "pip install 'llmpipe[report]'"

# Okabe and Ito's palette, without its yellow, which white paper swallows.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_STATUS = {
    "correct": "#009e73",
    "wrong": "#d55e00",
    "no answer": "#e69f00",
    "truncated": "#56b4e9",
    "error": "#999999",
}
_HATCHES = {"wrong": "///", "no answer": "...", "truncated": "\\\\\\", "error": "xxx"}
_MARKERS = "osD^vP"
_DASHES = ("-", "--", ":", "-.")
_INK, _GRID = "#1f2328", "#d0d7de"
# What a page has instead, by its style: lighter colours where it is dark.
_IN_PAGE = {
    _INK: "currentColor",
    _GRID: "var(--line)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(_COLOURS)},
}
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib
    "font.size": 10,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "hatch.linewidth": 0.6,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
}
_DPI = 160
_LONG = 44  # letters of a name; at an axis there is room for fewer
_LONG_AT_AXIS = 24


def draw(chart: Chart) -> tuple[str, bytes]:
    """The chart as an ``<svg>`` element and as a PNG file.

    Raises:
        UserError: Matplotlib is missing.
    """
    with needs("matplotlib", INSTALL):
        import matplotlib
        from matplotlib.backends import backend_agg, backend_svg  # noqa: F401 - loads them
        from matplotlib.figure import Figure

    style: Any = {**matplotlib.rcParamsDefault, **_STYLE, "svg.hashsalt": chart.name}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(7.2, _height(chart)), layout="constrained")
        axes = figure.subplots()
        _DRAW[chart.kind](axes, chart)
        _legend(figure, axes)
        svg = io.StringIO()
        none = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(svg, format="svg", transparent=True, metadata=none)
        axes.set_title(chart.title, loc="left", fontsize=11)
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})
    return _element(svg.getvalue(), chart), png.getvalue()


def _curve(axes: Axes, chart: Chart) -> None:
    most = max((p.x for series in chart.series for p in series.points), default=1)
    alone = len(chart.series) == 1
    for i, series in enumerate(chart.series):
        if not series.points:
            continue
        x, colour = [p.x for p in series.points], _colour(i)
        bands = [("low", "high", 0.16), ("low_here", "high_here", 0.3)]
        for (low, high, alpha), name in zip(bands, chart.bands, strict=False):
            lows = [_or(getattr(p, low), p.value) for p in series.points]
            highs = [_or(getattr(p, high), p.value) for p in series.points]
            label = name if alone else None
            axes.fill_between(x, lows, highs, color=colour, alpha=alpha, linewidth=0, label=label)
        axes.plot(
            x,
            [p.value for p in series.points],
            color=colour,
            linestyle=_DASHES[i // len(_COLOURS) % len(_DASHES)],
            marker=_MARKERS[i % len(_MARKERS)],
            markevery=_powers(x),
            markerfacecolor=_fill(i),
            markersize=5,
            label=_drawable(series.label, i) if not alone else chart.y,
        )
    axes.set_xscale("log", base=2)
    ticks = [2**i for i in range(most.bit_length())]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    _axes(axes, chart)


def _points(axes: Axes, chart: Chart) -> None:
    for i, series, at in _beside(chart, 0.5):
        for place, p in zip(at, series.points, strict=True):
            for low, high, width, alpha in (
                (p.low, p.high, 1.5, 0.7),
                (p.low_here, p.high_here, 4.0, 0.6),
            ):
                if low is not None and high is not None:
                    axes.plot(
                        [place, place],
                        [low, high],
                        color=_colour(i),
                        linewidth=width,
                        alpha=alpha,
                        solid_capstyle="butt",
                    )
        axes.plot(
            at,
            [p.value for p in series.points],
            color=_colour(i),
            linestyle="none",
            marker=_MARKERS[i % len(_MARKERS)],
            markerfacecolor=_fill(i),
            label=_drawable(series.label, i) if len(chart.series) > 1 else None,
        )
    _categories(axes, chart)


def _bars(axes: Axes, chart: Chart) -> None:
    for i, series, at in _beside(chart, 0.8):
        axes.bar(
            at,
            [p.value for p in series.points],
            0.8 / len(chart.series),
            color=_colour(i),
            hatch="////" if i >= len(_COLOURS) else None,
            edgecolor=_INK,
            linewidth=0,
            label=_drawable(series.label, i) if len(chart.series) > 1 else None,
        )
    _categories(axes, chart)


def _stack(axes: Axes, chart: Chart) -> None:
    starts = [0.0] * len(chart.categories)
    for series in chart.series:
        values = [p.value for p in series.points]
        axes.barh(
            range(len(values)),
            values,
            0.7,
            left=starts,
            color=_STATUS[series.label],
            hatch=_HATCHES.get(series.label),
            edgecolor=_INK,
            linewidth=0.4,
            label=series.label,
        )
        starts = [a + b for a, b in zip(starts, values, strict=True)]
    names = [_drawable(name, i, _LONG_AT_AXIS) for i, name in enumerate(chart.categories)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel(chart.y)
    axes.grid(axis="x")


_DRAW = {"curve": _curve, "points": _points, "bars": _bars, "stack": _stack}


def _axes(axes: Axes, chart: Chart) -> None:
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    axes.grid(axis="y")
    axes.set_ylim(*((-0.02, 1.02) if chart.share else (0, None)))


def _categories(axes: Axes, chart: Chart) -> None:
    names = [_drawable(name, i, _LONG_AT_AXIS) for i, name in enumerate(chart.categories)]
    leaning = sum(map(len, names)) + 2 * len(names) > 80
    turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(names)), names, **(turned if leaning else {}))
    axes.set_xlim(-0.6, len(names) - 0.4)
    _axes(axes, chart)


def _beside(chart: Chart, room: float) -> Iterator[tuple[int, Series, list[float]]]:
    """Each series with the places of its points: those of one category are side by side."""
    step = room / len(chart.series)
    for i, series in enumerate(chart.series):
        shift = (i - (len(chart.series) - 1) / 2) * step
        yield i, series, [p.x + shift for p in series.points]


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns = max(1, min(4, 90 // (max(map(len, labels)) + 6)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9)


def _height(chart: Chart) -> float:
    if chart.kind == "stack":
        return 1.5 + 0.42 * len(chart.categories)
    return 3.9 + 0.2 * (len(chart.series) // 3)


def _powers(x: Sequence[int]) -> list[int]:
    """Where a line of many k has its marks: at powers of two and at its end."""
    return [i for i, k in enumerate(x) if k & (k - 1) == 0 or i == len(x) - 1]


def _colour(i: int) -> str:
    return _COLOURS[i % len(_COLOURS)]


def _fill(i: int) -> str:
    """Of a mark: those of the colours' second round are hollow."""
    return _colour(i) if i < len(_COLOURS) else "none"


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _drawable(name: str, number: int, longest: int = _LONG) -> str:
    """A name as far as there is room; its number where the font lacks a letter of it."""
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    letters = font.get_charmap()
    if any(ord(letter) not in letters for letter in name):
        return f"no. {number + 1}"
    name = name if len(name) <= longest else f"…{name[1 - longest :]}"
    return f" {name}" if name.startswith("_") else name  # else it would be in no legend


def _element(svg: str, chart: Chart) -> str:
    """An SVG file as an element of a page: its own ids, the page's style, nothing foreign."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"\s*<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{chart.name}-", svg)
    for colour, variable in _IN_PAGE.items():
        svg = svg.replace(colour, variable)
    return svg
