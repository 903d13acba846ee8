"""Worker processes that can be killed in the middle of a task.

A rule that judges model text may run for hours inside one C call (a power tower, a factorial),
where no Python exception and no signal handler gets through. So each task has a CPU-time limit that
the kernel enforces: the worker arms ``ITIMER_PROF`` and leaves ``SIGPROF`` at its default action,
which ends the process wherever it is. CPU time, not wall time: a busy machine changes no verdict.
The task in hand is failed, the worker replaced, the rest goes on.

A worker that is killed from outside (by a person, or by a kernel short of memory) is no fault of
its task: that is given to another worker, and failed only if the same happens there.

Workers are started as fresh interpreters, not forked: they work from threads, notebooks and
parents that hold a GPU, and end by themselves when the parent is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Literal, Self

from llmpipe.core.wire import Received, interpreter, send

_CHUNK = 32  # tasks sent at a time, by default
_AHEAD = 4096  # tasks taken from the input before the first result of them is handed out
_KILLED_STARTS = 3  # in a row, after which it is no accident
_WALL_SECONDS = 300  # for a worker that waits instead of working, which costs no CPU time

Task = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that gave no result, and why."""

    kind: Literal["timeout", "memory", "died", "exception"]
    detail: str


class WorkerPool:
    """Call ``target`` ("package.module:function") in child processes, with limits for each call.

    Workers are started when there is work for them. One `map` at a time; a pool belongs to one
    thread, and several threads take a pool each.

    Args:
        target: a module-level function; arguments and results are pickled.
        workers: processes at most; all cores by default.
        cpu_seconds: CPU time that one call may take.
        memory: bytes of address space that a worker may have.
        warm_up: calls that a fresh worker makes before its first task, without a time limit and
            for nothing: what a rule loads at its first use is not charged to a task.
        chunk: tasks sent at a time; few where a task is large.
    """

    def __init__(
        self,
        target: str,
        *,
        workers: int | None = None,
        cpu_seconds: float = 10.0,
        memory: int = 4 << 30,
        warm_up: Sequence[Task] = (),
        chunk: int | None = None,
    ) -> None:
        self._chunk = chunk or _CHUNK
        self._arguments = [target, str(cpu_seconds), str(memory)]
        self._cpu_seconds = cpu_seconds
        self._warm_up = list(warm_up)
        self._count = workers or len(os.sched_getaffinity(0))
        self._workers: list[_Worker] = []
        self._mapping = False
        self._killed_starts = 0
        self._spared: set[int] = set()  # tasks whose worker was killed once

    def map(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """One result a task, in the tasks' order: what the function returned, or a `Failure`.

        Tasks are drawn as they are needed; memory does not grow with their number.

        Raises:
            RuntimeError: a worker could not start (with its own error text), or another `map` of
                this pool is still running.
        """
        if self._mapping:
            raise RuntimeError("this pool is busy with another map(): take a second pool")
        self._mapping = True
        self._spared.clear()
        try:
            yield from self._map(enumerate(tasks))
        finally:
            self._mapping = False
            for worker in self._busy():  # left early: their results belong to nobody
                self._drop(worker)

    def _map(self, source: Iterator[tuple[int, Task]]) -> Iterator[Any]:
        results: dict[int, Any] = {}
        wanted = drawn = 0
        more = True
        while True:
            while more and drawn - wanted < _AHEAD and len(self._busy()) < self._count:
                chunk = list(itertools.islice(source, self._chunk))
                more = bool(chunk)
                drawn += len(chunk)
                if chunk:
                    self._idle().give(chunk)
            while wanted in results:
                yield results.pop(wanted)
                wanted += 1
            if self._busy():
                results.update(self._wait())
            elif not more:
                return

    def _busy(self) -> list[_Worker]:
        return [w for w in self._workers if w.tasks]

    def _idle(self) -> _Worker:
        for worker in [w for w in self._workers if not w.tasks]:
            if worker.alive():
                return worker
            self._drop(worker)
        return self._start()

    def _start(self) -> _Worker:
        worker = _Worker(self._arguments, self._warm_up)
        self._workers.append(worker)
        return worker

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.kill()

    def _wait(self) -> Iterator[tuple[int, Any]]:
        """Results as they come in, with their tasks' numbers; none where a second has passed."""
        with selectors.DefaultSelector() as selector:
            for worker in self._busy():
                selector.register(worker.output, selectors.EVENT_READ, worker)
            events = selector.select(timeout=1.0)
        for key, _ in events:
            worker = key.data
            values = worker.read()
            if values is None:
                yield from self._replace(worker, worker.failure(self._cpu_seconds))
                continue
            self._killed_starts = 0
            for value in values:
                yield worker.tasks.popleft()[0], value
            if values and isinstance(values[-1], Failure) and values[-1].kind == "memory":
                yield from self._replace(worker)  # it ends: its heap is full or in pieces
        for worker in self._busy():
            if time.monotonic() - worker.since > _WALL_SECONDS:
                detail = f"no result after {_WALL_SECONDS} s"
                yield from self._replace(worker, Failure("timeout", detail))

    def _replace(
        self, worker: _Worker, failure: Failure | None = None
    ) -> Iterator[tuple[int, Failure]]:
        """Put a fresh worker in the place of one that is done for, and hand its tasks on.

        ``failure`` is what became of the task in its hands, where there is one.
        """
        killed = worker.killed()
        self._drop(worker)
        if not worker.ready:
            self._killed_starts += 1
            if not killed or self._killed_starts >= _KILLED_STARTS:
                raise RuntimeError(
                    f"a worker for {self._arguments[0]} did not start: {worker.error()}"
                )
        elif failure:
            number = worker.tasks[0][0]
            if not killed or number in self._spared:
                worker.tasks.popleft()
                yield number, failure
            else:
                self._spared.add(number)
        if worker.tasks:
            self._start().give(worker.tasks)

    def close(self) -> None:
        """End all workers."""
        for worker in list(self._workers):
            self._drop(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class _Worker:
    """One child process and the tasks it was given; the first of them is in its hands."""

    def __init__(self, arguments: list[str], warm_up: list[Task]) -> None:
        command, environment = interpreter("llmpipe.core.worker")
        # A file, not a pipe: nobody has to read it. After its start the worker writes no more.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `kill`
        self._process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={
                **os.environ,
                **environment,
                # sympy's results may depend on the order of sets of strings.
                "PYTHONHASHSEED": "0",
                # One thread each, or libraries start one a core in every worker and eat its memory.
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            },
            # Ctrl-C is the parent's business: workers end when it closes their input.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input: IO[bytes] = self._process.stdin
        self.output: IO[bytes] = self._process.stdout
        self._received = Received()
        self._said = ""
        self.ready = False
        self.tasks: deque[tuple[int, Task]] = deque()
        self.since = time.monotonic()
        self._send(warm_up)

    def give(self, tasks: Iterable[tuple[int, Task]]) -> None:
        """Take tasks; only for a worker that has none, so that neither side waits for the other.

        They are sent once the worker has started: until then it reads nothing.
        """
        self.tasks.extend(tasks)
        self.since = time.monotonic()
        if self.ready:
            self._send([task for _, task in self.tasks])

    def _send(self, value: Any) -> None:
        with contextlib.suppress(BrokenPipeError):  # it died; `read` will see that
            send(self._input, value)

    def read(self) -> list[Any] | None:
        """The results that have arrived, or None where the process has ended.

        Called when there is something to read, so it never blocks.
        """
        data = os.read(self.output.fileno(), 1 << 16)
        if not data:
            return None
        self.since = time.monotonic()
        values = self._received.add(data)
        if values and not self.ready:
            self.ready = True
            values.pop(0)
            self._send([task for _, task in self.tasks])
        return values

    def alive(self) -> bool:
        return self._process.poll() is None

    def killed(self) -> bool:
        """Whether it has ended by a signal that it can't have been given by its own limits."""
        return self._process.poll() == -signal.SIGKILL

    def failure(self, cpu_seconds: float) -> Failure:
        """How the process ended."""
        code = self._process.wait()
        if code == -signal.SIGPROF:
            return Failure("timeout", f"over {cpu_seconds:g} s of CPU time")
        return Failure("died", f"the worker ended with code {code}")

    def error(self) -> str:
        """What the process said when it could not start, and its exit code."""
        return f"exit code {self._process.returncode}\n{self._said}".strip()

    def kill(self) -> None:
        self._process.kill()
        for stream in (self._input, self.output):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._process.wait()
        self._errors.seek(0)
        self._said = self._errors.read().decode(errors="replace")[-2000:]
        self._errors.close()
