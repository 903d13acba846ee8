"""MATH-500: 500 problems of MATH's test split (HuggingFaceH4/MATH-500).

One file, test.jsonl, on the hub at ff5b202, with ``problem``, ``solution``, ``answer``,
``subject``, ``level`` (1 to 5) and ``unique_id``, as the card of its copy lmms-lab/MATH500 at
6d45a5b lists them. Difficulty is ``(level - 1) / 4``, as in MATH. It overlaps the MATH test split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_level, math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    level, difficulty = math_level(row["level"])
    return math_problem(
        source="math-500",
        prompt=row["problem"],
        answer=row["answer"],
        solution=row["solution"],
        level=level,
        subject=row["subject"],
        difficulty=difficulty,
    )


RECIPE = Recipe(
    task="math",
    source="math-500",
    repo="HuggingFaceH4/MATH-500",
    split="test",
    test_split="test",
    columns=("problem", "solution", "answer", "subject", "level"),
    convert=_convert,
)
