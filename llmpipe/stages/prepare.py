"""Make problems of a recipe's data set or generator, or of anybody's rows.

Rows are read once, or twice where some are held out: which ones depends on a hash of the seed and
the problem, so the choice needs no order and no memory beyond its own size.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmpipe.algo.holdout import hold_out
from llmpipe.algo.maze_problem import maze_problem
from llmpipe.core import plugins
from llmpipe.core.errors import UserError
from llmpipe.core.paths import downloaded_repo
from llmpipe.core.protocols import Draw, Drop, Recipe, Task
from llmpipe.core.records import Problem
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.core.sources import Source, open_parts
from llmpipe.recipes import Origin, resolve

log = logging.getLogger(__name__)

# A column called "solution" is not among the answers: it mostly holds the working.
PROMPT_KEYS = ("problem", "question", "prompt")
ANSWER_KEYS = ("answer", "final_answer", "expected_answer", "ground_truth", "gold", "target")
GRID_KEYS = ("maze", "grid")
_CARRIED = ("solution", "level", "subject", "source")
_CHECK_EVERY = 1000  # rows between two words on progress


@dataclass(frozen=True, kw_only=True)
class Config:
    """``source`` is a recipe's name, a repo id with a recipe or a downloaded folder, or a path.

    ``limit`` counts rows kept for training: the first ones of a data set (all by default), as many
    as are to be drawn from a generator (``Recipe.default_limit`` by default). ``holdout`` distinct
    problems come on top of it, in ``OUT/test``.
    """

    source: str
    task: str | None = None
    prompt_key: str | None = None
    answer_key: str | None = None
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    recipe_args: Mapping[str, str] = field(default_factory=dict)
    holdout: int = 0


Named = tuple[str, Problem | Drop]
_Convert = Callable[[Mapping[str, Any]], Problem | Drop]


def run(config: Config, out: Path, mode: Mode, root: Path = Path()) -> Result:
    """Problems at ``out``, and ``config.holdout`` others at ``out/test``; none is in both.

    Downloaded data sets are looked for under ``root/datasets``. Rows of a held-out problem that
    come again, written differently or not, are rejected.

    Raises:
        UserError: the source isn't known, isn't there or can't be read; it has no rows, lacks a
            column or has no such split; there are fewer distinct problems than are to be held out.
    """
    if config.limit is not None and config.limit < 1:
        raise UserError(f"--limit is {config.limit}", "give 1 or more, or leave it out")
    if config.holdout < 0:
        raise UserError(f"--holdout is {config.holdout}", "give 0 or more")
    origin = _origin(config, root)
    recipe = origin.recipe or Recipe(task=config.task or "math", source="")
    task: Task = plugins.load("tasks", recipe.task)
    if origin.path and not origin.name:
        config = dataclasses.replace(config, source=os.path.normpath(config.source))
    limit = config.limit or (recipe.default_limit if recipe.draw else None)
    used = [("recipes", origin.name)] if origin.name else []
    used += [("tasks", recipe.task)] if config.holdout else []
    inputs: dict[str, Input] = {"source": origin.path} if origin.path else {}
    spec = Spec(
        stage="prepare",
        record=Problem,
        config=config,
        inputs=inputs,
        out=out,
        plugins=used,
        libraries=recipe.libraries,
    )

    def build(writer: Writer) -> None:
        def rows() -> Iterator[Named]:
            made = _rows(config, origin, recipe, limit)
            return _first(_usable(made, task), limit, config.holdout)

        held = _held_out(rows(), config, task) if config.holdout else set()
        _write(rows(), held, task, writer)
        if not writer.read:
            raise UserError(f"{config.source} has no rows", "check the file, and --split")
        if recipe.draw and limit and writer.kept < limit:
            log.warning("%s has only %d of %d problems", config.source, writer.kept, limit)

    return execute(spec, build, mode)


def _origin(config: Config, root: Path) -> Origin:
    """What the source's name stands for; options that it has no use for are refused."""
    own_keys = bool(config.prompt_key or config.answer_key)
    origin = resolve(config.source, root, plain=own_keys)
    recipe = origin.recipe
    useless = {
        "--prompt-key": recipe and config.prompt_key,
        "--answer-key": recipe and config.answer_key,
        "--split": recipe and recipe.draw and config.split,
        "--recipe-arg": not (recipe and recipe.draw) and config.recipe_args,
        "--task": recipe and config.task not in (None, recipe.task),
    }
    given = [flag for flag, value in useless.items() if value]
    if given:
        what = f"the recipe {origin.name}" if recipe else config.source
        raise UserError(f"{what} takes no {' and no '.join(given)}", f"leave {given[0]} out")
    return origin


