"""The far side of the Ray engine: what runs in the cluster's processes."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import pickle
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.protocols import Engine, Generation, Request, Sampling
from llmpipe.engines._inbox import Inbox, fields

log = logging.getLogger(__name__)


class Hub:
    """Where requests wait until Ray Data reads them, and actors say how loading went.

    A batch is kept until it is answered: a read that is done again finds what it found before,
    for Ray passes over as many of its blocks as it had already.
    """

    def __init__(self) -> None:
        self._batches: dict[int, bytes] = {}
        self._answered: set[int] = set()
        self._low = 0  # all below are answered, and in no set
        self._news = asyncio.Condition()
        self._said: Mapping[str, Any] | UserError | None = None

    async def put(self, number: int, batch: bytes) -> None:
        async with self._news:
            self._batches[number] = batch
            self._news.notify_all()

    async def take(self, number: int) -> bytes:
        """Batch ``number``, waited for; empty where it is answered already."""
        async with self._news:
            # Calls to an actor that awaits may pass each other: a later number proves nothing.
            await self._news.wait_for(
                lambda: number in self._batches or number in self._answered or number < self._low
            )
            return self._batches.get(number, b"")

    async def answered(self, number: int) -> None:
        self._batches.pop(number)
        self._answered.add(number)
        while self._low in self._answered:
            self._answered.remove(self._low)
            self._low += 1

    async def say(self, said: Mapping[str, Any] | UserError) -> None:
        async with self._news:
            self._said = self._said or said
            self._news.notify_all()

    async def heard(self) -> Mapping[str, Any] | UserError:
        """The first actor's description of its engine, or why it can't be loaded."""
        async with self._news:
            await self._news.wait_for(lambda: self._said is not None)
        assert self._said is not None
        return self._said


def read(hub: Any) -> Iterator[pa.Table]:
    """A block a batch, as they come: the dataset never ends but with the engine."""
    import ray

    for number in itertools.count():
        batch = ray.get(hub.take.remote(number))
        yield pa.table({"number": [number], "payload": pa.array([batch], pa.binary())})


class EngineActor:
    """One engine, fed by as many calls as are under way: a call is a batch and returns its answers.

    The engine is loaded and run in one thread: thread pools and CUDA's current device belong to
    the thread that made them.
    """

    def __init__(
        self, hub: Any, name: str, model: str, sampling: bytes, options: Mapping[str, str]
    ) -> None:
        self._inbox: Inbox[Future[Generation]] = Inbox()
        loaded: Future[Mapping[str, Any]] = Future()
        arguments = (name, model, pickle.loads(sampling), options, loaded)
        threading.Thread(target=self._serve, args=arguments, daemon=True).start()
        import ray

        try:
            ray.get(hub.say.remote(loaded.result()))
        except UserError as e:
            ray.get(hub.say.remote(e))
            raise

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Answer the batch in the table's one row."""
        requests: list[Request] = pickle.loads(batch["payload"][0].as_py())
        calls = [(request, Future[Generation]()) for request in requests]
        self._inbox.put(calls)
        answers = [fields(answer.result()) for _, answer in calls]
        return pa.table(
            {"number": batch["number"], "payload": pa.array([pickle.dumps(answers)], pa.binary())}
        )

    def _serve(
        self,
        name: str,
        model: str,
        sampling: Sampling,
        options: Mapping[str, str],
        loaded: Future[Mapping[str, Any]],
    ) -> None:
        try:
            engine: Engine = load("engines", name)(model, sampling, options)
            loaded.set_result(dict(engine.describe()))
        except BaseException as e:
            loaded.set_exception(e)
            return
        try:
            for waiting, answer in self._inbox.serve(engine):
                waiting.set_result(answer)
        except BaseException:
            # Ray starts the actor again and gives it the calls that were under way.
            log.exception("the engine broke")
            os._exit(1)
