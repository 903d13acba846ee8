"""Plan training and sampling with a model: what fits on which GPUs, and how long rollouts take.

All is worked out from ``config.json`` and, where the weights lie there, from their headers: no GPU
is needed. Nothing is written.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.algo.memory import serving, training
from llmpipe.algo.memory.serving import Serving
from llmpipe.algo.memory.shape import Shape, read_shape
from llmpipe.algo.memory.training import Memory, Training
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model, read_config
from llmpipe.core.records import Rollout

GIB = 1 << 30
SPARE = 2 * GIB + GIB // 2
"""Of each GPU, beside what a training step holds: CUDA's context, NCCL, and what is fragmented."""

_WANTED_SEQUENCES = 32  # that a copy should have room for: fewer leave a GPU waiting for memory
_LARGEST_HEADER = 100_000_000  # bytes, as safetensors itself has it


@dataclass(frozen=True, kw_only=True)
class Config:
    """What to plan for. ``gpu_memory`` is in GiB: an "80 GB" card has 80 of them, or nearly.

    ``context`` is a training row's tokens, ``length`` those of a sampled sequence, its prompt
    included. ``rate`` is in tokens a second, of all GPUs; ``rollouts`` an artifact whose manifest
    has it instead, with how long its answers were.
    """

    model: str
    gpus: int = 1
    gpu_memory: float = 80
    context: int = 8192
    micro_batch: int = 1
    lora_rank: int = 16
    loss_chunk: int | None = None
    float32_gradients: bool = False
    length: int | None = None
    problems: int | None = None
    n: int = 8
    rate: float | None = None
    rollouts: Path | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """One way to train: its memory, the largest micro batch, the longest row of one."""

    training: Training
    memory: Memory
    fits: bool
    most_rows: int
    most_tokens: int


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How fast answers come: ``tokens_per_second`` of ``gpus``, ``tokens`` an answer."""

    tokens_per_second: float
    tokens: float
    gpus: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Hours:
    """How long rollouts take on ``gpus``."""

    samples: int
    tokens: int
    tokens_per_second: float
    hours: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """``weights`` says how the weights are kept, as bytes by type; empty where none lie there."""

    config: Config
    folder: Path
    shape: Shape
    weights: Mapping[str, int]
    trainings: tuple[TrainingPlan, ...]
    suggested: tuple[TrainingPlan, ...]
    servings: tuple[Serving, ...]
    serving: Serving | None
    max_num_seqs: int | None
    hours: Hours | None
    notes: tuple[str, ...]

    @property
    def kv_bytes_per_token(self) -> int:
        """Of all layers and heads, wherever they lie."""
        return serving.kv_bytes_per_token(self.shape)

    @property
    def copies(self) -> int:
        """How many copies of the model sample side by side, as suggested."""
        return self.config.gpus // self.serving.tensor_parallel if self.serving else 0


def run(config: Config) -> Plan:
    """Work it all out.

    Raises:
        UserError: no such model, one that can't be counted, figures out of range, or rollouts
            without what they are asked for.
    """
    _check(config)
    folder = find_model(config.model)
    raw = read_config(folder)
    shape = read_shape(raw)
    counts, weights = _read_headers(folder)
    notes = []
    quantised = "quantization_config" in raw
    if quantised:
        notes.append(
            "the weights are quantised: figures of training are those of the same model in 16 bits"
        )
    elif counts and (odd := _odd(shape, counts)):
        notes.append(odd)
    room = int(config.gpu_memory * GIB) - SPARE
    trainings = tuple(_train(shape, training, room) for training in _trainings(config))
    servings = tuple(_servings(config, shape, sum(weights.values()) if quantised else 0))
    chosen = _choose(servings)
    return Plan(
        config=config,
        folder=folder,
        shape=shape,
        weights=weights,
        trainings=trainings,
        suggested=tuple(_suggest(trainings)),
        servings=servings,
        serving=chosen,
        max_num_seqs=min(chosen.sequences, serving.most_sequences(int(config.gpu_memory * GIB)))
        if chosen
        else None,
        hours=_hours(config),
        notes=tuple(notes),
    )


def _check(config: Config) -> None:
    for name, value in (
        ("gpus", config.gpus),
        ("gpu-memory", config.gpu_memory),
        ("context", config.context),
        ("micro-batch", config.micro_batch),
        ("lora-rank", config.lora_rank),
        ("loss-chunk", config.loss_chunk),
        ("length", config.length),
        ("problems", config.problems),
        ("n", config.n),
        ("rate", config.rate),
    ):
        # Large figures are refused, too: a page of zeros is a slip.
        if value is not None and not 0 < value <= 1e12:
            raise UserError(
                f"--{name} is {value}, but must be over 0 and at most 1e12", "llmpipe plan --help"
            )
    for name, given in (("rate", config.rate), ("rollouts", config.rollouts)):
        if given is not None and config.problems is None:
            raise UserError(f"--{name} is of rollouts, but of how many?", "--problems 1000 -n 8")


def _read_headers(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Numbers of each tensor by its name, and bytes by type, as the headers say."""
    counts: dict[str, int] = {}
    weights: dict[str, int] = {}
    for file in sorted(folder.glob("*.safetensors")):
        if file.name.startswith(("consolidated", "adapter")):
            continue
        for name, entry in _tensors(file):
            counts[name] = math.prod(entry["shape"])
            start, end = entry["data_offsets"]
            weights[entry["dtype"]] = weights.get(entry["dtype"], 0) + end - start
    return counts, weights


