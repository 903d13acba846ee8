"""A decoder's shape from its ``config.json``: each linear map, and so each parameter, counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llmpipe.core.errors import UserError


@dataclass(frozen=True, slots=True)
class _Family:
    """What a family's code fixes, or takes where its config doesn't say.

    ``norms`` are the norms of the hidden state in a layer; ``biases`` the names of linear maps that
    always have one. ``wide_norms`` scale in float32, as Gemma's do.
    """

    norms: int = 2
    biases: tuple[str, ...] = ()
    head_norms: bool = False
    wide_norms: bool = False
    head_dim: int | None = None
    tied: bool = False
    window: int | None = None
    every: int = 1  # of so many layers one is without window, where the layers have a window


FAMILIES: Mapping[str, _Family] = {
    "llama": _Family(),
    "mistral": _Family(window=4096),
    "mixtral": _Family(),
    "smollm3": _Family(tied=True),
    "qwen2": _Family(biases=("q_proj", "k_proj", "v_proj")),
    "qwen3": _Family(head_norms=True, head_dim=128),
    "qwen3_moe": _Family(head_norms=True),
    "gemma": _Family(wide_norms=True, head_dim=256, tied=True),
    "gemma2": _Family(norms=4, wide_norms=True, head_dim=256, tied=True, window=4096, every=2),
    "gemma3_text": _Family(
        norms=4, head_norms=True, wide_norms=True, head_dim=256, tied=True, window=4096, every=6
    ),
}
"""The ``model_type`` of each family that can be counted."""

_ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
_MLP = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear map, of which a layer has ``copies``: one for each expert."""

    name: str
    inputs: int
    outputs: int
    bias: bool = False
    copies: int = 1

    @property
    def weights(self) -> int:
        return self.copies * self.inputs * self.outputs

    @property
    def parameters(self) -> int:
        return self.weights + (self.copies * self.outputs if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A decoder-only transformer. ``windows`` has for each layer how far back its attention sees
    (None: all the way), ``sparse`` whether its MLP is one of experts.
    """

    family: str
    vocab: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    tied: bool
    norms: int
    head_norms: bool
    wide_norms: bool
    biases: tuple[str, ...]
    windows: tuple[int | None, ...]
    sparse: tuple[bool, ...]
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    capped_logits: bool = False

    @property
    def layers(self) -> int:
        return len(self.windows)

    @property
    def query_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    def linears(self, *, sparse: bool) -> list[Linear]:
        """The linear maps of a layer, without the router of experts."""
        width, copies = (self.expert_width, self.experts) if sparse else (self.intermediate, 1)
        sizes = {
            "q_proj": (self.hidden, self.query_width, 1),
            "k_proj": (self.hidden, self.kv_width, 1),
            "v_proj": (self.hidden, self.kv_width, 1),
            "o_proj": (self.query_width, self.hidden, 1),
            "gate_proj": (self.hidden, width, copies),
            "up_proj": (self.hidden, width, copies),
            "down_proj": (width, self.hidden, copies),
        }
        return [
            Linear(name, inputs, outputs, name in self.biases, copies)
            for name, (inputs, outputs, copies) in sizes.items()
        ]

    def layer_parameters(self, *, sparse: bool) -> int:
        """All parameters of a layer."""
        router = self.hidden * self.experts if sparse else 0
        head_norms = 2 * self.head_dim if self.head_norms else 0
        linears = sum(linear.parameters for linear in self.linears(sparse=sparse))
        return linears + router + self.norms * self.hidden + head_norms

    @cached_property
    def embedding(self) -> int:
        """Parameters of the embedding, and as many of the head that is not tied to it."""
        return self.vocab * self.hidden

    @cached_property
    def parameters(self) -> int:
        """All parameters, exactly as transformers' model has them; tied ones once."""
        layers = sum(self.layer_parameters(sparse=sparse) for sparse in self.sparse)
        return layers + self.hidden + self.embedding * (1 if self.tied else 2)

    @cached_property
    def active_parameters(self) -> int:
        """The parameters that one token meets: of the experts, those it is sent to."""
        expert = 3 * self.hidden * self.expert_width
        idle = sum(self.sparse) * (self.experts - self.experts_per_token) * expert
        return self.parameters - idle

    @cached_property
    def linear_weights(self) -> int:
        """Weights of the layers' linear maps: what QLoRA keeps in 4 bits."""
        return sum(
            linear.weights for sparse in self.sparse for linear in self.linears(sparse=sparse)
        )


def read_shape(config: Mapping[str, Any]) -> Shape:
    """The shape of the model that a ``config.json`` describes.

    Raises:
        UserError: a family that is not in `FAMILIES`, or a size that is missing or no whole number.
    """
    family = FAMILIES.get(name := str(config.get("model_type")))
    if family is None:
        raise UserError(
            f"a model of the type {name!r} can't be counted", f"known are {', '.join(FAMILIES)}"
        )
    hidden, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    layers = _size(config, "num_hidden_layers")
    experts = 0
    sparse = (False,) * layers
    if "moe" in name or name == "mixtral":
        experts = _size(config, "num_local_experts" if name == "mixtral" else "num_experts")
        step = config.get("decoder_sparse_step") or 1
        dense = config.get("mlp_only_layers") or ()
        sparse = tuple(i not in dense and (i + 1) % step == 0 for i in range(layers))
    return Shape(
        family=name,
        vocab=_size(config, "vocab_size"),
        hidden=hidden,
        intermediate=_size(config, "intermediate_size"),
        heads=heads,
        kv_heads=_size(config, "num_key_value_heads", heads),
        head_dim=_size(config, "head_dim", family.head_dim or hidden // heads),
        tied=bool(config.get("tie_word_embeddings", family.tied)),
        norms=family.norms,
        head_norms=family.head_norms,
        wide_norms=family.wide_norms,
        biases=(
            *family.biases,
            *(_ATTENTION if config.get("attention_bias") and not family.biases else ()),
            *(_MLP if config.get("mlp_bias") else ()),
        ),
        windows=_windows(config, family, layers),
        sparse=sparse,
        experts=experts,
        experts_per_token=_size(config, "num_experts_per_tok") if experts else 0,
        expert_width=_size(config, "moe_intermediate_size", _size(config, "intermediate_size"))
        if experts
        else 0,
        capped_logits=bool(config.get("final_logit_softcapping", name == "gemma2")),
    )


def _windows(config: Mapping[str, Any], family: _Family, layers: int) -> tuple[int | None, ...]:
    window = config.get("sliding_window", family.window)
    if not window or config.get("use_sliding_window", True) is False:
        return (None,) * layers
    types = config.get("layer_types")
    if types is None:
        every = config.get("sliding_window_pattern") or family.every
        first = config.get("max_window_layers", 0) if family.window is None else 0
        types = [
            "full_attention"
            if i < first or (every > 1 and (i + 1) % every == 0)
            else "sliding_attention"
            for i in range(layers)
        ]
    if not isinstance(types, list) or len(types) != layers:
        raise UserError(
            f"layer_types in config.json are not {layers}", "compare it with the model's own"
        )
    return tuple(int(window) if kind == "sliding_attention" else None for kind in types)


def _size(config: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = config.get(name)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(
            f"{name} in config.json is {value!r}, but must be a whole number of at least 1",
            "compare it with the model's own config.json",
        )
    return value
