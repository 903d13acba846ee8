from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.metrics import Counts, curves, measure
from llmpipe.algo.passk import AVERAGE, COVERAGE, pass_at, pass_at_k, pass_hat, pass_hat_k


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


@given(counts())
def test_all_of_k_right_is_none_of_them_wrong(nck: tuple[int, int, int]) -> None:
    n, c, k = nck
    found = pass_hat_k(n, c, k)
    assert abs(Fraction(found) - (1 - exact(n, n - c, k))) <= Fraction(1, 10**15)


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
    counts = Counts.of((8, c) for c in right)
    mean = sum((1 - Fraction(comb(8 - c, k), comb(8, k)) for c in right), Fraction(0)) / len(right)
    assert measure(pass_at(k), counts)["value"] == pytest.approx(float(mean), abs=1e-15)
    mean = sum((Fraction(comb(c, k), comb(8, k)) for c in right), Fraction(0)) / len(right)
    assert measure(pass_hat(k), counts)["value"] == pytest.approx(float(mean), abs=1e-15)
    assert measure(COVERAGE, counts)["value"] == sum(c > 0 for c in right) / len(right)


def test_one_problem_with_too_few_samples_leaves_the_mean_undefined() -> None:
    short = Counts.of([(8, 8), (7, 7)])
    assert measure(pass_at(8), short) == {
        "value": None,
        "low": None,
        "high": None,
        "low_here": None,
        "high_here": None,
        "too_few": 1,
    }
    assert measure(pass_at(7), short)["value"] == 1.0
    assert measure(pass_at(1), Counts.of([]))["value"] is None
    found = curves(short)
    assert [m["k"] for m in found["pass@k"]] == list(range(1, 9))
    assert [m["value"] for m in found["pass@k"]] == [1.0] * 7 + [None]
    assert found["pass^k"][7]["too_few"] == 1


def test_accuracy_weighs_problems_alike_whatever_their_samples() -> None:
    assert measure(AVERAGE, Counts.of([(1, 1), (4, 1)]))["value"] == 0.625
    assert measure(AVERAGE, Counts.of([(1, 1), (0, 0)]))["too_few"] == 1


def test_a_greedy_answer_has_no_interval_for_samples_drawn_anew() -> None:
    found = measure(pass_at(1), Counts.of([(1, 1), (1, 0), (1, 1)]), greedy=True)
    assert (found["low_here"], found["high_here"]) == (None, None)
    assert 0 < found["low"] < 2 / 3 < found["high"] < 1
