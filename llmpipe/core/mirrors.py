"""Several endpoints for one repo: how long each is asked, and which is asked next."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from llmpipe.core.hub import Repo
from llmpipe.core.refusals import DownloadError

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How an endpoint is asked again: times in seconds.

    The wait before try i is ``base * 2**i``, at most ``longest``, less up to half of it by chance
    ("equal jitter", so that many clients don't come back at once: Brooker 2015, "Exponential
    Backoff And Jitter", AWS Architecture Blog). A server that names a time is left alone for that
    long, where that is no more than ``patience``.
    """

    tries: int = 5
    base: float = 1.0
    longest: float = 30.0
    patience: float = 300.0


class StoppedError(Exception):
    """The download is being given up as a whole."""


class Mirrors:
    """Endpoints in the order given; one that used up its tries is asked after the others."""

    def __init__(self, repos: Sequence[Repo], retry: Retry, stop: threading.Event) -> None:
        """``stop`` ends all waiting."""
        self._repos = list(repos)
        self._retry = retry
        self._stop = stop
        self._tired: dict[str, None] = {}
        self._useless: dict[str, DownloadError] = {}

    def ask(self, call: Callable[[Repo], T]) -> tuple[Repo, T]:
        """What the first endpoint that can do it makes of ``call``, and which one that was.

        Raises:
            DownloadError: none of them can; it says why of each.
            StoppedError: ``stop`` was set.
        """
        troubles: list[DownloadError] = list(self._useless.values())
        for repo in self._order():
            try:
                return repo, self._persist(repo, call)
            except DownloadError as e:
                if e.helps == "user":
                    raise
                if e.helps == "endpoint":
                    self._useless[repo.endpoint] = e
                troubles.append(e)
                if len(troubles) < len(self._repos):
                    log.warning("%s: trying the next endpoint", e)
        if len(troubles) == 1:
            raise troubles[0]
        raise DownloadError("; ".join(e.message for e in troubles), "file", troubles[0].hint)

    def _order(self) -> list[Repo]:
        able = [r for r in self._repos if r.endpoint not in self._useless]
        return sorted(able, key=lambda r: r.endpoint in self._tired)

    def _persist(self, repo: Repo, call: Callable[[Repo], T]) -> T:
        """Ask one endpoint until its tries are used up; a try that got further starts the count."""
        tried = 0
        while True:
            if self._stop.is_set():
                raise StoppedError
            try:
                result = call(repo)
            except DownloadError as e:
                if e.helps != "retry":
                    raise
                tried = 1 if e.gained else tried + 1
                if tried >= self._retry.tries or self._better_elsewhere(repo):
                    self._tired[repo.endpoint] = None
                    raise
                self._pause(e, tried)
            else:
                self._tired.pop(repo.endpoint, None)
                return result

    def _better_elsewhere(self, repo: Repo) -> bool:
        """Whether another file found this endpoint dead, and there is one that isn't."""
        return repo.endpoint in self._tired and self._order()[0].endpoint not in self._tired

    def _pause(self, e: DownloadError, tried: int) -> None:
        if e.wait is None:
            wait = min(self._retry.longest, self._retry.base * 2 ** (tried - 1))
            wait *= random.uniform(0.5, 1.0)
        elif e.wait <= self._retry.patience:
            wait = e.wait + random.uniform(0.0, self._retry.base)
        else:
            raise DownloadError(f"{e} and asks for {e.wait:.0f} s of rest", "file", e.hint)
        log.info("%s: again in %.1f s (try %d of %d)", e, wait, tried + 1, self._retry.tries)
        if self._stop.wait(wait):
            raise StoppedError
