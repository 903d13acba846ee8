"""What a training step holds on a GPU: weights, gradients, optimizer, activations, logits.

Model states are those of ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1): in 16-bit
training with Adam a parameter has 2 bytes of weight, 2 of gradient, and 12 of master weight and
moments in float32. Stage 1 shares out the last of these among the GPUs, stage 2 the gradients too,
stage 3 everything.

Activations are counted as in Korthikanti et al. 2022 (arXiv:2205.05198, section 4), operation by
operation, of what transformers' modules keep for the backward pass: RMSNorm in float32, fewer heads
for keys and values, a gated MLP, no dropout, and attention without its matrix of scores (SDPA,
FlashAttention). With checkpointing a layer keeps its input only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from llmpipe.algo.memory.shape import Linear, Shape

Method = Literal["full", "lora", "qlora"]

NF4_BITS = 4 + 8 / 64 + 32 / (64 * 256)
"""Bits of a 4-bit weight with its doubly quantised constants: one of 8 bits for 64 weights, and one
of 32 for 256 of these (Dettmers et al. 2023, arXiv:2305.14314, section 3)."""

_FLOAT = 4
_STATES = 3 * _FLOAT  # of a parameter that is trained: master weight, two moments


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a model is trained, in 16 bits with Adam.

    ``micro_batch`` rows of ``context`` tokens are in a GPU's step. LoRA adapts all linear maps of
    the layers, with matrices that are trained in float32 (PEFT's own choice). ``gradient_bytes`` is
    4 where gradients are summed in float32. ``loss_chunk`` is of how many tokens a chunked loss has
    the logits at once; without, it has all. ``value_bytes`` is 4 in training without 16 bits.
    """

    method: Method = "full"
    zero: int = 0
    checkpointing: bool = False
    gpus: int = 1
    micro_batch: int = 1
    context: int = 8192
    lora_rank: int = 16
    gradient_bytes: int = 2
    loss_chunk: int | None = None
    value_bytes: int = 2

    @property
    def tokens(self) -> int:
        return self.micro_batch * self.context


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on one GPU. ``activations`` are what the forward pass keeps; ``logits`` what its end
    adds to them, or a later moment of the backward pass that takes more; ``working`` is what comes
    and goes: gathered or unpacked weights.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    working: int

    @property
    def total(self) -> int:
        """All at once, as it is when the backward pass begins and gradients are accumulated."""
        return (
            self.weights
            + self.gradients
            + self.optimizer
            + self.activations
            + self.logits
            + self.working
        )


def lora_parameters(shape: Shape, rank: int) -> int:
    """Parameters of adapters of this rank on all linear maps of the layers."""
    return sum(
        linear.copies * rank * (linear.inputs + linear.outputs)
        for sparse in shape.sparse
        for linear in shape.linears(sparse=sparse)
    )


def memory(shape: Shape, training: Training) -> Memory:
    """What a GPU holds when a step needs most."""
    width = training.value_bytes
    adapters = lora_parameters(shape, training.lora_rank) if training.method != "full" else 0
    trained = adapters or shape.parameters
    frozen = _frozen_bytes(shape, training)
    trained_bytes = _FLOAT if adapters else width
    gradient_bytes = _FLOAT if adapters else training.gradient_bytes
    # Trained in float32, a weight is its own master copy.
    state_bytes = _STATES - (_FLOAT if trained_bytes == _FLOAT else 0)

    def share(count: float, stage: int) -> int:
        return math.ceil(count / training.gpus if training.zero >= stage else count)

    layers = [
        _activation_bytes(shape, training, sparse=sparse) * training.tokens
        for sparse in shape.sparse
    ]
    last = _last_bytes(shape, training) * training.tokens
    activations = last + sum(layers)
    if training.checkpointing:
        activations = last + shape.layers * width * shape.hidden * training.tokens
    return Memory(
        weights=share(frozen + trained_bytes * trained, 3),
        gradients=share(gradient_bytes * trained, 2),
        optimizer=share(state_bytes * trained, 1),
        activations=activations,
        logits=_loss_bytes(shape, training, activations, max(layers)),
        working=_working_bytes(shape, training),
    )


def most_rows(shape: Shape, training: Training, room: int) -> int:
    """The largest micro batch whose step is within ``room`` bytes; 0 where none is."""
    return _largest(lambda n: memory(shape, replace(training, micro_batch=n)).total <= room)


