"""What vLLM's errors come to: one line each, and what to change."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.engines._installs import CPU, GPU

INSTALL = f"{GPU}, or where there is no GPU: {CPU}; or use --engine transformers"
_NO_MEMORY = re.compile(
    r"out of memory|bad_alloc|(can't|cannot|failed to) allocate memory", re.IGNORECASE
)
_LOST = re.compile(
    r"CUDA error|HIP error|NCCL error|device-side assert|Worker failed|Executor failed",
    re.IGNORECASE,
)
_GOES_ON = "goes on from what is kept"
# What loading fails of, in vLLM's words, and what mends it; the first that is found.
_LOADING = (
    (
        re.compile(r"Free memory on device"),
        "nvidia-smi says who has the GPU; to share it: --engine-arg gpu_memory_utilization=0.5",
    ),
    (
        re.compile(r"estimated maximum model length is (\d+)"),
        r"--engine-arg max_model_len=\1, or more room: --engine-arg gpu_memory_utilization=0.95",
    ),
    (
        re.compile(r"No available memory for the cache|max seq len"),
        "--engine-arg gpu_memory_utilization=0.95 --engine-arg max_model_len=4096",
    ),
    (_NO_MEMORY, "--tensor-parallel-size 2, or a smaller model"),
)


def brief(e: Exception) -> str:
    """What an error says, in one line of at most 240 characters."""
    # pydantic's plain message is a page.
    errors = e.errors() if hasattr(e, "errors") else [{"msg": str(e) or type(e).__name__}]
    return textwrap.shorten("; ".join(error["msg"] for error in errors), 240)


def no_load(folder: Path, e: Exception) -> UserError:
    """vLLM can't load a model, or not with these settings."""
    said = brief(e)
    if "device type" in said:
        return UserError("this vLLM is built for GPUs, and none is found", INSTALL)
    hint = "it takes its settings by --engine-arg, such as --engine-arg max_model_len=4096"
    for words, mend in _LOADING:
        if found := words.search(str(e)):
            hint = found.expand(mend)
            break
    return UserError(f"vLLM can't load {folder}: {said}", hint)


def bad_sampling(e: Exception) -> UserError:
    """vLLM refuses the sampling parameters, whatever the prompt."""
    return UserError(f"vLLM refuses the sampling: {brief(e)}", "--sampling-arg top_k=20, for one")


def is_lost(e: Exception) -> bool:
    """Whether it was the machine that failed a running engine, rather than somebody's code."""
    return _short_of_memory(e) or bool(_LOST.search(str(e)))


def death(e: Exception, config: Any) -> UserError:
    """A running engine can't go on; ``config`` is its ``VllmConfig``."""
    fewer = f"--engine-arg max_num_seqs={max(1, config.scheduler_config.max_num_seqs // 2)}"
    if not _short_of_memory(e):
        return UserError(
            f"vLLM's engine died: {brief(e)}",
            f"its own words are above; the same command {_GOES_ON}, where memory was short with "
            f"{fewer}",
        )
    if config.device_config.device_type == "cpu":
        cache = config.cache_config.kv_cache_memory_bytes
        less = f" --engine-arg kv_cache_memory_bytes={cache // 2}" if cache else ""
    else:
        share = config.cache_config.gpu_memory_utilization - 0.1
        less = f" --engine-arg gpu_memory_utilization={max(share, 0.1):.2g}"
    return UserError(
        f"vLLM is out of memory: {brief(e)}", f"the same command with {fewer}{less} {_GOES_ON}"
    )


def _short_of_memory(e: Exception) -> bool:
    return isinstance(e, MemoryError) or bool(_NO_MEMORY.search(str(e)))
