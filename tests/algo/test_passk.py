from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.passk import mean_accuracy, mean_pass_at_k, pass_at_k


def exact(n: int, c: int, k: int) -> Fraction:
    """One minus the chance that k draws without replacement are all wrong, draw by draw."""
    miss = Fraction(1)
    for i in range(k):
        miss *= Fraction(max(n - c - i, 0), n - i)
    return 1 - miss


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int, int]:
    n = draw(st.integers(1, 2000))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@given(counts())
def test_equals_exact_arithmetic_to_1e_15(nck: tuple[int, int, int]) -> None:
    assert abs(Fraction(pass_at_k(*nck)) - exact(*nck)) <= Fraction(1, 10**15)


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [(8, 0, 8, 0.0), (8, 8, 1, 1.0), (8, 1, 8, 1.0), (4, 1, 1, 0.25), (4, 2, 2, 5 / 6)],
)
def test_values_worked_out_by_hand(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == value


def test_is_undefined_with_fewer_samples_than_k() -> None:
    assert pass_at_k(7, 7, 8) is None
    assert pass_at_k(0, 0, 1) is None


@pytest.mark.parametrize(("n", "c", "k"), [(4, 5, 1), (4, -1, 1), (-1, 0, 1), (4, 2, 0)])
def test_counts_that_cannot_be_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"right samples|k is"):
        pass_at_k(n, c, k)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=50), st.integers(1, 8))
def test_the_mean_is_over_problems(right: list[int], k: int) -> None:
    mean = sum((1 - Fraction(comb(8 - c, k), comb(8, k)) for c in right), Fraction(0)) / len(right)
    assert mean_pass_at_k(((8, c) for c in right), k) == pytest.approx(float(mean), abs=1e-14)


def test_one_problem_with_too_few_samples_leaves_the_mean_undefined() -> None:
    assert mean_pass_at_k([(8, 8), (7, 7)], 8) is None
    assert mean_pass_at_k([(8, 8), (7, 7)], 7) == 1.0
    assert mean_pass_at_k([], 1) is None


def test_accuracy_weighs_problems_alike_whatever_their_samples() -> None:
    assert mean_accuracy([(1, 1), (4, 1)]) == 0.625
    assert mean_accuracy([(1, 1), (0, 0)]) is None
    assert mean_accuracy([]) is None
