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
        assert told.rpartition("\n\n")[2].replace(" ", "") == f"\\boxed{{{solved.path}}}"
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


def test_spelled() -> None:
    assert STYLES["spelled"](SMALL).splitlines() == [
        "S.*.",
        "- a1 S start a1 b1 . c1 * d1 .",
        ".*..",
        "- a2 . b2 * c2 . d2 .",
        "...E",
        "- a3 . b3 . c3 . d3 E end d3",
        "*...",
        "- a4 * b4 . c4 . d4 .",
        "start a1 end d3",
        "- a1 D a2 . R b1 . open D R go D",
        "- D a2 D a3 . R b2 * open D go D",
        "- D D a3 D a4 * R b3 . open R go R",
        "- D D R b3 U b2 * D b4 . R c3 . open D R go R",
        "- D D R R c3 U c2 . D c4 . R d3 E open U D R go R",
        "- D D R R R d3 E",
        "",
        "\\boxed{D D R R R}",
    ]


@pytest.mark.parametrize("size", [3, 9, 30])
def test_what_is_spelled_is_in_the_maze(size: int) -> None:
    for solved in draw(size, 20, 3, Seen(maze_kernels), maze_kernels):
        maze = solved.maze
        names = {
            f"{chr(97 + c) if c < 26 else 'a' + chr(97 + c - 26)}{r + 1}": (r, c)
            for r in range(size)
            for c in range(size)
        }
        grid, _, walk = STYLES["spelled"](solved).partition("\nstart ")
        of_cells = grid.splitlines()[1::2]
        assert tuple(grid.splitlines()[::2]) == maze.rows
        spelled = [
            pair for line in of_cells for pair in re.findall(r"([a-z]+\d+) ([SE.*])(?!\S)", line)
        ]
        assert [names[name] for name, _ in spelled] == list(names.values())
        assert "".join(letter for _, letter in spelled) == "".join(maze.rows)
        ends = re.findall(r"S start (\S+)", grid), re.findall(r"E end (\S+)", grid)
        assert ends == ([walk.split()[0]], [walk.split()[2]])
        assert [names[name] for (name,) in ends] == [maze.start, maze.end]

        steps = [line for line in walk.splitlines() if line.startswith("- ")]
        assert len(steps) == len(solved.path) + 1
        cell, came_from = maze.start, None
        for taken, step in enumerate(steps):
            assert step.startswith(" ".join(["-", *solved.path[:taken], ""]))
            here, *around = step.split()[1 + taken :]
            assert names[here] == cell
            if taken == len(solved.path):
                assert (cell, around) == (maze.end, ["E"])
                break
            assert around[-2:] == ["go", solved.path[taken]]
            around, ways = around[: around.index("open")], around[around.index("open") + 1 : -2]
            seen = zip(around[::3], around[2::3], strict=True)
            assert ways == [look for look, letter in seen if letter != "*"]
            looks = {}
            for look, name, letter in zip(*(around[i::3] for i in range(3)), strict=True):
                looks[look] = names[name]
                assert names[name] == maze.step(cell, look)
                assert maze.rows[names[name][0]][names[name][1]] == letter
            inside = {
                m for m in "UDLR" if maze.inside(to := maze.step(cell, m)) and to != came_from
            }
            assert set(looks) == inside
            came_from, cell = cell, looks[solved.path[taken]]
