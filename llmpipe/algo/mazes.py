"""Mazes as text grids: ``S`` start, ``E`` end, ``.`` open, ``*`` wall; moves are U, D, L, R.

Read, solve, measure, and compare under the eight symmetries of the square.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from llmpipe.algo import maze_kernels

MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
_CODES = {letter: code for code, letter in enumerate(".*SE")}

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

    @property
    def codes(self) -> Any:
        """The cells as `maze_kernels` has them, row by row."""
        return np.array([_CODES[letter] for row in self.rows for letter in row], np.uint8)

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


@dataclass(frozen=True, slots=True)
class Solved:
    """A maze with a shortest path, and what makes it hard.

    ``path`` is the shortest one that, back from E, comes from the first nearer cell in the order
    up, down, left, right; ``turns`` are its own. ``dead_ends`` are cells that can be reached from S
    and lead nowhere; ``ways`` is the number of shortest paths, counted up to
    `maze_kernels.MOST_WAYS`.
    """

    maze: Maze
    path: str
    turns: int
    dead_ends: int
    ways: int

    @property
    def difficulty(self) -> float:
        return difficulty(len(self.path), self.turns, self.dead_ends, self.ways)

    @property
    def payload(self) -> dict[str, Any]:
        """What a problem of it carries."""
        return {
            "maze": str(self.maze),
            "shortest": len(self.path),
            "turns": self.turns,
            "dead_ends": self.dead_ends,
            "ways": self.ways,
        }


@lru_cache(maxsize=4096)
def solve(text: str) -> Solved:
    """Read and solve a maze; remembered, for many answers to one maze.

    Raises:
        ValueError: the maze is malformed or has no path.
    """
    maze = parse(text)
    height, width = len(maze.rows), len(maze.rows[0])
    codes, start, end = maze.codes, *(r * width + c for r, c in (maze.start, maze.end))
    distance, queue, ways, path = (np.zeros(maze.cells, np.int64) for _ in range(4))
    reached = maze_kernels.spread(codes, height, width, start, distance, queue, ways)
    if distance[end] < 0:
        raise ValueError("the maze has no path from S to E")
    turns = maze_kernels.trace(height, width, end, distance, path)
    moves = "".join(maze_kernels.MOVES[way] for way in path[: distance[end]])
    blind = maze_kernels.dead_ends(codes, height, width, queue, reached)
    return Solved(maze, moves, turns, blind, int(ways[end]))


def difficulty(length: int, turns: int, dead_ends: int, ways: int) -> float:
    """How hard a maze is, in [0, 1): ``1 - exp(-effort / 100)``.

    The effort is what there is to find and to get wrong, ``length + turns + dead_ends``, over
    ``sqrt(1 + log2(ways))``, as each shortest path more is one more to hit upon. It rises with the
    first three and falls with the last. A straight corridor of 9 cells has 0.08.
    """
    effort = (length + turns + dead_ends) / math.sqrt(1 + math.log2(ways))
    return round(1 - math.exp(-effort / 100), 4)


def canonical_key(maze: Maze) -> str:
    """The same 32 hex digits for a maze and its rotations and reflections, others for others."""
    grid = np.array([list(row.encode()) for row in maze.rows], dtype=np.uint8)
    forms = [np.rot90(g, k) for g in (grid, grid.T) for k in range(4)]
    smallest = min((f.shape, f.tobytes()) for f in forms)
    return hashlib.blake2b(repr(smallest).encode(), digest_size=16).hexdigest()
