"""HMMT February 2025: 30 problems of the tournament, as MathArena poses them.

MathArena/hmmt_feb_2025 at caf7304: data/train-00000-of-00001.parquet, its only split, with
``problem_idx``, ``problem``, ``answer`` and ``problem_type`` (a list: "Algebra", "Geometry", ...).
The types are those of the card of MathArena/hmmt_feb_2026 at afb530a, which has the same columns;
it is read too, by its own id. There are no solutions; answers are LaTeX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem, texts
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(
        source="hmmt",
        prompt=row["problem"],
        answer=row["answer"],
        subject="; ".join(texts(row["problem_type"])),
    )


RECIPE = Recipe(
    task="math",
    source="hmmt",
    repo="MathArena/hmmt_feb_2025",
    also=("MathArena/hmmt_feb_2026",),
    test_split="train",
    columns=("problem", "answer", "problem_type"),
    convert=_convert,
)
