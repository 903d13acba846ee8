"""What commands say: data on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TextIO

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from llmpipe.cli.tracking import Tracking
    from llmpipe.core.errors import UserError
    from llmpipe.core.run import Mode, Result

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_OF_BYTES = 300.0  # a download may take all night


class Stage:
    """One run of a stage command: its mode, its progress bar, its last words.

    ``with Stage(...) as stage: stage.finish(run(config, ..., stage.mode))``
    """

    remake: ClassVar[bool] = False
    """``llmpipe --remake``, set once for the command that follows."""

    def __init__(self, *, force: bool, as_json: bool, dry_run: bool) -> None:
        from llmpipe.core.run import Mode

        self._began = time.monotonic()
        self._json = as_json
        self._progress = _Progress()
        self._tracking: Tracking | None = None
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
        if self._tracking:
            self._tracking.close([])

    def track(self, names: Sequence[str] | None, *, job: str, out: Path, config: Any) -> None:
        """Send this run's figures to experiment trackers; to be called before ``mode`` is used."""
        from llmpipe.cli.tracking import Tracking

        if names:
            self._tracking = Tracking(names, job=job, out=out, config=config, bar=self._progress)
            self.mode = dataclasses.replace(self.mode, progress=self._tracking)

    def end_within(self, max_time: str | None) -> None:
        """Have the stage end within a time such as 2h or 90m from now, if it can go on later.

        Raises:
            UserError: that is no time.
        """
        from llmpipe.core.errors import UserError
        from llmpipe.core.options import read_seconds

        if max_time is None:
            return
        seconds = read_seconds(max_time)
        if not seconds:
            raise UserError(f"--max-time {max_time} is no time", "--max-time 1h30m")
        self.mode = dataclasses.replace(self.mode, deadline=self._began + seconds)

    def finish(self, *results: Result) -> NoReturn:
        """Say what came out of the last of ``results`` and leave with the gravest exit code."""
        self._close(results)
        if self._json:
            typer.echo(json.dumps(_as_json(results[-1]), ensure_ascii=False))
        raise typer.Exit(max(result.exit_code for result in results))

    def finish_each(self, do: Callable[[str], Result], names: Sequence[str]) -> NoReturn:
        """Do the same for each of ``names``: one that fails doesn't keep the others from it."""
        from llmpipe.core.errors import UserError

        if len(names) == 1:
            self.finish(do(names[0]))
        done: list[Result] = []
        failed: list[dict[str, Any]] = []
        for name in names:
            try:
                done.append(do(name))
            except UserError as e:
                failed.append(self.say_failed(name, e))
        self.finish_all(done, failed)

    def say_failed(self, name: str, error: UserError) -> dict[str, Any]:
        """Say why one of several runs failed; its entry for `finish_all`."""
        say_error(error, as_json=False)
        return {"name": name, "error": error.message, "hint": error.hint}

    def finish_all(self, done: Sequence[Result], failed: Sequence[dict[str, Any]] = ()) -> NoReturn:
        """Say what came out of several runs of equal rank; exit code 2 if one ``failed``."""
        self._close(done)
        if self._json:
            whole = {
                "out": [str(result.out) for result in done],
                "rows": sum(result.rows for result in done),
                "dropped": dict(sum((Counter(result.dropped) for result in done), Counter())),
                "seconds": round(sum(result.seconds for result in done), 3),
                "up_to_date": not failed and all(result.up_to_date for result in done),
                "each": [*map(_as_json, done), *failed],
            }
            typer.echo(json.dumps(whole, ensure_ascii=False))
        raise typer.Exit(2 if failed else max(result.exit_code for result in done))

    def _close(self, results: Sequence[Result]) -> None:
        self._progress.stop()
        if self._tracking:
            self._tracking.close(results)
        for result in results:
            if result.attention:
                typer.secho(f"Attention: {result.attention}", fg="yellow", err=True)
            if result.plan:
                typer.echo(result.plan, err=True)


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "out": str(result.out),
        "rows": result.rows,
        "dropped": dict(result.dropped),
        "seconds": round(result.seconds, 3),
        "up_to_date": result.up_to_date,
        "complete": result.complete and not result.plan,
        **({"plan": result.plan} if result.plan else {}),
        **({"attention": result.attention} if result.attention else {}),
        **{k: v for k, v in result.figures.items() if k != "seconds"},
    }


