from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.packing import best_fit_decreasing, utilisation


def brute_force(lengths: list[int], capacity: int) -> int:
    """Bins of best-fit decreasing by looking at every bin for every row."""
    free: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [i for i, f in enumerate(free) if f >= length]
        if fitting:
            free[min(fitting, key=lambda i: free[i])] -= length
        else:
            free.append(capacity - length)
    return len(free)


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[int], int]:
    capacity = draw(st.integers(1, 300))
    return draw(st.lists(st.integers(1, capacity), max_size=120)), capacity


@given(inputs())
def test_every_row_is_in_one_bin_and_no_bin_is_over_full(case: tuple[list[int], int]) -> None:
    lengths, capacity = case
    bins = best_fit_decreasing(np.array(lengths, dtype=np.int32), capacity)
    assert sorted(row for members in bins for row in members) == list(range(len(lengths)))
    assert all(0 < sum(lengths[row] for row in members) <= capacity for members in bins)


@given(inputs())
def test_uses_as_many_bins_as_brute_force(case: tuple[list[int], int]) -> None:
    lengths, capacity = case
    assert len(best_fit_decreasing(np.array(lengths, dtype=np.int64), capacity)) == brute_force(
        lengths, capacity
    )


def test_the_best_fit_is_taken_not_the_first() -> None:
    # 6 and 7 open two bins; 3 fits the second exactly.
    assert best_fit_decreasing(np.array([6, 7, 3]), 10) == [[1, 2], [0]]


def test_rows_of_equal_length_keep_their_order() -> None:
    assert best_fit_decreasing(np.array([5, 5, 5, 5, 10]), 10) == [[4], [0, 1], [2, 3]]


def test_packs_by_all_rows_not_by_neighbours() -> None:
    lengths = np.array([90] * 2000 + [10] * 2000)
    bins = best_fit_decreasing(lengths, 100)
    assert utilisation(int(lengths.sum()), len(bins), 100) == 1.0


@pytest.mark.parametrize("lengths", [[0, 3], [-1], [3, 11]])
def test_lengths_that_cannot_be_packed_are_refused(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="must be 1 to 10"):
        best_fit_decreasing(np.array(lengths), 10)


def test_nothing_makes_no_bins() -> None:
    assert best_fit_decreasing(np.array([], dtype=np.int32), 10) == []
    assert utilisation(0, 0, 10) == 0.0


def test_utilisation_is_the_share_of_room_that_is_used() -> None:
    assert utilisation(150, 2, 100) == 0.75


def test_room_that_is_never_used_costs_nothing() -> None:
    """A capacity of 10**12 tokens once asked for a list of as many stacks."""
    assert best_fit_decreasing(np.array([3, 9]), 10**12) == [[1, 0]]
