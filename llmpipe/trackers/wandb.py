"""Weights & Biases: sent at once, or kept for ``wandb sync``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar


class WandbTracker:
    """A run in ``./wandb``, sent to the server where a key is in the environment.

    ``WANDB_MODE`` (online, offline, disabled), ``WANDB_DIR`` and its other variables hold.
    """

    library: ClassVar[str] = "wandb"
    install: ClassVar[str] = "wandb"

    def __init__(self, *, project: str, name: str, job: str, config: Mapping[str, Any]) -> None:
        import wandb

        # Without a key "online" asks for one, and a job at night waits for ever.
        chosen = os.environ.get("WANDB_MODE") or os.environ.get("WANDB_API_KEY")
        self._run = wandb.init(
            project=project,
            name=name,
            job_type=job,
            config=dict(config),
            mode=None if chosen else "offline",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        self._run.finish()


TRACKER = WandbTracker
