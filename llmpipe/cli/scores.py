"""What eval and compare print: figures with their intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from llmpipe.algo.results import LENGTHS, RESULTS, samples_in_words

if TYPE_CHECKING:
    from llmpipe.stages.compare import Comparison, Row

_NAMED = 5  # problems won or lost that are named


def say_scores(out: Path) -> None:
    """The figures of one eval, on stdout."""
    results = _read(out)
    width = max(map(len, results["metrics"]))
    for name, metric in results["metrics"].items():
        typer.echo(f"{name:{width}} {_value(metric['value'])}{_intervals(metric)}")
    for line in (_rates(results), _lengths(results.get("lengths"))):
        if line:
            typer.echo(line)
    typer.echo(f"{results['problems']} problems, n {_samples(results)}")


def say_table(evals: Sequence[Path]) -> None:
    """The figures of several evals, a line each, on stdout."""
    if not evals:
        return
    read = {out.name: _read(out) for out in evals}
    metrics = list(dict.fromkeys(name for each in read.values() for name in each["metrics"]))
    rows = [["", "problems", "n", *metrics, "truncated"]]
    for name, each in read.items():
        values = [_value(each["metrics"].get(m, {}).get("value")) for m in metrics]
        cut = _percent(each["rates"]["truncated"])
        rows.append([name, str(each["problems"]), samples_in_words(each["n"]), *values, cut])
    _columns(rows)


def say_comparison(found: Comparison) -> None:
    """A block a metric, a line a side, on stdout."""
    shared = f"{found.problems} problems that all have"
    typer.echo(f"{shared}; differences are to {found.sides[0]}, with 95 % intervals")
    for metric, rows in found.rows.items():
        typer.echo(f"\n{metric}")
        head = ["", "n", "value", "new problems", "these again", "difference", "new problems"]
        table = [[*head, "these again", "won:lost", "sign test", "bootstrap"]]
        for side, n, row in zip(found.sides, found.n, rows, strict=True):
            table.append([f"  {side}", samples_in_words(n), *_side(row)])
        _columns(table)
        for side, row in zip(found.sides, rows, strict=True):
            if row.runs:
                typer.echo(f"  {side}: {', '.join(map(_value, row.runs))} by its runs")
            for how, names in (("won", row.won), ("lost", row.lost)):
                if names:
                    typer.echo(f"  {side} {how}: {_some(names)}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    shown = " ".join(names[:_NAMED])
    return f"{shown} and {more} more (--json has all)" if more > 0 else shown


def _side(row: Row) -> list[str]:
    metric, d = row.metric, row.difference
    cells = [_value(metric["value"])]
    cells += [_range(metric[f"low{x}"], metric[f"high{x}"]) for x in ("", "_here")]
    if d is None:
        return [*cells, *[""] * 6]
    return [
        *cells,
        f"{d.value:+.4f}",
        _range(d.low, d.high, "+"),
        _range(d.low_here, d.high_here, "+"),
        f"{d.won}:{d.lost}",
        f"p {d.sign_p:.2g}",
        f"p {d.bootstrap_p:.2g}",
    ]


def _read(out: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads((out / RESULTS).read_text(encoding="utf-8"))
    return results


def _columns(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        typer.echo("  ".join([f"{first:{widths[0]}}", *cells]).rstrip())


def _intervals(metric: Mapping[str, Any]) -> str:
    if metric["value"] is None:
        few = metric.get("too_few")
        return f"  ({few} problems have too few samples)" if few else ""
    here = _range(metric["low_here"], metric["high_here"])
    again = "one greedy answer each" if here == "-" else f"these again {here}"
    return f"  new problems {_range(metric['low'], metric['high'])}  {again}"


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _range(low: Any, high: Any, sign: str = "") -> str:
    return "-" if low is None else f"{low:{sign}.4f} to {high:{sign}.4f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _rates(results: Mapping[str, Any]) -> str:
    rates = results["rates"]
    return ", ".join(f"{name.replace('_', ' ')} {_percent(share)}" for name, share in rates.items())


def _lengths(lengths: Mapping[str, Any] | None) -> str:
    if lengths is None:
        return ""
    known = {name: lengths[name] for name in LENGTHS[:2] if lengths[name]["samples"]}
    said = [f"{name} mean {d['mean']}, p90 {d['p90']}" for name, d in known.items()]
    return f"{lengths['unit']} an answer: {'; '.join(said)}" if said else ""


def _samples(results: Mapping[str, Any]) -> str:
    errors = results["errors"]
    return samples_in_words(results["n"]) + (
        f" ({errors} with status error left out)" if errors else ""
    )
