"""AIME 2024: the 30 problems of both papers (HuggingFaceH4/aime_2024).

Columns ``id``, ``problem``, ``solution``, ``answer`` (text), ``url`` and ``year``, files
data/train-*, as the card at 2fe88a2 says. The answers are whole numbers from 0 to 999, some of them
written with leading zeros ("073"): those are taken off. It is a benchmark, though its only split is
called train.

Maxwell-Jia/AIME_2024 holds the same problems under ``Problem`` and ``Answer``: read that with
``--prompt-key Problem --answer-key Answer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem, text
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    answer = text(row["answer"])
    if answer and answer.isdecimal():
        answer = answer.lstrip("0") or "0"
    return math_problem(
        source="aime-2024", prompt=row["problem"], answer=answer, solution=row["solution"]
    )


RECIPE = Recipe(
    task="math",
    source="aime-2024",
    repo="HuggingFaceH4/aime_2024",
    test_split="train",
    columns=("problem", "solution", "answer"),
    convert=_convert,
)
