"""Mazes as problems, drawn from a seed."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from llmpipe.algo import maze_drawing, mazes
from llmpipe.algo.maze_problem import problem_of
from llmpipe.algo.maze_solutions import STYLES
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Input, Mode, Result, Spec, Writer, execute
from llmpipe.verifiers.maze import judge


@dataclass(frozen=True, kw_only=True)
class Config:
    """``count`` mazes of each of ``sizes`` (cells a side).

    ``solution_style`` is how the worked answers are told: one of
    `llmpipe.algo.maze_solutions.STYLES`.
    """

    sizes: tuple[int, ...]
    count: int
    seed: int = 0
    solution_style: str = "moves"


log = logging.getLogger(__name__)

PRESETS: Mapping[str, Mapping[str, Config]] = {
    "passk": {
        "train": Config(sizes=(9, 11, 13, 15), count=10_000),
        "test": Config(sizes=(7, 9, 11, 13, 15, 17, 19, 21), count=100),
    }
}
"""Sets of mazes by the parts they are made in; no part has a maze of an earlier one.

"passk" has the sizes and counts of Pass@k Training (Chen et al. 2025, arXiv:2508.10751); its
generator was not published, so the mazes are ours.
"""


def run(config: Config, out: Path, mode: Mode, exclude: Sequence[Path] = ()) -> Result:
    """Mazes by size, then in the order they are drawn; the same seed gives the same on any machine.

    None is another rotated or reflected, or one of those in the artifacts in ``exclude``. The
    answer is a shortest path, the solution tells one in words and is verified; the payload is
    `llmpipe.algo.mazes.Solved.payload`, ``difficulty`` is `llmpipe.algo.mazes.difficulty`.

    Raises:
        UserError: a size is out of range, or has fewer different mazes than asked for.
    """
    _check(config)
    excluded = [Artifact.open(path, Problem) for path in exclude]
    inputs: dict[str, Input] = {f"exclude {i}": a for i, a in enumerate(excluded, 1)}
    spec = Spec(stage="maze", record=Problem, config=config, inputs=inputs, out=out, version=2)

    def build(writer: Writer) -> None:
        cells = sum(size * size for size in config.sizes) * config.count
        cells += sum(artifact.rows for artifact in excluded) * max(config.sizes) ** 2
        kernels = maze_drawing.kernels_for(cells)
        seen = maze_drawing.Seen(kernels)
        for artifact in excluded:
            count = sum(1 for maze in _mazes(artifact) if seen.add(maze))
            if not count:
                log.warning("%s has no mazes to exclude", artifact.path)
        steps = sum(_make(size, config, seen, kernels, writer) for size in config.sizes)
        writer.figures["mean_shortest"] = round(steps / writer.kept, 2)

    return execute(spec, build, mode)


def run_preset(
    name: str, out: Path, mode: Mode, *, seed: int, solution_style: str, exclude: Sequence[Path]
) -> Iterator[Result]:
    """The parts of a preset, each an artifact of its own in ``out``, made one after the other.

    Raises:
        UserError: there is no such preset.
    """
    if name not in PRESETS:
        raise UserError(f"there is no preset {name!r}", f"--preset {' or '.join(PRESETS)}")
    before = [*exclude]
    for part, config in PRESETS[name].items():
        config = dataclasses.replace(config, seed=seed, solution_style=solution_style)
        yield run(config, out / part, mode, before)
        if not mode.dry_run:
            before.append(out / part)


def _check(config: Config) -> None:
    smallest, largest = maze_drawing.SMALLEST, maze_drawing.LARGEST
    for size in config.sizes:
        if not smallest <= size <= largest:
            raise UserError(
                f"--size {size} is out of range: from {smallest} to {largest}",
                f"llmpipe maze -o OUT --size {min(max(size, smallest), largest)}",
            )
    if config.count < 1 or not config.sizes:
        raise UserError("no mazes are asked for", "llmpipe maze -o OUT --size 9 --count 100")
    if len(set(config.sizes)) < len(config.sizes):
        raise UserError("a size is given twice", "llmpipe maze -o OUT --size 9 --count 200")
    if config.solution_style not in STYLES:
        raise UserError(
            f"there is no solution style {config.solution_style!r}",
            f"--solution-style {' or '.join(STYLES)}",
        )


def _make(
    size: int, config: Config, seen: maze_drawing.Seen, kernels: ModuleType, writer: Writer
) -> int:
    """Add the mazes of one size; their paths' total length."""
    before, steps = writer.kept, 0
    for solved in maze_drawing.draw(size, config.count, config.seed, seen, kernels):
        writer.read += 1
        writer.add(_problem(solved, config.solution_style))
        steps += len(solved.path)
        if writer.kept % 100 == 0:
            writer.progress(writer.kept, config.count * len(config.sizes))
    made = writer.kept - before
    if made < config.count:
        raise UserError(
            f"there are only {made} different mazes of size {size} to be had, not {config.count}",
            f"--count {made}, or larger sizes" if made else "larger sizes",
        )
    return steps


def _mazes(artifact: Artifact) -> Iterator[mazes.Maze]:
    """An artifact's mazes; its other problems don't matter."""
    for batch in artifact.batches(["id", "task", "payload"]):
        for row in batch.to_pylist():
            if row["task"] != "maze":
                continue
            try:
                yield mazes.parse(json.loads(row["payload"])["maze"])
            except (ValueError, KeyError) as e:
                raise UserError(
                    f"problem {row['id']} of {artifact.path} holds no maze: {e}",
                    f"llmpipe filter {artifact.path} -o OUT drops such rows",
                ) from None


def _problem(solved: mazes.Solved, style: str) -> Problem:
    solution = STYLES[style](solved)
    score = judge(solved, solution)
    assert score.optimal, f"{style}: {score.detail}\n{solved.maze}"
    return problem_of("llmpipe/maze", solved, solution=solution)
