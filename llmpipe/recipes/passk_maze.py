"""The mazes of Pass@k Training: find a way from S to E (RUC-AIBOX/Passk_Training_Maze).

verl's five columns, ``data_source``, ``prompt`` (messages), ``ability``, ``reward_model`` and
``extra_info``, with splits train and test, as KotoHanon/VERL-Maze reads them:
examples/data_preprocess/maze.py at 9f72780. The set itself could not be read. That
``reward_model.ground_truth`` is the grid follows from what the verifier is given, a maze's text of
S, E, . and * (RUCAIBox/Passk_Training, code/maze_verifier.py at 00474d7; Chen et al. 2025,
arXiv:2508.10751); where it is none, the grid must be the only one in the prompt.

The prompt stays as the set words it. It must show the maze that is scored, or the row is dropped as
``maze_not_in_prompt``. The gold answer is a shortest path found here; any valid path is right. The
level is the size ("9x9") and the difficulty that of `llmpipe.algo.mazes`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

from llmpipe.algo.maze_problem import maze_problem
from llmpipe.algo.mazes import Maze, parse
from llmpipe.algo.rows import asked, inside, text
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem

_GRID_LINE = re.compile(r"[SE.*]{2,}")


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    prompt = asked(row["prompt"])
    if prompt is None:
        return Drop(reason="empty_prompt", detail=f"{row['prompt']!r:.200}")
    shown = _mazes(prompt)
    truth = text(inside(row["reward_model"], "ground_truth")) or ""
    if "\n" in truth or _GRID_LINE.fullmatch(truth):
        try:
            scored = parse(truth)
        except ValueError as e:
            return Drop(reason="malformed", detail=str(e))
        if scored not in shown:
            return Drop(reason="maze_not_in_prompt", detail=truth)
        shown = [scored]
    if len(set(shown)) != 1:
        return Drop(reason="several_mazes" if shown else "no_maze", detail=prompt[-200:])
    return maze_problem("passk-maze", str(shown[0]), prompt)


def _mazes(words: str) -> list[Maze]:
    """The well-formed mazes in a text: lines of nothing but S, E, . and *, one after the other."""
    found = []
    lines = [line.strip() for line in words.splitlines()]
    for is_grid, block in itertools.groupby(lines, lambda line: bool(_GRID_LINE.fullmatch(line))):
        try:
            if is_grid:
                found.append(parse("\n".join(block)))
        except ValueError:
            continue
    return found


RECIPE = Recipe(
    task="maze",
    source="passk-maze",
    repo="RUC-AIBOX/Passk_Training_Maze",
    test_split="test",
    columns=("prompt", "reward_model"),
    convert=_convert,
)
