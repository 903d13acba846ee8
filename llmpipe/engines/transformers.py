"""Plain batched ``generate`` of transformers, for machines where vLLM can't be installed."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from llmpipe.algo.prompts import PromptError, Prompts, load_tokenizer
from llmpipe.core.errors import UserError
from llmpipe.core.libraries import needs
from llmpipe.core.options import check_names, parse_options
from llmpipe.core.paths import context_length, find_model
from llmpipe.core.protocols import Generation, Request, Sampling
from llmpipe.core.records import PackedRow
from llmpipe.engines._context import check_room

_HINT = "pip install torch accelerate"
_WEIGHTS = ("*.safetensors", "*.bin")
_OPTIONS = {"batch_size": 16, "device": None, "dtype": "auto", "trust_remote_code": False}


@dataclass(frozen=True, slots=True)
class _Prompt:
    request: Request
    ids: Sequence[int]
    room: int
    """Tokens that its answer may have."""


class TransformersEngine:
    """A causal model in transformers. Samples of a batch share a seed: ``generate`` takes one."""

    local_model: ClassVar[bool] = True
    wraps: ClassVar[bool] = False
    speed_options: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})

    @classmethod
    def check(cls, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Whether there is room for a prompt in the model's context."""
        check_room(sampling.max_tokens, context_length(find_model(model)))
        if sampling.logprobs:
            raise UserError("the transformers engine keeps no logprobs", "--engine vllm")

    @classmethod
    def gpus_each(cls, options: Mapping[str, str]) -> int:
        return 1

    def __init__(self, model: str, sampling: Sampling, options: Mapping[str, str]) -> None:
        """Load the model, on the GPU where there is one.

        Raises:
            UserError: no torch, no such model, an unknown option, or the model can't be loaded.
        """
        given = {**_OPTIONS, **parse_options(options, _OPTIONS, "the transformers engine")}
        if not isinstance(given["batch_size"], int) or given["batch_size"] < 1:
            raise UserError(f"batch_size is {given['batch_size']!r}", "--engine-arg batch_size=16")
        folder = find_model(model)
        trust = bool(given["trust_remote_code"])
        tokenizer = load_tokenizer(folder, trust_remote_code=trust)
        self._torch, self._model = _load(folder, given["device"], given["dtype"], trust)
        self._tokenizer = tokenizer
        self._name = model
        self._batch_size = given["batch_size"]
        self._max_tokens = sampling.max_tokens
        limit = self._model.config.get_text_config().max_position_embeddings
        self._context = int(limit)
        self._prompts = Prompts(
            tokenizer,
            self._context,
            template=sampling.chat_template,
            template_kwargs=sampling.chat_template_kwargs,
        )
        self._seeds = sampling.seeds
        self._stops = _stop_ids(self._model, tokenizer)
        self._model.generation_config = _generation_config(sampling, self._stops)

    @classmethod
    def check_packed(cls, folder: Path, rows: Sequence[PackedRow]) -> Mapping[str, Any]:
        """Whether the segments of ``rows`` have the logits that they have alone.

        It is asked in float32, in which equal is equal: see `_packed.compare` for the figures.

        Raises:
            UserError: no torch, or the folder has no weights that can be loaded.
        """
        from llmpipe.engines._packed import compare

        if not any(file for pattern in _WEIGHTS for file in folder.glob(pattern)):
            raise UserError(
                f"{folder} has a tokenizer, but no weights to check the rows with",
                "leave out --check, or llmpipe download ORG/NAME gets the model",
            )
        torch, model = _load(folder, None, "float32", False)
        return {**compare(torch, model, rows), "device": model.device.type}

    @property
    def seats(self) -> int:
        return int(self._batch_size)

    def describe(self) -> Mapping[str, Any]:
        return {
            "engine": "transformers",
            "model": self._name,
            "versions": {n: importlib.metadata.version(n) for n in ("transformers", "torch")},
            "device": self._model.device.type,
            "dtype": str(self._model.dtype).removeprefix("torch."),
            "max_model_len": self._context,
            "batch_size": self._batch_size,
            "seeds": "per batch: the seed of its first sample; the others' are not used"
            if self._seeds
            else "none",
            **self._prompts.describe(),
        }

    def stream(self, requests: Iterable[Request]) -> Iterator[Generation]:
        """Answers batch by batch. A prompt that is too long is an answer with an error."""
        batch: list[_Prompt] = []
        for request in requests:
            try:
                ids = self._prompts.token_ids(request.messages)
            except PromptError as e:
                yield Generation(request=request, text="", finish_reason="error", error=str(e))
                continue
            room = min(self._max_tokens, self._context - len(ids))
            prompt = _Prompt(request, ids, room)
            if room < self._max_tokens:  # alone, so that it shortens nobody else's answer
                yield from self._generate([prompt])
                continue
            batch.append(prompt)
            if len(batch) == self._batch_size:
                yield from self._generate(batch)
                batch = []
        if batch:
            yield from self._generate(batch)

    def close(self) -> None:
        """Free the model."""
        del self._model
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()

    def _generate(self, batch: Sequence[_Prompt]) -> Iterator[Generation]:
        torch = self._torch
        width = max(len(p.ids) for p in batch)
        pads = [width - len(p.ids) for p in batch]
        device = self._model.device
        ids = [[self._stops[0]] * pad + [*p.ids] for pad, p in zip(pads, batch, strict=True)]
        mask = [[0] * pad + [1] * (width - pad) for pad in pads]
        if self._seeds:
            torch.manual_seed(batch[0].request.seed)
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=torch.tensor(ids, device=device),
                attention_mask=torch.tensor(mask, device=device),
                max_new_tokens=batch[0].room,
            )
        for prompt, row in zip(batch, output[:, width:].tolist(), strict=True):
            yield self._generation(prompt, row)

    def _generation(self, prompt: _Prompt, tokens: Sequence[int]) -> Generation:
        """Cut the answer at its end: the rows of a batch are padded to the longest."""
        end = next((i for i, token in enumerate(tokens) if token in self._stops), None)
        kept = tokens if end is None else tokens[: end + 1]
        return Generation(
            request=prompt.request,
            text=self._tokenizer.decode(kept, skip_special_tokens=True),
            finish_reason="length" if end is None else "stop",
            prompt_tokens=len(prompt.ids),
            completion_tokens=len(kept),
        )


