"""majority@k: is the answer that most of k samples give the right one?

A problem's samples vote for classes of equal answers. One without an answer, or cut off before it,
votes for none, and is among the k all the same. Where several classes have the most votes, each
wins in equal parts: the right one's part counts. Where nobody votes, nothing is right.

The intervals are those of `llmpipe.algo.intervals`, with variances by simulation, since a majority
is no function of the count of right samples alone. New samples are drawn with a share of right ones
from its posterior, as there, and the rest by Dirichlet-smoothed shares of what the problem's other
samples said, with half a vote for an answer that nobody gave yet. ``benchmarks/coverage.py`` has
how often they hold the truth.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.intervals import BetaBinomial, Floats

_UNSEEN = 0.5  # votes of an answer that nobody gave yet
_DRAWS = 100_000  # of elections, over all problems
_FEWEST, _MOST = 40, 800  # for each of them
_PATTERNS = 200  # problems that stand for all, where one number is sought


@dataclass(frozen=True)
class Ballot:
    """How a problem's ``n`` samples voted: so many for each ``right`` and each ``wrong`` class."""

    n: int
    right: tuple[int, ...]
    wrong: tuple[int, ...]

    @property
    def correct(self) -> int:
        return sum(self.right)


def majority_at_k(ballot: Ballot, k: int) -> float | None:
    """The chance that k of a problem's samples elect a right answer.

    It is the mean over all its C(n, k) sets of k samples, ties split, worked out in whole numbers;
    for k = n it is one vote of all. None where n < k.

    Raises:
        ValueError: k below 1, or more votes than samples.
    """
    votes = (*ballot.right, *ballot.wrong)
    if k < 1 or sum(votes) > ballot.n:
        raise ValueError(f"k is {k}; {sum(votes)} votes of {ballot.n}")
    if ballot.n < k:
        return None
    if k == ballot.n:
        most = max(votes, default=0)
        return ballot.right.count(most) / votes.count(most) if most else 0.0
    silent = ballot.n - sum(votes)
    share = 0.0
    for own, times in Counter(ballot.right).items():
        rest = list(votes)
        rest.remove(own)
        share += times * _wins(own, tuple(sorted(rest)), silent, k)
    return min(1.0, share)


