"""Judging on behalf of code that isn't ours: one set of worker processes for the whole process.

A trainer calls its reward functions from whatever thread, event loop or notebook cell it likes, and
may fork. Workers start at the first call and end with the process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from llmpipe.core.plugins import names as plugin_names
from llmpipe.core.pool import Failure, WorkerPool
from llmpipe.core.records import Score
from llmpipe.tasks import judges

Call = tuple[Any, ...]
"""The arguments of `llmpipe.tasks.judge`."""


@functools.cache
def task_names() -> list[str]:
    """All tasks there are; looking takes milliseconds, and a reward is asked for often."""
    return plugin_names("tasks")


class _Judges:
    """Pools, each used by one thread at a time.

    Many calls at once go to one pool that has all cores, and wait for each other. A single call
    goes to a pool of its own, where it keeps one worker busy: a thread whose response takes all its
    time doesn't hold up the others.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: after a fork, the workers and whoever holds a lock are the parent's."""
        self._all = threading.Lock()
        self._big: WorkerPool | None = None
        self._free = threading.Semaphore(len(os.sched_getaffinity(0)))
        self._small: list[WorkerPool] = []

    def judge(self, calls: Sequence[Call]) -> list[Score | Failure]:
        with self._one() if len(calls) == 1 else self._every() as pool:
            return list(pool.map(calls))

    @contextlib.contextmanager
    def _every(self) -> Iterator[WorkerPool]:
        with self._all:
            if self._big is None:
                self._big = judges(task_names())
            yield self._big

    @contextlib.contextmanager
    def _one(self) -> Iterator[WorkerPool]:
        with self._free:
            try:
                pool = self._small.pop()
            except IndexError:
                pool = judges(task_names())
            try:
                yield pool
            finally:
                self._small.append(pool)

    def close(self) -> None:
        for pool in [*self._small, *([self._big] if self._big else [])]:
            pool.close()
        self._small, self._big = [], None


_judges = _Judges()


def judge_all(calls: Sequence[Call]) -> list[Score | Failure]:
    """A score for each call, in their order, or how judging it failed. For any thread.

    Raises:
        RuntimeError: no worker can be started.
    """
    return _judges.judge(calls) if calls else []


os.register_at_fork(after_in_child=_judges.forget)
atexit.register(_judges.close)
