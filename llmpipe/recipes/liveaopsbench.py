"""LiveAoPSBench-2024: 5,328 forum problems posted in 2024 (jojo23333/LiveAoPSBench-2024).

Parquet in data/ on the hub at 3ff6280. The card's list of columns could not be read: ``solution``
and ``answer`` are what the authors' evaluation reads (DSL-Lab/aops, eval/parser.py at 2d9f4b5;
Mahdavi et al. 2025, arXiv:2501.14275), ``question`` is the name in public uses of the set. The
split, whatever it is called, is taken to be the only one.

An answer may be a list: of one, which is taken; several different ones are ``several_answers``.
Solutions are forum posts, some of them joined.
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
    return math_problem(
        source="liveaopsbench", prompt=row["question"], answer=answer, solution=row["solution"]
    )


RECIPE = Recipe(
    task="math",
    source="liveaopsbench",
    repo="jojo23333/LiveAoPSBench-2024",
    split=None,
    columns=("question", "answer", "solution"),
    convert=_convert,
)