def stops_short(results: Sequence[Result]) -> bool:
    """Whether a dry run, or the end of the time, came before what the next step needs."""
    return any(result.plan or not result.complete for result in results)


def say_error(error: UserError, *, as_json: bool) -> None:
    """The message in one line, and in the next what to do."""
    typer.secho(f"Error: {error.message}", fg="red", err=True)
    if error.hint:
        typer.echo(f"  Try: {error.hint}", err=True)
    if as_json:
        from llmpipe.core.errors import UserError

        with contextlib.suppress(UserError):  # stdout may be what can't be written to
            typer.echo(json.dumps({"error": error.message, "hint": error.hint}, ensure_ascii=False))


def say_stopped() -> None:
    """After Ctrl-C: nothing is broken, and what to do."""
    typer.echo("Stopped. The same command goes on with it, or begins it again.", err=True)


def _start_logging() -> None:
    logger = logging.getLogger("llmpipe")
    logger.setLevel(logging.DEBUG)
    if not logger.handlers:
        handler = _ToStderr()
        handler.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False


class _ToStderr(logging.StreamHandler[TextIO]):
    """To the stderr of the moment: while a bar is drawn, lines go above it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr


class _Progress:
    """A bar on a terminal, with one for each part in work; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: Any = None
        self._parts: dict[str, Any] = {}
        self._said: float | None = None
        self._first: tuple[float, int] = (0.0, 0)  # when counting began, and from what
        self._last = 0

    def __call__(
        self,
        done: int,
        total: int | None,
        *,
        unit: str = "",
        parts: Mapping[str, tuple[int, int]] | None = None,
        **figures: Any,
    ) -> None:
        text = ", ".join(f"{k.replace('_', ' ')} {_short(v)}" for k, v in figures.items())
        now = time.monotonic()
        if self._said is None or done < self._last:  # a second round counts anew
            self._first = now, done
        self._last = done
        if self._bar or sys.stderr.isatty():  # a bar's stand-in for stderr says that it is none
            self._draw(done, total, text or ("in all" if parts else ""), unit, parts or {})
        elif self._said is None:
            self._said = now  # counted from the first word: loading a model is no progress
        elif now - self._said > (_SECONDS_OF_BYTES if unit == "bytes" else _SECONDS_BETWEEN_LINES):
            self._said = now
            counts = [done] if total is None else [done, total]
            shown = " of ".join(_bytes(c) if unit == "bytes" else str(c) for c in counts)
            left = self._left(now, done, total)
            logging.getLogger("llmpipe").info("%s", ", ".join(filter(None, (shown, left, text))))

    def _left(self, now: float, done: int, total: int | None) -> str:
        """How long the rest takes, if it goes on as it went so far."""
        began, first = self._first
        if total is None or done <= first:
            return ""
        return f"{_time((total - done) * (now - began) / (done - first))} left"

    def _draw(
        self,
        done: int,
        total: int | None,
        text: str,
        unit: str,
        parts: Mapping[str, tuple[int, int]],
    ) -> None:
        if self._bar is None:
            self._bar = _bar(unit)
            self._bar.start()
            self._task = self._bar.add_task("", total=total, completed=done)
        if done < self._bar.tasks[0].completed:
            self._bar.reset(self._task)
        self._bar.update(self._task, completed=done, total=total, description=text)
        for name in self._parts.keys() - parts.keys():
            self._bar.remove_task(self._parts.pop(name))
        for name, (part, whole) in parts.items():
            if name not in self._parts:
                self._parts[name] = self._bar.add_task(name[-40:], total=whole, completed=part)
            self._bar.update(self._parts[name], completed=part)

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None
            self._parts.clear()


def _bar(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    counts: list[ProgressColumn] = [MofNCompleteColumn()]
    if unit == "bytes":
        counts = [DownloadColumn(), TransferSpeedColumn()]
    return Progress(
        BarColumn(),
        *counts,
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )


def _bytes(count: int) -> str:
    from llmpipe.core.fs import size

    return size(count)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
