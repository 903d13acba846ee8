"""The command tree. A command is a thin function: options in, a stage run, its result out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llmpipe import __version__
from llmpipe.cli import (
    comparing,
    data,
    doctor,
    evaluating,
    exporting,
    look,
    plan,
    reporting,
    sampling,
    selection,
    settings,
    training,
)
from llmpipe.cli.output import Stage

app = typer.Typer(
    name="llmpipe",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for room in (
    data,
    sampling,
    evaluating,
    comparing,
    reporting,
    selection,
    training,
    exporting,
    look,
    plan,
    doctor,
):
    room.register(app)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"llmpipe {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="A settings file, instead of llmpipe.toml here.", show_default=False),
    ] = None,
    remake: Annotated[
        bool,
        typer.Option("--remake", help="Make again what was made with other settings."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say it.")
    ] = False,
) -> None:
    """From a model name and a data set name to rejection-sampled, packed training data and pass@k.

    Every stage reads folders and makes a folder; run again, it is up to date; killed, it goes on.
    """
    Stage.remake = remake
    path = config or (settings.FILE if settings.FILE.is_file() else None)
    if path and context.invoked_subcommand != "init":
        commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
        context.default_map = settings.load(path, commands)
