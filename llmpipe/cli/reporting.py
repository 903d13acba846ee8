"""The command that reports evals, and the report that each eval has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llmpipe.cli.options import AsJson

if TYPE_CHECKING:
    from llmpipe.stages.compare import Comparison


def register(app: typer.Typer) -> None:
    app.command("report", rich_help_panel="Answers")(report)


def report(
    evals: Annotated[list[Path], typer.Argument(help="Folders of evals.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder to write to; of one eval its own by default."),
    ] = None,
    publish_card: Annotated[
        Path | None,
        typer.Option(
            help="Write the figures to the head of this model card (README.md) as model-index; "
            "nothing is uploaded."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write report.html, report.md and plots of evals, side by side where there are several."""
    from llmpipe.core.errors import UserError
    from llmpipe.reports.card import publish
    from llmpipe.reports.files import HTML
    from llmpipe.reports.runs import load

    if out is None and len(evals) > 1:
        raise UserError("a report of several evals needs a folder", "-o runs/report")
    out = out or evals[0]
    paths = [str(out / name) for name in write_report(evals, out)]
    if publish_card:
        publish(load(evals), publish_card)
        paths.append(str(publish_card))
    if as_json:
        typer.echo(json.dumps({"out": str(out), "files": paths}, ensure_ascii=False))
    else:
        typer.echo(out / HTML)


def report_eval(out: Path, *, again: bool) -> None:
    """Write the report of the eval at ``out`` into it, if it has none or is to get it ``again``."""
    from llmpipe.reports.files import HTML, MARKDOWN

    if again or not ((out / HTML).is_file() and (out / MARKDOWN).is_file()):
        write_report([out], out)


def write_report(
    evals: Sequence[Path], out: Path, comparison: Comparison | None = None
) -> list[str]:
    """Write the report of some evals to ``out``; the names of its files."""
    from llmpipe.reports.files import report, write
    from llmpipe.reports.plots import INSTALL
    from llmpipe.reports.runs import load

    files = report(load(evals), comparison)
    write(files, out)
    if not any(name.endswith(".png") for name in files):
        typer.echo(f"The report has no plots: Matplotlib can't be used ({INSTALL})", err=True)
    return list(files)
