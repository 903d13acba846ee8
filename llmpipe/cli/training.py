"""Commands that make training data, and train on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from llmpipe.cli.build_sft import build_sft
from llmpipe.cli.options import AsJson, DryRun, Force, Out, Seed
from llmpipe.cli.output import Stage
from llmpipe.cli.train import train

_PANEL = "Training data"


def register(app: typer.Typer) -> None:
    app.command("build-sft", rich_help_panel=_PANEL)(build_sft)
    app.command("pack", rich_help_panel=_PANEL)(pack)
    app.command("train", rich_help_panel=_PANEL)(train)


def pack(
    conversations: Annotated[list[Path], typer.Argument(help="Conversations.")],
    out: Out,
    tokenizer: Annotated[str, typer.Option(help="The folder or id of the model to be trained.")],
    max_length: Annotated[int, typer.Option(help="The most tokens in a row.")] = 8192,
    overlong: Annotated[
        Literal["drop", "truncate", "split"],
        typer.Option(help="What is done with a longer conversation; truncated, it loses its end."),
    ] = "drop",
    pad_to_multiple_of: Annotated[
        int, typer.Option(help="Pad rows to a multiple of so many tokens.")
    ] = 1,
    sequence_parallel: Annotated[
        int, typer.Option(help="Ranks that share a row: it is padded so that each gets as much.")
    ] = 1,
    shard_rows: Annotated[
        int | None, typer.Option(help="Rows in a file (by default, half a gigabyte).")
    ] = None,
    loss_weights: Annotated[
        bool, typer.Option("--loss-weights", help="Weigh tokens, so that each turn counts as much.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="See on the model that a row's parts don't mix.")
    ] = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Tokenise, mask and pack conversations into rows of one length."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.core.paths import find_model
        from llmpipe.stages import pack

        config = pack.Config(
            max_length=max_length,
            seed=seed,
            overlong=overlong,
            pad_to_multiple_of=pad_to_multiple_of,
            sequence_parallel=sequence_parallel,
            shard_rows=shard_rows,
            loss_weights=loss_weights,
        )
        model = find_model(tokenizer)
        result = pack.run(config, conversations, model, out, stage.mode)
        stage.finish(pack.check(result, model) if check and not dry_run else result)
