"""A maze with a path in it, as lines of text for a terminal and as SVG for a page."""

from __future__ import annotations

from collections.abc import Iterator

from llmpipe.algo.mazes import Cell, Maze

_ARROWS = {"U": "↑", "D": "↓", "L": "←", "R": "→"}
_CELL = 10  # units of the SVG's own
_STYLE = (
    "rect{fill:#f6f6f6}.w{fill:#333}.p{fill:none;stroke:#1a7f37;stroke-width:2;"
    "stroke-linecap:round;stroke-linejoin:round}text{font:7px sans-serif;text-anchor:middle}"
)


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
    """The same as an SVG image that stands alone; it scales with what it is put into."""
    height, width = (_CELL * side for side in (len(maze.rows), len(maze.rows[0])))
    walls = "".join(
        f'<rect class="w" x="{_CELL * c}" y="{_CELL * r}" width="{_CELL}" height="{_CELL}"/>'
        for r, row in enumerate(maze.rows)
        for c, letter in enumerate(row)
        if letter == "*"
    )
    visited = [maze.start, *(maze.step(cell, move) for cell, move in _walk(maze, path))]
    points = " ".join(f"{x:g},{y:g}" for x, y in map(_middle, visited))
    marks = "".join(
        f'<text x="{x:g}" y="{y + 2.5:g}">{letter}</text>'
        for letter, (x, y) in (("S", _middle(maze.start)), ("E", _middle(maze.end)))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<style>{_STYLE}</style><rect width="{width}" height="{height}"/>{walls}'
        f'<polyline class="p" points="{points}"/>{marks}</svg>'
    )


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
