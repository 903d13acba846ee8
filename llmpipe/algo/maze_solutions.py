"""Worked answers to mazes, in words: what a model that can't solve mazes yet begins to learn from.

Each style is one function of a solved maze and ends in ``\\boxed{}`` with its path. Rows and
columns are counted from 1, from the top and from the left; "spelled" has letters for columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from llmpipe.algo.mazes import Cell, Maze, Solved

_DIRECTIONS = {"U": "up", "D": "down", "L": "left", "R": "right"}


def moves(solved: Solved) -> str:
    """The moves alone, run by run: "right 3, down 2"."""
    runs = [
        f"{_DIRECTIONS[move]} {len(list(group))}" for move, group in itertools.groupby(solved.path)
    ]
    return f"From S go {', '.join(runs)}. That is E.\n\n{_boxed(solved)}"


def coordinates(solved: Solved) -> str:
    """Each move with the cell that it leads to."""
    maze = solved.maze
    lines = [f"S is at {_place(maze.start)}, E is at {_place(maze.end)}."]
    cell = maze.start
    for move in solved.path:
        to = maze.step(cell, move)
        lines.append(f"{_place(cell)}, {_DIRECTIONS[move]}: {_place(to)}, {_what(maze, to)}")
        cell = to
    return "\n".join([*lines, "", f"{len(solved.path)} moves.", "", _boxed(solved)])


def search(solved: Solved) -> str:
    """Breadth-first search, told layer by layer, and the way back from E."""
    maze = solved.maze
    lines = [
        f"S is at {_place(maze.start)}, E is at {_place(maze.end)}.",
        "I look for E step by step: from the cells of each step to open cells not seen before.",
    ]
    for step, cells in enumerate(_layers(maze)):
        lines.append(f"Step {step}: {' '.join(_place(cell) for cell in cells)}")
    visited = [maze.start]
    for move in solved.path:
        visited.append(maze.step(visited[-1], move))
    lines.append(f"E is reached at step {len(solved.path)}.")
    lines.append(f"Back from E, a step less each time: {' '.join(map(_place, visited[::-1]))}")
    words = " ".join(_DIRECTIONS[move] for move in solved.path)
    return "\n".join([*lines, f"So from S: {words}.", "", _boxed(solved)])


def spelled(solved: Solved) -> str:
    """The grid cell by cell, and a walk over the cells' names that looks around before each move.

    For models that read several characters of a row as one token, and so don't find the cells in
    it. Each row is told as it is and then by its cells, which are named as in a spreadsheet: "b3"
    is the second of the third row. A line of the walk has the moves so far, where they lead, what
    is around it (up, down, left, right, but for the cell it comes from), which of these ways are
    open, and the one that is gone. The start, the end and the moves are told again and again, as to
    copy what follows a word is what a small model does best; in the box each move is a token of
    its own.
    """
    maze = solved.maze
    lines = [line for r, row in enumerate(maze.rows) for line in (row, _spell(r, row))]
    lines.append(f"start {_name(maze.start)} end {_name(maze.end)}")
    before, cell = None, maze.start
    for taken, move in enumerate(solved.path):
        around = {look: maze.step(cell, look) for look in _DIRECTIONS}
        around = {look: to for look, to in around.items() if maze.inside(to) and to != before}
        words = ["-", *solved.path[:taken], _name(cell)]
        for look, (row, column) in around.items():
            words += [look, _name((row, column)), maze.rows[row][column]]
        open_ways = [look for look, to in around.items() if maze.open(to)]
        lines.append(" ".join([*words, "open", *open_ways, "go", move]))
        before, cell = cell, maze.step(cell, move)
    lines.append(f"- {' '.join(solved.path)} {_name(cell)} E")
    return "\n".join([*lines, "", f"\\boxed{{{' '.join(solved.path)}}}"])


STYLES: Mapping[str, Callable[[Solved], str]] = {
    "moves": moves,
    "coordinates": coordinates,
    "search": search,
    "spelled": spelled,
}


def _layers(maze: Maze) -> Iterator[list[Cell]]:
    """The cells at each distance from S, up to the layer with E."""
    layer, seen = [maze.start], {maze.start}
    while maze.end not in seen:
        yield layer
        reached = [maze.step(cell, move) for cell in layer for move in _DIRECTIONS]
        layer = [to for to in dict.fromkeys(reached) if maze.open(to) and to not in seen]
        seen.update(layer)
    yield layer


def _spell(row: int, letters: str) -> str:
    """A row by its cells, with where S and E are after them."""
    words = ["-"]
    for column, letter in enumerate(letters):
        name = _name((row, column))
        words += [name, letter]
        if letter in "SE":
            words += ["start" if letter == "S" else "end", name]
    return " ".join(words)


def _name(cell: Cell) -> str:
    """The column's letters (a to z, aa, ab, ...) and the row's number, as in a spreadsheet."""
    letters, column = "", cell[1] + 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return f"{letters}{cell[0] + 1}"


def _place(cell: Cell) -> str:
    return f"({cell[0] + 1},{cell[1] + 1})"


def _what(maze: Maze, cell: Cell) -> str:
    return {"E": "which is E.", "S": "which is S.", ".": "open."}[maze.rows[cell[0]][cell[1]]]


def _boxed(solved: Solved) -> str:
    return f"\\boxed{{{solved.path}}}"
