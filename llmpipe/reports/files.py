"""A report's files, and how they come to disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llmpipe.core import fs
from llmpipe.core.errors import UserError
from llmpipe.reports.content import document
from llmpipe.reports.markdown import markdown
from llmpipe.reports.page import page
from llmpipe.reports.plots import INSTALL, draw
from llmpipe.reports.runs import Run

if TYPE_CHECKING:
    from llmpipe.stages.compare import Comparison

HTML, MARKDOWN, PICTURES = "report.html", "report.md", "report_files"

MOST_RUNS = 12  # that can be told apart in a plot


def report(runs: Sequence[Run], comparison: Comparison | None = None) -> Mapping[str, bytes]:
    """The files of a report, by name: the page, Markdown, and a PNG of each plot.

    Without Matplotlib there are tables only, and both say what to install.

    Raises:
        UserError: too many runs for one report.
    """
    if len(runs) > MOST_RUNS:
        raise UserError(
            f"{len(runs)} runs can't be told apart in a plot", f"give {MOST_RUNS} at most"
        )
    whole = document(runs, comparison)
    svgs: dict[str, str] = {}
    pngs: dict[str, bytes] = {}
    missing = None
    try:
        for chart in whole.charts:
            svgs[chart.name], pngs[chart.name] = draw(chart)
    except UserError as e:
        missing = f"No plots: {e.message} ({INSTALL})."
    text = markdown(whole, pngs, PICTURES, missing)
    return {
        HTML: page(whole, svgs, missing).encode(),
        MARKDOWN: text.encode(),
        **{f"{PICTURES}/{name}.png": png for name, png in pngs.items()},
    }


def write(files: Mapping[str, bytes], out: Path) -> None:
    """Put a report's files into the folder ``out``; pictures of an earlier report go.

    Raises:
        UserError: it can't be written.
    """
    with _errors(out):
        pictures = out / PICTURES
        pictures.mkdir(parents=True, exist_ok=True)
        for old in pictures.glob("*.png"):
            if f"{PICTURES}/{old.name}" not in files:
                old.unlink()
        for name, content in files.items():
            fs.write(out / name, content)
        if not any(pictures.iterdir()):
            pictures.rmdir()


@contextlib.contextmanager
def _errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise UserError(
            f"can't write a report to {out}: {e.strerror}", "choose another folder: -o DIR"
        ) from None
