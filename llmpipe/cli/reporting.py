"""The command that reports evals, and the report that each eval has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from llmpipe.cli.options import AsJson


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
    import llmpipe.reports.files as files
    from llmpipe.core.errors import UserError
    from llmpipe.reports.card import publish
    from llmpipe.reports.runs import load

    if out is None and len(evals) > 1:
        raise UserError("a report of several evals needs a folder", "-o runs/report")
    runs = load(evals)
    out = out or evals[0]
    made = files.report(runs)
    if publish_card:
        publish(runs, publish_card)
    files.write(made, out)
    paths = [str(out / name) for name in made] + ([str(publish_card)] if publish_card else [])
    if not any(name.endswith(".png") for name in made):
        _say_no_plots()
    if as_json:
        typer.echo(json.dumps({"out": str(out), "files": paths}, ensure_ascii=False))
    else:
        typer.echo(out / files.HTML)


def report_eval(out: Path, *, again: bool) -> None:
    """Write the report of the eval at ``out`` into it, if it has none or is to get it ``again``."""
    import llmpipe.reports.files as files
    from llmpipe.reports.runs import load

    if not again and (out / files.HTML).is_file() and (out / files.MARKDOWN).is_file():
        return
    made = files.report(load([out]))
    files.write(made, out)
    if not any(name.endswith(".png") for name in made):
        _say_no_plots()


def _say_no_plots() -> None:
    from llmpipe.reports.plots import INSTALL

    typer.echo(f"The report has no plots: Matplotlib can't be used ({INSTALL})", err=True)
