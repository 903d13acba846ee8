"""SwanLab: on this machine (``swanlab watch``), or in its cloud for who is logged in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar


class SwanLabTracker:
    """A run in ``./swanlog``, or in the cloud where a key is at hand.

    ``SWANLAB_MODE`` (online, local, offline, disabled) and SwanLab's other variables hold.
    """

    library: ClassVar[str] = "swanlab"
    install: ClassVar[str] = "swanlab[dashboard]"

    def __init__(self, *, project: str, name: str, job: str, config: Mapping[str, Any]) -> None:
        import swanlab

        self._run = swanlab.init(
            project=project, name=name, job_type=job, config=dict(config), mode=_mode()
        )

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()


def _mode() -> str:
    """As the user has set it; else what works here: without a key "online" asks for one and waits,
    and "local" needs SwanLab's dashboard."""
    if mode := os.environ.get("SWANLAB_MODE"):
        return mode
    if os.environ.get("SWANLAB_API_KEY") or (Path.home() / ".swanlab" / ".netrc").is_file():
        return "online"
    return "local" if find_spec("swanboard") else "offline"


TRACKER = SwanLabTracker
