from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from llmpipe.core.ahead import ahead, mapped


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


def test_a_function_is_called_a_step_ahead_by_a_thread_on_items_made_here() -> None:
    here = threading.get_ident()
    called = [threading.Event() for _ in range(5)]
    made: list[int] = []

    def items() -> Iterator[int]:
        for i in range(5):
            assert threading.get_ident() == here
            made.append(i)
            yield i

    def function(item: int) -> int:
        assert threading.get_ident() != here
        called[item].set()
        return item * item

    got = []
    for item, value in mapped(function, items()):
        got.append((item, value))
        assert len(made) == min(item + 2, 5)
        if item < 4:
            assert called[item + 1].wait(timeout=30)  # while this one is in use
    assert got == [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]
    assert list(mapped(function, [])) == []


def test_what_a_function_raises_is_raised_in_its_items_place() -> None:
    coming = mapped(lambda item: 6 // item, [1, 2, 0, 3])
    assert [next(coming), next(coming)] == [(1, 6), (2, 3)]
    with pytest.raises(ZeroDivisionError):
        next(coming)


def test_mapping_can_be_left_early() -> None:
    threads = threading.active_count()
    coming = mapped(str, iter(range(10**9)))
    assert next(coming) == (0, "0")
    coming.close()  # type: ignore[attr-defined]
    assert threading.active_count() == threads
