"""The command that hands rows to trainers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llmpipe.cli.options import AsJson, DryRun, Force, Out, PromptTemplate, System
from llmpipe.cli.output import Stage


def register(app: typer.Typer) -> None:
    app.command("export", rich_help_panel="Training data")(export)


def export(
    rows: Annotated[Path, typer.Argument(help="Conversations, packed rows, pairs or problems.")],
    out: Out,
    to: Annotated[
        str,
        typer.Option(
            help="trl, trl-packed, llama-factory, ms-swift, axolotl, verl (RL), verl-sft, openrlhf "
            "or jsonl."
        ),
    ],
    system: System = None,
    prompt_template: PromptTemplate = None,
    force: Force = False,
    as_json: AsJson = False,
    dry_run: DryRun = False,
) -> None:
    """Write rows as a trainer reads them, with a README that says how to start it."""
    with Stage(force=force, as_json=as_json, dry_run=dry_run) as stage:
        from llmpipe.core.prompt_files import read_prompt_template
        from llmpipe.stages.export import Config, run

        config = Config(to=to, system=system, prompt_template=read_prompt_template(prompt_template))
        stage.finish(run(config, rows, out, stage.mode))
