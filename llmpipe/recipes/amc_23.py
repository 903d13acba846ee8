"""AMC 23: 40 problems of the 2023 AMC 12, without their options (math-ai/amc23).

One file, test-00000-of-00001.parquet, on the hub at 80815d3. Columns ``question`` and ``answer`` as
MikaStars39/Nano-Eval reads them: nanoeval/tasks/amc2023.py at a5b8478; the card's list of columns
could not be read. Options are cut off in the set itself and the answer is a number; where it comes
as a float ("27.0") it is written as the whole number that it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem, text
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem

_WHOLE_FLOAT = re.compile(r"-?\d+\.0+")


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    answer = text(row["answer"])
    if answer and _WHOLE_FLOAT.fullmatch(answer):
        answer = answer.partition(".")[0]
    return math_problem(source="amc-23", prompt=row["question"], answer=answer)


RECIPE = Recipe(
    task="math",
    source="amc-23",
    repo="math-ai/amc23",
    split="test",
    test_split="test",
    columns=("question", "answer"),
    convert=_convert,
)
