"""MATH in one table, as lighteval takes it (DigitalLearningGmbH/MATH-lighteval, config default).

The rows of `llmpipe.recipes.math`, not split by subject: columns ``problem``, ``level``,
``solution`` and ``type``. volcengine/verl reads ``problem`` and the last box of ``solution``:
examples/data_preprocess/math_dataset.py at 341ecbc. The card itself could not be read; that the
default config lies in ``data/`` beside a folder a subject is seen on the hub copy
MaziyarPanahi/MATH-lighteval at 4d50b8c. lighteval/MATH is a loading script and can't be read.

Answers, levels and difficulty as in MATH.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import boxed, math_level, math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    answer = boxed(row["solution"])
    if answer is None:
        return Drop(reason="no_final_answer", detail=f"{row['solution']!r}"[-80:])
    level, difficulty = math_level(row["level"])
    return math_problem(
        source="math-lighteval",
        prompt=row["problem"],
        answer=answer,
        solution=row["solution"],
        level=level,
        subject=row["type"],
        difficulty=difficulty,
    )


RECIPE = Recipe(
    task="math",
    source="math-lighteval",
    repo="DigitalLearningGmbH/MATH-lighteval",
    parts=("data",),
    test_split="test",
    columns=("problem", "level", "solution", "type"),
    convert=_convert,
)
