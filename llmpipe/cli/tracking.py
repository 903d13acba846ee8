"""What ``--track`` does: a run's figures go to experiment trackers while it goes on."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.spec import plain

if TYPE_CHECKING:
    from llmpipe.core.protocols import Tracker
    from llmpipe.core.run import Result
    from llmpipe.core.spec import Progress

log = logging.getLogger("llmpipe.track")

_SECONDS_BETWEEN = 10.0
_PROJECT = "llmpipe"


class Tracking:
    """A `Progress` that hands what it is told to trackers, and on to the bar.

    A tracker that fails (its server is away, its disk is full) is dropped with a warning: the run
    is worth more than its picture.
    """

    def __init__(
        self, names: Sequence[str], *, job: str, out: Path, config: Any, bar: Progress
    ) -> None:
        """Raises:
        UserError: no such tracker, or its library is not installed.
        """
        self._kinds = {name: _known(name) for name in names}
        self._begin = {"project": _PROJECT, "name": out.name, "job": job}
        self._config = config if isinstance(config, dict) else plain(config)
        self._bar = bar
        self._trackers: dict[str, Tracker] | None = None
        self._said = 0.0
        self._step = 0

    def __call__(
        self,
        done: int,
        total: int | None,
        *,
        unit: str = "",
        parts: Mapping[str, tuple[int, int]] | None = None,
        **figures: Any,
    ) -> None:
        self._bar(done, total, unit=unit, parts=parts, **figures)
        now = time.monotonic()
        if now - self._said >= _SECONDS_BETWEEN or done == total:
            self._said = now
            self._log("progress", {"done": done, **figures})

    def close(self, results: Sequence[Result]) -> None:
        """Hand over what came out, a group of figures a stage, and end the trackers' runs."""
        for result in results:
            if result.complete and not (result.up_to_date or result.plan):
                self._log(result.stage, {"rows": result.rows, **result.figures})
        for name, tracker in list((self._trackers or {}).items()):
            self._try(name, tracker.close)
        self._trackers = {}

    def _log(self, group: str, figures: Mapping[str, Any]) -> None:
        values = {f"{group}/{name}": value for name, value in _numbers(figures)}
        self._step += 1
        for name, tracker in list(self._begun().items()):
            self._try(name, functools.partial(tracker.log, values, self._step))

    def _begun(self) -> dict[str, Tracker]:
        """The trackers, begun with the first figures: a run with nothing to do leaves no trace."""
        if self._trackers is None:
            self._trackers = {}
            for name, kind in self._kinds.items():
                begin = functools.partial(kind, **self._begin, config=self._config)
                if tracker := self._try(name, begin):
                    self._trackers[name] = tracker
        return self._trackers

    def _try(self, name: str, do: Callable[[], Any]) -> Any:
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout is data
                return do()
        except Exception as e:  # a tracker's errors have no common class
            reason = (str(e) or type(e).__name__).splitlines()[0]
            log.warning("%s failed, and gets no more figures of this run: %s", name, reason)
            if self._trackers:
                self._trackers.pop(name, None)


def _known(name: str) -> Callable[..., Tracker]:
    kind = load("trackers", name)
    if importlib.util.find_spec(kind.library) is None:
        raise UserError(f"{kind.library} is not installed", f"pip install '{kind.install}'")
    return kind  # type: ignore[no-any-return]


def _numbers(figures: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """The figures that are numbers, those inside others under ``outer.inner``."""
    found: list[tuple[str, float]] = []
    for name, value in figures.items():
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((f"{prefix}{name}".replace("@", "_at_"), float(value)))
    return found
