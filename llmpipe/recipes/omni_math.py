"""Omni-MATH: 4,428 olympiad problems with a rated difficulty (KbsdJames/Omni-MATH).

One file, test.jsonl, on the hub at 40ba231. Columns ``domain`` (a list of paths such as
"Mathematics -> Algebra -> Equations"), ``difficulty`` (a number from 1 to 10), ``problem``,
``solution``, ``answer`` and ``source``, as the card of the subset reliable-agents/Omni-MATH-500 at
abbd996 lists them, and as GPT_eval/detailed_evaluation/domain_specific_evaluation.py of
KbsdJames/Omni-MATH at 463096b reads them.

The level is the rating as it is written, the difficulty ``rating / 10``; several domains are one
subject with ";" between. Rows without an answer are dropped; proofs and prose are left to `filter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import domains, math_problem, of_set, share
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(
        source=of_set("omni-math", row["source"]),
        prompt=row["problem"],
        answer=row["answer"],
        solution=row["solution"],
        level=row["difficulty"],
        subject=domains(row["domain"]),
        difficulty=share(row["difficulty"], of=10),
    )


RECIPE = Recipe(
    task="math",
    source="omni-math",
    repo="KbsdJames/Omni-MATH",
    split="test",
    test_split="test",
    columns=("domain", "difficulty", "problem", "solution", "answer", "source"),
    convert=_convert,
)
