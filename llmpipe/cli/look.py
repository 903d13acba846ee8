"""Commands that begin a project and look at what was made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llmpipe.cli.options import AsJson
from llmpipe.cli.view import view

_PANEL = "Project"


def register(app: typer.Typer) -> None:
    app.command("init", rich_help_panel=_PANEL)(init)
    app.command("show", rich_help_panel=_PANEL)(show)
    app.command("view", rich_help_panel=_PANEL)(view)


def init(
    kind: Annotated[str, typer.Argument(help="math or maze")] = "math",
    force: Annotated[bool, typer.Option("--force", help="Overwrite llmpipe.toml.")] = False,
) -> None:
    """Write a commented llmpipe.toml, so that the bare commands work here."""
    from llmpipe.cli.project import write

    write(kind, Path.cwd(), force=force)


def show(
    folder: Annotated[Path, typer.Argument(help="An artifact, or a folder of artifacts.")],
    rows: Annotated[int, typer.Option(min=0, help="Rows to print of an artifact.")] = 3,
    row: Annotated[
        int | None, typer.Option(min=0, help="Print this row alone, from 0 on; packed, all of it.")
    ] = None,
    rejects: Annotated[bool, typer.Option("--rejects", help="Print dropped rows.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="List leftovers of broken runs, and offer to remove.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    svg: Annotated[
        Path | None,
        typer.Option(help="A folder to draw the mazes of the printed rows in, as SVG."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="The model that packed rows are for, if its folder was moved."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print an artifact: where it came from, what was dropped and why, its first rows."""
    from llmpipe.cli import show as printing

    if prune:
        printing.prune(folder, yes=yes)
    else:
        wanted = printing.Wanted(rows=rows, row=row, svg=svg, tokenizer=tokenizer)
        printing.show(folder, wanted, rejects=rejects, as_json=as_json)
