"""Does a response lead from S to E? The moves are read, then walked.

The decisions:

- The answer is the last closed box after the thinking. A closed ``<answer>`` tag, where there is
  one, is the response (its box, or else all of it); "boxed" extraction looks at no tags. Moves in
  bare prose are no answer.
- Read are the letters U, D, L, R in either case, the words up, down, left, right, 上下左右, and
  arrows where nothing else says the moves (between letters they only separate). Spaces, commas,
  dashes, quotes, brackets, ``\\text{}``, ``\\mathrm{}``, ``\\rightarrow`` and a label such as
  "Path:" are passed over. Anything else makes the answer wrong: it is no path.
- Any valid path is right, shortest or not, and it may pass E; it must end on E. A wall or the edge
  ends it. More moves than four times the cells (and more than 100) are a run-on, and wrong.

The "passk" rules are those of the paper's own verifier, looser in what they read
(`llmpipe.verifiers._passk_maze`). Compare with the paper's figures by them; train by the strict
ones.
"""

from __future__ import annotations

import re

from llmpipe.algo.extract import after_thinking, find_boxes, last_tag
from llmpipe.algo.mazes import Maze, Solved, solve
from llmpipe.core.records import FinishReason, Score
from llmpipe.verifiers._passk_maze import by_passk

_CELL_VISITS = 4  # a path of more moves a cell is a run-on,
_SHORT = 100  # unless it is shorter than this


def verify_maze(
    maze: str,
    response: str,
    *,
    rules: str = "strict",
    extract: str = "auto",
    finish_reason: FinishReason = "stop",
) -> Score:
    """Judge a response to a maze (lines of S, E, . and *) by walking its moves.

    ``rules`` are "strict", or "passk" for figures that can be compared with the paper's
    (`llmpipe.verifiers.maze` says how they differ). ``extract`` is "auto" or "boxed". ``optimal``
    of a correct score says whether the path is a shortest one; of another it is None.

    Raises:
        ValueError: the maze is malformed or has no path (under "passk": has no start, or lines of
            different lengths where the path goes), or an option is something else.
    """
    if extract not in ("auto", "boxed"):
        raise ValueError(f"extract is auto or boxed, not {extract!r}")
    if rules == "passk":
        return by_passk(maze, response)
    if rules != "strict":
        raise ValueError(f"rules are strict or passk, not {rules!r}")
    return judge(solve(maze), response, extract=extract, finish_reason=finish_reason)


def judge(
    solved: Solved, response: str, *, extract: str = "auto", finish_reason: FinishReason = "stop"
) -> Score:
    """Judge a response to a maze that is solved already, by the strict rules."""
    answer, why_not = _answer(response, extract)
    if answer is None:
        if finish_reason == "length":
            return Score(status="truncated", extracted=None, detail="cut off before its answer")
        return Score(status="no_answer", extracted=None, detail=why_not)
    path = read_moves(answer)
    if path is None:
        return Score(status="wrong", extracted=answer, detail=f"not a path: {answer[:60]}")
    stopped = _walk(solved.maze, path)
    if stopped:
        return Score(status="wrong", extracted=path, detail=stopped)
    shortest = len(solved.path)
    optimal = len(path) == shortest
    detail = f"{len(path)} moves, {'a shortest path' if optimal else f'the shortest is {shortest}'}"
    return Score(status="correct", extracted=path, detail=detail, optimal=optimal)


def _answer(response: str, extract: str) -> tuple[str | None, str]:
    """The text that should hold the moves, or None and why there is none."""
    text = after_thinking(response)
    tag = last_tag(text) if extract == "auto" else None
    boxes = find_boxes(text if tag is None else tag)
    if boxes.open and (boxes.cut_off or boxes.last is None):
        return None, "the last box is never closed"
    if boxes.last is not None:
        return boxes.last, ""
    if tag:
        return tag, ""
    return None, "the box is empty" if boxes.closed else "no box"


_WORDS = {"up": "U", "down": "D", "left": "L", "right": "R"}
_SIGNS = {"上": "U", "下": "D", "左": "L", "右": "R"}
_ARROWS = {"↑": "U", "↓": "D", "←": "L", "→": "R"}
_ARROW_COMMANDS = {"up": "↑", "down": "↓", "left": "←", "right": "→", None: "→"}  # None: \\to
_LABEL = re.compile(
    r"\s*(?:(?:the|my|final|shortest)\s+)*(?:path|answer|moves|solution)\s*[:=：]", re.IGNORECASE
)
_COMMAND = re.compile(r"\\(?:(?:long)?(up|down|left|right)arrow|to)(?![A-Za-z])", re.IGNORECASE)
_IDLE_COMMAND = re.compile(
    r"\\(?:(?:text|math)[a-z]*|q?quad|[lr]angle|left|right|cdot|[lc]?dots)(?![A-Za-z])"
    r"|\\[^A-Za-z]|->|=>"
)
_TOKEN = re.compile(
    r"(?P<letters>[A-Za-z]+)|(?P<sign>[上下左右])|(?P<arrow>[←→↑↓])"
    r"|[\s,;.:|/\-–—>\"'“”‘’`*$&~{}()\[\]，、。]+|(?P<strange>.)"
)


def read_moves(answer: str) -> str | None:
    """An answer as letters U, D, L, R; None if it holds anything that is no move."""
    text = _LABEL.sub("", answer, count=1)
    text = _COMMAND.sub(lambda m: _ARROW_COMMANDS[m[1] and m[1].lower()], text)
    text = _IDLE_COMMAND.sub(" ", text)
    moves, arrows = [], []
    for token in _TOKEN.finditer(text):
        if token["strange"]:
            return None
        if token["sign"]:
            moves.append(_SIGNS[token["sign"]])
        elif token["arrow"]:
            arrows.append(_ARROWS[token["arrow"]])
        elif word := token["letters"]:
            if word.lower() in _WORDS:
                moves.append(_WORDS[word.lower()])
            elif set(word.upper()) <= set("UDLR"):
                moves.append(word.upper())
            else:
                return None
    return "".join(moves or arrows) or None


def _walk(maze: Maze, path: str) -> str | None:
    """What is wrong with the path; None if it ends on E. Rows and columns are counted from 1."""
    limit = max(_CELL_VISITS * maze.cells, _SHORT)
    cell = maze.start
    for number, move in enumerate(path, 1):
        if number > limit:
            return f"a run-on: more than {limit} moves"
        to = maze.step(cell, move)
        if not maze.open(to):
            what = "meets a wall" if maze.inside(to) else "leaves the maze"
            return f"move {number} ({move}) from {_place(cell)} {what}"
        cell = to
    return None if cell == maze.end else f"ends on {_place(cell)}, not on E"


def _place(cell: tuple[int, int]) -> str:
    return f"row {cell[0] + 1}, column {cell[1] + 1}"
