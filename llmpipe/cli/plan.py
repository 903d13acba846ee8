"""The command that says what fits on which GPUs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llmpipe.cli.options import AsJson

if TYPE_CHECKING:
    from llmpipe.stages.plan import Plan, TrainingPlan

_GIB = 1 << 30
_METHODS = {"full": "full", "lora": "LoRA", "qlora": "QLoRA"}


def register(app: typer.Typer) -> None:
    app.command("plan", rich_help_panel="Project")(plan)


def plan(
    model: Annotated[str, typer.Argument(help="A model's folder, or its hub id once downloaded.")],
    gpus: Annotated[int, typer.Option(help="How many GPUs there are.")] = 1,
    gpu_memory: Annotated[
        float, typer.Option(help="Memory of each in GiB: 80 for a card sold as 80 GB.")
    ] = 80,
    context: Annotated[int, typer.Option(help="Tokens of a training row.")] = 8192,
    micro_batch: Annotated[int, typer.Option(help="Rows in a GPU's step.")] = 1,
    lora_rank: Annotated[int, typer.Option(help="Rank of LoRA's adapters, on all layers.")] = 16,
    loss_chunk: Annotated[
        int | None, typer.Option(help="Tokens whose logits a chunked loss has at once.")
    ] = None,
    float32_gradients: Annotated[
        bool, typer.Option("--float32-gradients", help="Gradients are summed in float32.")
    ] = False,
    length: Annotated[
        int | None,
        typer.Option(help="Tokens of a sampled sequence; by default those of a row."),
    ] = None,
    problems: Annotated[
        int | None, typer.Option(help="Say how long rollouts of so many problems take.")
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", help="Samples for each problem.")] = 8,
    rate: Annotated[
        float | None, typer.Option(help="Tokens a second that all GPUs sample together.")
    ] = None,
    rollouts: Annotated[
        Path | None,
        typer.Option(help="Rollouts that tell the rate and the length, from a smaller run."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what fits on which GPUs: training, sampling, and how long rollouts take."""
    from llmpipe.stages.plan import Config, run

    made = run(
        Config(
            model=model,
            gpus=gpus,
            gpu_memory=gpu_memory,
            context=context,
            micro_batch=micro_batch,
            lora_rank=lora_rank,
            loss_chunk=loss_chunk,
            float32_gradients=float32_gradients,
            length=length,
            problems=problems,
            n=n,
            rate=rate,
            rollouts=rollouts,
        )
    )
    if as_json:
        typer.echo(json.dumps(_as_json(made), ensure_ascii=False))
    else:
        _print(made)


def _as_json(made: Plan) -> dict[str, Any]:
    """All figures; memory in bytes of one GPU."""
    shape = made.shape
    return {
        "model": str(made.folder),
        "family": shape.family,
        "parameters": shape.parameters,
        "active_parameters": shape.active_parameters,
        "weight_bytes": dict(made.weights),
        "kv_bytes_per_token": made.kv_bytes_per_token,
        "training": [_way(way) for way in made.trainings],
        "suggested_training": [_way(way) for way in made.suggested],
        "serving": [asdict(way) for way in made.servings],
        "suggested_serving": made.serving
        and {
            "tensor_parallel_size": made.serving.tensor_parallel,
            "copies": made.copies,
            "max_num_seqs": made.max_num_seqs,
        },
        "rollouts": made.hours and asdict(made.hours),
        "notes": list(made.notes),
    }


def _way(way: TrainingPlan) -> dict[str, Any]:
    return {
        **asdict(way.training),
        "bytes": {**asdict(way.memory), "total": way.memory.total},
        "fits": way.fits,
        "most_rows": way.most_rows,
        "most_tokens": way.most_tokens,
    }


