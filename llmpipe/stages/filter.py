"""Keep the problems that can be checked and are of the wanted level and difficulty."""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.pool import Failure
from llmpipe.core.protocols import Task
from llmpipe.core.records import Problem, Score
from llmpipe.core.run import Mode, Result, Spec, Writer, execute
from llmpipe.tasks import judges
from llmpipe.verifiers import LIBRARIES

RULES = ("malformed", "answer_empty", "answer_unverifiable")
"""What `Config.drop` may hold; all of them by default."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What to keep.

    ``levels`` is a comma list ("1,2", matched with the level's number or its whole text) or a range
    ("A:B") over the number in the level's text. ``difficulty`` is a range. Ranges include their
    ends, and either end may be left out. ``drop`` names the rules that rows are dropped by.
    """

    levels: str | None = None
    difficulty: str | None = None
    drop: tuple[str, ...] = RULES


Reason = tuple[str, str]


def run(config: Config, problems: Path, out: Path, mode: Mode) -> Result:
    """The rows of ``problems`` that pass, in order. The others are rejected by the first rule of:

    no_level, level, no_difficulty, difficulty, malformed (by the task's own check), answer_empty,
    answer_unverifiable (the gold answer, put in a box, is not judged correct by its own verifier).

    Raises:
        UserError: a range or a rule can't be read, or a row's task isn't known.
    """
    checks = _checks(config)
    source = Artifact.open(problems, Problem)
    tasks = sorted(_tasks(source))
    spec = Spec(
        stage="filter",
        record=Problem,
        config=config,
        inputs={"problems": source},
        out=out,
        plugins=[(room, task) for task in tasks for room in ("tasks", "verifiers")],
        pinned=LIBRARIES,
    )

    def build(writer: Writer) -> None:
        if "answer_unverifiable" in config.drop:
            _write_verifiable(_passing(source, checks, writer), tasks, writer)
        else:
            for problem in _passing(source, checks, writer):
                writer.add(problem)
        writer.figures["kept_share"] = round(writer.kept / max(1, writer.read), 4)

    return execute(spec, build, mode)


def _tasks(source: Artifact) -> set[str]:
    names: set[str] = set()
    for batch in source.batches(["task"]):
        names.update(batch.column("task").unique().to_pylist())
    for name in names:
        plugins.load("tasks", name)
    return names


def _passing(
    source: Artifact, checks: list[Callable[[Problem], Reason | None]], writer: Writer
) -> Iterator[Problem]:
    for problem in source.iter_rows(Problem):
        writer.read += 1
        reason = next(filter(None, (check(problem) for check in checks)), None)
        if reason:
            writer.reject(problem.id, *reason)
        else:
            yield problem
        if writer.read % 100 == 0:
            writer.progress(writer.read, source.rows)


def _write_verifiable(problems: Iterator[Problem], tasks: list[str], writer: Writer) -> None:
    """Write the problems whose gold answer verifies against itself."""
    waiting: deque[Problem] = deque()

    def calls() -> Iterator[tuple[Any, ...]]:
        for problem in problems:
            waiting.append(problem)
            boxed = f"\\boxed{{{problem.answer}}}"
            yield problem.task, problem.answer, problem.payload, boxed, "stop", "boxed"

    with judges(tasks) as pool:
        for score in pool.map(calls()):
            problem = waiting.popleft()
            if isinstance(score, Score) and score.status == "correct":
                writer.add(problem)
                continue
            kind = score.kind if isinstance(score, Failure) else score.status
            writer.reject(problem.id, "answer_unverifiable", f"{kind}: {score.detail}")


def _checks(config: Config) -> list[Callable[[Problem], Reason | None]]:
    unknown = sorted(set(config.drop) - set(RULES))
    if unknown:
        raise UserError(f"no rule is called {unknown[0]!r}", f"--drop takes: {', '.join(RULES)}")
    checks: list[Callable[[Problem], Reason | None]] = []
    if config.levels is not None:
        checks.append(_level_check(config.levels))
    if config.difficulty is not None:
        checks.append(_difficulty_check(config.difficulty))
    if "malformed" in config.drop:
        checks.append(_malformed)
    if "answer_empty" in config.drop:
        checks.append(lambda p: None if p.answer.strip() else ("answer_empty", ""))
    return checks


@functools.cache
def _task(name: str) -> Task:
    task: Task = plugins.load("tasks", name)
    return task


def _malformed(problem: Problem) -> Reason | None:
    why = _task(problem.task).malformed(problem)
    return ("malformed", why) if why else None


_FIGURE = re.compile(r"\d+(?:\.\d+)?")


def _level_check(wanted: str) -> Callable[[Problem], Reason | None]:
    if ":" in wanted:
        low, high = _range(wanted, "--level", "2:4")
        values = None
    else:
        values = {v.strip().casefold() for v in wanted.split(",") if v.strip()}
        if not values:
            raise UserError("--level names no level", "--level 1,2 or --level 2:4")

    def check(problem: Problem) -> Reason | None:
        text = (problem.level or "").strip()
        figure = _FIGURE.search(text)
        if not text or (values is None and not figure):
            return "no_level", text
        if values is None:
            assert figure is not None
            inside = low <= float(figure.group()) <= high
        else:
            inside = text.casefold() in values or bool(figure and figure.group() in values)
        return None if inside else ("level", text)

    return check


def _difficulty_check(wanted: str) -> Callable[[Problem], Reason | None]:
    low, high = _range(wanted, "--difficulty", "0.2:0.8")

    def check(problem: Problem) -> Reason | None:
        if problem.difficulty is None:
            return "no_difficulty", ""
        inside = low <= problem.difficulty <= high
        return None if inside else ("difficulty", f"{problem.difficulty:g}")

    return check


def _range(text: str, flag: str, example: str) -> tuple[float, float]:
    """The ends of "A:B"; an end that is left out is infinite."""
    low, mark, high = text.partition(":")
    try:
        ends = float(low or "-inf"), float(high or "inf")
    except ValueError:
        ends = 1.0, 0.0
    if not mark or not (low or high) or not ends[0] <= ends[1]:
        raise UserError(f"{flag} {text!r} is no range A:B", f"{flag} {example}")
    return ends