ENGINE = TransformersEngine


def _load(folder: Path, device: Any, dtype: Any, trust: bool) -> tuple[Any, Any]:
    """Torch, and the model in ``folder`` on ``device``: by default the GPU, where there is one."""
    # Threads that spin while they wait stall each other on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with needs("torch", _HINT):
        import torch
        from transformers import AutoModelForCausalLM

        try:
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, local_files_only=True, trust_remote_code=trust
            )
            model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
        except Exception as e:  # a damaged file raises what its reader likes
            reason = (str(e) or type(e).__name__).splitlines()[0]
            raise UserError(
                f"transformers can't load {folder}: {reason}",
                "download the model again, or use another",
            ) from e
    return torch, model


def _stop_ids(model: Any, tokenizer: Any) -> list[int]:
    """The tokens that end an answer: the tokenizer's end, and those on the model's own list."""
    own = model.generation_config.eos_token_id
    stops = {tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])} - {None}
    if not stops:
        raise UserError(
            "neither the model nor its tokenizer says which token ends an answer",
            "set eos_token_id in the model's generation_config.json",
        )
    return sorted(stops)


def _generation_config(sampling: Sampling, stops: Sequence[int]) -> Any:
    """Ours alone: a model's own may carry a top-k or a repetition penalty that nobody asked for."""
    from transformers import GenerationConfig

    known = set(vars(GenerationConfig())) - {"temperature", "top_p", "max_new_tokens", "max_length"}
    check_names(sampling.extra, known, "transformers' sampling")
    draw: dict[str, Any] = {"do_sample": False}
    if sampling.temperature > 0:
        draw = {
            "do_sample": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": 0,
        }
    ends = {"eos_token_id": list(stops), "pad_token_id": stops[0]}
    return GenerationConfig(**{**draw, **sampling.extra, **ends})
