"""What ``results.json`` of an eval says, worked out from one score a problem."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from llmpipe.algo.coverage import in_order
from llmpipe.algo.majority import Ballot
from llmpipe.algo.metrics import (
    ESTIMANDS,
    Counts,
    Metric,
    Terms,
    curves,
    figures,
    majority_terms,
    measure,
    part,
    undefined,
)
from llmpipe.core.records import ProblemScore

RESULTS = "results.json"

RATES = ("truncated", "no_answer", "error")
LENGTHS = ("correct", "wrong", "no_answer", "truncated")
"""Statuses whose lengths are told apart."""

_PERCENTILES = (10, 50, 90, 99)
_SIZE = re.compile(r"[0-9]+x[0-9]+")

Key = Callable[[ProblemScore], str | None]

_KEYS: Mapping[str, Key] = {
    "level": lambda score: score.level,
    "subject": lambda score: score.subject,
    "source": lambda score: score.source,
    "task": lambda score: score.task,
    "size": lambda score: score.level if _SIZE.fullmatch(score.level or "") else None,
}


def samples_in_words(n: int | Mapping[str, int]) -> str:
    """How many samples a problem has, as `results` has it under ``n``."""
    return str(n) if isinstance(n, int) else f"{n['min']} to {n['max']}"


def results(scores: Sequence[ProblemScore], k: Sequence[int], *, greedy: bool) -> dict[str, Any]:
    """All but how long the answers are, and the settings.

    ``n`` is the samples a problem that count, which leaves out errors (``{"min", "max"}`` where
    problems differ), and ``errors`` are those left out. ``metrics`` are means over problems, as
    `llmpipe.algo.metrics.Metric` says, for the k that were asked for and, of majority, for k = n;
    ``curves`` have pass@k and pass^k for every k. ``rates`` are shares of all samples, errors among
    them. ``by`` has the same for groups of problems; those without the key are in none.
    """
    counts = counts_of(scores)
    votes = _Votes.of(scores, k, greedy=greedy)
    everywhere = range(len(scores))
    return {
        "problems": len(scores),
        "n": counts.samples,
        "errors": sum(score.error for score in scores),
        "greedy": greedy,
        "intervals": ESTIMANDS,
        "metrics": _metrics(scores, everywhere, k, votes, greedy=greedy),
        "curves": curves(counts, greedy=greedy),
        "rates": _rates(scores),
        "by": {name: _by(scores, k, key, votes, greedy=greedy) for name, key in _KEYS.items()},
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


@dataclass(frozen=True)
class _Votes:
    """The ballot of each problem, and majority@k of all for each k that is told (None: undefined).

    Elections are costly to draw, so that groups of problems share them.
    """

    ballots: Sequence[Ballot]
    terms: Mapping[int, Terms | None]

    @classmethod
    def of(cls, scores: Sequence[ProblemScore], k: Sequence[int], *, greedy: bool) -> Self:
        ballots = [ballot(score) for score in scores]
        n = counts_of(scores).samples
        told = sorted({*k, *([n] if isinstance(n, int) else [])} - {0, 1})
        return cls(ballots, {k: majority_terms(k, ballots, greedy=greedy) for k in told})

    def metric(self, k: int, here: Sequence[int]) -> Metric:
        """Of the problems with these numbers."""
        terms, some = self.terms[k], [self.ballots[i] for i in here]
        if terms and some:
            if len(some) == len(self.ballots):
                return terms.metric
            return part(terms, np.asarray(here, np.int64), k, some).metric
        return undefined(sum(each.n < k for each in some))


def _metrics(
    scores: Sequence[ProblemScore],
    here: Sequence[int],
    k: Sequence[int],
    votes: _Votes,
    *,
    greedy: bool,
) -> dict[str, Metric]:
    """Of the problems with these numbers."""
    counts = counts_of(scores[i] for i in here)
    found = {
        figure.name: measure(figure, counts, greedy=greedy) for figure in figures(sorted(set(k)))
    }
    return found | {f"maj@{k}": votes.metric(k, here) for k in votes.terms}


def _rates(scores: Sequence[ProblemScore]) -> dict[str, float | None]:
    samples = sum(score.n for score in scores)
    return {
        name: sum(getattr(score, name) for score in scores) / samples if samples else None
        for name in RATES
    }


def _by(
    scores: Sequence[ProblemScore], k: Sequence[int], key: Key, votes: _Votes, *, greedy: bool
) -> dict[str, Any]:
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number, score in enumerate(scores):
        name = key(score)
        if name is not None:
            groups[name].append(number)
    return {
        name: {
            "problems": len(here),
            "n": counts_of(scores[i] for i in here).samples,
            "metrics": _metrics(scores, here, k, votes, greedy=greedy),
            "rates": _rates([scores[i] for i in here]),
        }
        for name, here in sorted(groups.items(), key=lambda item: in_order(item[0]))
    }