def _print(made: Plan) -> None:
    from rich.console import Console

    console = Console()
    shape, config = made.shape, made.config
    active = f", {shape.active_parameters:,} active" if shape.experts else ""
    held = ", ".join(f"{_gib(size)} GiB as {kind}" for kind, size in made.weights.items())

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, markup=False, highlight=False)

    say(f"{made.folder}: {shape.parameters:,} parameters{active}; weights {held or 'not here'}")
    for note in made.notes:
        say(f"Note: {note}")
    rows = "1 row" if config.micro_batch == 1 else f"{config.micro_batch} rows"
    say(
        f"\nTraining, {rows} of {config.context:,} tokens a step on each of {config.gpus} GPUs of "
        f"{config.gpu_memory:g} GiB, without and with checkpointing:\n"
        "GiB of weights, gradients, Adam, activations with logits, and in all; how many rows fit"
    )
    console.print(_training_table(made.trainings))
    for way in made.suggested:
        say(f"Suggested, {_said(way)}")
    fitting = {way.training.method for way in made.suggested}
    if missing := [name for method, name in _METHODS.items() if method not in fitting]:
        say(f"Not one row fits, {', '.join(missing)}: try more GPUs, --context, --loss-chunk")
    tokens = config.length or config.context
    say(
        f"\nvLLM, {made.kv_bytes_per_token:,} bytes of KV cache a token, "
        f"sequences of {tokens:,} tokens: GiB on each GPU"
    )
    console.print(_serving_table(made))
    if made.serving:
        say(
            f"Suggested: --gpus all --tensor-parallel-size {made.serving.tensor_parallel} "
            f"--engine-arg max_num_seqs={made.max_num_seqs} "
            f"({made.copies} {'copy' if made.copies == 1 else 'copies'} of the model)"
        )
    else:
        say("No sequence fits: use more GPUs, or a shorter --length.")
    if hours := made.hours:
        say(
            f"\nRollouts: {hours.samples:,} samples, {hours.tokens:,} tokens at "
            f"{hours.tokens_per_second:,.0f} a second ({hours.source}): {hours.hours:,.1f} hours"
        )


def _said(way: TrainingPlan) -> str:
    training = way.training
    words = [f"ZeRO {training.zero}"] if training.gpus > 1 else []
    words.append(f"checkpointing {'on' if training.checkpointing else 'off'}")
    return (
        f"{_METHODS[training.method]}: {', '.join(words)}, micro batch {way.most_rows} at most "
        f"(or one row of {way.most_tokens:,} tokens)"
    )


def _training_table(ways: Sequence[TrainingPlan]) -> Any:
    """A line for a method and a stage of ZeRO, without checkpointing and with it."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("\nMethod", "\nZeRO", "\nWeights", "\nGrads", "\nAdam"):
        table.add_column(name, justify="left" if name == "\nMethod" else "right")
    for kind in ("Plain", "Ckpt"):
        for name in ("acts", "total", "rows"):
            table.add_column(f"{kind}\n{name}", justify="right")
    for plain, checkpointed in zip(ways[::2], ways[1::2], strict=True):
        training, memory = plain.training, plain.memory
        if training.zero == 0 and training.method != "full":
            table.add_section()
        cells = [
            _METHODS[training.method],
            str(training.zero),
            _gib(memory.weights + memory.working),
            _gib(memory.gradients),
            _gib(memory.optimizer),
        ]
        for way in (plain, checkpointed):
            cells += [
                _gib(way.memory.activations + way.memory.logits),
                _gib(way.memory.total),
                str(way.most_rows or "-"),
            ]
        table.add_row(*cells)
    return table


def _serving_table(made: Plan) -> Any:
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("GPUs a copy", "Weights", "A step", "CUDA", "KV cache", "A sequence", "Sequences"):
        table.add_column(name, justify="right")
    for way in made.servings:
        table.add_row(
            str(way.tensor_parallel),
            *map(_gib, (way.weights, way.step, way.other, way.cache, way.sequence)),
            str(way.sequences or "-"),
        )
    return table


def _gib(count: int) -> str:
    value = count / _GIB
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
