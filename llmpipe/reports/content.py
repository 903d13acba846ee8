"""What a report of one eval says, or of several side by side."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from llmpipe.reports import charts
from llmpipe.reports.document import Commands, Document, Part, Section, Table
from llmpipe.reports.runs import Run, Step
from llmpipe.reports.wording import (
    confidence,
    interval,
    number,
    percent,
    plain,
    size,
    spaced,
    too_few,
)

if TYPE_CHECKING:
    from llmpipe.stages.compare import Comparison

_KEYS = ("size", "level", "subject", "source", "task")
_RATES = ("truncated", "no_answer", "error")


def document(runs: Sequence[Run], comparison: Comparison | None = None) -> Document:
    """All that is said of some evals, at least one, and of how they compare."""
    sections = [
        Section(title="Figures", parts=_figures(runs), text=_meaning(runs)),
        *([_differences(comparison)] if comparison else []),
        Section(title="pass@k", parts=_some(charts.curve(runs, c) for c in ("pass@k", "pass^k"))),
        Section(title="Answers", parts=_answers(runs)),
        *(_group(runs, key) for key in _partitions(runs)),
        Section(title="Settings", parts=_settings(runs)),
        Section(title="How to repeat it", parts=_repeat(runs), text=_repeat_text(runs)),
    ]
    models = list(dict.fromkeys(run.model for run in runs))
    return Document(
        title=f"Evaluation of {models[0]}" if len(models) == 1 else f"{len(runs)} evaluations",
        lead=f"{size(runs)}.",
        notes=[*_notes(runs), *(comparison.warnings if comparison else [])],
        sections=[section for section in sections if section.parts],
    )


def _figures(runs: Sequence[Run]) -> list[Part]:
    names = list(dict.fromkeys(name for run in runs for name in run.results["metrics"]))
    heads = ["value", f"{confidence(runs)}, new problems", f"{confidence(runs)}, these again", ""]
    rows = []
    for name in names:
        for run in runs:
            metric = run.results["metrics"].get(name)
            if metric is None:
                continue
            rows.append(
                [
                    name,
                    *([run.name] if len(runs) > 1 else []),
                    number(metric["value"]),
                    interval(metric["low"], metric["high"]),
                    interval(metric["low_here"], metric["high_here"]),
                    too_few(metric),
                ]
            )
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    several = len(runs) > 1
    figures = Table(
        head=["metric", *(["run"] if several else []), *heads], rows=rows, names=1 + several
    )
    return [_overview(runs, names), figures] if several else [figures, _rates(runs)]


def _overview(runs: Sequence[Run], names: Sequence[str]) -> Table:
    """A line a run."""
    return Table(
        head=["run", "model", "problems", "n", *names, *map(spaced, _RATES)],
        rows=[
            [
                run.name,
                run.model,
                str(run.results["problems"]),
                run.samples,
                *(number(run.results["metrics"].get(name, {}).get("value")) for name in names),
                *(percent(run.results["rates"][name]) for name in _RATES),
            ]
            for run in runs
        ],
        names=2,
    )


def _rates(runs: Sequence[Run]) -> Table:
    return Table(
        head=["share of samples", *(run.name for run in runs)],
        rows=[
            [spaced(name), *(percent(run.results["rates"][name]) for run in runs)]
            for name in _RATES
        ],
    )


def _meaning(runs: Sequence[Run]) -> str:
    said = runs[0].results["intervals"]
    return (
        f"Means over problems, with two {confidence(runs)} intervals. New problems: "
        f"for {said['low, high']}. These again: for {said['low_here, high_here']}. "
        "A sample with an error says nothing about a model, and is left out; one that was "
        "truncated or has no answer is not right."
    )


def _differences(found: Comparison) -> Section:
    """Paired differences to the first side, over the problems that all have."""
    heads = ["difference", "new problems", "these again", "won : lost", "sign test", "bootstrap"]
    rows = [
        [
            metric,
            side,
            f"{d.value:+.4f}",
            interval(d.low, d.high, sign="+"),
            interval(d.low_here, d.high_here, sign="+"),
            f"{d.won} : {d.lost}",
            f"p = {d.sign_p:.2g}",
            f"p = {d.bootstrap_p:.2g}",
        ]
        for metric, sides in found.rows.items()
        for side, row in zip(found.sides, sides, strict=True)
        if (d := row.difference)
    ]
    return Section(
        title=f"Differences to {found.sides[0]}",
        parts=[Table(head=["metric", "run", *heads], rows=rows, names=2)] if rows else [],
        text=f"Problem by problem, over the {found.problems} that all have, with 95% intervals.",
    )


def _answers(runs: Sequence[Run]) -> list[Part]:
    return _some([charts.pass_rates(runs), charts.outcomes(runs), charts.lengths(runs)])


def _partitions(runs: Sequence[Run]) -> list[str]:
    """The keys with more than one group; of those with the same groups, by any name, the first."""
    found: dict[str, str] = {}
    for key in _KEYS:
        if len(charts.groups(runs, key)) > 1:
            groups = [[json.dumps(g) for g in r.results["by"].get(key, {}).values()] for r in runs]
            found.setdefault(json.dumps([sorted(each) for each in groups]), key)
    return list(found.values())


def _group(runs: Sequence[Run], key: str) -> Section:
    """The figures of each group."""
    names = charts.groups(runs, key)
    metrics = list(
        dict.fromkeys(
            name
            for run in runs
            for group in run.results["by"].get(key, {}).values()
            for name in group["metrics"]
        )
    )
    several = len(runs) > 1
    rows = [
        [
            name,
            *([run.name] if several else []),
            str(group["problems"]),
            *(number(group["metrics"].get(metric, {}).get("value")) for metric in metrics),
            *(percent(group["rates"][rate]) for rate in _RATES),
        ]
        for name in names
        for run in runs
        if (group := run.results["by"].get(key, {}).get(name))
    ]
    table = Table(
        head=[key, *(["run"] if several else []), "problems", *metrics, *map(spaced, _RATES)],
        rows=rows,
        names=1 + several,
    )
    drawn = _some([charts.accuracy_by(runs, key), charts.truncated_by(runs, key)])
    return Section(title=f"By {'maze size' if key == 'size' else key}", parts=[table, *drawn])


def _settings(runs: Sequence[Run]) -> list[Part]:
    """What one needs to draw and judge the same samples: first that in which runs differ."""
    flat = [_flat(run) for run in runs]
    names = list(dict.fromkeys(name for each in flat for name in each))
    same = [n for n in names if all(each.get(n) == flat[0].get(n) for each in flat)]
    rest = [name for name in names if name not in same]
    parts: list[Part] = []
    if rest:
        rows = [[name, *(each.get(name, "–") for each in flat)] for name in rest]
        head = ["what differs", *(run.name for run in runs)]
        parts.append(Table(head=head, rows=rows, names=len(head)))
    head = ["the same in all" if len(runs) > 1 else "setting", "value"]
    return [*parts, Table(head=head, rows=[[n, flat[0][n]] for n in same], names=2)]


def _flat(run: Run) -> dict[str, str]:
    settings = dict(run.results["settings"])
    versions: Mapping[str, Any] = settings.pop("versions", {})
    found = {name: plain(value) for name, value in settings.items()}
    for step in run.steps:
        if step.record == "Rollout":
            found |= {
                name: plain(step.config[name]) for name in ("n", "limit") if name in step.config
            }
    found["k"] = plain(run.steps[-1].config.get("k"))
    for step in run.steps:
        for download in step.downloads:
            found[f"data set {download.repo}"] = f"commit {download.commit}"
    if commit := run.steps[-1].git_commit:
        found["git commit"] = commit
    return found | {f"version of {name}": version for name, version in versions.items()}


def _repeat(runs: Sequence[Run]) -> list[Part]:
    return [
        Commands(of=run.name, lines=lines) for run in runs if (lines := _command_lines(run.steps))
    ]


def _repeat_text(runs: Sequence[Run]) -> str:
    text = "The command lines that made this, the first step first."
    gone = dict.fromkeys(step.path for run in runs for step in run.steps if step.gone)
    if gone:
        text += f" Gone, or made again since: {', '.join(gone)}."
    return text


def _command_lines(steps: Sequence[Step]) -> list[str]:
    """Each command once, as one that took several steps made several folders; where to run it."""
    commands = dict.fromkeys((s.folder, tuple(s.command)) for s in steps if s.command)
    lines = []
    there = None
    for folder, (program, *rest) in commands:
        if folder and folder != there:
            there = folder
            lines.append(shlex.join(["cd", str(folder)]))
        name = "llmpipe" if PurePath(program).name in ("llmpipe", "__main__.py") else program
        lines.append(shlex.join([name, *rest]))
    return lines


def _notes(runs: Sequence[Run]) -> list[str]:
    notes = []
    made_up = [run.name for run in runs if any(step.tests_only for step in run.steps)]
    if made_up:
        names = ", ".join(made_up)
        notes.append(f"{names}: these answers are made up, by an engine for tests only.")
    for run in runs:
        if run.results.get("errors"):
            notes.append(f"{run.name}: {run.results['errors']} samples with errors are left out.")
    first, *others = ({score.problem_id for score in run.scores} for run in runs)
    if any(other != first for other in others):
        shared = len(first.intersection(*others))
        notes.append(
            f"The runs are of different problems, {shared} of them in all runs: "
            "a difference between them is not one of models alone."
        )
    if len({run.samples for run in runs}) > 1:
        notes.append("n differs: coverage, and the intervals, depend on it.")
    return notes


def _some(parts: Iterable[Part | None]) -> list[Part]:
    return [part for part in parts if part is not None]
