"""vLLM's cache, against vLLM's own figures and a real model's tensors."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from helpers import needs_vllm

from llmpipe.algo.memory.serving import (
    can_split,
    kv_bytes,
    kv_bytes_per_token,
    most_sequences,
    serve,
)
from llmpipe.algo.memory.shape import read_shape

GIB = 1 << 30
LLAMA = read_shape(
    {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
    }
)


def gemma(layers: int) -> dict[str, object]:
    return {
        "model_type": "gemma3_text",
        "vocab_size": 1000,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "sliding_window": 512,
    }


def test_a_token_takes_what_is_published() -> None:
    # Two of 32 layers, 8 heads, 128 wide, in 16 bits: 128 KiB a token.
    assert kv_bytes_per_token(LLAMA) == 128 * 1024
    assert kv_bytes_per_token(LLAMA, 4) == 32 * 1024
    assert kv_bytes_per_token(LLAMA, 16) == 16 * 1024  # a head on each, twice over
    assert kv_bytes_per_token(LLAMA, value_bytes=1) == 64 * 1024


def test_a_sequence_takes_whole_blocks() -> None:
    assert kv_bytes(LLAMA, 16) == 16 * 128 * 1024
    assert kv_bytes(LLAMA, 17) == 32 * 128 * 1024


def test_windows_end_a_layer_s_growth() -> None:
    shape = read_shape(gemma(24))  # 4 layers see all, 20 the last 512 tokens
    layer = 2 * 2 * 32 * 2
    assert kv_bytes(shape, 512) == 24 * 512 * layer
    assert kv_bytes(shape, 8192) == 4 * 8192 * layer + 20 * (512 + 16) * layer


def test_a_real_model_s_tensors(smol_model: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(smol_model)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        cache = model(input_ids=torch.zeros(1, 48, dtype=torch.long)).past_key_values
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    shape = read_shape(json.loads((smol_model / "config.json").read_text()))
    assert kv_bytes_per_token(shape) * 48 == held == kv_bytes(shape, 48)


@pytest.mark.slow
@needs_vllm
@pytest.mark.parametrize("layers", [24, 26, 7])
def test_vllm_s_own_groups_and_pages(layers: int) -> None:
    import torch
    from vllm.v1.core.kv_cache_utils import _get_kv_cache_groups_uniform_page_size
    from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec

    shape = read_shape(gemma(layers))
    sizes = {"block_size": 16, "num_kv_heads": 2, "head_size": 32, "dtype": torch.bfloat16}
    specs = {
        f"layer.{i}": FullAttentionSpec(**sizes)
        if window is None
        else SlidingWindowSpec(**sizes, sliding_window=window)
        for i, window in enumerate(shape.windows)
    }
    groups = _get_kv_cache_groups_uniform_page_size(specs)
    padded = max(len(group.layer_names) for group in groups)
    page = next(iter(specs.values())).page_size_bytes
    blocks = sum(
        4096 // 16
        if isinstance(group.kv_cache_spec, FullAttentionSpec)
        else group.kv_cache_spec.max_admission_blocks_per_request(1, 4096)
        for group in groups
    )
    assert kv_bytes(shape, 4096) == blocks * padded * page


def test_which_numbers_of_gpus_share_a_model() -> None:
    assert [t for t in (1, 2, 3, 4, 8, 16, 32, 64) if can_split(LLAMA, t)] == [1, 2, 4, 8, 16, 32]


def test_a_copy_on_one_gpu_and_on_two() -> None:
    one, two = (
        serve(
            LLAMA,
            tensor_parallel=gpus,
            gpu_bytes=24 * GIB,
            tokens=8192,
            weight_bytes=2 * LLAMA.parameters,
        )
        for gpus in (1, 2)
    )
    assert (one.weights, two.weights) == (2 * LLAMA.parameters, LLAMA.parameters)
    assert (one.sequence, two.sequence) == (GIB, GIB // 2)
    for way in (one, two):
        held = way.weights + way.step + way.other + way.cache
        assert held == int(0.92 * 24 * GIB)
        assert way.sequences == way.cache // way.sequence
    assert one.sequences < two.sequences


def test_a_model_that_is_too_large_has_no_room() -> None:
    way = serve(
        LLAMA, tensor_parallel=1, gpu_bytes=8 * GIB, tokens=64, weight_bytes=2 * LLAMA.parameters
    )
    assert (way.cache, way.sequences) == (0, 0)
    assert (most_sequences(80 * GIB), most_sequences(24 * GIB)) == (1024, 256)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="no vLLM here")
def test_vllm_s_own_share_of_memory() -> None:
    """The default that is taken stands in vLLM's source, which needs no import."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).with_name("config").joinpath("cache.py").read_text()
    assert "gpu_memory_utilization: float = Field(default=0.92" in text