def _tensors(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a file's header lists: 8 bytes with its length, then JSON."""
    try:
        with file.open("rb") as data:
            (length,) = struct.unpack("<Q", data.read(8))
            if length > _LARGEST_HEADER:
                raise ValueError("its header has no end")
            header = json.loads(data.read(length))
        tensors = [(name, entry) for name, entry in header.items() if name != "__metadata__"]
        for _, entry in tensors:
            entry["shape"], entry["dtype"], entry["data_offsets"]
    except (OSError, ValueError, struct.error, AttributeError, LookupError, TypeError) as e:
        raise UserError(f"{file} is damaged: {e}", "download the model again") from None
    yield from tensors


def _odd(shape: Shape, counts: Mapping[str, int]) -> str | None:
    """What is odd where the files hold other numbers than were counted."""
    tied = counts.get("lm_head.weight", 0) if shape.tied else 0  # saved a second time
    held = sum(counts.values()) - tied
    if held == shape.parameters:
        return None
    return (
        f"the files hold {held:,} numbers, not {shape.parameters:,}: weights are missing, or "
        "there is more in the model than its config tells"
    )


def _trainings(config: Config) -> Iterator[Training]:
    for method in ("full", "lora", "qlora"):
        for zero in range(4) if config.gpus > 1 else (0,):
            for checkpointing in (False, True):
                yield Training(
                    method=method,
                    zero=zero,
                    checkpointing=checkpointing,
                    gpus=config.gpus,
                    micro_batch=config.micro_batch,
                    context=config.context,
                    lora_rank=config.lora_rank,
                    gradient_bytes=4 if config.float32_gradients else 2,
                    loss_chunk=config.loss_chunk,
                )


def _train(shape: Shape, way: Training, room: int) -> TrainingPlan:
    memory = training.memory(shape, way)
    return TrainingPlan(
        training=way,
        memory=memory,
        fits=memory.total <= room,
        most_rows=training.most_rows(shape, way, room),
        most_tokens=training.most_tokens(shape, way, room),
    )


def _suggest(plans: tuple[TrainingPlan, ...]) -> Iterator[TrainingPlan]:
    """For each method the first that has room for a row: ZeRO costs traffic and checkpointing a
    third more time, so as little as possible of both, and checkpointing sooner than stage 3."""

    def cost(plan: TrainingPlan) -> tuple[bool, bool, int]:
        way = plan.training
        return (way.zero == 3, way.checkpointing, way.zero)

    for method in dict.fromkeys(plan.training.method for plan in plans):
        fitting = [p for p in plans if p.training.method == method and p.most_rows]
        if fitting:
            yield min(fitting, key=cost)


def _servings(config: Config, shape: Shape, loaded: int) -> Iterator[Serving]:
    gpus = 1
    while gpus <= config.gpus:
        if serving.can_split(shape, gpus):
            yield serving.serve(
                shape,
                tensor_parallel=gpus,
                gpu_bytes=int(config.gpu_memory * GIB),
                tokens=config.length or config.context,
                weight_bytes=loaded or 2 * shape.parameters,
            )
        gpus *= 2


def _choose(servings: tuple[Serving, ...]) -> Serving | None:
    """The fewest GPUs a copy that hold enough sequences; else those that hold most, if any do."""
    for way in servings:
        if way.sequences >= _WANTED_SEQUENCES:
            return way
    most = max(servings, key=lambda way: way.sequences, default=None)
    return most if most and most.sequences else None


def _hours(config: Config) -> Hours | None:
    if config.problems is None:
        return None
    rate = _rate(config)
    samples = config.problems * config.n
    tokens = round(samples * rate.tokens)
    speed = rate.tokens_per_second * config.gpus / rate.gpus
    return Hours(
        samples=samples,
        tokens=tokens,
        tokens_per_second=speed,
        hours=tokens / speed / 3600,
        source=rate.source,
    )


def _rate(config: Config) -> Rate:
    if config.rollouts is None:
        if config.rate is None or config.length is None:
            raise UserError(
                "how fast are rollouts?",
                f"llmpipe plan {config.model} --problems {config.problems} --rollouts DIR, or "
                "--rate TOKENS_PER_SECOND --length TOKENS",
            )
        return Rate(
            tokens_per_second=config.rate, tokens=config.length, gpus=config.gpus, source="--rate"
        )
    artifact = Artifact.open(config.rollouts, Rollout)
    figures = artifact.manifest.figures
    speed = config.rate or figures.get("tokens_per_second")
    tokens = config.length or figures.get("completion_tokens", 0) / max(1, artifact.rows)
    if not speed or not tokens:
        raise UserError(
            f"{config.rollouts} does not say how fast it was sampled",
            f"llmpipe plan {config.model} --rate TOKENS_PER_SECOND --length TOKENS",
        )
    engine = artifact.manifest.details.get("engine") or {}
    devices = engine.get("devices")
    gpus = sum(map(len, devices)) if devices else engine.get("tensor_parallel_size", 1)
    return Rate(
        tokens_per_second=speed,
        tokens=tokens,
        gpus=config.gpus if config.rate else gpus,
        source=str(config.rollouts),
    )
