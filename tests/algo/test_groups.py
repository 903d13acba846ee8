"""Equal keys, against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.groups import best_rows, number_groups, runs

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=30)


@given(ROWS)
def test_groups_and_who_stands_for_them(rows: list[tuple[int, int, int]]) -> None:
    low, high, rank = (np.array([r[i] for r in rows], np.uint64) for i in range(3))
    groups = number_groups(low, high)
    first: dict[tuple[int, int], int] = {}
    best: dict[tuple[int, int], int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row[:2], i)
        if row[:2] not in best or row[2] < rows[best[row[:2]]][2]:
            best[row[:2]] = i
    assert groups.tolist() == [first[row[:2]] for row in rows]
    assert best_rows(groups, rank.astype(np.int8)).tolist() == [best[row[:2]] for row in rows]


@given(st.lists(st.integers(0, 5), max_size=30))
def test_runs_are_the_values_that_come_again(values: list[int]) -> None:
    order, starts, stops = runs(np.array(values, np.uint64))
    found = [order[a:b].tolist() for a, b in zip(starts, stops, strict=True)]
    expected = [[i for i, v in enumerate(values) if v == value] for value in sorted(set(values))]
    assert found == [places for places in expected if len(places) > 1]
