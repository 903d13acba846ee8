"""TensorBoard: event files under ``./tensorboard`` (``tensorboard --logdir tensorboard``)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar


class TensorBoardTracker:
    """Event files in a folder of the run's own, so that runs of one name are not drawn as one.

    ``TENSORBOARD_LOGGING_DIR`` is another place for them, as transformers has it.
    """

    library: ClassVar[str] = "tensorboard"
    install: ClassVar[str] = "tensorboard"

    def __init__(self, *, project: str, name: str, job: str, config: Mapping[str, Any]) -> None:
        from tensorboard.summary import Writer

        root = Path(os.environ.get("TENSORBOARD_LOGGING_DIR", "tensorboard"))
        started = time.strftime("%Y%m%d-%H%M%S")
        folder = root / project / job / f"{name}-{started}"
        self._writer = Writer(str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(dict(config), indent=1), encoding="utf-8")

    def log(self, figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


TRACKER = TensorBoardTracker
