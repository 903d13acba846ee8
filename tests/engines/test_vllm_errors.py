"""vLLM's errors as it words them, and what each has the user change."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from llmpipe.engines._vllm_errors import brief, death, is_lost, no_load

_LONG = (
    "To serve at least one request with the model's max seq len (131072), (14.0 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (3.2 GiB). Based on the available "
    "memory, the estimated maximum model length is 29952. Try increasing `gpu_memory_utilization`"
)


@pytest.mark.parametrize(
    ("said", "do"),
    [
        ("Free memory on device cuda:0 (9.1/79.1 GiB) on startup is less", "nvidia-smi"),
        (_LONG, "--engine-arg max_model_len=29952"),
        (_LONG.replace("estimated", ""), "max_model_len=4096"),
        ("No available memory for the cache blocks.", "gpu_memory_utilization=0.95"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB.", "--tensor-parallel-size 2"),
        ("head size 7 is odd", "by --engine-arg"),
    ],
)
def test_a_model_that_does_not_load(said: str, do: str) -> None:
    error = no_load(Path("models/m"), ValueError(said))
    assert error.message.startswith("vLLM can't load models/m: ")
    assert len(error.message) < 280
    assert do in (error.hint or "")


def _config(device: str, *, seats: int = 256) -> SimpleNamespace:
    return SimpleNamespace(
        scheduler_config=SimpleNamespace(max_num_seqs=seats),
        device_config=SimpleNamespace(device_type=device),
        cache_config=SimpleNamespace(gpu_memory_utilization=0.92, kv_cache_memory_bytes=4096),
    )


@pytest.mark.parametrize(
    ("error", "device", "do"),
    [
        (
            RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
            "cuda",
            "--engine-arg max_num_seqs=128 --engine-arg gpu_memory_utilization=0.82 goes on",
        ),
        (MemoryError(), "cpu", "max_num_seqs=128 --engine-arg kv_cache_memory_bytes=2048 goes on"),
        (RuntimeError("std::bad_alloc"), "cpu", "--engine-arg max_num_seqs=128"),
        (RuntimeError("CUDA error: an illegal memory access"), "cuda", "the same command goes on"),
        (RuntimeError("Worker failed with error 'x'"), "cuda", "the same command goes on"),
    ],
)
def test_an_engine_that_dies(error: Exception, device: str, do: str) -> None:
    assert is_lost(error)
    assert do in (death(error, _config(device)).hint or "")


def test_a_bug_is_not_taken_for_a_failing_machine() -> None:
    assert not is_lost(AssertionError())
    assert not is_lost(RuntimeError("The size of tensor a must match"))


def test_one_line_of_several() -> None:
    assert brief(ValueError("a\n  b\n\nc")) == "a b c"
    assert brief(KeyError()) == "KeyError"
    assert len(brief(ValueError("word " * 1000))) <= 240
