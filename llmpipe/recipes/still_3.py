"""STILL-3: some 30,000 problems of MATH, NuminaMath and AIME to 2023 (STILL-3-Preview-RL-Data).

RUC-AIBOX/STILL-3-Preview-RL-Data, Parquet with the one split train (hub branch refs/convert/parquet
at cc6af06). The card's list of columns could not be read: ``question`` and ``answer`` are the names
that public loaders of the set read. An answer may be a list of one; several are
``several_answers``. There are no solutions. DeepScaleR holds many of the same problems.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem, one_answer
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    answer = one_answer(row["answer"])
    if isinstance(answer, Drop):
        return answer
    return math_problem(source="still-3", prompt=row["question"], answer=answer)


RECIPE = Recipe(
    task="math",
    source="still-3",
    repo="RUC-AIBOX/STILL-3-Preview-RL-Data",
    columns=("question", "answer"),
    convert=_convert,
)
