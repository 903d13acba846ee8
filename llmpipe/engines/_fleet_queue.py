"""The one queue of a fleet: what is handed out next, and how much of it."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from llmpipe.core.protocols import Request
from llmpipe.engines._fleet_process import Asked

MOST_DEATHS = 4
_SUSPECT = 2  # deaths
_FEW = 16  # suspects take one in so many of an engine's seats


class FleetQueue:
    """Requests drawn a little ahead of their being handed out, and those that came back.

    A process that ends gives back all it had, and mostly none of that is to blame. So what came
    back once is handed out like the rest. What came back twice is handed out last, a few at a time
    and with nothing else, after that alone: what ends a process each time ends only itself.
    """

    def __init__(self, requests: Iterable[Request], numbers: Iterator[int]) -> None:
        self._source = iter(requests)
        self._numbers = numbers
        self._ready: deque[Asked] = deque()
        self._suspects: deque[Asked] = deque()
        self.drained = False
        """Whether all requests are drawn."""

    def __len__(self) -> int:
        return len(self._ready) + len(self._suspects)

    def fill(self, count: int) -> None:
        """Draw until ``count`` requests wait."""
        wanted = count - len(self._ready)
        if wanted > 0 and not self.drained:
            drawn = list(itertools.islice(self._source, wanted))
            self.drained = len(drawn) < wanted
            self._ready += [Asked(next(self._numbers), request) for request in drawn]

    def give_back(self, batch: Iterable[Asked]) -> list[Asked]:
        """Take what a process had that ended, but for those that end every process: these."""
        lost = []
        for asked in reversed(list(batch)):
            asked.deaths += 1
            if asked.deaths >= MOST_DEATHS:
                lost.append(asked)
            elif asked.deaths >= _SUSPECT:
                self._suspects.append(asked)
            else:
                self._ready.appendleft(asked)
        return lost

    def take(self, has: int, most: int, seats: int) -> Sequence[Asked]:
        """A batch for an engine with ``seats``, that ``has`` requests and should have ``most``."""
        if not self._ready:
            return [] if has else self._few(max(1, seats // _FEW))
        batch: list[Asked] = []
        while self._ready and has + len(batch) < most:
            batch.append(self._ready.popleft())
        # An engine reads a prompt once for all its samples that it gets; near the end of the queue
        # it counts more that all have the same to do.
        while batch and self._ready and not self.drained and len(batch) < most - has + seats // 2:
            if self._ready[0].request.problem.id != batch[-1].request.problem.id:
                break
            batch.append(self._ready.popleft())
        return batch

    def _few(self, most: int) -> Sequence[Asked]:
        batch: list[Asked] = []
        while self._suspects and len(batch) < most:
            deaths = self._suspects[0].deaths
            if batch and (deaths > _SUSPECT or batch[0].deaths > _SUSPECT):
                break
            batch.append(self._suspects.popleft())
        return batch
