"""The figures of an eval: means over problems, each with its two intervals.

A figure is undefined where any problem has too few samples for it: leaving such problems out would
make it a figure of other problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from llmpipe.algo.intervals import (
    CONFIDENCE,
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
    "confidence": CONFIDENCE,
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

    @property
    def samples(self) -> int | dict[str, int]:
        """How many samples a problem has: their least and most where problems differ."""
        if not len(self):
            return 0
        low, high = int(self.n.min()), int(self.n.max())
        return low if low == high else {"min": low, "max": high}


@dataclass(frozen=True)
class Terms:
    """A figure's value for each problem, and what it varies by.

    ``between`` is over new problems, ``within`` under new samples of each of these: None where the
    samples would come out the same again (greedy).
    """

    values: Floats
    between: float
    within: Floats | None

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def metric(self) -> Metric:
        low, high = for_new_problems(self.values, self.between)
        here: tuple[float | None, float | None] = (None, None)
        if self.within is not None:
            here = for_these_problems(self.values, self.within)
        return {
            "value": self.mean,
            "low": low,
            "high": high,
            "low_here": here[0],
            "high_here": here[1],
        }


def undefined(too_few: int = 0) -> Metric:
    """What stands for a figure that can't be said, since so many problems have too few samples."""
    nothing: Metric = dict.fromkeys(("value", "low", "high", "low_here", "high_here"))
    return {**nothing, "too_few": too_few} if too_few else nothing


def figures(k: Sequence[int]) -> list[Figure]:
    """What is said of an eval for some k: of k = 1 pass^k is pass@k, and left out."""
    several = [each for each in k if each > 1]
    return [*map(pass_at, k), AVERAGE, *map(pass_hat, several), COVERAGE]


def terms(figure: Figure, counts: Counts, *, greedy: bool = False) -> Terms | None:
    """A figure of each problem; None where it is undefined."""
    if not len(counts) or (counts.n < figure.needs).any():
        return None
    model = BetaBinomial.fit(counts.n, counts.c)
    return Terms(
        values=figure.values(counts.n, counts.c),
        between=variance(model, counts.n, figure.table),
        within=None if greedy else within(model, counts.n, counts.c, figure.table),
    )


def majority_terms(
    k: int, ballots: Sequence[Ballot], *, greedy: bool = False, draws: int = DRAWS
) -> Terms | None:
    """majority@k of each problem, its variances by so many ``draws``; None where undefined."""
    counts = Counts.of((ballot.n, ballot.correct) for ballot in ballots)
    if not ballots or (counts.n < k).any():
        return None
    between, anew = variances(ballots, BetaBinomial.fit(counts.n, counts.c), k, draws)
    values = np.array([majority_at_k(ballot, k) for ballot in ballots], np.float64)
    return Terms(values, between, None if greedy else anew)


def measure(figure: Figure, counts: Counts, *, greedy: bool = False) -> Metric:
    """A figure of these problems, with its intervals."""
    found = terms(figure, counts, greedy=greedy)
    return found.metric if found else undefined(int((counts.n < figure.needs).sum()))


def measure_majority(
    k: int, ballots: Sequence[Ballot], *, greedy: bool = False, draws: int = DRAWS
) -> Metric:
    """majority@k of these problems, with its intervals."""
    found = majority_terms(k, ballots, greedy=greedy, draws=draws)
    return found.metric if found else undefined(sum(ballot.n < k for ballot in ballots))


def curves(counts: Counts, *, greedy: bool = False) -> Mapping[str, list[Metric]]:
    """pass@k and pass^k for every k up to the most samples of a problem, each with its ``k``."""
    most = int(counts.n.max()) if len(counts) else 0
    return {
        name: [{"k": k, **measure(figure(k), counts, greedy=greedy)} for k in range(1, most + 1)]
        for name, figure in (("pass@k", pass_at), ("pass^k", pass_hat))
    }
