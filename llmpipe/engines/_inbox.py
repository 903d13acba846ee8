"""Requests from elsewhere for an engine in this process: from a parent, or from Ray's calls."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from llmpipe.core.protocols import Generation, LoadedEngine, Request

Ticket = TypeVar("Ticket")


class Inbox(Generic[Ticket]):
    """Requests that wait, each with a ticket by which its answer is known. Any thread may put."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Request, Ticket]] = deque()
        self._news = threading.Condition()
        self._closed = False
        self._round = 0

    def put(self, calls: Iterable[tuple[Request, Ticket]]) -> None:
        with self._news:
            self._waiting.extend(calls)
            self._news.notify()

    def drop(self) -> None:
        """Forget the requests that wait, and give up those under way."""
        with self._news:
            self._waiting.clear()
            self._round += 1

    def close(self) -> None:
        """The same, and let `serve` end."""
        with self._news:
            self._waiting.clear()
            self._round += 1
            self._closed = True
            self._news.notify()

    def serve(self, engine: LoadedEngine) -> Iterator[tuple[Ticket, Generation]]:
        """The engine's answers, until this is closed."""
        while not self._closed:
            run = _Run(self)
            with contextlib.closing(engine.stream(run)) as answers:  # type: ignore[type-var]
                for answer in answers:
                    yield run.under_way.pop(id(answer.request)), answer
                    if self._round != run.round:
                        break

    def take(self, round_: int | None) -> tuple[int, Request, Ticket] | None:
        """The next request of a round, behind its number, or None where there is none.

        Without a round it is waited for: until there is a request, or this is closed.
        """
        with self._news:
            if round_ is None:
                self._news.wait_for(lambda: self._waiting or self._closed)
            elif round_ != self._round:
                return None
            return (self._round, *self._waiting.popleft()) if self._waiting else None


class _Run(Generic[Ticket]):
    """The requests of one run of `Engine.stream`.

    It waits for the first only. Later it says "no more" where none is there just now, so that the
    engine goes on with what it has; an engine that asks again (vLLM's does) gets what has come
    since, and one that does not is run once more.
    """

    def __init__(self, inbox: Inbox[Ticket]) -> None:
        self._inbox = inbox
        self.under_way: dict[int, Ticket] = {}
        self.round: int | None = None

    def __iter__(self) -> Iterator[Request]:
        return self

    def __next__(self) -> Request:
        taken = self._inbox.take(self.round)
        if taken is None:
            raise StopIteration
        self.round, request, ticket = taken
        self.under_way[id(request)] = ticket
        return request


def fields(answer: Generation) -> dict[str, Any]:
    """An answer but for its request, which who asked has."""
    names = Generation.__dataclass_fields__
    return {name: getattr(answer, name) for name in names if name != "request"}