def _rows(config: Config, origin: Origin, recipe: Recipe, limit: int | None) -> Iterator[Named]:
    """Each row's name, and the problem it makes or why it makes none."""
    if recipe.draw:
        draw = Draw(limit=(limit or 0) + config.holdout, seed=config.seed, args=config.recipe_args)
        yield from ((f"draw {i}", made) for i, made in enumerate(recipe.draw(draw), 1))
        return
    assert origin.path is not None
    split = config.split or (recipe.split if origin.recipe else None)
    source = open_parts(origin.path, recipe.parts, split=split)
    columns, convert = recipe.columns, recipe.convert
    missing = [c for c in columns if c not in source.columns]
    if missing:
        raise UserError(
            f"{origin.path} has no column {', '.join(missing)}",
            f"its columns are: {', '.join(source.columns)}",
        )
    if convert is None and recipe.task == "maze":
        columns, convert = _of_mazes(config, source)
    elif convert is None:
        keys = _keys(config, source)
        columns = [*keys, *(c for c in _CARRIED if c not in keys)]
        convert = _converter(keys, recipe.task, _source_name(origin.path))
    seen: dict[bytes, int] = {}
    for i, row in enumerate(source.read(columns), 1):
        if recipe.once and (first := seen.setdefault(_digest(row, recipe.once), i)) < i:
            yield f"row {i}", Drop(reason="repeated_row", detail=f"the same as row {first}")
            continue
        try:
            made = convert(row)
            if isinstance(made, Problem):
                json.dumps(made.as_row(), ensure_ascii=False).encode()
        except UnicodeEncodeError as e:
            made = Drop(reason="not_unicode", detail=f"{e.reason}: {e.object[e.start : e.end]!r}")
        yield f"row {i}", made


def _digest(row: Mapping[str, Any], columns: Sequence[str]) -> bytes:
    values = repr([row[c] for c in columns])
    return hashlib.blake2b(values.encode(errors="backslashreplace"), digest_size=16).digest()


def _of_mazes(config: Config, source: Source) -> tuple[Sequence[str], _Convert]:
    """The columns of somebody's mazes, and how a row becomes a problem.

    The grid is the answer's column, or the one called maze or grid; the answer is found here.
    """
    grid = config.answer_key or next((k for k in GRID_KEYS if k in source.columns), None)
    prompt = config.prompt_key or next((k for k in PROMPT_KEYS if k in source.columns), None)
    for key, flag in ((grid or "maze", "--answer-key"), (prompt or grid, "--prompt-key")):
        if key not in source.columns:
            raise UserError(
                f"{source.path} has no column {key!r} with the mazes",
                f"say which it is: {flag} {'|'.join(source.columns)}",
            )
    assert grid is not None
    name = _source_name(source.path)

    def convert(row: Mapping[str, Any]) -> Problem | Drop:
        text = _as_text(row[grid])
        if text is None:
            return Drop(reason="malformed", detail=f"no maze in {grid}: {row[grid]!r:.200}")
        return maze_problem(name, text, _as_text(row[prompt]) if prompt else None)

    return [grid, *([prompt] if prompt else [])], convert


