"""A maze with a path in it, as lines of text for a terminal and as SVG for a page."""

from __future__ import annotations

from collections.abc import Iterator

from llmpipe.algo.mazes import Cell, Maze

_ARROWS = {"U": "↑", "D": "↓", "L": "←", "R": "→"}
_CELL = 10  # units of the SVG's own
# Attributes, not a style sheet: a page with a strict policy takes it, and may colour it anew.
_PATH = 'fill="none" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"'
_MARK = 'font-size="7" font-family="sans-serif" text-anchor="middle"'


def lines(maze: Maze, path: str) -> list[str]:
    """The maze in a frame, two characters a cell; an arrow is the last move out of its cell.

    A path that meets a wall or the edge is drawn up to there.
    """
    arrows = {cell: _ARROWS[move] for cell, move in _walk(maze, path)}
    width = 2 * len(maze.rows[0])
    drawn = [f"┌{'─' * width}┐"]
    for r, row in enumerate(maze.rows):
        cells = [
            "██" if c == "*" else f"{c if c in 'SE' else arrows.get((r, i), ' ')} "
            for i, c in enumerate(row)
        ]
        drawn.append(f"│{''.join(cells)}│")
    return [*drawn, f"└{'─' * width}┘"]


def svg(maze: Maze, path: str) -> str:
    """The same as an SVG image that stands alone; it scales with what it is put into.

    A red cross is where the path meets a wall or the edge, a red ring where it ends, if not on E.
    """
    height, width = (_CELL * side for side in (len(maze.rows), len(maze.rows[0])))
    walls = "".join(
        f'<rect class="w" fill="#333" x="{_CELL * c}" y="{_CELL * r}" '
        f'width="{_CELL}" height="{_CELL}"/>'
        for r, row in enumerate(maze.rows)
        for c, letter in enumerate(row)
        if letter == "*"
    )
    moves = list(_walk(maze, path))
    visited = [maze.start, *(maze.step(cell, move) for cell, move in moves)]
    points = " ".join(f"{x:g},{y:g}" for x, y in map(_middle, visited))
    marks = "".join(
        f'<text class="m" {_MARK} x="{x:g}" y="{y + 2.5:g}">{letter}</text>'
        for letter, (x, y) in (("S", _middle(maze.start)), ("E", _middle(maze.end)))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<rect class="g" fill="#f6f6f6" width="{width}" height="{height}"/>{walls}'
        f'<polyline class="p" stroke="#1a7f37" {_PATH} points="{points}"/>{marks}'
        f"{_fault(maze, path[len(moves) :], visited[-1]) if path else ''}</svg>"
    )


def _fault(maze: Maze, rest: str, cell: Cell) -> str:
    """Where a path that came to ``cell`` broke, with ``rest`` left of its moves."""
    (x, y), red = _middle(cell), f'class="x" stroke="#cf222e" {_PATH}'
    if not rest:
        return "" if cell == maze.end else f'<circle {red} cx="{x:g}" cy="{y:g}" r="3.5"/>'
    to_x, to_y = _middle(maze.step(cell, rest[0]))
    x, y = x + 0.4 * (to_x - x), y + 0.4 * (to_y - y)  # at the border that it can't cross
    return f'<path {red} d="M{x - 2:g} {y - 2:g}l4 4m0 -4l-4 4"/>'


def _walk(maze: Maze, path: str) -> Iterator[tuple[Cell, str]]:
    """Each cell that the path leaves and by which move, as far as it is open."""
    cell = maze.start
    for move in path:
        to = maze.step(cell, move)
        if not maze.open(to):
            return
        yield cell, move
        cell = to


def _middle(cell: Cell) -> tuple[float, float]:
    return _CELL * (cell[1] + 0.5), _CELL * (cell[0] + 0.5)
