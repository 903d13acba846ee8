"""The intervals of means over problems: against closed forms, tables, and truths that are known."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest

from llmpipe.algo.intervals import (
    BetaBinomial,
    for_new_problems,
    for_these_problems,
    student,
    variance,
    wilson,
    within,
)
from llmpipe.algo.metrics import Counts, measure, terms
from llmpipe.algo.passk import AVERAGE, COVERAGE, Figure, pass_at, pass_hat


def rising(x: Fraction, times: int) -> Fraction:
    product = Fraction(1)
    for i in range(times):
        product *= x + i
    return product


def chance(n: int, c: int, a: Fraction, b: Fraction) -> Fraction:
    """Of c right ones of n, beta-binomial."""
    return comb(n, c) * rising(a, c) * rising(b, n - c) / rising(a + b, n)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_variances_of_pass_at_k_are_those_of_rational_arithmetic(k: int) -> None:
    n, a, b = 6, Fraction(1, 2), Fraction(5, 4)
    model = BetaBinomial(0.5, 1.25)
    f = [1 - Fraction(comb(n - c, k), comb(n, k)) for c in range(n + 1)]
    chances = [chance(n, c, a, b) for c in range(n + 1)]
    mean = sum(p * x for p, x in zip(chances, f, strict=True))
    exact = sum(p * x * x for p, x in zip(chances, f, strict=True)) - mean**2
    assert variance(model, np.array([n]), pass_at(k).table) == pytest.approx(float(exact), rel=1e-9)

    # Given p the mean of the unbiased estimator is 1 - (1-p)^k: its square's mean is closed.
    counts = np.arange(n + 1)
    found = within(model, np.full(n + 1, n), counts, pass_at(k).table)

    def anew(c: int, a: Fraction, b: Fraction) -> Fraction:
        above, below = a + c, b + n - c
        squares = sum(chance(n, d, above, below) * f[d] ** 2 for d in range(n + 1))
        missed = [rising(below, j) / rising(above + below, j) for j in (k, 2 * k)]
        return squares - (1 - 2 * missed[0] + missed[1])

    for c in range(n + 1):
        assert found[c] == pytest.approx(float(anew(c, a, b)), rel=1e-9)


def test_the_variance_of_a_share_is_that_of_its_samples() -> None:
    model, n = BetaBinomial(2.0, 3.0), np.array([4, 4, 900])
    c = np.array([0, 3, 450])
    a, b = 2.0 + c, 3.0 + n - c
    exact = a * b / ((a + b) * (a + b + 1)) / n  # E[p(1 - p)] / n
    assert within(model, n, c, AVERAGE.table) == pytest.approx(exact, rel=1e-6)
    # And over new problems, Var p and E[p(1 - p)] / n.
    between = 2 * 3 / (25 * 6) + (2 * 3 / 30) * np.mean(1 / n)
    assert variance(model, n, AVERAGE.table) == pytest.approx(between, rel=1e-6)


def test_a_beta_is_found_again_from_its_counts() -> None:
    rng = np.random.default_rng(0)
    n = rng.integers(8, 20, 40_000)
    model = BetaBinomial.fit(n, rng.binomial(n, rng.beta(2.0, 6.0, 40_000)))
    assert (model.a, model.b) == (pytest.approx(2, rel=0.05), pytest.approx(6, rel=0.05))


@pytest.mark.parametrize(
    ("degrees", "value"),
    # A printed table of Student's distribution, 97.5 %.
    [(0, 12.706), (1, 12.706), (2, 4.303), (5, 2.571), (29, 2.045), (100, 1.984), (499, 1.965)],
)
def test_student_s_quantiles_are_those_of_the_tables(degrees: int, value: float) -> None:
    assert student(degrees) == pytest.approx(value, abs=5e-4)


def test_the_two_ways_to_student_s_quantile_meet() -> None:
    steps = [student(d) - student(d + 1) for d in (298, 299, 300, 301)]
    assert steps == sorted(steps, reverse=True)
    assert steps[1] == pytest.approx(steps[2], rel=0.02)


def test_wilson_s_interval_is_the_published_one() -> None:
    # 81 of 263: the example of Newcombe 1998, table I.
    assert wilson(81 / 263, 263, 1.959964) == (
        pytest.approx(0.2553, abs=5e-5),
        pytest.approx(0.3662, abs=5e-5),
    )


def test_greedy_answers_have_wilson_s_interval_with_student_s_quantile() -> None:
    counts = Counts.of([(1, 1)] * 12 + [(1, 0)] * 18)
    found = measure(pass_at(1), counts, greedy=True)
    trials = 30 * 0.4 * 0.6 / np.var([1] * 12 + [0] * 18, ddof=1)
    low, high = wilson(0.4, trials, student(29))
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("c", [0, 8])
@pytest.mark.parametrize("problems", [1, 2, 30, 5000])
@pytest.mark.parametrize("figure", [pass_at(1), pass_at(4), pass_at(8), pass_hat(4), AVERAGE])
def test_no_interval_is_without_width(figure: Figure, problems: int, c: int) -> None:
    """Where all problems came out the same, too, and at both ends."""
    found = measure(figure, Counts.of([(8, c)] * problems))
    assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    assert found["low"] < found["high"]
    assert found["low_here"] < found["high_here"]
    assert found["low_here"] <= found["value"] <= found["high_here"]
    if problems == 30:  # none of 30 is at most 1 in 8, by Wilson and Student; and the same at 1
        far = found["high"] if found["value"] == 0 else 1 - found["low"]
        assert 0.1 < far < 0.13


def test_a_problem_of_which_nothing_is_known_is_counted_too() -> None:
    found = terms(AVERAGE, Counts.of([(4, 4), (4, 1)]))
    assert found is not None
    a, b = 0.5 + np.array([4, 1]), 0.5 + np.array([0, 3])  # Jeffreys's prior, and the samples
    assert found.unknown == pytest.approx(a * b / (5 * 6) / 4)
    assert found.anew == pytest.approx(found.within.sum() + found.unknown.mean())


def test_one_odd_problem_is_not_a_sure_thing() -> None:
    values = np.array([1.0] * 29 + [0.0])
    low, high = for_new_problems(values, 0.0)
    assert 0.8 < low < 0.85
    assert 0.99 < high < 1


def test_means_at_the_ends_stay_within_0_and_1() -> None:
    assert for_these_problems(np.array([0.0, 0.02]), 0.02)[0] == 0.0
    assert for_these_problems(np.array([0.99, 1.0]), 0.02)[1] == 1.0


Truth = Callable[[np.ndarray], np.ndarray]
FIGURES: dict[str, tuple[Figure, Truth]] = {
    "pass@1": (pass_at(1), lambda p: p),
    "pass@8": (pass_at(8), lambda p: 1 - (1 - p) ** 8),
    "pass^8": (pass_hat(8), lambda p: p**8),
    "coverage": (COVERAGE, lambda p: 1 - (1 - p) ** 8),
}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("beta", [(0.5, 0.5), (2.0, 2.0), (0.3, 3.0)])
def test_the_intervals_hold_the_truth_as_often_as_they_say(
    figure: str, beta: tuple[float, float]
) -> None:
    """30 problems with 8 samples, a thousand times; `benchmarks/coverage.py` has the whole table.

    The bounds leave room for three standard errors of the simulation.
    """
    chosen, truth = FIGURES[figure]
    rng = np.random.default_rng(17)
    kind = float(truth(rng.beta(*beta, 2_000_000)).mean())
    runs, held_new, held_here = 1000, 0, 0
    for _ in range(runs):
        p = rng.beta(*beta, 30)
        found = measure(chosen, Counts(np.full(30, 8), rng.binomial(8, p)))
        held_new += found["low"] <= kind <= found["high"]
        held_here += found["low_here"] <= truth(p).mean() <= found["high_here"]
    error = sqrt(0.95 * 0.05 / runs)
    for held in (held_new, held_here):
        assert 0.93 - 3 * error < held / runs < 0.985


def test_near_the_end_an_interval_is_no_wider_than_at_the_end() -> None:
    """The model's variance may be more than any values of such a mean can have."""
    at_the_end = for_new_problems(np.ones(120), 0.01)
    near = for_new_problems(np.append(np.ones(119), 1 - 1e-6), 0.01)
    assert near == pytest.approx(at_the_end, abs=1e-3)