def _keys(config: Config, source: Source) -> tuple[str, str]:
    """The columns with the problem and the answer: those given, or those with a usual name."""
    found = []
    for given, usual, what in (
        (config.prompt_key, PROMPT_KEYS, "problem"),
        (config.answer_key, ANSWER_KEYS, "answer"),
    ):
        key = given or next((k for k in usual if k in source.columns), None)
        if key is None or key not in source.columns:
            flag = "--prompt-key" if what == "problem" else "--answer-key"
            wanted = f"no column {given!r}" if given else f"no column with a usual {what} name"
            raise UserError(
                f"{source.path} has {wanted}",
                f"say which it is: {flag} {'|'.join(source.columns)}",
            )
        found.append(key)
    return found[0], found[1]


def _source_name(path: Path) -> str:
    return downloaded_repo(path) or path.name.partition(".")[0] or path.resolve().name


def _converter(keys: tuple[str, str], task: str, name: str) -> _Convert:
    def convert(row: Mapping[str, Any]) -> Problem | Drop:
        prompt, answer = (_as_text(row[key]) for key in keys)
        if prompt is None:
            return Drop(reason="empty_prompt", detail=f"{keys[0]}: {row[keys[0]]!r:.200}")
        if answer is None:
            return Drop(reason="no_answer", detail=f"{keys[1]}: {row[keys[1]]!r:.200}")
        return Problem.make(
            task=task,
            prompt=prompt,
            answer=answer,
            source=_as_text(row.get("source")) or name,
            solution=_as_text(row.get("solution")),
            level=_as_text(row.get("level")),
            subject=_as_text(row.get("subject")),
        )

    return convert


def _as_text(value: Any) -> str | None:
    """Text and numbers as they are written; None for what is neither, or empty."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value).strip() or None
    return None


def _usable(rows: Iterator[Named], task: Task) -> Iterator[Named]:
    """The rows, but a problem that its task can make nothing of is dropped."""
    for name, made in rows:
        flaw = task.malformed(made) if isinstance(made, Problem) else None
        yield name, Drop(reason="malformed", detail=flaw) if flaw else made


def _first(rows: Iterator[Named], limit: int | None, holdout: int) -> Iterator[Named]:
    """Rows up to the last one that is wanted."""
    wanted = limit + holdout if limit else None
    for name, made in rows:
        yield name, made
        if wanted is not None and isinstance(made, Problem):
            wanted -= 1
            if wanted == 0:
                return


def _key(problem: Problem, task: Task) -> bytes:
    return hashlib.blake2b(task.normal_form(problem).encode(), digest_size=16).digest()


def _held_out(rows: Iterator[Named], config: Config, task: Task) -> set[bytes]:
    """The keys of the problems to set apart; those with the same normal form are one."""
    keys = (_key(made, task) for _, made in rows if isinstance(made, Problem))
    held = hold_out(keys, config.holdout, config.seed)
    if len(held) < config.holdout:
        raise UserError(
            f"{config.source} has {len(held)} distinct problems, "
            f"of which {config.holdout} can't be held out",
            "lower --holdout, or raise --limit",
        )
    return held


def _write(rows: Iterator[Named], held: set[bytes], task: Task, writer: Writer) -> None:
    test = writer.nested("test") if held else None
    waiting = set(held)
    for name, made in rows:
        writer.read += 1
        if writer.read % _CHECK_EVERY == 0:
            writer.progress(writer.read, None)
        if isinstance(made, Drop):
            writer.reject(name, made.reason, made.detail)
            continue
        key = _key(made, task) if held else b""
        if test is None or key not in held:
            writer.add(made)
        elif key in waiting:
            waiting.remove(key)
            test.read += 1
            test.add(made)
        else:
            writer.reject(name, "held_out_repeat", made.id)
    if test:
        writer.figures["held_out"] = test.kept
