"""What a run of samples says of itself while it goes on, and of its speed when it is over.

The pass rate so far is judged beside it, on a best-effort basis: nothing waits for it and nothing
that is made depends on it. What comes too fast for one worker is not judged, and `llmpipe verify`
judges all of it later.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Self

from llmpipe.algo.latency import Latency
from llmpipe.core.protocols import Generation
from llmpipe.core.records import Score
from llmpipe.core.spec import Mode
from llmpipe.tasks import judges

log = logging.getLogger(__name__)

_SOON = 5.0  # seconds, before which a run may be over: then no worker is worth its start
_WAITING = 256  # answers, at most
_LEAVE = 2.0  # seconds that the thread has to end in


class Watch:
    """Progress of a run of ``total`` conversations, told to ``mode.progress``; a context.

    The bar is full at the end of each wave: ``see`` an answer of it, after `begin`.
    """

    def __init__(self, mode: Mode, tasks: Iterable[str], total: int, turns: int) -> None:
        self._progress = mode.progress
        self._total = total
        self._turns = turns
        self._pass_rate = PassRate(tasks) if mode.watched else None
        self._began = time.monotonic()
        self._turn = self._left = self._ended = 0
        self._seen = self._tokens = self._cut = 0
        self._latency = Latency()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pass_rate:
            self._pass_rate.close()

    def begin(self, turn: int, missing: int) -> None:
        """Wave ``turn`` begins, with at most ``missing`` answers."""
        self._turn, self._left = turn, missing
        if self._pass_rate:
            self._pass_rate.begin(turn)

    def see(self, made: Generation, ended: int) -> None:
        """An answer has come; ``ended`` conversations had no more to say so far."""
        self._seen += 1
        self._tokens += made.completion_tokens
        self._cut += made.finish_reason == "length"
        self._left -= 1 + ended - self._ended
        self._ended = ended
        if made.timing:
            self._latency.add(made.timing, made.completion_tokens)
        if self._pass_rate:
            self._pass_rate.add(made)
        seconds = time.monotonic() - self._began + 1e-9
        figures: dict[str, Any] = {
            "samples_per_second": self._seen / seconds,
            "tokens_per_second": round(self._tokens / seconds),
            "truncated": self._cut / self._seen,
        }
        if self._turns > 1:
            figures = {"turn": self._turn + 1, **figures}
        if self._pass_rate:
            figures |= self._pass_rate.figures()
        self._progress(self._total - max(0, self._left), self._total, **figures)

    def figures(self) -> dict[str, Any]:
        """Seconds, tokens a second, and percentiles of how long an answer took."""
        seconds = time.monotonic() - self._began
        return {
            "sampling_seconds": round(seconds, 1),
            "tokens_per_second": round(self._tokens / seconds, 1),
            **self._latency.figures(),
        }


class PassRate:
    """Of the answers of a wave, the share that is right; to be closed."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._tasks = list(tasks)
        self._began = time.monotonic()
        self._waiting: queue.Queue[tuple[int, tuple[Any, ...]] | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._turn = self._judged = self._right = 0

    def begin(self, turn: int) -> None:
        """Count anew, answers of this turn."""
        self._turn = turn
        self._judged = self._right = 0

    def add(self, made: Generation) -> None:
        """Have an answer judged, if there is room for it; never waits."""
        if made.finish_reason == "error":
            return
        problem = made.request.problem
        call = (problem.task, problem.answer, problem.payload, made.text, made.finish_reason)
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait((made.request.turn, (*call, "auto")))
        if self._thread is None and time.monotonic() - self._began > _SOON:
            self._thread = threading.Thread(target=self._judge, daemon=True)
            self._thread.start()

    def figures(self) -> dict[str, float]:
        """``pass_rate`` so far; nothing while none was judged."""
        return {"pass_rate": self._right / self._judged} if self._judged else {}

    def _judge(self) -> None:
        try:
            with judges(self._tasks, workers=1, chunk=4) as pool:
                turns: deque[int] = deque()
                for score in pool.map(self._calls(turns)):
                    of_now = turns.popleft() == self._turn
                    if of_now and isinstance(score, Score) and score.status != "error":
                        self._right += score.status == "correct"
                        self._judged += 1
        except Exception as e:
            log.debug("no pass rate so far: %s", e)

    def _calls(self, turns: deque[int]) -> Iterator[tuple[Any, ...]]:
        for turn, call in iter(self._waiting.get, None):
            turns.append(turn)
            yield call

    def close(self) -> None:
        """Leave what is not judged yet."""
        if self._thread:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._waiting.get_nowait()
            self._waiting.put(None)
            self._thread.join(_LEAVE)
