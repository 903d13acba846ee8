"""Mazes: find a way from S to E. The payload holds the grid under ``maze``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llmpipe.core.records import FinishReason, Message, Problem, Score


class MazeTask:
    """Judged by `llmpipe.verifiers.maze` on the grid; any valid path is right, not only the gold.

    The payload is JSON with the grid (lines of S, E, . and *) under ``maze``.
    """

    name = "maze"
    one_answer = False
    prose = False
    instruction = (
        "S is the start, E is the end, . is open and * is a wall. A move is one step to an open "
        "cell: U (up), D (down), L (left) or R (right). Think it through, and put the moves from S "
        "to E in \\boxed{}, for example \\boxed{RRDD}."
    )

    def normal_form(self, problem: Problem) -> str:
        """Rotated and reflected mazes are the same problem; a malformed one is as it is written."""
        from llmpipe.algo.mazes import canonical_key, parse

        try:
            return canonical_key(parse(_grid(problem)))
        except ValueError:
            return problem.prompt

    def malformed(self, problem: Problem) -> str | None:
        from llmpipe.algo.mazes import solve

        try:
            solve(_grid(problem))
        except ValueError as e:
            return str(e)
        return None

    def unreadable(self, answer: str) -> str | None:
        """Never: a path is judged on the grid, whatever the gold one is."""
        return None

    def judge(
        self,
        answer: str,
        payload: str,
        response: str,
        *,
        finish_reason: FinishReason,
        extract: str,
        rules: str = "strict",
    ) -> Score:
        from llmpipe.verifiers.maze import verify_maze

        grid = json.loads(payload)["maze"]
        return verify_maze(
            grid, response, rules=rules, extract=extract, finish_reason=finish_reason
        )

    def reply(self, problem: Problem, messages: Sequence[Message], score: Score) -> str | None:
        """The step that broke, of wrong moves: it says nothing of a right path."""
        if score.status == "wrong":
            return (
                f"That is no way from S to E: {score.detail}. Rows and columns are counted from 1, "
                "from the top left. Look at the maze again, and give all moves from S."
            )
        if score.status == "no_answer":
            return f"No moves can be read from that: {score.detail}. {self.instruction}"
        return None


def _grid(problem: Problem) -> str:
    payload = json.loads(problem.payload)
    grid = payload.get("maze") if isinstance(payload, dict) else None
    if not isinstance(grid, str):
        raise ValueError("the payload has no maze")
    return grid


TASK = MazeTask()
