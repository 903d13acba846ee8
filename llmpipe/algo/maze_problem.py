"""A maze as a problem."""

from __future__ import annotations

from llmpipe.algo.mazes import Solved, solve
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Problem


def maze_problem(source: str, grid: str, prompt: str | None = None) -> Problem | Drop:
    """A problem of a grid's text, or why the grid is no maze; ``prompt`` says it in other words."""
    try:
        solved = solve(grid)
    except ValueError as e:
        return Drop(reason="malformed", detail=str(e))
    return problem_of(source, solved, prompt=prompt)


def problem_of(
    source: str, solved: Solved, *, prompt: str | None = None, solution: str | None = None
) -> Problem:
    """A problem of a solved maze: its answer is the path, its level the size."""
    maze = solved.maze
    return Problem.make(
        task="maze",
        source=source,
        prompt=prompt or f"Find a path from S to E in this maze.\n\n{maze}",
        answer=solved.path,
        solution=solution,
        level=f"{len(maze.rows)}x{len(maze.rows[0])}",
        difficulty=solved.difficulty,
        payload=solved.payload,
    )
