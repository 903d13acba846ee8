"""Compare evals, problem by problem, over the problems that all of them have.

A side is one eval, or several of the same model with other seeds: their samples are put together.
Nothing is written.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from llmpipe.algo.intervals import Floats
from llmpipe.algo.majority import Ballot
from llmpipe.algo.metrics import Counts, Metric, Terms, majority_terms, terms, undefined
from llmpipe.algo.paired import Difference, difference
from llmpipe.algo.passk import AVERAGE, COVERAGE, Figure, pass_at, pass_hat
from llmpipe.algo.results import RESULTS, ballot, samples_in_words
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import ProblemScore
from llmpipe.verifiers import LIBRARIES

# What is compared, or how fast it was: all other settings ought to be the same.
_FREE = (
    *("model", "model_digest", "seed", "logprobs", "engine_tuning", "executor", "gpus", "adv_k"),
    "judged_by",
)
_READ = {"n", "metrics", "settings"}  # of an eval's results
_JUDGES = ("llmpipe", *LIBRARIES)  # whose versions may change a verdict


@dataclass(frozen=True, kw_only=True)
class Config:
    """The metrics to compare: by default those that all evals have in their results."""

    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A metric of one side; ``runs`` are its values in each of several runs.

    ``difference`` is to the first side: None for that itself, and where one is undefined. ``won``
    and ``lost`` are the ids of the problems on which this side does better or worse than the first,
    the largest difference first.
    """

    metric: Metric
    runs: Sequence[float | None]
    difference: Difference | None
    won: Sequence[str] = ()
    lost: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """``sides`` are the names, ``n`` their samples a problem, ``of`` how many problems each has.

    ``problems`` is how many all have. ``rows`` are by metric, one a side.
    """

    sides: Sequence[str]
    n: Sequence[int | Mapping[str, int]]
    of: Sequence[int]
    problems: int
    warnings: Sequence[str]
    rows: Mapping[str, Sequence[Row]]

    def as_json(self) -> dict[str, Any]:
        whole = dataclasses.asdict(self)
        return {**whole, "rows": {k: list(v) for k, v in whole["rows"].items()}}


@dataclass(frozen=True, kw_only=True)
class _Run:
    path: Path
    results: Mapping[str, Any]
    scores: Mapping[str, ProblemScore]

    @property
    def settings(self) -> dict[str, Any]:
        settings = dict(self.results["settings"])
        versions = settings.pop("versions", {})
        return {**settings, **{k: v for k, v in versions.items() if k in _JUDGES}}


Side = tuple[str, Sequence[_Run]]


def run(config: Config, sides: Sequence[Sequence[Path]]) -> Comparison:
    """Compare two sides or more; each is at least one folder of an eval.

    Raises:
        UserError: fewer than two sides, a folder that is no eval or comes twice, no problem that
            all have, or a metric that isn't known or has too few samples.
    """
    if len(sides) < 2:
        raise UserError("one eval can't be compared", "llmpipe compare EVAL_A EVAL_B")
    if not all(sides):
        raise UserError("a side has no eval", "llmpipe compare EVAL_A EVAL_B")
    paths = [path for side in sides for path in side]
    places = [os.path.realpath(path) for path in paths]
    twice = {path for path, place in zip(paths, places, strict=True) if places.count(place) > 1}
    if twice:
        raise UserError(f"{min(twice)} is given twice", "give each eval once")
    loaded: list[Side] = [(",".join(map(str, side)), [*map(_load, side)]) for side in sides]
    runs = [run for _, side in loaded for run in side]
    # In the order of the first: all sides are looked at in the same.
    shared = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
    if not shared:
        raise UserError("there is no problem that all of them have", f"llmpipe show {paths[0]}")
    counts = [_counts(side, shared) for _, side in loaded]
    rows = {
        name: _rows(name, [side for _, side in loaded], shared)
        for name in config.metrics or _common(runs)
    }
    for name, some in rows.items():
        if name in config.metrics and any(row.metric["value"] is None for row in some):
            most, i = min((int(each.n.min()), i) for i, each in enumerate(counts))
            raise UserError(
                f"{name} can't be said: a problem has {most} samples without an error",
                f"--metric pass@{most}"
                if most
                else f"llmpipe show {shlex.quote(str(sides[i][0]))}",
            )
    return Comparison(
        sides=[name for name, _ in loaded],
        n=[each.samples for each in counts],
        of=[len(set.intersection(*(set(run.scores) for run in side))) for _, side in loaded],
        problems=len(shared),
        warnings=_warnings(loaded, shared),
        rows=rows,
    )


def _load(path: Path) -> _Run:
    artifact = Artifact.open(path, ProblemScore)
    try:
        results = json.loads((path / RESULTS).read_text(encoding="utf-8"))
        if not isinstance(results, dict) or not results.keys() >= _READ:
            raise ValueError(f"{RESULTS} lacks some of them")
        scores = {score.problem_id: score for score in artifact.iter_rows(ProblemScore)}
    except (OSError, ValueError, KeyError, TypeError) as e:  # by an older llmpipe, too
        raise UserError(
            f"the scores at {path} can't be read: {e}", "run its eval again, which takes seconds"
        ) from None
    return _Run(path=path, results=results, scores=scores)


