"""Weights of which each of several processes has a share (FSDP, ZeRO)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.trainers import _accelerate
from llmpipe.trainers._job import Settings


def check(trainer: Any, settings: Settings) -> None:
    """See that weights are shared as asked for: without a GPU Accelerate leaves it, silently.

    Raises:
        UserError: they aren't.
    """
    if not settings.accelerate_config:
        return
    kind = _accelerate.read(Path(settings.accelerate_config)).kind
    shares = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    if shares != (kind in _accelerate.SHARED):
        raise UserError(
            f"accelerate doesn't train by {kind} here, as {settings.accelerate_config} asks for",
            "llmpipe doctor",
        )


def trained_parameters(model: Any) -> int:
    """How many weights are trained, in all, of a model that isn't shared out yet."""
    # But DeepSpeed shares a model out as it is loaded.
    trained = (p for p in model.parameters() if p.requires_grad)
    return sum(getattr(p, "ds_numel", p.numel()) for p in trained)


def gathered(trainer: Any) -> dict[str, Any] | None:
    """All weights, in the first process; None where each process has them all.

    Every process has to ask.
    """
    if trainer.is_deepspeed_enabled:
        weights: dict[str, Any] = trainer.accelerator.get_state_dict(trainer.deepspeed)
    elif trainer.is_fsdp_enabled:
        weights = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    else:
        return None
    return weights


def leave() -> None:
    """Have this process load models whole from now on, and by itself."""
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    unset_hf_deepspeed_config()
