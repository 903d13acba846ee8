"""Mazes of the rows that `show` prints, drawn with their paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from llmpipe.algo import maze_pictures
from llmpipe.algo.mazes import Maze, parse
from llmpipe.core import fs
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Verdict


class Pictures:
    """The mazes of some rows: problems with their answers, verdicts with the paths they judged."""

    def __init__(self, artifact: Artifact, rows: Sequence[Any]) -> None:
        wanted = {row.problem_id for row in rows if isinstance(row, Verdict)}
        self._payloads = _payloads(artifact, wanted) if wanted else {}

    def draw(self, row: Any, out: Console) -> None:
        """Print the maze of a row, if it has one, with arrows along the path."""
        found = self._of(row)
        if found:
            text = Text("\n".join(maze_pictures.lines(*found)))
            text.highlight_regex("[↑↓←→]", "green")
            text.highlight_regex("[SE]", "bold")
            out.print(text)

    def write(self, row: Any, folder: Path) -> Path | None:
        """Write the maze of a row as ``folder/ID.svg`` (of a verdict ``ID-SAMPLE.svg``)."""
        found = self._of(row)
        if found is None:
            return None
        name = f"{row.problem_id}-{row.sample}" if isinstance(row, Verdict) else row.id
        path = folder / f"{name}.svg"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fs.write(path, (maze_pictures.svg(*found) + "\n").encode())
        except OSError as e:
            raise UserError(f"can't write {path}: {e.strerror}", "--svg FOLDER") from None
        return path

    def _of(self, row: Any) -> tuple[Maze, str] | None:
        if isinstance(row, Problem):
            payload, path = row.payload if row.task == "maze" else "{}", row.answer
        elif isinstance(row, Verdict):
            payload, path = self._payloads.get(row.problem_id, "{}"), row.extracted or ""
        else:
            return None
        try:
            maze = parse(json.loads(payload)["maze"])
        except (ValueError, KeyError, TypeError):
            return None
        return maze, path if set(path) <= set("UDLR") else ""


def _payloads(artifact: Artifact, wanted: set[str]) -> dict[str, str]:
    """Of the problems behind verdicts, the mazes; none where they were moved away."""
    try:
        problems = artifact.upstream(Problem, None)
    except UserError:
        return {}
    found: dict[str, str] = {}
    for batch in problems.batches(["id", "task", "payload"]):
        for row in batch.to_pylist():
            if row["id"] in wanted and row["task"] == "maze":
                found[row["id"]] = row["payload"]
        if len(found) == len(wanted):
            break
    return found
