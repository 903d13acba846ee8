from __future__ import annotations

import re

import pytest

from llmpipe.algo import maze_kernels
from llmpipe.algo.maze_drawing import Seen, draw
from llmpipe.algo.maze_solutions import STYLES
from llmpipe.algo.mazes import solve
from llmpipe.verifiers.maze import judge

SMALL = solve("S.*.\n.*..\n...E\n*...")


def cells(text: str) -> list[tuple[int, int]]:
    return [(int(r) - 1, int(c) - 1) for r, c in re.findall(r"\((\d+),(\d+)\)", text)]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("size", [3, 9, 12])
def test_every_style_ends_in_a_box_that_verifies(style: str, size: int) -> None:
    for solved in draw(size, 40, 1, Seen(maze_kernels), maze_kernels):
        told = STYLES[style](solved)
        assert told.endswith(f"\n\n\\boxed{{{solved.path}}}")
        assert told.count("boxed") == 1
        assert judge(solved, told, extract="boxed").optimal


def test_moves() -> None:
    told = "From S go down 2, right 3. That is E.\n\n\\boxed{DDRRR}"
    assert STYLES["moves"](SMALL) == told


def test_coordinates_walk_the_path() -> None:
    told = STYLES["coordinates"](SMALL)
    assert "(1,1), down: (2,1), open." in told
    assert "(3,3), right: (3,4), which is E." in told
    walked = [cells(line) for line in told.splitlines() if "down" in line or "right" in line]
    assert [step[0] for step in walked] == [SMALL.maze.start, *(s[1] for s in walked[:-1])]
    assert walked[-1][1] == SMALL.maze.end


def test_the_search_tells_every_cell_at_its_distance() -> None:
    for solved in draw(8, 30, 2, Seen(maze_kernels), maze_kernels):
        maze, told = solved.maze, STYLES["search"](solved)
        steps = [cells(line) for line in told.splitlines() if line.startswith("Step ")]
        assert len(steps) == len(solved.path) + 1
        assert steps[0] == [maze.start]
        assert maze.end in steps[-1]
        distance = {cell: step for step, layer in enumerate(steps) for cell in layer}
        assert len(distance) == sum(map(len, steps))  # none is told twice
        for cell, step in distance.items():
            assert maze.open(cell)
            near = [distance[to] for m in "UDLR" if (to := maze.step(cell, m)) in distance]
            assert step == 0 or min(near) == step - 1
        (back,) = (cells(line) for line in told.splitlines() if line.startswith("Back"))
        assert [distance[cell] for cell in back] == list(range(len(solved.path), -1, -1))
