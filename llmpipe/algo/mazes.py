"""Mazes as text grids: ``S`` start, ``E`` end, ``.`` open, ``*`` wall; moves are U, D, L, R.

Read, solve, compare under the eight symmetries of the square, and draw from a seed.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
SMALLEST = 3

_FRUITLESS = 20_000  # candidates in a row that gave nothing new: the size is used up

Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Maze:
    """A well-formed maze: a rectangle with one start and one end. Cells are (row, column)."""

    rows: tuple[str, ...]
    start: Cell
    end: Cell

    def __str__(self) -> str:
        return "\n".join(self.rows)

    @property
    def cells(self) -> int:
        return len(self.rows) * len(self.rows[0])

    def step(self, cell: Cell, move: str) -> Cell:
        return cell[0] + MOVES[move][0], cell[1] + MOVES[move][1]

    def inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < len(self.rows) and 0 <= cell[1] < len(self.rows[0])

    def open(self, cell: Cell) -> bool:
        return self.inside(cell) and self.rows[cell[0]][cell[1]] != "*"


def parse(text: str) -> Maze:
    """Read a maze; white space at line ends and empty lines around it don't count.

    Raises:
        ValueError: it is empty, ragged, has other characters, or not one S and one E.
    """
    rows = tuple(line.rstrip() for line in text.strip("\r\n").splitlines())
    joined = "".join(rows)
    if not joined:
        raise ValueError("the maze is empty")
    if len({len(row) for row in rows}) > 1:
        raise ValueError("the rows of the maze have different lengths")
    strange = sorted(set(joined) - set("SE.*"))
    if strange:
        raise ValueError(f"the maze has {strange[0]!r} in it, which is none of S, E, . and *")
    for mark in "SE":
        if joined.count(mark) != 1:
            raise ValueError(f"the maze has {joined.count(mark)} {mark}, not one")
    start, end = (divmod(joined.index(mark), len(rows[0])) for mark in "SE")
    return Maze(rows, start, end)


def distances(maze: Maze, source: Cell) -> dict[Cell, int]:
    """Steps from ``source`` to each cell that can be reached from it."""
    found = {source: 0}
    queue = deque([source])
    while queue:
        cell = queue.popleft()
        for move in MOVES:
            to = maze.step(cell, move)
            if to not in found and maze.open(to):
                found[to] = found[cell] + 1
                queue.append(to)
    return found


def shortest_path(maze: Maze) -> str | None:
    """A shortest path from S to E, the first in the order U, D, L, R at each step; None if none."""
    left = distances(maze, maze.end)
    if maze.start not in left:
        return None
    path, cell = "", maze.start
    while cell != maze.end:
        for move in MOVES:
            to = maze.step(cell, move)
            if left.get(to) == left[cell] - 1:
                path, cell = path + move, to
                break
    return path


@lru_cache(maxsize=4096)
def solve(text: str) -> tuple[Maze, int]:
    """A maze and the length of its shortest path; remembered, for many answers to one maze.

    Raises:
        ValueError: the maze is malformed or has no path.
    """
    maze = parse(text)
    path = shortest_path(maze)
    if path is None:
        raise ValueError("the maze has no path from S to E")
    return maze, len(path)


def canonical_key(maze: Maze) -> str:
    """The same 32 hex digits for a maze and its rotations and reflections, others for others."""
    grid = np.array([list(row.encode()) for row in maze.rows], dtype=np.uint8)
    forms = [np.rot90(g, k) for g in (grid, grid.T) for k in range(4)]
    smallest = min((f.shape, f.tobytes()) for f in forms)
    return hashlib.blake2b(repr(smallest).encode(), digest_size=16).hexdigest()


def minimum_length(size: int) -> int:
    """The shortest path that a drawn maze of this size may have: ``size`` steps."""
    return size


def difficulty(length: int, size: int) -> float:
    """How winding the shortest path is, in [0, 1): ``1 - size / length``, 0 below ``size`` steps.

    0 for a path as long as the side, 0.5 for one of twice that length.
    """
    return round(max(0.0, 1 - size / length), 4)


def draw(size: int, seed: int, index: int) -> Maze | None:
    """Candidate number ``index``, a function of the three numbers alone; None if it is no good.

    Between 10 and 45 % of the cells are walls, near the share where open ground falls apart. The
    end is drawn among the cells far enough from the start, so a candidate has a path or is none.
    """
    # Only `random()`: its sequence for a seed is promised across Python versions.
    rng = random.Random(f"{seed} {size} {index}").random
    share = 0.10 + 0.35 * rng()
    grid = [["*" if rng() < share else "." for _ in range(size)] for _ in range(size)]
    start = int(rng() * size), int(rng() * size)
    grid[start[0]][start[1]] = "S"
    walls = Maze(tuple("".join(row) for row in grid), start, start)
    far = [c for c, d in distances(walls, start).items() if d >= minimum_length(size)]
    if not far:
        return None
    end = sorted(far)[int(rng() * len(far))]
    grid[end[0]][end[1]] = "E"
    return Maze(tuple("".join(row) for row in grid), start, end)


def draw_distinct(size: int, seed: int, taken: set[str]) -> Iterator[Maze]:
    """Mazes in the order of their candidate numbers, none like another or one in ``taken``.

    Their keys are added to ``taken``. Ends when 20,000 candidates in a row gave nothing new: then
    (nearly) all of the size are found. Small sizes have few: 3x3 has 179.
    """
    index = fruitless = 0
    while fruitless < _FRUITLESS:
        maze = draw(size, seed, index)
        index += 1
        fruitless += 1
        if maze is None or (key := canonical_key(maze)) in taken:
            continue
        taken.add(key)
        fruitless = 0
        yield maze
