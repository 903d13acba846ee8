"""End in good order at a given moment: hand out no more than can be finished, then stop."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
_RECENT = 512  # answers whose times are remembered
_SHARE = 0.9  # of them, that are to be finished in time
_LONGEST = 1e9  # seconds; a timer of some centuries overflows


class TimeIsUp(BaseException):
    """Raised in the main thread at the deadline, wherever that is then.

    No `Exception`: what retries or reports those must not take it for one.
    """


class TimeLimit(Generic[_T]):
    """Hands items out while there is time for them; ``over`` says that it ran out of it.

    An item is handed out if nine of ten of the last items, from handing out to `done`, would have
    been finished by the ``deadline`` (of `time.monotonic`; None for no limit). ``key`` names items.
    """

    def __init__(self, deadline: float | None, key: Callable[[_T], Any]) -> None:
        self.over = False
        self._deadline = deadline
        self._key = key
        self._handed: dict[Any, float] = {}
        self._seconds: deque[float] = deque(maxlen=_RECENT)
        self._estimate = 0.0
        self._estimated = 0.0

    def hand_out(self, items: Iterator[_T]) -> Iterator[_T]:
        """The items, up to the first that there is no time for."""
        for item in items:
            now = time.monotonic()
            if self._deadline is not None:
                if now + self._needed(now) >= self._deadline:
                    self.over = True
                    return
                self._handed[self._key(item)] = now
            yield item

    def done(self, item: _T) -> None:
        """An item that was handed out is finished."""
        handed = self._handed.pop(self._key(item), None)
        if handed is not None:
            self._seconds.append(time.monotonic() - handed)

    def passed(self) -> bool:
        """Whether the deadline is past: what is still under way is to be given up."""
        past = self._deadline is not None and time.monotonic() >= self._deadline
        self.over = self.over or past
        return past

    def _needed(self, now: float) -> float:
        """Seconds that an item takes, looked at once a second: sorting is not for free."""
        if self._seconds and now - self._estimated > 1:
            self._estimated = now
            self._estimate = sorted(self._seconds)[int(_SHARE * (len(self._seconds) - 1))]
        return self._estimate

    @contextlib.contextmanager
    def alarm(self) -> Iterator[None]:
        """Raise `TimeIsUp` inside the block at the deadline, in the main thread.

        It comes from a thread by way of a signal that wakes calls that wait; another's use of
        SIGALRM goes on. In other threads nothing is raised, and `passed` is to be asked.
        """
        main = threading.current_thread() is threading.main_thread()
        if self._deadline is None or not main:
            yield
            return
        armed, rung = True, False
        before: Any = None

        def ring(number: int, frame: FrameType | None) -> None:
            nonlocal rung
            if not rung:
                if callable(before):
                    before(number, frame)
                return
            rung = False
            if armed:
                self.over = True
                raise TimeIsUp

        def wake() -> None:
            nonlocal rung
            rung = True
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)

        before = signal.signal(signal.SIGALRM, ring)
        seconds = min(max(0.0, self._deadline - time.monotonic()), _LONGEST)
        timer = threading.Timer(seconds, wake)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            armed = False
            timer.cancel()
            timer.join()
            signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
