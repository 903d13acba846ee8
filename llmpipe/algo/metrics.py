"""The figures of an eval: means over problems, each with its two intervals.

A figure is undefined where any problem has too few samples for it: leaving such problems out would
make it a figure of other problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from llmpipe.algo import majority
from llmpipe.algo.intervals import (
    CONFIDENCE,
    UNKNOWN,
    BetaBinomial,
    Floats,
    Ints,
    for_new_problems,
    for_these_problems,
    variance,
    within,
)
from llmpipe.algo.majority import Ballot, majority_at_k
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

    ``between`` is over new problems. ``within`` is under new samples of each of these, as its
    posterior has it, and ``unknown`` if nothing were known but its own samples: both None where the
    samples would come out the same again (greedy).
    """

    values: Floats
    between: float
    within: Floats | None
    unknown: Floats | None

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def anew(self) -> float | None:
        """What the sum of the values varies by under new samples.

        A problem more is counted of which the others say nothing: with all samples right, a fit
        says that they always are.
        """
        if self.within is None or self.unknown is None:
            return None
        return max(0.0, float(self.within.sum() + self.unknown.mean()))

    @property
    def metric(self) -> Metric:
        low, high = for_new_problems(self.values, self.between)
        here: tuple[float | None, float | None] = (None, None)
        if self.anew is not None:
            here = for_these_problems(self.values, self.anew)
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
    n, c = counts.n, counts.c
    model = BetaBinomial.fit(n, c)
    return Terms(
        values=figure.values(n, c),
        between=variance(model, n, figure.table),
        within=None if greedy else within(model, n, c, figure.table),
        unknown=None if greedy else within(UNKNOWN, n, c, figure.table),
    )


def majority_terms(k: int, ballots: Sequence[Ballot], *, greedy: bool = False) -> Terms | None:
    """majority@k of each problem; None where undefined."""
    if not ballots or any(ballot.n < k for ballot in ballots):
        return None
    model = _fit(ballots)
    return Terms(
        values=np.array([majority_at_k(ballot, k) for ballot in ballots], np.float64),
        between=majority.variance(ballots, model, k),
        within=None if greedy else majority.within(ballots, model, k),
        unknown=None if greedy else majority.within(ballots, UNKNOWN, k),
    )


def part(terms: Terms, here: Ints, k: int, ballots: Sequence[Ballot]) -> Terms:
    """The majority@k of some problems, by their numbers and ballots, from that of all."""
    return Terms(
        values=terms.values[here],
        between=majority.variance(ballots, _fit(ballots), k),
        within=None if terms.within is None else terms.within[here],
        unknown=None if terms.unknown is None else terms.unknown[here],
    )


def _fit(ballots: Sequence[Ballot]) -> BetaBinomial:
    counts = Counts.of((ballot.n, ballot.correct) for ballot in ballots)
    return BetaBinomial.fit(counts.n, counts.c)


def measure(figure: Figure, counts: Counts, *, greedy: bool = False) -> Metric:
    """A figure of these problems, with its intervals."""
    found = terms(figure, counts, greedy=greedy)
    return found.metric if found else undefined(int((counts.n < figure.needs).sum()))


def measure_majority(k: int, ballots: Sequence[Ballot], *, greedy: bool = False) -> Metric:
    """majority@k of these problems, with its intervals."""
    found = majority_terms(k, ballots, greedy=greedy)
    return found.metric if found else undefined(sum(ballot.n < k for ballot in ballots))


def curves(counts: Counts, *, greedy: bool = False) -> Mapping[str, list[Metric]]:
    """pass@k and pass^k for every k up to the most samples of a problem, each with its ``k``."""
    most = int(counts.n.max()) if len(counts) else 0
    return {
        name: [{"k": k, **measure(figure(k), counts, greedy=greedy)} for k in range(1, most + 1)]
        for name, figure in (("pass@k", pass_at), ("pass^k", pass_hat))
    }
