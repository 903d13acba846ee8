"""Which problems are held out."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.holdout import hold_out

KEYS = st.lists(st.binary(min_size=1, max_size=3), max_size=40)


@given(KEYS, st.integers(0, 50), st.integers(0, 3), st.randoms())
def test_the_choice_is_of_distinct_keys_and_independent_of_their_order(
    keys: list[bytes], count: int, seed: int, random: Random
) -> None:
    held = hold_out(keys, count, seed)
    assert len(held) == min(count, len(set(keys)))
    assert held <= set(keys)
    shuffled = keys * 2
    random.shuffle(shuffled)
    assert hold_out(shuffled, count, seed) == held


@given(KEYS, st.integers(0, 20), st.integers(0, 3))
def test_a_larger_choice_holds_the_smaller(keys: list[bytes], count: int, seed: int) -> None:
    assert hold_out(keys, count, seed) <= hold_out(keys, count + 5, seed)


def test_seeds_choose_differently_and_evenly() -> None:
    keys = [bytes([i]) for i in range(100)]
    chosen = [key for seed in range(200) for key in hold_out(keys, 10, seed)]
    counts = [chosen.count(key) for key in keys]  # 20 each on average, 4.2 standard deviation
    assert min(counts) > 3
    assert max(counts) < 41
