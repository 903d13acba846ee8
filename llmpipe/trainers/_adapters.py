"""LoRA and its kin by PEFT: what is trained in the place of all weights, and how it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmpipe.trainers._job import Job, Settings


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


def save_adapter(model: Any, job: Job, folder: Path) -> None:
    """The adapter alone; to a base of which the user knows the name."""
    for config in model.peft_config.values():
        config.base_model_name_or_path = job.base_name
    model.save_pretrained(folder)


def merged(base: Any, adapter_folder: Path) -> Any:
    """The base model with an adapter's update added to its weights, in float32."""
    from peft import PeftModel

    return PeftModel.from_pretrained(base, adapter_folder).merge_and_unload()
