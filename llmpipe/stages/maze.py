"""Mazes as problems, drawn from a seed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llmpipe.algo import mazes
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute

_DIRECTIONS = {"U": "up", "D": "down", "L": "left", "R": "right"}
_LARGEST = 99


@dataclass(frozen=True, kw_only=True)
class Config:
    """``count`` mazes of each of ``sizes`` (cells a side)."""

    sizes: tuple[int, ...]
    count: int
    seed: int = 0


def run(config: Config, out: Path, mode: Mode, exclude: Sequence[Path] = ()) -> Result:
    """Mazes by size, then in the order they are drawn; the same seed gives the same on any machine.

    None is another rotated or reflected, or one of those in the artifacts in ``exclude``. The
    payload has the grid (``maze``) and the length of its shortest path (``shortest``); the answer
    is one shortest path, ``difficulty`` is `llmpipe.algo.mazes.difficulty`.

    Raises:
        UserError: a size is out of range, or has fewer different mazes than asked for.
    """
    _check(config)
    excluded = [Artifact.open(path, Problem) for path in exclude]
    inputs: dict[str, Input] = {f"exclude {i}": a for i, a in enumerate(excluded, 1)}
    spec = Spec(stage="maze", record=Problem, config=config, inputs=inputs, out=out)

    def build(writer: Writer) -> None:
        taken = {key for artifact in excluded for key in _keys(artifact)}
        steps = sum(_make(size, config, taken, writer) for size in config.sizes)
        writer.figures["mean_shortest"] = round(steps / writer.kept, 2)

    return execute(spec, build, mode)


def _check(config: Config) -> None:
    for size in config.sizes:
        if not mazes.SMALLEST <= size <= _LARGEST:
            raise UserError(
                f"--size {size} is out of range: from {mazes.SMALLEST} to {_LARGEST}",
                "llmpipe maze -o OUT --size 9",
            )
    if config.count < 1 or not config.sizes:
        raise UserError("no mazes are asked for", "llmpipe maze -o OUT --size 9 --count 100")
    if len(set(config.sizes)) < len(config.sizes):
        raise UserError("a size is given twice", "llmpipe maze -o OUT --size 9 --count 200")


def _make(size: int, config: Config, taken: set[str], writer: Writer) -> int:
    """Add the mazes of one size; their paths' total length."""
    before, steps = writer.kept, 0
    drawn = mazes.draw_distinct(size, config.seed, taken)
    for maze in itertools.islice(drawn, config.count):
        problem, length = _problem(maze, size)
        writer.read += 1
        writer.add(problem)
        steps += length
        if writer.kept % 100 == 0:
            writer.progress(writer.kept, config.count * len(config.sizes))
    made = writer.kept - before
    if made < config.count:
        raise UserError(
            f"there are only {made} different mazes of size {size} to be had, not {config.count}",
            f"--count {made}, or larger sizes" if made else "larger sizes",
        )
    return steps


def _keys(artifact: Artifact) -> set[str]:
    """The canonical keys of an artifact's mazes; its other problems don't matter."""
    keys = set()
    for batch in artifact.batches(["id", "task", "payload"]):
        for row in batch.to_pylist():
            if row["task"] != "maze":
                continue
            try:
                keys.add(mazes.canonical_key(mazes.parse(json.loads(row["payload"])["maze"])))
            except (ValueError, KeyError) as e:
                raise UserError(
                    f"problem {row['id']} of {artifact.path} holds no maze: {e}",
                    f"llmpipe filter {artifact.path} -o OUT drops such rows",
                ) from None
    return keys


def _problem(maze: mazes.Maze, size: int) -> tuple[Problem, int]:
    path = mazes.shortest_path(maze)
    assert path is not None  # by construction
    problem = Problem.make(
        task="maze",
        source="llmpipe/maze",
        prompt=f"Find a path from S to E in this maze.\n\n{maze}",
        answer=path,
        solution=_solution(path),
        level=f"{size}x{size}",
        difficulty=mazes.difficulty(len(path), size),
        payload={"maze": str(maze), "shortest": len(path)},
    )
    return problem, len(path)


def _solution(path: str) -> str:
    """The moves told in words, run by run."""
    runs = [f"{_DIRECTIONS[move]} {len(list(group))}" for move, group in itertools.groupby(path)]
    return f"From S go {', '.join(runs)}. That is E.\n\n\\boxed{{{path}}}"
