"""Parameters, counted from configs and by transformers' own models."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from llmpipe.algo.memory.shape import FAMILIES, read_shape
from llmpipe.core.errors import UserError

_LLAMA = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}
_QWEN = {**_LLAMA, "vocab_size": 152064, "model_type": "qwen2"}
_SMALL = {"vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 6}

# The sizes that the models' makers published.
CONFIGS: dict[str, dict[str, Any]] = {
    "Qwen2.5-7B": {
        **_QWEN,
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "use_sliding_window": False,
        "sliding_window": 131072,
    },
    "Qwen2.5-32B": {
        **_QWEN,
        "hidden_size": 5120,
        "intermediate_size": 27648,
        "num_hidden_layers": 64,
        "num_attention_heads": 40,
    },
    "Qwen3-8B": {
        **_LLAMA,
        "model_type": "qwen3",
        "vocab_size": 151936,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "head_dim": 128,
    },
    "Llama-3.1-8B": _LLAMA,
    "Mistral-7B": {**_LLAMA, "model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096},
    "gemma-2-9b": {
        "model_type": "gemma2",
        "vocab_size": 256000,
        "hidden_size": 3584,
        "intermediate_size": 14336,
        "num_hidden_layers": 42,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 256,
    },
    "gemma-3-1b": {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "sliding_window_pattern": 6,
    },
    "gemma-7b": {
        "model_type": "gemma",
        "vocab_size": 256000,
        "hidden_size": 3072,
        "intermediate_size": 24576,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
    },
    "Qwen3-30B-A3B": {
        **_LLAMA,
        "model_type": "qwen3_moe",
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 768,
    },
    "Mixtral-8x7B": {
        **_LLAMA,
        "model_type": "mixtral",
        "vocab_size": 32000,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
    },
    "SmolLM3-3B": {
        "model_type": "smollm3",
        "vocab_size": 128256,
        "hidden_size": 2048,
        "intermediate_size": 11008,
        "num_hidden_layers": 36,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
    },
    "biases everywhere": {
        **_SMALL,
        "model_type": "llama",
        "num_attention_heads": 4,
        "attention_bias": True,
        "mlp_bias": True,
        "head_dim": 32,
    },
    "some layers of experts": {
        **_SMALL,
        "model_type": "qwen3_moe",
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [1],
    },
    "windows from a layer on": {
        **_SMALL,
        "model_type": "qwen2",
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "use_sliding_window": True,
        "sliding_window": 32,
        "max_window_layers": 4,
    },
}


def test_every_family_is_here() -> None:
    assert {config["model_type"] for config in CONFIGS.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_those_of_transformers(name: str) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoConfig, AutoModelForCausalLM

    config = CONFIGS[name]
    given = {key: value for key, value in config.items() if key != "model_type"}
    made = AutoConfig.for_model(config["model_type"], **given)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(made)
    shape = read_shape(config)
    named = dict(model.named_parameters())
    assert shape.parameters == sum(p.numel() for p in named.values())
    assert shape.linear_weights == sum(
        p.numel() for key, p in named.items() if "proj" in key and not key.endswith("bias")
    )
    kinds = getattr(made, "layer_types", None)
    if kinds:
        assert [w is not None for w in shape.windows] == [k == "sliding_attention" for k in kinds]


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("Qwen2.5-7B", 7_615_616_512, 7_615_616_512),
        ("Llama-3.1-8B", 8_030_261_248, 8_030_261_248),
        ("Mistral-7B", 7_241_732_096, 7_241_732_096),
        ("gemma-2-9b", 9_241_705_984, 9_241_705_984),
        ("Mixtral-8x7B", 46_702_792_704, 12_879_925_248),
        ("Qwen3-30B-A3B", 30_532_122_624, 3_353_032_704),
    ],
)
def test_published_figures(name: str, total: int, active: int) -> None:
    shape = read_shape(CONFIGS[name])
    assert (shape.parameters, shape.active_parameters) == (total, active)


def test_the_files_of_a_real_model_hold_as_many(smol_model: Path) -> None:
    shape = read_shape(json.loads((smol_model / "config.json").read_text()))
    held = 0
    for file in smol_model.glob("*.safetensors"):
        data = file.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + length])
        held += sum(math.prod(t["shape"]) for n, t in header.items() if n != "__metadata__")
    assert shape.parameters == held


def test_windows() -> None:
    assert read_shape(CONFIGS["Qwen2.5-7B"]).windows == (None,) * 28
    assert read_shape(CONFIGS["Mistral-7B"]).windows == (4096,) * 32
    assert read_shape({**CONFIGS["Mistral-7B"], "sliding_window": None}).windows == (None,) * 32
    assert read_shape(CONFIGS["gemma-2-9b"]).windows == (4096, None) * 21
    assert read_shape(CONFIGS["gemma-3-1b"]).windows.count(None) == 4


def test_what_cannot_be_counted() -> None:
    with pytest.raises(UserError, match="'mamba2' can't be counted"):
        read_shape({"model_type": "mamba2"})
    with pytest.raises(UserError, match=r"hidden_size .* is None"):
        read_shape({"model_type": "llama"})
    with pytest.raises(UserError, match=r"num_hidden_layers .* is 0"):
        read_shape({**_LLAMA, "num_hidden_layers": 0})
    with pytest.raises(UserError, match=r"layer_types .* are not 32"):
        read_shape({**CONFIGS["Mistral-7B"], "layer_types": ["sliding_attention"]})
