"""What a fleet hands out next."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from llmpipe.core.protocols import Request
from llmpipe.core.records import Problem
from llmpipe.engines._fleet_process import Asked
from llmpipe.engines._fleet_queue import FleetQueue


def _requests(problems: int, samples: int) -> Iterator[Request]:
    for i in range(problems):
        problem = Problem.make(task="math", source="test", prompt=f"{i}?", answer="1")
        for j in range(samples):
            yield Request(problem=problem, sample=j, seed=0, messages=[])


def _numbers(batch: Sequence[Asked]) -> list[int]:
    return [asked.number for asked in batch]


@pytest.fixture
def queue() -> FleetQueue:
    return FleetQueue(_requests(problems=6, samples=4), itertools.count())


def test_samples_of_a_problem_go_together_but_for_the_end(queue: FleetQueue) -> None:
    queue.fill(16)
    assert (len(queue), queue.drained) == (16, False)
    assert _numbers(queue.take(has=3, most=5, seats=8)) == [0, 1, 2, 3]  # two more than is its due
    assert _numbers(queue.take(has=0, most=1, seats=2)) == [4, 5]  # half of the seats, at most
    assert _numbers(queue.take(has=5, most=5, seats=8)) == []
    queue.fill(100)
    assert (len(queue), queue.drained) == (18, True)
    assert _numbers(queue.take(has=3, most=5, seats=8)) == [6, 7]
    assert _numbers(queue.take(has=0, most=3, seats=8)) == [8, 9, 10]


def test_what_comes_back_goes_first_then_last_then_alone(queue: FleetQueue) -> None:
    queue.fill(100)
    first = queue.take(has=0, most=4, seats=32)
    assert queue.give_back(first) == []
    assert _numbers(queue.take(has=0, most=4, seats=32)) == _numbers(first) == [0, 1, 2, 3]
    assert queue.give_back(first) == []
    assert _numbers(queue.take(has=0, most=100, seats=32)) == [*range(4, 24)]
    assert _numbers(queue.take(has=1, most=100, seats=32)) == []  # not beside others
    two, others = (queue.take(has=0, most=100, seats=32) for _ in range(2))
    assert (len(two), len(others)) == (2, 2)
    assert queue.give_back(two) == []
    alone = queue.take(has=0, most=100, seats=32)
    assert (len(alone), alone[0].deaths) == (1, 3)
    assert queue.give_back(alone) == list(alone)  # enough of it
    assert len(queue) == 1