@functools.lru_cache(maxsize=1 << 16)
def _wins(own: int, rest: tuple[int, ...], silent: int, k: int) -> float:
    """A class's part of the wins, with ``own`` votes beside classes of ``rest``, over sets of k.

    For each number of its votes in the set, the ways are counted in which no other class has more,
    by how many have as many: a product of polynomials, a term's power being the votes used.
    """
    parts: Counter[int] = Counter()  # the sets that are won, by how many share in the win
    for votes in range(1, min(own, k) + 1):
        left = k - votes
        ways = [[math.comb(silent, j) for j in range(min(silent, left) + 1)]]  # by ties, by votes
        for other in rest:
            lower = [math.comb(other, j) for j in range(min(other, votes - 1, left) + 1)]
            level = math.comb(other, votes) if votes <= other else 0
            ways = _with(ways, lower, level, votes, left)
        chosen = math.comb(own, votes)
        for ties, by_votes in enumerate(ways):
            if len(by_votes) > left:
                parts[ties + 1] += chosen * by_votes[left]
    every = math.comb(own + sum(rest) + silent, k)
    whole = math.lcm(*parts) if parts else 1
    return sum(sets * (whole // share) for share, sets in parts.items()) / (every * whole)


def _with(
    ways: list[list[int]], lower: list[int], level: int, votes: int, left: int
) -> list[list[int]]:
    """The ways with one more class: it has fewer votes, or as many, which is one tie more."""
    found = [_product(by_votes, lower, left) for by_votes in ways]
    if level and votes <= left:
        found.append([])
        for ties, by_votes in enumerate(ways):
            tied = [0] * votes + [level * w for w in by_votes[: left - votes + 1]]
            found[ties + 1] = _sum(found[ties + 1], tied)
    return found


def _product(one: list[int], other: list[int], most: int) -> list[int]:
    found = [0] * min(len(one) + len(other) - 1, most + 1) if one else []
    for i, x in enumerate(one):
        if x:
            for j, y in enumerate(other[: most + 1 - i]):
                found[i + j] += x * y
    return found


def _sum(one: list[int], other: list[int]) -> list[int]:
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return [x + y for x, y in zip(longer, shorter, strict=False)] + longer[len(shorter) :]


def within(ballots: Sequence[Ballot], model: BetaBinomial, k: int) -> Floats:
    """What each problem's majority@k varies by under new samples: shape (problems,).

    Of two sets of k among the same n new samples the wins go together as much as the mean over all
    such sets varies. So pairs of sets are drawn that share as many samples as chance has it, and
    beside each a set of other samples. One problem's figure is noisy, and may be below 0; their sum
    is not. The random numbers depend on nothing else.
    """
    draws = min(_MOST, max(_FEWEST, _DRAWS // len(ballots)))
    rng = np.random.default_rng(0)
    variances = np.zeros(len(ballots))
    for i, ballot in enumerate(ballots):
        known = (model.a + ballot.correct, model.b + ballot.n - ballot.correct)
        one, two, apart = _elections(ballot, k, known, draws, rng)
        variances[i] = (one * two).mean() - ((one + two) / 2 * apart).mean()
    return variances


def variance(ballots: Sequence[Ballot], model: BetaBinomial, k: int) -> float:
    """What the majority@k of a new problem varies by.

    It has a share of right samples from the prior, and is otherwise like one of these; of many,
    some are taken, evenly spread.
    """
    some = ballots[:: -(-len(ballots) // _PATTERNS)]
    draws = min(_MOST, max(_FEWEST, _DRAWS // 4 // len(some)))
    rng = np.random.default_rng(1)
    mean = square = 0.0
    for ballot in some:
        one, two, apart = _elections(ballot, k, (model.a, model.b), draws, rng)
        square += float((one * two).mean()) / len(some)
        mean += float((one + two + apart).mean()) / 3 / len(some)
    return max(0.0, square - mean * mean)


def _elections(
    ballot: Ballot,
    k: int,
    right: tuple[float, float],
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """The right classes' parts of the wins in three sets of k samples: each of shape (draws,).

    All are of one problem, the first two among the same n samples.
    """
    silent = ballot.n - ballot.correct - sum(ballot.wrong)
    share = rng.beta(*right, size=draws)
    # The columns: right classes, wrong ones, one that nobody gave yet, and no vote.
    yes = _dirichlet(ballot.right or (1,), draws, rng) * share[:, None]
    no = _dirichlet((*ballot.wrong, _UNSEEN, silent), draws, rng) * (1 - share)[:, None]
    chances = np.hstack([yes, no])
    chances /= chances.sum(axis=1, keepdims=True)
    shared = rng.hypergeometric(k, ballot.n - k, k, size=draws)
    common = rng.multinomial(shared, chances)
    sets = (
        common + rng.multinomial(k - shared, chances),
        common + rng.multinomial(k - shared, chances),
        rng.multinomial(k, chances),
    )
    one, two, apart = (_parts(votes[:, :-1], yes.shape[1]) for votes in sets)
    return one, two, apart


def _dirichlet(weights: Sequence[float], draws: int, rng: np.random.Generator) -> Floats:
    if len(weights) == 1:
        return np.ones((draws, 1))
    drawn = rng.standard_gamma(np.asarray(weights, np.float64), size=(draws, len(weights)))
    total = drawn.sum(axis=1, keepdims=True)
    return np.where(total > 0, drawn / np.where(total > 0, total, 1), 1 / len(weights))


def _parts(votes: NDArray[np.int64], right: int) -> Floats:
    most = votes.max(axis=1, keepdims=True)
    best = (votes == most) & (most > 0)
    winners = best.sum(axis=1)
    return np.where(winners > 0, best[:, :right].sum(axis=1) / np.maximum(winners, 1), 0.0)
