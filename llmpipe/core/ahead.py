"""Make what comes next while what came last is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

_END = object()


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The items in their order, each made by a thread while the one before it is used.

    It pays where both sides spend their time outside Python: in reading, in numpy, in Parquet. What
    making an item raises is raised where the item would have come.
    """
    coming = iter(items)
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, coming, _END)
        while (item := following.result()) is not _END:
            following = thread.submit(next, coming, _END)
            yield item  # type: ignore[misc]


def mapped(function: Callable[[T], U], items: Iterable[T]) -> Iterator[tuple[T, U]]:
    """Each item and ``function(item)``, which a thread works out while the one before it is used.

    Unlike in `ahead`, the items are made here, two ahead at most: it pays where the function leaves
    Python and the items don't. What it raises is raised where the pair would have come.
    """
    with ThreadPoolExecutor(1) as thread:
        waiting = None
        for item in items:
            following = item, thread.submit(function, item)
            if waiting:
                yield waiting[0], waiting[1].result()
            waiting = following
        if waiting:
            yield waiting[0], waiting[1].result()
