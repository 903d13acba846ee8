"""Engines in processes of their own, one a group of GPUs, that draw from one queue.

vLLM's own data parallelism hangs where one part has nothing left to do. Here the processes know
nothing of each other. Each is handed about twice what it draws side by side; near the end of the
queue no more than that and than its share of what is left, so that all end together.

One that ends, whatever the reason, is started again, and what it had is handed out again (see
`FleetQueue`). So is one that hangs: while it loads or has requests it says every few seconds that
it runs, and it is killed after ``LLMPIPE_ENGINE_TIMEOUT`` seconds without a word.

With this process all of them end: by `Fleet.close`, and where this process is killed by the kernel
(see `llmpipe.engines._fleet_child`).
"""

from __future__ import annotations

import itertools
import logging
import os
import selectors
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from llmpipe.core import gpu
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Generation, Request, Sampling
from llmpipe.engines._fleet_process import EngineProcess, Post
from llmpipe.engines._fleet_queue import MOST_DEATHS, FleetQueue

log = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two looks at who is alive
_BEAT = 5.0  # seconds between two signs of life of one that works
_TIMEOUT = 1800.0  # seconds without one, by default: the first step may compile for many minutes
_PATIENCE = 10.0  # seconds for an engine to end by itself
_STARTS = 3  # of one that was never loaded
_BARREN = 5  # lives in a row without an answer, of one that was


