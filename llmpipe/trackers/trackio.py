"""Trackio: on this machine (``trackio show``), or in a Space named by ``TRACKIO_SPACE_ID``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class TrackioTracker:
    """A run in Trackio's own folder (``TRACKIO_DIR``)."""

    library: ClassVar[str] = "trackio"
    install: ClassVar[str] = "trackio"

    def __init__(self, *, project: str, name: str, job: str, config: Mapping[str, Any]) -> None:
        import trackio

        self._library = trackio
        self._run = trackio.init(
            project=project,
            name=name,
            group=job,
            config=dict(config),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._library.finish()  # the run's own finish() would be called again, and heard, at exit


TRACKER = TrackioTracker
