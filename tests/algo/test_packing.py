from __future__ import annotations

import bisect
import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from llmpipe.algo import packing, packing_kernels
from llmpipe.algo.packing import Plan, kernels_for, lower_bound, plan, utilisation

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba is not installed"
)


def rows_of(made: Plan) -> list[list[int]]:
    return [part.tolist() for part in np.split(made.sequences, made.bounds[1:-1]) if len(part)]


def best_fit_decreasing(lengths: list[int], capacity: int) -> int:
    """How many rows it takes, by looking at every row for every sequence."""
    free: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [i for i, f in enumerate(free) if f >= length]
        if fitting:
            free[min(fitting, key=lambda i: free[i])] -= length
        else:
            free.append(capacity - length)
    return len(free)


def fewest(lengths: list[int], capacity: int) -> int:
    """The fewest rows possible, by trying every row for every sequence."""
    best = len(lengths)
    free: list[int] = []

    def place(left: list[int]) -> None:
        nonlocal best
        if len(free) >= best:
            return
        if not left:
            best = len(free)
            return
        for i in {f: i for i, f in enumerate(free) if f >= left[0]}.values():
            free[i] -= left[0]
            place(left[1:])
            free[i] += left[0]
        free.append(capacity - left[0])
        place(left[1:])
        free.pop()

    place(sorted(lengths, reverse=True))
    return best


@st.composite
def inputs(draw: st.DrawFn, longest: int = 300, most: int = 120) -> tuple[list[int], int]:
    capacity = draw(st.integers(1, longest))
    return draw(st.lists(st.integers(1, capacity), max_size=most)), capacity


def some(kind: str, count: int) -> NDArray[np.int64]:
    drawn = np.random.default_rng(3)
    if kind == "reasoning":
        return np.clip(drawn.lognormal(np.log(2180), 0.8, count), 64, 16384).astype(np.int64)
    return np.clip(drawn.normal(182, 60, count), 50, 400).astype(np.int64)


@settings(deadline=None)
@given(inputs())
def test_every_sequence_is_in_one_row_and_no_row_is_over_full(case: tuple[list[int], int]) -> None:
    lengths, capacity = case
    made = rows_of(plan(np.array(lengths, dtype=np.int32), capacity))
    assert sorted(i for row in made for i in row) == list(range(len(lengths)))
    assert all(0 < sum(lengths[i] for i in row) <= capacity for row in made)


@settings(deadline=None)
@given(inputs())
def test_never_more_rows_than_best_fit_decreasing_nor_fewer_than_the_bound(
    case: tuple[list[int], int],
) -> None:
    lengths, capacity = case
    array = np.array(lengths, dtype=np.int64)
    rows = len(plan(array, capacity))
    assert lower_bound(array, capacity) <= rows <= best_fit_decreasing(lengths, capacity)


@settings(deadline=None)
@given(inputs())
def test_best_fit_takes_as_many_rows_as_by_looking_at_all(case: tuple[list[int], int]) -> None:
    lengths, capacity = case
    rows, row_of = by_best_fit(lengths, capacity)
    assert rows == best_fit_decreasing(lengths, capacity) == len(set(row_of))
    assert (np.bincount(row_of, lengths, rows) <= capacity).all()


