"""A model of a few thousand weights, and rows to train it on, where no real ones are needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers import make_artifact

from llmpipe.core.records import Conversation
from llmpipe.core.run import Mode
from llmpipe.stages import pack

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tiny_model(folder: Path, **settings: Any) -> Path:
    """A random Llama of two layers, 64 wide, in bfloat16; its tokens are bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>"]
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        **{
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "bos_token_id": None,
            "eos_token_id": tokenizer.eos_token_id,
            **settings,
        }
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


def pack_sums(folder: Path, model: Path, count: int, **config: Any) -> Path:
    """Packed rows of ``count`` short conversations in the model's tokens, 128 of them a row."""
    made = [
        Conversation(
            id=f"c{i}",
            problem_id=None,
            source="made",
            messages=[
                {"role": "user", "content": f"{i} + {i}?", "train": False},
                {"role": "assistant", "content": f"{2 * i}.", "train": True},
            ],
        )
        for i in range(count)
    ]
    source = make_artifact(folder / "sft", made)
    settings = pack.Config(**{"max_length": 128, **config})
    return pack.run(settings, [source], model, folder / "packed", Mode()).out
