"""The figures of an eval: means over problems, each with its two intervals.

A figure is undefined where any problem has too few samples for it: leaving such problems out would
make it a figure of other problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llmpipe.algo.intervals import (
    BetaBinomial,
    Floats,
    Ints,
    for_new_problems,
    for_these_problems,
    variance,
    within,
)
from llmpipe.algo.majority import DRAWS, Ballot, majority_at_k, variances
from llmpipe.algo.passk import AVERAGE, COVERAGE, Figure, pass_at, pass_hat

Metric = dict[str, float | int | None]
"""``value`` with ``low`` and ``high`` (new problems of this kind) and ``low_here`` and
``high_here`` (these problems, sampled anew); ``too_few`` problems where it is undefined."""

ESTIMANDS = {
    "confidence": 0.95,
    "low, high": "the mean over all problems of this kind, of which these were drawn",
    "low_here, high_here": "the mean over these problems, if they are sampled anew",
}


@dataclass(frozen=True)
class Counts:
    """``n`` samples that count and ``c`` right ones of each problem: both of shape (problems,)."""

    n: Ints
    c: Ints

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Counts:
        """From (n, c) of each problem."""
        both = np.asarray(list(pairs), np.int64).reshape(-1, 2)
        return cls(both[:, 0], both[:, 1])

    def __len__(self) -> int:
        return len(self.n)

    def __getitem__(self, here: Any) -> Counts:
        return Counts(self.n[here], self.c[here])

    @property
    def samples(self) -> int | dict[str, int]:
        """How many samples a problem has: their least and most where problems differ."""
        if not len(self):
            return 0
        low, high = int(self.n.min()), int(self.n.max())
        return low if low == high else {"min": low, "max": high}


def figures(k: Sequence[int]) -> list[Figure]:
    """What is said of an eval for some k: of k = 1 pass^k is pass@k, and left out."""
    several = [each for each in k if each > 1]
    return [*map(pass_at, k), AVERAGE, *map(pass_hat, several), COVERAGE]


def measure(figure: Figure, counts: Counts, *, greedy: bool = False) -> Metric:
    """A figure of these problems, with its intervals.

    ``greedy`` samples would come out the same again: there is no interval for that.
    """
    return measure_all([figure], counts, greedy=greedy)[figure.name]


def measure_all(
    some: Sequence[Figure], counts: Counts, *, greedy: bool = False
) -> dict[str, Metric]:
    """`measure` of several figures, by name."""
    if not len(counts):
        return {figure.name: undefined() for figure in some}
    found: dict[str, Metric] = {}
    model: BetaBinomial | None = None
    for figure in some:
        too_few = int((counts.n < figure.needs).sum())
        if too_few:
            found[figure.name] = undefined(too_few)
            continue
        model = model or BetaBinomial.fit(counts.n, counts.c)
        found[figure.name] = metric(
            figure.values(counts.n, counts.c),
            variance(model, counts.n, figure.table),
            None if greedy else within(model, counts.n, counts.c, figure.table),
        )
    return found


def measure_majority(
    k: int, ballots: Sequence[Ballot], *, greedy: bool = False, draws: int = DRAWS
) -> Metric:
    """majority@k of these problems, with its intervals by so many ``draws``."""
    counts = Counts.of((ballot.n, ballot.correct) for ballot in ballots)
    too_few = int((counts.n < k).sum())
    if too_few or not ballots:
        return undefined(too_few)
    between, anew = variances(ballots, BetaBinomial.fit(counts.n, counts.c), k, draws)
    values = np.array([majority_at_k(ballot, k) for ballot in ballots], np.float64)
    return metric(values, between, None if greedy else anew)


def metric(values: Floats, model_variance: float, variances: Floats | None) -> Metric:
    """The mean of problems' values and its intervals, by their variances."""
    low, high = for_new_problems(values, model_variance)
    here = (None, None) if variances is None else for_these_problems(values, variances)
    return {
        "value": math.fsum(values) / len(values),
        "low": low,
        "high": high,
        "low_here": here[0],
        "high_here": here[1],
    }


def undefined(too_few: int = 0) -> Metric:
    """What stands for a figure that can't be said, since so many problems have too few samples."""
    nothing: Metric = dict.fromkeys(("value", "low", "high", "low_here", "high_here"))
    return {**nothing, "too_few": too_few} if too_few else nothing


def curves(counts: Counts, *, greedy: bool = False) -> Mapping[str, list[Metric]]:
    """pass@k and pass^k for every k up to the most samples of a problem, each with its ``k``."""
    most = int(counts.n.max()) if len(counts) else 0
    return {
        name: [{"k": k, **measure(figure(k), counts, greedy=greedy)} for k in range(1, most + 1)]
        for name, figure in (("pass@k", pass_at), ("pass^k", pass_hat))
    }
