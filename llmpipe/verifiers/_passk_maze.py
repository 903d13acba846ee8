r"""Mazes judged as the verifier of Pass@k Training judges them.

After RUCAIBox/Passk_Training, code/maze_verifier.py at 00474d7 (Chen et al. 2025,
arXiv:2508.10751), by what it does; the code is our own:

- The answer is what stands in the last ``<answer>``, where that tag is opened and closed somewhere,
  and in that what follows the last "boxed": a group in braces, closed or not, or what comes before
  the next ``$``. Without "boxed" it is all of the text, thinking included.
- Of its letters in upper case, U, D, L and R are moves wherever they stand ("ANSWER" moves right),
  and every other character is passed over.
- The path is right if it never meets a wall or the edge and ends on E. There is no limit on its
  length, and an answer without moves is wrong; so is a truncated one, unless its moves are right.
"""

from __future__ import annotations

from llmpipe.core.records import Score

_STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def by_passk(maze: str, response: str) -> Score:
    """Correct or wrong, nothing else; ``optimal`` is not judged.

    Raises:
        ValueError: the maze has no S, or the path comes to where a line is shorter than the first.
    """
    path = "".join(letter for letter in _answer(response).upper() if letter in _STEPS)
    stopped = _walk(maze, path)
    return Score(
        status="wrong" if stopped else "correct",
        extracted=path,
        detail=stopped or f"{len(path)} moves",
    )


def _answer(text: str) -> str:
    if "<answer>" in text and "</answer>" in text:
        text = text.rpartition("<answer>")[2].partition("</answer>")[0]
    _, found, text_after = text.rpartition("boxed")
    if not found:
        return text
    if not text_after.startswith("{"):
        return text_after.partition("$")[0]
    depth = 0
    for place, character in enumerate(text_after):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text_after[1:place]
    return text_after[1:]


def _walk(maze: str, path: str) -> str | None:
    """What is wrong with the path; None if it ends on E."""
    rows = maze.strip().splitlines()
    starts = [(r, row.index("S")) for r, row in enumerate(rows) if "S" in row]
    if not starts:
        raise ValueError("the maze has no S")
    row, column = starts[0]
    for number, move in enumerate(path, 1):
        row, column = row + _STEPS[move][0], column + _STEPS[move][1]
        if not (0 <= row < len(rows) and 0 <= column < len(rows[0])):
            return f"move {number} ({move}) leaves the maze"
        if column >= len(rows[row]):
            raise ValueError("the rows of the maze have different lengths")
        if rows[row][column] == "*":
            return f"move {number} ({move}) meets a wall"
    return None if column < len(rows[row]) and rows[row][column] == "E" else "does not end on E"
