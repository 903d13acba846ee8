"""What ``results.json`` of an eval says, worked out from one score a problem."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from llmpipe.algo.coverage import in_order
from llmpipe.algo.majority import DRAWS, Ballot
from llmpipe.algo.metrics import (
    ESTIMANDS,
    Counts,
    Metric,
    curves,
    figures,
    measure,
    measure_majority,
)
from llmpipe.core.records import ProblemScore

RESULTS = "results.json"

RATES = ("truncated", "no_answer", "error")
LENGTHS = ("correct", "wrong", "no_answer", "truncated")
"""Statuses whose lengths are told apart."""

_PERCENTILES = (10, 50, 90, 99)
_SIZE = re.compile(r"[0-9]+x[0-9]+")
_GROUP_DRAWS = 20_000  # of a group of problems: many groups, and none needs more

Key = Callable[[ProblemScore], str | None]

_KEYS: Mapping[str, Key] = {
    "level": lambda score: score.level,
    "subject": lambda score: score.subject,
    "source": lambda score: score.source,
    "task": lambda score: score.task,
    "size": lambda score: score.level if _SIZE.fullmatch(score.level or "") else None,
}


def results(scores: Sequence[ProblemScore], k: Sequence[int], *, greedy: bool) -> dict[str, Any]:
    """All but how long the answers are, and the settings.

    ``n`` is the samples a problem that count, which leaves out errors (``{"min", "max"}`` where
    problems differ), and ``errors`` are those left out. ``metrics`` are means over problems, as
    `llmpipe.algo.metrics.Metric` says, for the k that were asked for and, of majority, for k = n;
    ``curves`` have pass@k and pass^k for every k. ``rates`` are shares of all samples, errors among
    them. ``by`` has the same for groups of problems; those without the key are in none.
    """
    counts = counts_of(scores)
    return {
        "problems": len(scores),
        "n": counts.samples,
        "errors": sum(score.error for score in scores),
        "greedy": greedy,
        "intervals": ESTIMANDS,
        "metrics": _metrics(scores, k, greedy=greedy),
        "curves": curves(counts, greedy=greedy),
        "rates": _rates(scores),
        "by": {name: _by(scores, k, key, greedy=greedy) for name, key in _KEYS.items()},
    }


def counts_of(scores: Iterable[ProblemScore]) -> Counts:
    """The samples of each problem but those with an error, and the right ones."""
    return Counts.of((score.n - score.error, score.correct) for score in scores)


def ballot(score: ProblemScore) -> Ballot:
    """How a problem's samples voted."""
    votes = [(len(each["samples"]), each["correct"]) for each in score.answers]
    return Ballot(
        n=score.n - score.error,
        right=tuple(v for v, correct in votes if correct),
        wrong=tuple(v for v, correct in votes if not correct),
    )


def lengths(by_status: Mapping[str, Sequence[int]], unit: str) -> dict[str, Any]:
    """Mean and percentiles of the lengths of right, wrong and other samples."""
    found: dict[str, Any] = {"unit": unit}
    for status in LENGTHS:
        some = np.asarray(by_status.get(status, ()), np.float64)
        found[status] = {"samples": len(some)}
        if len(some):
            at = np.percentile(some, _PERCENTILES)
            found[status]["mean"] = round(float(some.mean()), 1)
            found[status] |= {
                f"p{p}": round(float(x)) for p, x in zip(_PERCENTILES, at, strict=True)
            }
    return found


def _metrics(
    scores: Sequence[ProblemScore], k: Sequence[int], *, greedy: bool, draws: int = DRAWS
) -> dict[str, Metric]:
    counts = counts_of(scores)
    ks = sorted(set(k))
    found = {figure.name: measure(figure, counts, greedy=greedy) for figure in figures(ks)}
    ballots = [ballot(score) for score in scores]
    n = counts.samples
    for each in sorted({*ks, *([n] if isinstance(n, int) else [])} - {0, 1}):
        found[f"maj@{each}"] = measure_majority(each, ballots, greedy=greedy, draws=draws)
    return found


def _rates(scores: Sequence[ProblemScore]) -> dict[str, float | None]:
    samples = sum(score.n for score in scores)
    return {
        name: sum(getattr(score, name) for score in scores) / samples if samples else None
        for name in RATES
    }


def _by(
    scores: Iterable[ProblemScore], k: Sequence[int], key: Key, *, greedy: bool
) -> dict[str, Any]:
    groups: defaultdict[str, list[ProblemScore]] = defaultdict(list)
    for score in scores:
        name = key(score)
        if name is not None:
            groups[name].append(score)
    return {
        name: {
            "problems": len(some),
            "n": counts_of(some).samples,
            "metrics": _metrics(some, k, greedy=greedy, draws=_GROUP_DRAWS),
            "rates": _rates(some),
        }
        for name, some in sorted(groups.items(), key=lambda item: in_order(item[0]))
    }
