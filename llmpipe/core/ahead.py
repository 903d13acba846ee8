"""Make what comes next while what came last is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

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
