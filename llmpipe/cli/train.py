"""``llmpipe train``: a model trained on packed rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from llmpipe.cli.options import AsJson, DryRun, Force, Model, Out, Seed, Track
from llmpipe.cli.output import Stage


def train(
    packed: Annotated[Path, typer.Argument(help="Packed rows.")],
    out: Out,
    model: Model,
    epochs: Annotated[float, typer.Option(help="How often each row is learnt.")] = 2.0,
    max_steps: Annotated[
        int | None, typer.Option(help="End after so many optimizer steps, in place of --epochs.")
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            help="The highest, after the warm-up.", show_default="1e-5; of an adapter 1e-4"
        ),
    ] = None,
    warmup_ratio: Annotated[
        float, typer.Option(help="The share of steps in which it rises; then it falls in a cosine.")
    ] = 0.03,
    weight_decay: Annotated[float, typer.Option(help="AdamW's.")] = 0.0,
    max_grad_norm: Annotated[
        float, typer.Option(help="Longer gradients are cut to it; with 0, none are.")
    ] = 1.0,
    micro_batch_size: Annotated[int, typer.Option(help="Rows at a time.")] = 1,
    gradient_accumulation: Annotated[
        int, typer.Option(help="How many times as many rows make an optimizer step.")
    ] = 8,
    dtype: Annotated[
        Literal["bfloat16", "float32"],
        typer.Option(help="What is computed in; all weights are trained in float32."),
    ] = "bfloat16",
    gradient_checkpointing: Annotated[
        bool, typer.Option(help="Compute activations twice rather than keep them.")
    ] = True,
    lora_rank: Annotated[
        int | None, typer.Option(help="Train an adapter of this rank, not all weights.")
    ] = None,
    lora_alpha: Annotated[
        float | None, typer.Option(help="Its scale, times the rank.", show_default="twice the rank")
    ] = None,
    lora_dropout: Annotated[
        float | None, typer.Option(help="The dropout before it.", show_default="0")
    ] = None,
    lora_targets: Annotated[
        str | None,
        typer.Option(help="The linear maps that get one: q_proj,v_proj.", show_default="all"),
    ] = None,
    lora_kind: Annotated[
        Literal["lora", "qlora", "dora", "adalora"] | None,
        typer.Option(help="qlora: on weights of four bits.", show_default="lora"),
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge/--adapter", help="Write whole weights, or the adapter alone.")
    ] = True,
    eval_share: Annotated[
        float, typer.Option(help="The share of rows held out, for a loss on what isn't learnt.")
    ] = 0.0,
    save_every: Annotated[int, typer.Option(help="Steps between checkpoints.")] = 500,
    accelerate_config: Annotated[
        Path | None,
        typer.Option(
            help="What `accelerate config` wrote: train on several GPUs, by FSDP or ZeRO too."
        ),
    ] = None,
    seed: Seed = 0,
    track: Track = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Fine-tune a model on packed rows. Killed, it goes on from its last checkpoint.

    OUT is a model folder, which rollout and eval take as --model.
    """
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.core.paths import find_model
        from llmpipe.stages.train import plan, run

        config = plan(
            epochs=epochs,
            max_steps=max_steps,
            learning_rate=learning_rate,
            warmup_ratio=warmup_ratio,
            weight_decay=weight_decay,
            max_grad_norm=max_grad_norm,
            micro_batch_size=micro_batch_size,
            gradient_accumulation=gradient_accumulation,
            dtype=dtype,
            gradient_checkpointing=gradient_checkpointing,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            lora_dropout=lora_dropout,
            lora_targets=lora_targets,
            lora_kind=lora_kind,
            merge=merge,
            eval_share=eval_share,
            save_every=save_every,
            accelerate_config=accelerate_config,
            seed=seed,
        )
        stage.track(track, job="train", out=out, config=config)
        stage.finish(run(config, packed, find_model(model), out, stage.mode))
