"""The command that compares evals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from llmpipe.cli.options import AsJson
from llmpipe.cli.reporting import write_report


def register(app: typer.Typer) -> None:
    app.command("compare", rich_help_panel="Answers")(compare)


def compare(
    evals: Annotated[
        list[str],
        typer.Argument(help="Folders of evals; runs of one model with other seeds as A1,A2."),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="pass@8, pass^8, maj@8, avg@n or coverage, not all in common; may be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder for a report with all of them overlaid."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare evals problem by problem: differences with intervals, who wins, what else differs."""
    from llmpipe.cli.scores import say_comparison
    from llmpipe.stages.compare import Config, run

    sides = [_side(text) for text in evals]
    found = run(Config(metrics=tuple(metric or ())), sides)
    for warning in found.warnings:
        typer.secho(f"Attention: {warning}", fg="yellow", err=True)
    if as_json:
        typer.echo(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        say_comparison(found)
    if out:
        write_report([path for side in sides for path in side], out, found)


def _side(text: str) -> list[Path]:
    """The runs of a comma list; a path may have commas in its name."""
    if text and Path(text).exists():
        return [Path(text)]
    return [Path(part.strip()) for part in text.split(",") if part.strip()]
