"""The model that a job trains, read from its folder."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import textwrap
from collections.abc import Iterator
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.trainers._job import Job

log = logging.getLogger(__name__)


def load_for_training(job: Job) -> tuple[Any, Any]:
    """The model to be trained, and the dtype that its own weights are in.

    Weights that are trained are held in float32: in bfloat16 most updates would round to nothing.
    """
    import torch
    from transformers import AutoConfig

    settings = job.settings
    with _readable(job):
        own = AutoConfig.from_pretrained(job.model, local_files_only=True).dtype or torch.float32
    compute = torch.bfloat16 if settings.dtype == "bfloat16" else torch.float32
    given: dict[str, Any] = {"dtype": compute if settings.lora else torch.float32}
    if settings.lora and settings.lora.kind == "qlora":
        from transformers import BitsAndBytesConfig

        given["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=compute,
        )
    if (
        torch.cuda.is_available()
        and compute == torch.bfloat16
        and importlib.util.find_spec("flash_attn")
    ):
        given["attn_implementation"] = "flash_attention_2"
    model, unused = load_model(job, **given)
    for module in model.modules():
        # Where the processor has it, bitsandbytes (0.50) packs weights when it first evaluates, and
        # trains on through a kernel that has no gradients.
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False
    if unused:
        log.warning(
            "by config.json the model has no %s: %d of its weights are left out, here and in what "
            "is made of it",
            min(unused),
            len(unused),
        )
    return model, own


def load_model(job: Job, **given: Any) -> tuple[Any, set[str]]:
    """A job's model, with what ``from_pretrained`` is given besides, and weights it has no use for.

    Raises:
        UserError: it can't be loaded, or not all of it.
    """
    from transformers import AutoModelForCausalLM

    with _readable(job):
        model, found = AutoModelForCausalLM.from_pretrained(
            job.model,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **given,
        )
        if found["missing_keys"]:  # they would be random
            raise ValueError(f"it has no weights for {min(found['missing_keys'])}")
        if found["mismatched_keys"]:  # and these
            name, there, wanted = min(found["mismatched_keys"])
            raise ValueError(
                f"{name} is {list(there)}, but by config.json it would be {list(wanted)}"
            )
    return model, set(found["unexpected_keys"])


@contextlib.contextmanager
def _readable(job: Job) -> Iterator[None]:
    """What is wrong with a model's folder, as the user's to put right."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    wrong = (OSError, ValueError, KeyError, ImportError, SafetensorError, StrictDataclassError)
    try:
        yield
    except wrong as e:
        said = textwrap.shorten(str(e), 300) or type(e).__name__
        raise UserError(
            f"transformers can't load {job.model}: {said}",
            "download the model again, or use another",
        ) from e