class Fleet:
    """A model loaded once a group of devices."""

    def __init__(
        self,
        groups: Sequence[Sequence[str]],
        name: str,
        model: str,
        sampling: Sampling,
        options: Mapping[str, str],
    ) -> None:
        """Start all engines and wait until the first is loaded.

        Raises:
            UserError: what an engine raises, or it ends while it loads; or a bad time limit.
        """
        self._engine = (name, model, sampling, options)
        self._timeout = _timeout()
        self._posts = _posts(groups)
        self._selector = selectors.DefaultSelector()
        self._processes: list[EngineProcess] = []
        self._numbers = itertools.count()
        self._loaded: set[int] = set()  # posts whose engine could be loaded
        self._barren: Counter[int] = Counter()  # by post, lives in a row without an answer
        self._description: Mapping[str, Any] = {}
        self._restarts = 0
        self._looked = 0.0
        try:
            for post in self._posts:
                self._start(post)
            nothing = FleetQueue([], self._numbers)
            while not self._loaded:
                for _ in self._wait(nothing):
                    pass
        except BaseException:
            self.close()
            raise

    def describe(self) -> Mapping[str, Any]:
        return {
            **self._description,
            "engines": len(self._posts),
            "devices": [list(post.devices) for post in self._posts],
            "restarts": self._restarts,
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers as they come. A request with which process after process ended has an error.

        Raises:
            UserError: an engine that can't be loaded, or that ends again and again.
        """
        queue = FleetQueue(requests, self._numbers)
        try:
            while True:
                self._hand_out(queue)
                if queue.drained and not queue and not any(p.has for p in self._processes):
                    return
                yield from self._wait(queue)
        finally:
            for process in self._processes:
                process.drop()

    def close(self) -> None:
        """End the engines: in good order where they are loaded, and all that is left of them."""
        processes, self._processes = self._processes, []
        loaded = [process for process in processes if process.seats]
        try:
            for process in loaded:
                process.finish()
            until = time.monotonic() + _PATIENCE
            for process in loaded:
                process.wait(until - time.monotonic())
        finally:
            for process in processes:
                process.end()
            self._selector.close()

    def _start(self, post: Post) -> None:
        process = EngineProcess(post, *self._engine, beat=min(_BEAT, self._timeout / 4))
        self._processes.append(process)
        self._selector.register(process.wire, selectors.EVENT_READ, process)

    def _hand_out(self, queue: FleetQueue) -> None:
        loaded = [process for process in self._processes if process.seats]
        # At the start the others are nearly loaded, too; later on the load of one isn't waited for.
        sharing = sum(bool(p.seats) or p.post.number not in self._loaded for p in self._processes)
        more = True
        while more:
            more = False
            queue.fill(sum(process.seats for process in loaded))
            left = len(queue) + sum(len(process.has) for process in self._processes)
            share = -(-left // max(1, sharing))
            for process in sorted(loaded, key=lambda p: len(p.has) / p.seats):
                # Some may wait in the engine, so that no seat is ever free; near the end none: what
                # waits there can't go to another.
                most = min(share, process.seats * (1 if queue.drained else 2))
                batch = () if process.careful else queue.take(len(process.has), most, process.seats)
                if batch:
                    process.give(batch)
                    more = True
        for process in loaded:
            self._watch(process)

    def _watch(self, process: EngineProcess) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if process.unsent else 0)
        if self._selector.get_key(process.wire).events != events:
            self._selector.modify(process.wire, events, process)

    def _wait(self, queue: FleetQueue) -> Iterator[Generation]:
        """What is said next, if anything is said for a while."""
        for key, _ in self._selector.select(_LOOK):
            process: EngineProcess = key.data
            process.flush()
            self._watch(process)
            yield from self._hear(process, queue)
        if (passed := time.monotonic() - self._looked) > _LOOK:
            self._looked += passed
            # One may have ended whose end of the wire is held open by what it started.
            for process in [p for p in self._processes if not p.alive()]:
                yield from self._hear(process, queue)
                if process in self._processes:
                    yield from self._replace(process, queue)
            for process in list(self._processes):
                # A longer time passed elsewhere: this process was stopped, or busy with an answer.
                process.listened(min(passed, 2 * _LOOK))
                if process.silent > self._timeout:
                    process.reason = f"no sign of life for {self._timeout:g} s"
                    yield from self._replace(process, queue)

    def _hear(self, process: EngineProcess, queue: FleetQueue) -> Iterator[Generation]:
        words, over = process.read()
        for kind, value in words:
            if kind == "answer":
                number, fields = value
                # Those of a stream that was given up belong to nobody.
                if asked := process.has.pop(number, None):
                    process.answered += 1
                    yield Generation(request=asked.request, **fields)
            elif kind == "ready":
                process.seats, description = value
                self._description = self._description or description
                self._loaded.add(process.post.number)
            elif kind == "log":
                level, name, text = value
                logging.getLogger(name).log(level, "%s: %s", process.post, text)
            elif kind == "refused":
                if process.post.number not in self._loaded:
                    raise UserError(*value)
                process.reason = value[0]
        if over:
            yield from self._replace(process, queue)

    def _replace(self, process: EngineProcess, queue: FleetQueue) -> Iterator[Generation]:
        """Start an engine anew in the place of one that ended."""
        post = process.post
        self._selector.unregister(process.wire)
        self._processes.remove(process)
        how = process.end()
        log.debug("%s said last:\n%s", post, process.said)
        lost = queue.give_back(process.has.values())
        self._barren[post.number] = 0 if process.answered else self._barren[post.number] + 1
        was_loaded = post.number in self._loaded
        if self._barren[post.number] < (_BARREN if was_loaded else _STARTS):
            self._restarts += 1
            self._start(post)
            log.warning("%s ended (%s); it is started again", post, how)
        elif was_loaded and any(p.seats for p in self._processes):
            log.error("%s ended again (%s); the others go on without it", post, how)
        else:
            raise UserError(
                f"{post} ends again and again: {how}",
                "llmpipe doctor; fewer requests at a time: --engine-arg max_num_seqs=64",
            )
        for asked in lost:
            yield Generation(
                request=asked.request,
                text="",
                finish_reason="error",
                error=f"{MOST_DEATHS} engine processes ended while they had it, the last: {how}",
            )


def _timeout() -> float:
    """Seconds after which an engine that says nothing counts as one that hangs."""
    given = os.environ.get("LLMPIPE_ENGINE_TIMEOUT", "").strip()
    try:
        seconds = float(given or _TIMEOUT)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise UserError(
            f"LLMPIPE_ENGINE_TIMEOUT is {given!r}, but must be a number of seconds over 0",
            f"export LLMPIPE_ENGINE_TIMEOUT={_TIMEOUT:g}, or inf for no limit",
        )
    return seconds


def _posts(groups: Sequence[Sequence[str]]) -> list[Post]:
    """A post a group. Where there are no GPUs, the cores are shared out."""
    cores = sorted(os.sched_getaffinity(0))
    count = len(groups)
    posts = []
    for i, group in enumerate(groups):
        share = cores[i * len(cores) // count : (i + 1) * len(cores) // count]
        share = share or [cores[i % len(cores)]]
        environment = {
            "CUDA_VISIBLE_DEVICES": ",".join(group),
            "LLMPIPE_ENGINES": str(count),  # that share the machine's memory
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(len(share))),
        }
        own = () if gpu.present() else tuple(share)
        posts.append(Post(number=i, devices=group, cores=own, environment=environment))
    return posts
