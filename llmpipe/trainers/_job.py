"""What a trainer is asked for, in values that JSON can hold, so that another process can be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

_FREE: Mapping[str, bool] = {"fingerprint": False}

LoraKind = Literal["lora", "qlora", "dora", "adalora"]


@dataclass(frozen=True, kw_only=True)
class Lora:
    """An adapter in the place of all weights, by PEFT's names for its settings.

    Its update is scaled by ``alpha`` / ``rank``. ``targets`` are the linear maps that get one, by
    the ends of their names; empty for all but the head. For adalora ``rank`` is the mean at the
    end. ``merge`` writes whole weights with the update in them, else the adapter alone is written.
    """

    rank: int
    alpha: float
    dropout: float = 0.0
    targets: Sequence[str] = ()
    kind: LoraKind = "lora"
    merge: bool = True


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a model is trained.

    An optimizer step takes ``micro_batch_size`` packed rows at a time, ``gradient_accumulation``
    times. ``max_steps`` take the place of ``epochs``. The learning rate rises over
    ``warmup_ratio`` of the steps and falls to 0 in a half cosine. ``dtype`` is what is computed in;
    all weights are trained in float32. ``eval_share`` of the rows are held out. A checkpoint is
    written every ``save_every`` steps, and after the last.

    ``processes`` as many do so side by side, each with micro batches of its own, as the file
    ``accelerate_config`` has them share the weights: that doesn't change what comes of it.
    """

    learning_rate: float
    epochs: float = 2.0
    max_steps: int | None = None
    warmup_ratio: float = 0.03
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    micro_batch_size: int = 1
    gradient_accumulation: int = 8
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    gradient_checkpointing: bool = field(default=True, metadata=_FREE)
    seed: int = 0
    eval_share: float = 0.0
    save_every: int = field(default=500, metadata=_FREE)
    processes: int = 1
    accelerate_config: str | None = field(default=None, metadata=_FREE)
    lora: Lora | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A training to begin, or to go on with from the last whole checkpoint in ``folder``.

    ``rows`` are Parquet files of packed rows, ``held_out`` the numbers of those that are not
    trained on. ``weighted`` says whether their tokens are weighed (`PackedRow.loss_weights`).
    ``base_name`` is what an adapter calls the model in the folder ``model``.
    """

    settings: Settings
    model: str
    base_name: str
    rows: Sequence[str]
    held_out: Sequence[int]
    weighted: bool
    folder: str


def read_job(file: Path) -> Job:
    """A job that was written as JSON."""
    values = json.loads(file.read_text(encoding="utf-8"))
    settings = values.pop("settings")
    lora = settings.pop("lora")
    return Job(settings=Settings(**settings, lora=Lora(**lora) if lora else None), **values)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a job: the weights are in ``folder``.

    ``steps`` are rows of `TrainStep`, those of the runs before a resume among them.
    """

    folder: str
    steps: Sequence[Mapping[str, Any]]
    figures: Mapping[str, Any]
    details: Mapping[str, Any]


class Watch(Protocol):
    """Told of each step: how many of ``total`` are done, and figures of the last."""

    def __call__(self, done: int, total: int | None, **figures: Any) -> None: ...


class Trainer(Protocol):
    """What a trainer's file has as ``TRAINER``."""

    libraries: Sequence[str]
    """Distributions whose versions the manifest records."""

    def begun(self, folder: str) -> int | None:
        """The step of the last whole checkpoint in a job's folder; None where there is none."""

    def layout(self, settings: Settings) -> str:
        """How checkpoints are written: none is gone on from in another layout."""

    def check(self, settings: Settings) -> None:
        """Raise `UserError` for what can be known to be wrong before anything is loaded."""

    def train(self, job: Job, watch: Watch) -> Outcome:
        """Train to the end.

        Raises:
            UserError: what the user can put right: no memory, a loss that is no number.
            KeyboardInterrupt: stopped by Ctrl-C; a checkpoint of the last step was written.
        """
