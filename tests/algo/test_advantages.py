from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.advantages import Advantages, group_advantages, pass_at_k_advantages

GROUPS = [(n, c, k) for n in range(1, 8) for c in range(n + 1) for k in range(1, n + 1)]


def brute_force(rewards: list[int], k: int) -> list[float]:
    """The advantage of each response by listing every set of k, in exact fractions."""
    sets = [
        (members, max(rewards[i] for i in members))
        for members in combinations(range(len(rewards)), k)
    ]
    mean = Fraction(sum(reward for _, reward in sets), len(sets))
    variance = sum((reward - mean) ** 2 for _, reward in sets) / len(sets)
    if not variance:
        return [0.0] * len(rewards)
    advantages = []
    for i in range(len(rewards)):
        own = [reward for members, reward in sets if i in members]
        advantages.append(float(Fraction(sum(own), len(own)) - mean) / math.sqrt(variance))
    return advantages


@pytest.mark.parametrize(("n", "c", "k"), GROUPS)
def test_the_formula_is_the_mean_over_all_sets_of_k(n: int, c: int, k: int) -> None:
    made = pass_at_k_advantages(n, c, k)
    assert made is not None
    expected = brute_force([1] * c + [0] * (n - c), k)
    found = [made.right] * c + [made.wrong] * (n - c)
    assert found == pytest.approx(expected, abs=1e-12)


def test_k_of_1_is_the_reward_less_its_mean_over_its_deviation() -> None:
    rewards = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    expected = (rewards - rewards.mean()) / rewards.std()
    made = pass_at_k_advantages(5, 2, 1)
    assert made is not None
    assert [made.right, made.wrong] == pytest.approx([expected[0], expected[-1]])


def test_known_values() -> None:
    # n 4, c 1, k 2: half of the six pairs hold the right one, so R = s = 1/2; a wrong one has it
    # in one of its three pairs: (1/3 - 1/2) / (1/2).
    assert pass_at_k_advantages(4, 1, 2) == Advantages(pytest.approx(1.0), pytest.approx(-1 / 3))


@pytest.mark.parametrize(("n", "c", "k"), [(4, 0, 2), (4, 4, 2), (1, 0, 1), (1, 1, 1), (5, 2, 4)])
def test_where_all_sets_are_worth_the_same_there_is_nothing_to_learn(
    n: int, c: int, k: int
) -> None:
    assert pass_at_k_advantages(n, c, k) == Advantages(0.0, 0.0)


def test_too_few_responses_have_none() -> None:
    assert pass_at_k_advantages(3, 1, 4) is None
    assert pass_at_k_advantages(0, 0, 1) is None


@pytest.mark.parametrize(("n", "c", "k"), [(2, 3, 1), (2, -1, 1), (2, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match=r"right responses|must be at least 1"):
        pass_at_k_advantages(n, c, k)


@given(st.integers(1, 300), st.data())
def test_a_group_of_any_size_sums_to_zero_and_prefers_the_right(
    n: int, data: st.DataObject
) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    made = pass_at_k_advantages(n, c, k)
    assert made is not None
    assert c * made.right + (n - c) * made.wrong == pytest.approx(0, abs=1e-7 * n)
    share = Fraction(math.comb(n - c, k), math.comb(n, k))  # of sets without a right one
    if 0 < share < 1:
        assert made.right == pytest.approx(math.sqrt(share / (1 - share)))
        assert made.wrong < made.right


def test_groups_may_be_mixed_and_the_unjudged_are_left_out() -> None:
    groups = np.array([0, 1, 0, 1, 0, 0, 2])
    right = np.array([1, 1, 0, 1, 0, 1, 0], bool)
    judged = np.array([1, 1, 1, 1, 1, 0, 0], bool)
    found = group_advantages(groups, right, judged, 2)
    of_three = pass_at_k_advantages(3, 1, 2)
    assert of_three is not None
    expected = [of_three.right, 0.0, of_three.wrong, 0.0, of_three.wrong, math.nan, math.nan]
    assert found.tolist() == pytest.approx(expected, nan_ok=True)
    assert np.isnan(group_advantages(groups, right, judged, 3)).tolist() == [
        *[False, True, False, True, False, True, True]
    ]


def test_no_responses_have_no_advantages() -> None:
    nothing = np.array([], np.int64)
    assert group_advantages(nothing, nothing.astype(bool), nothing.astype(bool), 4).tolist() == []