def by_length(lengths: list[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """What kernels take first: counts, where lengths begin in the order, that order, and rows."""
    counts = np.bincount(np.array(lengths, np.int64), minlength=1)
    order = np.argsort(lengths, kind="stable").tolist()
    return counts.tolist(), (np.cumsum(counts) - counts).tolist(), order, [0] * len(lengths)


def by_best_fit(lengths: list[int], capacity: int) -> tuple[int, list[int]]:
    given = by_length(lengths)
    room = [-1] * (capacity + 1), [0] * len(lengths), [0] * (capacity // 7 + 1)
    return packing_kernels.best_fit(capacity, 7, *given, *room), given[3]


@settings(deadline=None)
@given(inputs(longest=20, most=9))
def test_the_bound_is_below_the_fewest_rows_possible(case: tuple[list[int], int]) -> None:
    lengths, capacity = case
    array = np.array(lengths, dtype=np.int64)
    bound = lower_bound(array, capacity)
    assert bound <= fewest(lengths, capacity) <= len(plan(array, capacity))
    assert bound >= -(-sum(lengths) // capacity)
    assert bound == _bound_by_thresholds(lengths, capacity)


def _bound_by_thresholds(lengths: list[int], capacity: int) -> int:
    """The definition, threshold by threshold."""
    bounds = [0]
    for threshold in range(capacity // 2 + 1):
        full = [n for n in lengths if n > capacity - threshold]
        large = [n for n in lengths if capacity - threshold >= n > capacity / 2]
        small = [n for n in lengths if capacity / 2 >= n >= threshold]
        beyond = sum(small) - (capacity * len(large) - sum(large))
        bounds.append(len(full) + len(large) + max(0, -(-beyond // capacity)))
    return max(bounds)


def test_the_bound_sees_what_the_sum_does_not() -> None:
    assert lower_bound(np.array([6] * 5), 10) == 5  # the sum alone says 3
    assert lower_bound(np.array([7, 7, 4, 4]), 10) == 3


def test_looking_ahead_fills_what_best_fit_leaves_open() -> None:
    lengths = [60, 30, 30, 28, 25, 15, 12]  # 60 + 28 + 12 and 30 + 30 + 25 + 15
    assert len(plan(np.array(lengths), 100)) == 2
    assert best_fit_decreasing(lengths, 100) == 3


def test_rows_of_three_that_fit_exactly_are_mostly_found() -> None:
    """Falkenauer's triplets (1996), the hard case for all that go by length alone."""
    drawn = np.random.default_rng(1)
    large = drawn.integers(380, 490, 2000)
    small = drawn.integers(250, (1000 - large) // 2 + 1)
    lengths = np.concatenate([large, small, 1000 - large - small])
    assert best_fit_by_bisection(lengths, 1000) > 2000 * 1.15
    assert 2000 <= len(plan(lengths, 1000)) < 2000 * 1.04


def test_where_looking_ahead_needs_more_rows_best_fit_is_taken() -> None:
    lengths = [33, 24, 19, 18, 12, 6, 4, 4]
    room = [0] * 34, [0] * 34, [0] * 8
    assert packing_kernels.look_ahead(41, packing.WIDTH, *by_length(lengths), *room) == 4
    assert len(plan(np.array(lengths), 41)) == by_best_fit(lengths, 41)[0] == 3


@pytest.mark.parametrize(("kind", "capacity"), [("reasoning", 16384), ("maze", 4096)])
def test_leaves_almost_nothing_open(kind: str, capacity: int) -> None:
    lengths = some(kind, 30_000)
    rows, bound = len(plan(lengths, capacity)), lower_bound(lengths, capacity)
    assert bound <= rows <= bound * 1.0008
    assert rows < best_fit_by_bisection(lengths, capacity)


def best_fit_by_bisection(lengths: NDArray[np.int64], capacity: int) -> int:
    free: list[int] = []
    rows = 0
    for length in np.sort(lengths)[::-1].tolist():
        at = bisect.bisect_left(free, length)
        if at == len(free):
            rows += 1
            room = capacity
        else:
            room = free.pop(at)
        bisect.insort(free, room - length)
    return rows


def test_sequences_of_equal_length_keep_their_order() -> None:
    assert rows_of(plan(np.array([5, 5, 5, 5, 10]), 10)) == [[4], [0, 1], [2, 3]]


def test_a_row_holds_its_sequences_in_their_order() -> None:
    assert rows_of(plan(np.array([1, 9, 2, 8, 3, 7]), 10)) == [[0, 1], [2, 3], [4, 5]]


def test_the_seed_shuffles_rows_and_nothing_else() -> None:
    lengths = some("maze", 3_000)
    plain = rows_of(plan(lengths, 4096))
    first = rows_of(plan(lengths, 4096, seed=1))
    assert first == rows_of(plan(lengths, 4096, seed=1))
    assert first != plain
    assert first != rows_of(plan(lengths, 4096, seed=2))
    assert sorted(first) == sorted(plain)
    plan(lengths, 4096, seed=-1)


def test_packs_by_all_sequences_not_by_neighbours() -> None:
    lengths = np.array([90] * 2000 + [10] * 2000)
    assert utilisation(int(lengths.sum()), len(plan(lengths, 100)), 100) == 1.0


@needs_numba
@pytest.mark.parametrize("kind", ["reasoning", "maze"])
@pytest.mark.parametrize("capacity", [16384, 32768])
def test_compiled_and_interpreted_plan_the_same(
    kind: str, capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = some(kind, 3_000)
    assert kernels_for(len(lengths)) is packing_kernels
    by_python = plan(lengths, capacity, seed=0)
    monkeypatch.setattr(packing, "_BY_HAND", 0)
    assert kernels_for(len(lengths)) is not packing_kernels
    by_numba = plan(lengths, capacity, seed=0)
    assert by_numba.sequences.tolist() == by_python.sequences.tolist()
    assert by_numba.bounds.tolist() == by_python.bounds.tolist()


@pytest.mark.parametrize("lengths", [[0, 3], [-1], [3, 11]])
def test_lengths_that_cannot_be_packed_are_refused(lengths: list[int]) -> None:
    with pytest.raises(ValueError, match="must be 1 to 10"):
        plan(np.array(lengths), 10)


def test_nothing_makes_no_rows() -> None:
    made = plan(np.array([], dtype=np.int32), 10, seed=0)
    assert (len(made), made.sequences.tolist(), made.bounds.tolist()) == (0, [], [0])
    assert utilisation(0, 0, 10) == 0.0
    assert lower_bound(np.array([], dtype=np.int32), 10) == 0


def test_utilisation_is_the_share_of_room_that_is_used() -> None:
    assert utilisation(150, 2, 100) == 0.75


def test_room_that_is_never_used_costs_nothing() -> None:
    """A capacity of 10**12 tokens once asked for a list of as many stacks."""
    assert rows_of(plan(np.array([3, 9]), 10**12)) == [[0, 1]]
