from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest

from llmpipe.algo.metrics import Counts, Terms, terms
from llmpipe.algo.paired import difference, resampled_means, sign_test
from llmpipe.algo.passk import AVERAGE, pass_at


def greedy(values: list[float]) -> Terms:
    return Terms(np.array(values), 0.0, None, None)


@pytest.mark.parametrize(("won", "lost"), list(itertools.product((0, 1, 4, 9), (0, 3, 9, 40))))
def test_the_sign_test_is_that_of_fair_coins(won: int, lost: int) -> None:
    tosses = won + lost
    tail = sum(Fraction(comb(tosses, i), 2**tosses) for i in range(min(won, lost) + 1))
    assert sign_test(won, lost) == pytest.approx(float(min(Fraction(1), 2 * tail)), abs=1e-15)


def test_thousands_of_problems_overflow_nothing() -> None:
    assert sign_test(2500, 2500) == 1.0
    assert 0 < sign_test(2600, 2400) < 0.005
    assert sign_test(5000, 0) == pytest.approx(0, abs=1e-300)


def test_for_one_greedy_answer_each_it_is_mcnemar_s_test() -> None:
    """A table from Agresti's book: 86 of 236 who changed their minds went one way."""
    second = [1.0] * 86 + [0.0] * 150 + [1.0] * 794 + [0.0] * 570
    first = [0.0] * 86 + [1.0] * 150 + [1.0] * 794 + [0.0] * 570
    found = difference(greedy(first), greedy(second))
    assert (found.won, found.lost, found.tied) == (86, 150, 1364)
    assert found.value == (86 - 150) / 1600
    assert 2e-5 < found.sign_p < 5e-5
    # Its own large-sample interval for the difference: -0.040 plus and minus 1.96 * 0.0095.
    assert (found.low, found.high) == (
        pytest.approx(-0.0587, abs=2e-4),
        pytest.approx(-0.0213, abs=2e-4),
    )
    assert (found.bootstrap_low, found.bootstrap_high) == (
        pytest.approx(found.low, abs=2e-3),
        pytest.approx(found.high, abs=2e-3),
    )
    assert found.low_here is None


def test_resampled_means_spread_as_means_do() -> None:
    values = np.random.default_rng(1).normal(size=400)
    drawn = resampled_means(values, 20_000)
    assert drawn.mean() == pytest.approx(values.mean(), abs=4 * values.std() / sqrt(400 * 20_000))
    assert drawn.std() == pytest.approx(values.std() / sqrt(400), rel=0.02)
    # Each value is drawn as often as any other, and in the same numbers as by a fair draw.
    ones = resampled_means(np.eye(1, 7).ravel(), 70_000) * 7
    assert np.bincount(ones.round().astype(int), minlength=3)[:3] / 70_000 == pytest.approx(
        [(6 / 7) ** 7, (6 / 7) ** 6, comb(7, 2) * 6**5 / 7**7], abs=0.006
    )
    assert (resampled_means(values, 100) == drawn[:100]).all()


def test_two_sides_that_agree_are_not_the_same_for_sure() -> None:
    same = terms(AVERAGE, Counts.of([(8, c) for c in (0, 3, 8, 8)]))
    assert same is not None
    found = difference(same, same)
    assert (found.value, found.tied, found.sign_p, found.bootstrap_p) == (0, 4, 1.0, 1.0)
    assert found.low < found.low_here < 0 < found.high_here < found.high
    alike = difference(greedy([1.0] * 30), greedy([1.0] * 30))
    assert -0.08 < alike.low < 0 < alike.high < 0.08


@pytest.mark.parametrize("k", [1, 8])
def test_the_intervals_of_a_difference_hold_the_truth(k: int) -> None:
    """30 problems, 8 samples a side, the second model a little better, a thousand times."""
    rng = np.random.default_rng(3)
    runs, held_new, held_here = 1000, 0, 0

    def models(count: int) -> tuple[np.ndarray, np.ndarray]:
        first = rng.beta(1, 1.5, count)
        return first, 0.8 * first + 0.2 * rng.beta(2, 1, count)

    def truth(p: np.ndarray) -> np.ndarray:
        return 1 - (1 - p) ** k

    one, two = models(1_000_000)
    kind = float((truth(two) - truth(one)).mean())
    for _ in range(runs):
        both = models(30)
        first, second = (
            terms(pass_at(k), Counts(np.full(30, 8), rng.binomial(8, p))) for p in both
        )
        found = difference(first, second, resamples=10)
        held_new += found.low <= kind <= found.high
        here = float((truth(both[1]) - truth(both[0])).mean())
        held_here += found.low_here <= here <= found.high_here
    error = sqrt(0.95 * 0.05 / runs)
    for held in (held_new, held_here):
        assert 0.93 - 3 * error < held / runs < 0.985