def most_tokens(shape: Shape, training: Training, room: int) -> int:
    """The longest row, as many of them as the micro batch says, within ``room`` bytes."""
    return _largest(lambda n: memory(shape, replace(training, context=n)).total <= room)


def _largest(fits: Callable[[int], bool]) -> int:
    """The largest whole number that fits, where all smaller ones do."""
    if not fits(1):
        return 0
    high = 2
    while fits(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _frozen_bytes(shape: Shape, training: Training) -> float:
    if training.method == "full":
        return 0
    linear = NF4_BITS / 8 if training.method == "qlora" else training.value_bytes
    rest = shape.parameters - shape.linear_weights
    return linear * shape.linear_weights + training.value_bytes * rest


def _activation_bytes(shape: Shape, training: Training, *, sparse: bool) -> int:
    """Bytes of a token that a layer keeps for its backward pass."""
    width, full = training.value_bytes, training.method == "full"
    linears = {linear.name: linear for linear in shape.linears(sparse=sparse)}
    query, kv = shape.query_width, shape.kv_width
    scale = _FLOAT if shape.wide_norms else width
    # A norm keeps its input in float32 and, where it is trained, what it scales.
    kept = _FLOAT + (scale if full else 0)
    norms = kept * (shape.norms * shape.hidden + (query + kv if shape.head_norms else 0))
    # Attention keeps queries, keys, values, its output and, of each head, a sum in float32.
    attention = width * (2 * query + 2 * kv) + _FLOAT * shape.heads
    experts = shape.experts_per_token if sparse else 1
    mlp = width * 3 * experts * (shape.expert_width if sparse else shape.intermediate)
    if sparse:  # what each expert is given and returns, and the router's choice
        mlp += width * 2 * experts * shape.hidden + 2 * _FLOAT * shape.experts
    if full:
        # Linear maps keep their input: two norms' outputs, and what the MLP's other half makes.
        inputs = 2 * shape.hidden + linears["down_proj"].inputs * experts
        return norms + attention + mlp + width * inputs
    return (
        norms
        + attention
        + mlp
        + width
        * sum(_adapter_inputs(linear, training.lora_rank, experts) for linear in linears.values())
    )


def _adapter_inputs(linear: Linear, rank: int, experts: int) -> int:
    """Numbers of a token that an adapter keeps: its input (in a copy) and what is between its two
    matrices."""
    return (linear.inputs + rank) * (experts if linear.copies > 1 else 1)


def _last_bytes(shape: Shape, training: Training) -> int:
    """Bytes of a token that the last norm and the head keep."""
    kept = _FLOAT + (_FLOAT if shape.wide_norms else training.value_bytes)
    return (kept + training.value_bytes) * shape.hidden


def _loss_bytes(shape: Shape, training: Training, activations: int, layer: int) -> int:
    """What a step has at most beside its activations, of three moments.

    When the logits' gradient is made, there are they, their log-probabilities in float32, and the
    gradients of these and of the float32 logits. When a layer is run again, there are what it
    keeps, the logits (the model's output, which a trainer may hold), and the head's gradient if the
    embedding, with which it is summed up, is the same. When that comes in the end, activations are
    gone, and there are both gradients and their sum.
    """
    width = training.value_bytes
    chunked = training.loss_chunk is not None and training.loss_chunk < training.tokens
    tokens = training.loss_chunk if chunked and training.loss_chunk else training.tokens
    logits = width * shape.vocab * tokens
    made = (3 * _FLOAT * shape.vocab * tokens) + logits * (2 if shape.capped_logits else 1)
    held = 0 if chunked else logits
    gradient = width * shape.embedding if training.method == "full" else 0
    again = held + (gradient if shape.tied else 0) + (layer if training.checkpointing else 0)
    end = held + gradient * (3 if shape.tied else 1) - activations
    return max(made, again, end)


def _working_bytes(shape: Shape, training: Training) -> int:
    """ZeRO 3 has two layers whole, one in use and one on its way, or the embedding; QLoRA unpacks
    its largest linear map."""
    largest = max(shape.layer_parameters(sparse=sparse) for sparse in set(shape.sparse))
    held = 0.0
    if training.zero == 3 and training.gpus > 1:
        layer = NF4_BITS / 8 if training.method == "qlora" else training.value_bytes
        held = max(2 * layer * largest, training.value_bytes * shape.embedding)
    if training.method == "qlora":
        maps = (linear for sparse in set(shape.sparse) for linear in shape.linears(sparse=sparse))
        held += training.value_bytes * max(linear.inputs * linear.outputs for linear in maps)
    return math.ceil(held)
