"""The plots of a report, as data: each value is one of ``results.json``, or a count of scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llmpipe.algo.coverage import in_order
from llmpipe.algo.results import LENGTHS
from llmpipe.reports.document import Chart, Point, Series, Table
from llmpipe.reports.runs import Run
from llmpipe.reports.wording import (
    STATUSES,
    confidence,
    interval,
    number,
    percent,
    size,
    spaced,
)

_MOST_GROUPS = 40  # that a plot can show; the table has them all
_MOST_COUNTS = 20  # n up to which each count of right answers has a bar of its own
_MOST_K = 64  # up to which the table has each
_CURVES = {
    "pass@k": ("pass-at-k", "at least one of k samples is right"),
    "pass^k": ("pass-hat-k", "all of k samples are right"),
}
_INTERVALS = ("low", "high", "low_here", "high_here")


def curve(runs: Sequence[Run], metric: str) -> Chart | None:
    """pass@k or pass^k over k, with bands; None where no run has more than one k."""
    file, meaning = _CURVES[metric]
    series, rows = [], []
    for run in runs:
        known = [each for each in run.results["curves"][metric] if each["value"] is not None]
        series.append(Series(label=run.name, points=[_point(e["k"], e) for e in known]))
        rows += [[run.name, str(e["k"]), *_cells(e)] for e in _listed(known)]
    if max(len(each.points) for each in series) < 2:
        return None
    bands = _bands(runs) if len(runs) == 1 else _bands(runs)[:1]  # more would hide each other
    ends = (
        f"{each.label} from {number(each.points[0].value)} at k = {each.points[0].x} "
        f"to {number(each.points[-1].value)} at k = {each.points[-1].x}"
        for each in series
        if each.points
    )
    return Chart(
        name=file,
        kind="curve",
        title=f"{metric} against k",
        caption=f"{metric}: {meaning}, mean over problems. {size(runs)}. "
        + _estimands(runs, bands),
        alt=f"Lines of {metric} over k, the axis of k logarithmic. {'; '.join(ends)}.",
        x="k",
        y=metric,
        series=series,
        table=Table(head=["run", "k", metric, *_heads(runs)], rows=rows, names=1),
        bands=bands,
    )


def pass_rates(runs: Sequence[Run]) -> Chart | None:
    """How many problems have which share of right answers."""
    rates = [[(s.n - s.error, s.correct) for s in run.scores if s.n > s.error] for run in runs]
    sizes = {n for each in rates for n, _ in each}
    if not sizes:
        return None
    if len(sizes) == 1 and (n := sizes.pop()) <= _MOST_COUNTS:
        names = [str(c) for c in range(n + 1)]
        places = [Counter(c for _, c in each) for each in rates]
        x = f"right answers of {n}"
    else:
        names = ["none", *(f"≤{tenth}0%" for tenth in range(1, 10)), "<all", "all"]
        places = [Counter(_tenth(n, c) for n, c in each) for each in rates]
        x = "share of right answers"
    shares = [
        [place[i] / len(each) for i in range(len(names))] for place, each in _z(places, rates)
    ]
    left_out = sum(len(run.scores) for run in runs) - sum(map(len, rates))
    without = f" Left out: {left_out} with errors alone." if left_out else ""
    ends = (
        f"{run.name}: {percent(share[0])} never right, {percent(share[-1])} always"
        for run, share in _z(runs, shares)
    )
    return Chart(
        name="pass-rates",
        kind="bars",
        title="Problems by pass rate",
        caption=f"Share of problems that have so many right answers. {size(runs)}.{without}",
        alt=f"Bars by {x}. {'; '.join(ends)}.",
        x=x,
        y="share of problems",
        series=[
            Series(label=run.name, points=[Point(x=i, value=v) for i, v in enumerate(share)])
            for run, share in _z(runs, shares)
        ],
        categories=names,
        share=False,
        table=Table(
            head=[x, *(f"{run.name}{part}" for run in runs for part in ("", ", share"))],
            rows=[
                [name, *(t for p, s in _z(places, shares) for t in (str(p[i]), percent(s[i])))]
                for i, name in enumerate(names)
            ],
        ),
    )


def outcomes(runs: Sequence[Run]) -> Chart:
    """What became of all samples."""
    counts = [
        {status: sum(getattr(s, status) for s in r.scores) for status in STATUSES} for r in runs
    ]
    shares = [{k: v / (sum(c.values()) or 1) for k, v in c.items()} for c in counts]
    said = (
        f"{run.name}: " + ", ".join(f"{spaced(k)} {percent(v)}" for k, v in share.items())
        for run, share in _z(runs, shares)
    )
    return Chart(
        name="outcomes",
        kind="stack",
        title="What became of the samples",
        caption=f"Shares of all samples, errors among them. {size(runs)}.",
        alt=f"Stacked bars, one a run. {'; '.join(said)}.",
        x="run",
        y="share of samples",
        series=[
            Series(
                label=spaced(status),
                points=[Point(x=i, value=share[status]) for i, share in enumerate(shares)],
            )
            for status in STATUSES
            if any(count[status] for count in counts)
        ],
        categories=[run.name for run in runs],
        table=Table(
            head=["run", *(t for k in STATUSES for t in (spaced(k), "share"))],
            rows=[
                [run.name, *(t for k in STATUSES for t in (str(count[k]), percent(share[k])))]
                for run, count, share in _z(runs, counts, shares)
            ],
        ),
    )


def lengths(runs: Sequence[Run]) -> Chart | None:
    """How long answers are by what became of them, for the runs that measured in one unit."""
    known = [run for run in runs if run.results["lengths"]]
    units = Counter(run.results["lengths"]["unit"] for run in known)
    if not units:
        return None
    unit = units.most_common(1)[0][0]
    known = [run for run in known if run.results["lengths"]["unit"] == unit]
    found = {run.name: run.results["lengths"] for run in known}
    some = [s for s in LENGTHS if any(each[s]["samples"] for each in found.values())]
    if not some:
        return None
    columns = ("samples", "mean", "p10", "p50", "p90", "p99")
    medians = (
        f"{name}: " + ", ".join(f"{spaced(s)} {d[s]['p50']}" for s in some if d[s]["samples"])
        for name, d in found.items()
    )
    missing = [run.name for run in runs if run not in known]
    without = f" Not measured in {unit}: {', '.join(missing)}." if missing else ""
    return Chart(
        name="lengths",
        kind="points",
        title="Length of answers by outcome",
        caption=f"Median length in {unit}; the line goes from the 10th to the 90th percentile of "
        f"samples. {size(known)}.{without}",
        alt=f"Median {unit} of an answer. {'; '.join(medians)}.",
        x="outcome",
        y=f"{unit} of an answer",
        series=[
            Series(
                label=name,
                points=[
                    Point(x=i, value=d[s]["p50"], low_here=d[s]["p10"], high_here=d[s]["p90"])
                    for i, s in enumerate(some)
                    if d[s]["samples"]
                ],
            )
            for name, d in found.items()
        ],
        categories=[spaced(s) for s in some],
        share=False,
        table=Table(
            head=["run", "outcome", *columns],
            rows=[
                [name, spaced(s), *(str(d[s][c]) for c in columns)]
                for name, d in found.items()
                for s in some
                if d[s]["samples"]
            ],
            names=2,
        ),
    )


def accuracy_by(runs: Sequence[Run], key: str) -> Chart | None:
    """The share of right answers in each group; None where there are too few or too many."""
    names = groups(runs, key)
    if not 2 <= len(names) <= _MOST_GROUPS:
        return None
    cells = {
        run.name: {
            name: g["metrics"]["avg@n"] for name, g in run.results["by"].get(key, {}).items()
        }
        for run in runs
    }
    said = (
        f"{run}: "
        + ", ".join(f"{name} {number(found[name]['value'])}" for name in _has(found, names))
        for run, found in cells.items()
    )
    counts = [{n: g["problems"] for n, g in run.results["by"].get(key, {}).items()} for run in runs]
    each = sorted({count for found in counts for count in found.values()})
    per_group = f"{each[0]} to {each[-1]}" if len(each) > 1 else f"{each[0]}"
    return Chart(
        name=f"accuracy-by-{key}",
        kind="points",
        title=f"Accuracy by {key}",
        caption=f"Mean share of right answers (avg@n), {per_group} problems a {key}. {size(runs)}. "
        + _estimands(runs, _bands(runs)),
        alt=f"Accuracy by {key} with intervals. {'; '.join(said)}.",
        x="maze size" if key == "size" else key,
        y="accuracy (avg@n)",
        series=[
            Series(
                label=run,
                points=[
                    _point(names.index(name), found[name])
                    for name in _has(found, names)
                    if found[name]["value"] is not None
                ],
            )
            for run, found in cells.items()
        ],
        categories=names,
        table=Table(
            head=["run", key, "problems", "avg@n", *_heads(runs)],
            rows=[
                [run, name, str(count[name]), *_cells(found[name])]
                for (run, found), count in _z(cells.items(), counts)
                for name in _has(found, names)
            ],
            names=2,
        ),
        bands=_bands(runs),
    )


def truncated_by(runs: Sequence[Run], key: str) -> Chart | None:
    """The share of truncated answers in each group; None where there are none."""
    names = groups(runs, key)
    cells = {
        run.name: {
            name: g["rates"]["truncated"] for name, g in run.results["by"].get(key, {}).items()
        }
        for run in runs
    }
    if not 2 <= len(names) <= _MOST_GROUPS or not any(any(d.values()) for d in cells.values()):
        return None
    said = (
        f"{run}: " + ", ".join(f"{name} {percent(found[name])}" for name in _has(found, names))
        for run, found in cells.items()
    )
    return Chart(
        name=f"truncated-by-{key}",
        kind="bars",
        title=f"Truncated answers by {key}",
        caption=f"Share of samples that ended at the limit of tokens. {size(runs)}.",
        alt=f"Bars of the share of truncated answers by {key}. {'; '.join(said)}.",
        x="maze size" if key == "size" else key,
        y="truncated share of samples",
        series=[
            Series(
                label=run,
                points=[Point(x=names.index(n), value=found[n]) for n in _has(found, names)],
            )
            for run, found in cells.items()
        ],
        categories=names,
        share=False,
        table=Table(
            head=["run", key, "truncated"],
            rows=[
                [run, name, percent(found[name])]
                for run, found in cells.items()
                for name in _has(found, names)
            ],
            names=2,
        ),
    )


def groups(runs: Sequence[Run], key: str) -> list[str]:
    """The names of the groups that any run has."""
    return sorted({name for run in runs for name in run.results["by"].get(key, {})}, key=in_order)


def _has(found: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    return [name for name in names if name in found]


def _tenth(n: int, c: int) -> int:
    """0 for none, 11 for all, and in between the tenth, its upper end included."""
    return 0 if not c else 11 if c == n else -(-10 * c // n)


def _listed(curve: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The k that a table has: of very many the powers of two and the last; the plot has all."""
    if len(curve) <= _MOST_K:
        return list(curve)
    return [each for each in curve if each["k"] & (each["k"] - 1) == 0 or each is curve[-1]]


def _point(x: int, metric: Mapping[str, Any]) -> Point:
    return Point(x=x, value=metric["value"], **{name: metric[name] for name in _INTERVALS})


def _cells(metric: Mapping[str, Any]) -> list[str]:
    return [
        number(metric["value"]),
        interval(metric["low"], metric["high"]),
        interval(metric["low_here"], metric["high_here"]),
    ]


def _heads(runs: Sequence[Run]) -> list[str]:
    return [f"{confidence(runs)} new problems", f"{confidence(runs)} these problems again"]


def _bands(runs: Sequence[Run]) -> list[str]:
    """What the drawn intervals are for: of greedy runs there is one kind only."""
    heads = _heads(runs)
    return heads[:1] if all(run.results["greedy"] for run in runs) else heads


def _estimands(runs: Sequence[Run], bands: Sequence[str]) -> str:
    said = runs[0].results["intervals"]
    text = f"Faint: {confidence(runs)} interval for {said['low, high']}."
    if len(bands) > 1:
        text += f" Strong: {confidence(runs)} interval for {said['low_here, high_here']}."
    return text


def _z(*some: Iterable[Any]) -> Iterable[Any]:
    return zip(*some, strict=True)
