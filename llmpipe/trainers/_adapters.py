"""LoRA and its kin by PEFT: what is trained in the place of all weights, and how it is written."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.trainers._job import Job, Settings

_RANKS = "ranks.pt"
_IMPORTANCE = ("ipt", "exp_avg_ipt", "exp_avg_unc")


def adapter(settings: Settings, steps: int) -> Any:
    """PEFT's configuration of the adapter, for a training of so many steps."""
    from peft import AdaLoraConfig, LoraConfig

    lora = settings.lora
    assert lora
    given: dict[str, Any] = {
        "task_type": "CAUSAL_LM",
        "lora_alpha": lora.alpha,
        "lora_dropout": lora.dropout,
        "target_modules": list(lora.targets) or "all-linear",
    }
    if lora.kind == "adalora":
        # Ranks are taken away between the first and the last sixth of the steps.
        return AdaLoraConfig(
            **given,
            target_r=lora.rank,
            init_r=max(lora.rank + 1, lora.rank * 3 // 2),
            tinit=steps // 6,
            tfinal=steps // 6,
            deltaT=max(1, steps // 100),
            total_step=steps,
        )
    return LoraConfig(**given, r=lora.rank, use_dora=lora.kind == "dora")


def check_targets(model: Any, targets: Sequence[str]) -> None:
    """See that each target is a linear map of the model, and not its head.

    PEFT passes over what the model doesn't have, and TRL's loss over an adapter of the head.

    Raises:
        UserError: one isn't.
    """
    import torch
    from transformers.pytorch_utils import Conv1D

    head = model.get_output_embeddings()
    linear = [
        name
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear | Conv1D) and module is not head
    ]
    for target in targets:
        if not any(f".{name}".endswith(f".{target}") for name in linear):
            known = dict.fromkeys(name.rpartition(".")[2] for name in linear)
            raise UserError(
                f"{target} is no linear map of the model that gets an adapter",
                f"--lora-targets {','.join(known)}",
            )


def save_adapter(model: Any, job: Job, folder: Path, weights: Mapping[str, Any] | None) -> None:
    """The adapter alone, of the model's weights or these; to a base with the user's name for it."""
    for config in model.peft_config.values():
        config.base_model_name_or_path = job.base_name
    model.save_pretrained(folder, state_dict=weights)


def merged(base: Any, adapter_folder: Path) -> Any:
    """The base model with an adapter's update added to its weights, in float32."""
    from peft import PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of AdaLoRA's own names for its ranks
        return PeftModel.from_pretrained(base, adapter_folder).merge_and_unload()


def keep_ranks(model: Any, checkpoint: Path) -> None:
    """What AdaLoRA goes on from, which PEFT keeps no record of.

    That is the importance of each rank so far, and the ranks that are masked now: an adapter is
    saved without these, but may take them up again.
    """
    import torch

    allocator, name = model.base_model.rankallocator, model.active_adapter
    state = {
        "weights": {n: p.detach() for n, p in model.named_parameters() if p.requires_grad},
        "importance": {key: getattr(allocator, key) for key in _IMPORTANCE},
        "pattern": model.peft_config[name].rank_pattern,
    }
    torch.save(state, checkpoint / _RANKS)


def restore_ranks(model: Any, checkpoint: Path) -> None:
    """The inverse of `keep_ranks`."""
    import torch

    allocator, name = model.base_model.rankallocator, model.active_adapter
    state = torch.load(checkpoint / _RANKS, map_location=model.device, weights_only=True)
    for key, values in state["importance"].items():
        setattr(allocator, key, values)
    model.peft_config[name].rank_pattern = state["pattern"]
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for key, value in state["weights"].items():
            parameters[key].copy_(value)
