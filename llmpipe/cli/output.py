"""What commands say: data on stdout, everything else on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from llmpipe.core.errors import UserError
    from llmpipe.core.run import Mode, Result

_SECONDS_BETWEEN_LINES = 30.0


class Stage:
    """One run of a stage command: its mode, its progress bar, its last words.

    ``with Stage(...) as stage: stage.finish(run(config, ..., stage.mode))``
    """

    remake: ClassVar[bool] = False
    """``llmpipe --remake``, set once for the command that follows."""

    def __init__(self, *, force: bool, as_json: bool, dry_run: bool) -> None:
        from llmpipe.core.run import Mode

        self._json = as_json
        self._progress = _Progress()
        self.mode: Mode = Mode(
            force=force,
            remake=self.remake,
            dry_run=dry_run,
            command=tuple(sys.argv),
            progress=self._progress,
        )

    def __enter__(self) -> Self:
        _start_logging()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._progress.stop()

    def finish(self, *results: Result) -> NoReturn:
        """Say what came out of the last of ``results`` and leave with the gravest exit code."""
        self._progress.stop()
        last = results[-1]
        for result in results:
            if result.attention:
                typer.secho(f"Attention: {result.attention}", fg="yellow", err=True)
        if last.plan:
            typer.echo(last.plan, err=True)
        if self._json:
            typer.echo(json.dumps(_as_json(last), ensure_ascii=False))
        raise typer.Exit(max(result.exit_code for result in results))


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "out": str(result.out),
        "rows": result.rows,
        "dropped": dict(result.dropped),
        "seconds": round(result.seconds, 3),
        "up_to_date": result.up_to_date,
        **({"plan": result.plan} if result.plan else {}),
        **({"attention": result.attention} if result.attention else {}),
        **{k: v for k, v in result.figures.items() if k != "seconds"},
    }


def say_error(error: UserError, *, as_json: bool) -> None:
    """The message in one line, and in the next what to do."""
    typer.secho(f"Error: {error.message}", fg="red", err=True)
    if error.hint:
        typer.echo(f"  Try: {error.hint}", err=True)
    if as_json:
        typer.echo(json.dumps({"error": error.message, "hint": error.hint}, ensure_ascii=False))


def say_stopped() -> None:
    """After Ctrl-C: nothing is broken, and what to do."""
    typer.echo("Stopped. The same command goes on with it, or begins it again.", err=True)


def _start_logging() -> None:
    logger = logging.getLogger("llmpipe")
    logger.setLevel(logging.DEBUG)
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False


class _Progress:
    """A bar on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: Any = None
        self._said: float | None = None

    def __call__(self, done: int, total: int | None, **figures: Any) -> None:
        text = ", ".join(f"{k.replace('_', ' ')} {_short(v)}" for k, v in figures.items())
        now = time.monotonic()
        if sys.stderr.isatty():
            self._draw(done, total, text)
        elif self._said is None:
            self._said = now  # counted from the first word: loading a model is no progress
        elif now - self._said > _SECONDS_BETWEEN_LINES:
            self._said = now
            of = f" of {total}" if total else ""
            logging.getLogger("llmpipe").info("%d%s, %s", done, of, text)

    def _draw(self, done: int, total: int | None, text: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=total)
        self._bar.update(self._task, completed=done, total=total, description=text)

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
