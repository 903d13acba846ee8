"""The command that checks the machine."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from llmpipe.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from llmpipe.stages.doctor import Report

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red", "skipped": "dim"}
_PROBLEM = 3
_TABLE = 100  # columns: a narrower table breaks addresses and commands up


def register(app: typer.Typer) -> None:
    app.command("doctor", rich_help_panel="Project")(doctor)


def doctor(
    endpoint: Annotated[
        list[str] | None,
        typer.Option(help="A hub or mirror to try; may be repeated.", show_default=False),
    ] = None,
    repo: Annotated[
        str, typer.Option(help="A public model to try the endpoints with.")
    ] = "HuggingFaceTB/SmolLM2-135M-Instruct",
    skip: Annotated[
        list[str] | None,
        typer.Option(help="A check to leave out, by its name; may be repeated."),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(min=0.1, max=100, help="Times the usual limits on the time of each check."),
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Check the machine, and say what to do about each finding."""
    from llmpipe.stages.doctor import Config, run

    config = Config(
        endpoints=tuple(endpoint or ()), repo=repo, skip=tuple(skip or ()), patience=patience
    )
    with _status() as say:
        report = run(config, say)
    if as_json:
        checks = [asdict(finding) for finding in report.findings]
        typer.echo(json.dumps({"ok": report.ok, "checks": checks}, ensure_ascii=False))
    else:
        _print(report)
    raise typer.Exit(0 if report.ok else _PROBLEM)


@contextmanager
def _status() -> Iterator[Callable[[Sequence[str]], None]]:
    """Say on a terminal which checks are running."""
    if not sys.stderr.isatty():
        yield lambda running: None
        return
    from rich.console import Console

    with Console(stderr=True).status("Checking") as status:
        yield lambda running: status.update(f"Checking {', '.join(running)}")


def _print(report: Report) -> None:
    from rich.console import Console

    console = Console()
    if console.width < _TABLE:
        _print_list(report, console)
    else:
        _print_table(report, console)


def _print_list(report: Report, console: Console) -> None:
    from rich.text import Text

    for finding in report.findings:
        state = Text(finding.state, style=_COLOURS[finding.state])
        console.print(Text(f"{finding.name} ").append(state))
        for line in (finding.found, f"Try: {finding.do}" if finding.do else ""):
            # Whole words, however long: they are there to be copied.
            text = textwrap.fill(
                line,
                max(20, console.width),
                initial_indent="  ",
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            if text:
                console.print(Text(text), soft_wrap=True)


def _print_table(report: Report, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_lines=True)
    for column, share in (("Check", None), ("State", None), ("Found", 3), ("What to do", 2)):
        table.add_column(column, ratio=share, overflow="fold")
    for finding in report.findings:
        colour = _COLOURS[finding.state]
        # Text, not markup: what was found may hold brackets.
        state = Text(finding.state, style=colour)
        table.add_row(finding.name, state, Text(finding.found), Text(finding.do))
    console.print(table)
