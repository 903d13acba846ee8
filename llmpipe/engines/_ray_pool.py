"""`llmpipe.core.pool.WorkerPool` over a cluster: the same calls, limits and order of results."""

from __future__ import annotations

import importlib
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from llmpipe.core.pool import Task, WorkerPool
from llmpipe.engines._ray_cluster import Cluster

_CHUNK = 256  # tasks of one call to an actor
_AHEAD = 2  # calls that an actor has: one in hand, one waiting
_RETRIES = 3


class RayPool:
    """A `WorkerPool` of one process in each of the cluster's free cores.

    ``make`` ("package.module:function") makes an actor's pool from ``arguments`` and ``workers``:
    so a hostile text is killed there as it is here, and costs no actor.
    """

    def __init__(self, make: str, arguments: tuple[Any, ...], address: str | None = None) -> None:
        """Start the actors.

        Raises:
            UserError: no Ray, or no cluster at that address (RAY_ADDRESS by default).
        """
        self._cluster = Cluster(address)
        actor = self._cluster.ray.remote(_Judge).options(
            num_cpus=1, max_restarts=_RETRIES, max_task_retries=_RETRIES
        )
        count = max(1, self._cluster.free("CPU"))
        self._actors = [actor.remote(make, arguments) for _ in range(count)]

    def map(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """One result a task, in the tasks' order: what the function returned, or a `Failure`."""
        source = iter(tasks)
        actors = itertools.cycle(self._actors)
        calls: deque[Any] = deque()
        while True:
            while len(calls) < _AHEAD * len(self._actors) and (
                chunk := list(itertools.islice(source, _CHUNK))
            ):
                calls.append(next(actors).judge.remote(chunk))
            if not calls:
                return
            yield from self._cluster.ray.get(calls.popleft())

    def close(self) -> None:
        """End all actors, and Ray if it was started here."""
        self._cluster.hush()
        for actor in self._actors:
            self._cluster.ray.kill(actor)
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class _Judge:
    """An actor: a pool of one worker."""

    def __init__(self, make: str, arguments: tuple[Any, ...]) -> None:
        module, _, name = make.partition(":")
        self._pool: WorkerPool = getattr(importlib.import_module(module), name)(
            *arguments, workers=1
        )

    def judge(self, tasks: list[Task]) -> list[Any]:
        return list(self._pool.map(tasks))
