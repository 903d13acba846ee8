from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from llmpipe.core.ahead import ahead


def test_items_come_in_order_one_made_before_it_is_asked_for() -> None:
    made = [threading.Event() for _ in range(4)]

    def items() -> Iterator[int]:
        for i, event in enumerate(made):
            event.set()
            yield i

    got = []
    for item in ahead(items()):
        got.append(item)
        if item < 3:
            assert made[item + 1].wait(timeout=30)  # while this one is in use
        assert not any(event.is_set() for event in made[item + 2 :])
    assert got == [0, 1, 2, 3]
    assert list(ahead([])) == []


def test_what_goes_wrong_is_raised_after_what_came_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("the second is broken")

    coming = ahead(items())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="second is broken"):
        next(coming)


def test_it_can_be_left_early() -> None:
    threads = threading.active_count()
    coming = ahead(iter(range(10**9)))
    assert next(coming) == 0
    coming.close()  # type: ignore[attr-defined]
    assert threading.active_count() == threads
