from __future__ import annotations

import itertools
import math
import random

import pytest

from llmpipe.algo.pairing import match


def brute(chosen: list[int], rejected: list[int], ratio: float, most: int) -> tuple[int, float]:
    """How many pairs there can be, and the least sum of logarithms for so many."""
    allowed = [
        (i, j, abs(math.log(a / b)))
        for i, a in enumerate(chosen)
        for j, b in enumerate(rejected)
        if max(a, b) <= ratio * min(a, b)
    ]
    for count in range(min(most, len(chosen), len(rejected)), 0, -1):
        sums = [
            sum(cost for _, _, cost in some)
            for some in itertools.combinations(allowed, count)
            if len({i for i, _, _ in some}) == count == len({j for _, j, _ in some})
        ]
        if sums:
            return count, min(sums)
    return 0, 0.0


@pytest.mark.parametrize("seed", range(40))
def test_no_other_choice_is_better(seed: int) -> None:
    draw = random.Random(seed)
    chosen = [draw.randint(5, 30) for _ in range(draw.randint(1, 5))]
    rejected = [draw.randint(5, 30) for _ in range(draw.randint(1, 5))]
    most = draw.randint(1, 4)
    pairs = match(chosen, rejected, max_ratio=1.5, most=most)
    count, least = brute(chosen, rejected, 1.5, most)
    assert len(pairs) == count
    costs = [abs(math.log(chosen[i] / rejected[j])) for i, j in pairs]
    assert sum(costs) == pytest.approx(least, abs=1e-5)
    assert costs == sorted(costs)
    assert all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))


def test_as_many_as_there_are_before_as_alike_as_they_are() -> None:
    # 10 with 11 is the closest pair, but leaves 9 and 14 without a partner.
    assert sorted(match([9, 11], [10, 14], max_ratio=1.5)) == [(0, 0), (1, 1)]
    assert match([9, 11], [10, 14], max_ratio=1.5, most=1) == [(1, 0)]


def test_ends_of_what_is_allowed() -> None:
    assert match([150], [100], max_ratio=1.5) == [(0, 0)]
    assert match([151], [100], max_ratio=1.5) == []
    assert match([7], [7], max_ratio=1.0) == [(0, 0)]
    assert match([], [7], max_ratio=2.0) == []
    assert match([0], [1], max_ratio=2.0) == [(0, 0)]
    assert match([7], [7], max_ratio=2.0, most=0) == []


def test_many_samples_are_bounded_work() -> None:
    draw = random.Random(0)
    chosen = [draw.randint(100, 5000) for _ in range(700)]
    pairs = match(chosen, [draw.randint(100, 5000) for _ in range(600)], max_ratio=1.5, most=8)
    assert len(pairs) == 8
    assert len({i for i, _ in pairs}) == 8
