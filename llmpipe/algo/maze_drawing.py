"""Mazes drawn from a seed: which ones there are, and none twice."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from llmpipe.algo import jit, maze_kernels
from llmpipe.algo.mazes import Maze, Solved

log = logging.getLogger(__name__)

SMALLEST, LARGEST = 3, 99
_BATCH = 1024  # mazes
_FRUITLESS = 20_000  # candidates in a row that gave nothing new: the size is used up
_BY_HAND = 1_000_000  # cells that Python draws in about five seconds; Numba takes one to start
_TEXT = np.frombuffer(b".*SE", np.uint8)
_WAYS = np.frombuffer(maze_kernels.MOVES.encode(), np.uint8)


class Seen:
    """Keys of square mazes, 62 bits each: 16 bytes a maze. Turned and mirrored ones share a key.

    Two different mazes have the same key by a chance of 2e-19, which costs the later one its place
    and never lets one in twice.
    """

    def __init__(self, kernels: ModuleType) -> None:
        self._kernels = kernels
        self._count = 0
        self.table = self._empty(1 << 12)

    @staticmethod
    def _empty(size: int) -> Any:
        return np.full(size, maze_kernels.EMPTY, np.int64)

    def make_room(self, more: int) -> None:
        """Room for so many keys, so that the table stays at most half full."""
        self._count += more
        if 2 * self._count > len(self.table):
            table = self._empty(4 * self._count)
            self._kernels.rehash(self.table, table)
            self.table = table

    def add(self, maze: Maze) -> bool:
        """Whether a maze is new; one that is no square is like none that is drawn."""
        n = len(maze.rows)
        if len(maze.rows[0]) != n:
            return True
        self.make_room(1)
        return bool(self._kernels.insert(self.table, self._kernels.key(maze.codes, n)))


def kernels_for(cells: int) -> ModuleType:
    """What draws mazes of so many cells in all: Numba where that is worth its start, else Python.

    Both draw the same.
    """
    if cells < _BY_HAND:
        return maze_kernels
    if not jit.has_numba():
        log.info("pip install numba makes this a hundred times faster")
        return maze_kernels
    return jit.compiled(maze_kernels.__name__)


def minimum_length(size: int) -> int:
    """The shortest path that a drawn maze of this size may have: ``size`` steps."""
    return size


def draw(size: int, count: int, seed: int, seen: Seen, kernels: ModuleType) -> Iterator[Solved]:
    """Up to ``count`` mazes with ``size`` cells a side that are new to ``seen``, and then aren't.

    Candidate i is a function of (size, seed, i) alone: the same seed gives the same mazes on any
    machine, and more of them go on where fewer ended. Half of the candidates are open ground with
    walls scattered over it, half are corridors with walls taken out; how many is drawn too. Every
    maze has a path of `minimum_length` or more. Fewer than ``count`` come when 20,000 candidates in
    a row gave nothing new: then nearly all of a size are found. 3x3 has 179.
    """
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    a, b = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
    index, left = 0, count
    while left:
        batch = min(_BATCH, left)
        grids = np.zeros((batch, size * size), np.uint8)
        paths = np.zeros((batch, size * size), np.uint8)
        measures = np.zeros((batch, 4), np.int64)
        seen.make_room(batch)
        made, index = kernels.fill(
            *(size, a, b, index, minimum_length(size), _FRUITLESS),
            *(seen.table, grids, paths, measures),
        )
        yield from _drawn(size, grids[:made], paths, measures)
        left = left - made if made == batch else 0


def _drawn(size: int, grids: Any, paths: Any, measures: Any) -> Iterator[Solved]:
    lines = np.full((len(grids), size, size + 1), ord("\n"), np.uint8)
    lines[:, :, :size] = _TEXT[grids].reshape(-1, size, size)
    all_text, all_moves, stride = (
        lines.tobytes().decode(),
        _WAYS[paths].tobytes().decode(),
        size + 1,
    )
    for i, (length, turns, dead_ends, ways) in enumerate(measures[: len(grids)].tolist()):
        text = all_text[i * size * stride : (i + 1) * size * stride - 1]
        maze = Maze(
            tuple(text.split("\n")),
            divmod(text.index("S"), stride),
            divmod(text.index("E"), stride),
        )
        path = all_moves[i * size * size : i * size * size + length]
        yield Solved(maze, path, turns, dead_ends, ways)
