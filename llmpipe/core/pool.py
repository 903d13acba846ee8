"""Worker processes that can be killed in the middle of a task.

A rule that judges model text may run for hours inside one C call (a power tower, a factorial), where
no Python exception and no signal handler gets through. So each task has a CPU-time limit that the
kernel enforces: the worker arms ``ITIMER_PROF`` and leaves ``SIGPROF`` at its default action, which
ends the process wherever it is. CPU time, not wall time: a busy machine changes no verdict. The task
in hand is failed, the worker replaced, the rest goes on.

Workers are started as fresh interpreters, not forked: they work from threads, notebooks and
parents that hold a GPU, and end by themselves when the parent is gone.
"""

from __future__ import annotations

import itertools
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

_CHUNK = 32  # tasks sent at a time
_AHEAD = 4096  # tasks taken from the input before the first result of them is handed out
_WALL_SECONDS = 300  # for a worker that waits instead of working, which costs no CPU time


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that gave no result, and why."""

    kind: Literal["timeout", "memory", "died", "exception"]
    detail: str


class WorkerPool:
    """Call ``target`` ("package.module:function") in child processes, with limits for each call.

    Args:
        target: a module-level function; arguments and results are pickled.
        workers: processes; all cores by default.
        cpu_seconds: CPU time that one call may take.
        memory: bytes of address space that a worker may have.
    """

    def __init__(
        self,
        target: str,
        *,
        workers: int | None = None,
        cpu_seconds: float = 10.0,
        memory: int = 4 << 30,
    ) -> None:
        self._arguments = [target, str(cpu_seconds), str(memory)]
        self._cpu_seconds = cpu_seconds
        count = workers or len(os.sched_getaffinity(0))
        self._workers = [_Worker(self._arguments) for _ in range(count)]

    def map(self, tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """One result a task, in the tasks' order: what the function returned, or a `Failure`.

        Tasks are drawn as they are needed; memory does not grow with their number.
        """
        source = enumerate(tasks)
        ready: dict[int, Any] = {}
        wanted = 0
        drawn = 0
        open_end = True
        while True:
            for worker in self._workers:
                if not worker.tasks and open_end and drawn - wanted < _AHEAD:
                    chunk = list(itertools.islice(source, _CHUNK))
                    open_end = bool(chunk)
                    drawn += len(chunk)
                    worker.give(chunk)
            while wanted in ready:
                yield ready.pop(wanted)
                wanted += 1
            if not any(w.tasks for w in self._workers):
                if open_end:
                    continue
                return
            for number, result in self._wait():
                ready[number] = result

    def _wait(self) -> Iterator[tuple[int, Any]]:
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                if worker.tasks:
                    selector.register(worker.pipe, selectors.EVENT_READ, worker)
            events = selector.select(timeout=1.0)
        for key, _ in events:
            worker = key.data
            result = worker.receive()
            if result is not None:
                yield worker.tasks.popleft()[0], result
                continue
            yield worker.tasks[0][0], worker.failure(self._cpu_seconds)
            self._replace(worker)
        for worker in self._workers:
            if worker.tasks and time.monotonic() - worker.since > _WALL_SECONDS:
                detail = f"no result after {_WALL_SECONDS} s"
                yield worker.tasks[0][0], Failure("timeout", detail)
                self._replace(worker)

    def _replace(self, worker: _Worker) -> None:
        """Put a fresh worker in the place of a dead one; it takes over all but the first task."""
        rest = list(worker.tasks)[1:]
        worker.kill()
        fresh = _Worker(self._arguments)
        self._workers[self._workers.index(worker)] = fresh
        fresh.give(rest)

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class _Worker:
    """One child process and the tasks it was given; the first of them is in its hands."""

    def __init__(self, arguments: list[str]) -> None:
        # -P keeps the working directory off the path: a user's math.py must not be imported.
        # The package's own folder is handed on, so that an editable checkout works too.
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "llmpipe.core.worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # One thread each, or libraries start one a core in every worker and eat its memory.
            env={
                **os.environ,
                "PYTHONPATH": path,
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            },
            # Ctrl-C is the parent's business: workers end when it closes their input.
            start_new_session=True,
        )
        self.tasks: deque[tuple[int, tuple[Any, ...]]] = deque()
        self.since = time.monotonic()

    @property
    def pipe(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def give(self, tasks: list[tuple[int, tuple[Any, ...]]]) -> None:
        """Send tasks; only to a worker that has none, so that neither side waits for the other."""
        if not tasks:
            return
        self.tasks.extend(tasks)
        self.since = time.monotonic()
        assert self._process.stdin is not None
        try:
            send(self._process.stdin, [task for _, task in tasks])
        except BrokenPipeError:
            return  # it died while starting; `receive` will see that

    def receive(self) -> Any:
        """One result, or None where the process has ended."""
        self.since = time.monotonic()
        return receive(self.pipe)

    def failure(self, cpu_seconds: float) -> Failure:
        code = self._process.wait()
        if code == -signal.SIGPROF:
            return Failure("timeout", f"over {cpu_seconds:g} s of CPU time")
        return Failure("died", f"the worker ended with code {code}")

    def kill(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        self._process.wait()


def send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(struct.pack("<I", len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """The next value, or None at the end of the stream."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = struct.unpack("<I", head)[0]
    data = stream.read(size)
    return pickle.loads(data) if len(data) == size else None