def _common(runs: Sequence[_Run]) -> list[str]:
    first, *others = (run.results["metrics"] for run in runs)
    return [
        name
        for name, metric in first.items()
        if metric["value"] is not None
        and all(other.get(name, {}).get("value") is not None for other in others)
    ]


def _counts(side: Sequence[_Run], shared: Sequence[str]) -> Counts:
    """The samples of all its runs together."""
    return Counts.of(
        (
            sum(run.scores[name].n - run.scores[name].error for run in side),
            sum(run.scores[name].correct for run in side),
        )
        for name in shared
    )


def _rows(name: str, sides: Sequence[Sequence[_Run]], shared: Sequence[str]) -> list[Row]:
    whole = [_terms(name, side, shared) for side in sides]
    first = whole[0]
    rows = []
    for side, found in zip(sides, whole, strict=True):
        runs = [_terms(name, [run], shared) for run in side] if len(side) > 1 else []
        row = Row(
            metric=found.metric if found else undefined(),
            runs=[each.mean if each else None for each in runs],
            difference=None,
        )
        if first and found and found is not first:
            more = found.values - first.values
            order = np.argsort(-np.abs(more), kind="stable").tolist()
            row = dataclasses.replace(
                row,
                difference=difference(first, found),
                won=[shared[i] for i in order if more[i] > 0],
                lost=[shared[i] for i in order if more[i] < 0],
            )
        rows.append(row)
    return rows


_NAMED = re.compile(r"(pass@|pass\^|maj@)([1-9][0-9]{0,5})")


def _terms(name: str, side: Sequence[_Run], shared: Sequence[str]) -> Terms | None:
    found = _NAMED.fullmatch(name)
    greedy = any(run.results.get("greedy") for run in side)
    if found and found[1] == "maj@":
        each = [majority_terms(int(found[2]), _ballots(run, shared), greedy=greedy) for run in side]
        return _mean([one for one in each if one]) if all(each) else None
    plain: dict[str, Figure] = {"avg@n": AVERAGE, "coverage": COVERAGE}
    if found:
        plain[name] = (pass_at if found[1] == "pass@" else pass_hat)(int(found[2]))
    if name not in plain:
        raise UserError(
            f"there is no metric {name!r}", "--metric pass@8, pass^8, maj@8, avg@n or coverage"
        )
    return terms(plain[name], _counts(side, shared), greedy=greedy)


def _ballots(run: _Run, shared: Sequence[str]) -> list[Ballot]:
    return [ballot(run.scores[name]) for name in shared]


def _mean(runs: Sequence[Terms]) -> Terms:
    """Of several runs, each with an election of its own."""

    def together(some: Sequence[Floats | None]) -> Floats | None:
        known = [each for each in some if each is not None]
        return np.sum(known, axis=0) / len(runs) ** 2 if len(known) == len(runs) else None

    return Terms(
        values=np.mean([run.values for run in runs], axis=0),
        between=max(run.between for run in runs),
        within=together([run.within for run in runs]),
        unknown=together([run.unknown for run in runs]),
    )


def _warnings(sides: Sequence[Side], shared: Sequence[str]) -> list[str]:
    """What makes the difference one of more than the models."""
    found = []
    runs = [run for _, side in sides for run in side]
    for run in runs:
        if len(run.scores) > len(shared):
            left = len(run.scores) - len(shared)
            found.append(f"{run.path} has {left} problems that not all have: they are left out")
    samples = [samples_in_words(run.results["n"]) for run in runs]
    if len(set(samples)) > 1:
        found.append(f"n differs: {', '.join(dict.fromkeys(samples))}")
    same_ids = all(run.scores.keys() == runs[0].scores.keys() for run in runs)
    found += _differences(runs, same_ids=same_ids)
    for _, side in sides:
        for i, run in enumerate(side):
            others = side[:i]
            if any(_drawn(run) == _drawn(other) for other in others):
                found.append(f"{run.path} drew the same samples as another run of its side")
            if any(
                run.settings.get("model_digest") != other.settings.get("model_digest")
                for other in others
            ):
                found.append(f"{run.path} is of another model than the others of its side")
    return found


_IN_WORDS = {
    "rules": "the verifiers' source differs",
    "few_shot_digest": "the worked examples differ",
    "problem_set": "the problems are the same, but not all that is known of them",
}


def _differences(runs: Sequence[_Run], *, same_ids: bool) -> list[str]:
    settings = [run.settings for run in runs]
    found = []
    for name in sorted(set().union(*settings) - set(_FREE)):
        if name == "problem_set" and not same_ids:  # that is said in numbers
            continue
        texts = [json.dumps(each.get(name), ensure_ascii=False) for each in settings]
        if len(set(texts)) == 1:
            continue
        if name in _IN_WORDS:
            found.append(_IN_WORDS[name])
        else:
            shown = [text if len(text) <= 60 else f"{text[:57]}..." for text in texts]
            found.append(f"{name} differs: {', '.join(dict.fromkeys(shown))}")
    return found


def _drawn(run: _Run) -> tuple[Any, ...]:
    """What says which samples were drawn; unlike any other's where that is not known."""
    settings = run.settings
    if "seed" not in settings or not settings.get("sample_seeds", True):
        return (run.path,)
    return (settings["seed"], settings.get("model_digest"), settings.get("temperature"))
