"""What vLLM holds on a GPU: its share of the weights, and the keys and values of sequences.

The cache is counted as vLLM 0.32 lays it out (its ``v1/kv_cache_interface.py`` and
``v1/core/kv_cache_utils.py``). What a step needs besides is an estimate: vLLM measures it when it
starts, and says then how much is left for the cache.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from llmpipe.algo.memory.shape import Shape

UTILISATION = 0.92
"""vLLM's own share of a GPU's memory (``--gpu-memory-utilization``)."""

MOST_SEQUENCES = 1024
"""vLLM's own ``--max-num-seqs`` on a GPU of 70 GiB or more; on smaller ones it is 256."""

_GIB = 1 << 30
_BLOCK = 16  # tokens
_BATCHED = 16384  # tokens of a step, at most (8192 on smaller GPUs, and on an A100)
_BIG = 70 * _GIB
_OTHER = 2 * _GIB  # CUDA's context, NCCL, cuBLAS and captured graphs
_LOGIT = 16  # bytes of one: in 16 bits, in float32, sorted, as a probability


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A copy of a model on ``tensor_parallel`` GPUs; bytes are those of one of them.

    ``sequences`` is how many of the given length fit at once, with all their keys and values.
    """

    tensor_parallel: int
    weights: int
    step: int
    other: int
    cache: int
    sequence: int
    sequences: int


def kv_bytes_per_token(shape: Shape, tensor_parallel: int = 1, value_bytes: int = 2) -> int:
    """Bytes of one token's keys and values in all layers, on one GPU.

    GPUs share out the key-value heads; where there are more GPUs, each has one (a copy).
    """
    return shape.layers * _layer_token(shape, tensor_parallel, value_bytes)


def kv_bytes(shape: Shape, tokens: int, tensor_parallel: int = 1, value_bytes: int = 2) -> int:
    """Bytes that vLLM's cache takes for a sequence of so many tokens, on one GPU.

    Whole blocks of 16 tokens; layers with a window keep no more blocks than it touches. Where both
    kinds are in a model, vLLM groups its layers into groups of one size, the last of a kind padded.
    """
    page = _BLOCK * _layer_token(shape, tensor_parallel, value_bytes)
    kinds = Counter(shape.windows)
    few, many = min(kinds.values()), max(kinds.values())
    group = many if many < 1.5 * few else few
    blocks = 0
    for window, layers in kinds.items():
        held = math.ceil(tokens / _BLOCK)
        if window is not None:
            held = min(held, math.ceil(window / _BLOCK) + 1)
        blocks += math.ceil(layers / group) * held
    return blocks * group * page


def can_split(shape: Shape, gpus: int) -> bool:
    """Whether vLLM can give each of so many GPUs as many heads."""
    more, fewer = max(gpus, shape.kv_heads), min(gpus, shape.kv_heads)
    return shape.heads % gpus == 0 and more % fewer == 0


def serve(
    shape: Shape,
    *,
    tensor_parallel: int,
    gpu_bytes: int,
    tokens: int,
    weight_bytes: int,
    utilisation: float = UTILISATION,
) -> Serving:
    """A copy on ``tensor_parallel`` GPUs of ``gpu_bytes`` each, for sequences of ``tokens`` tokens.

    ``weight_bytes`` are those of the whole model, as it is loaded.
    """
    weights = math.ceil(weight_bytes / tensor_parallel)
    step = _step_bytes(shape, tensor_parallel, gpu_bytes)
    cache = max(0, int(utilisation * gpu_bytes) - weights - step - _OTHER)
    sequence = kv_bytes(shape, tokens, tensor_parallel)
    return Serving(
        tensor_parallel=tensor_parallel,
        weights=weights,
        step=step,
        other=_OTHER,
        cache=cache,
        sequence=sequence,
        sequences=cache // sequence,
    )


def most_sequences(gpu_bytes: int) -> int:
    """vLLM's own ``--max-num-seqs`` on such a GPU."""
    return MOST_SEQUENCES if gpu_bytes >= _BIG else MOST_SEQUENCES // 4


def _layer_token(shape: Shape, tensor_parallel: int, value_bytes: int) -> int:
    return 2 * max(1, shape.kv_heads // tensor_parallel) * shape.head_dim * value_bytes


def _step_bytes(shape: Shape, tensor_parallel: int, gpu_bytes: int) -> int:
    """A step at its widest, in 16 bits: the hidden state, its residual and norm, and an MLP's gate,
    up and product; then the logits of a token for each sequence."""
    if shape.experts:
        width = shape.experts_per_token * (3 * shape.expert_width // tensor_parallel + shape.hidden)
    else:
        width = 3 * shape.intermediate // tensor_parallel
    batched = _BATCHED if gpu_bytes >= _BIG else _BATCHED // 2
    return (
        2 * batched * (3 * shape.hidden + width) + _LOGIT * most_sequences(gpu_bytes) * shape.vocab
    )
