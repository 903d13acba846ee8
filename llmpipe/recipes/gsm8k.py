"""GSM8K: grade-school word problems with worked answers (openai/gsm8k, config main).

Columns as in openai/grade-school-math, README.md at 3101c7d and grade_school_math/dataset.py at
2909d34 (Cobbe et al. 2021, arXiv:2110.14168): ``question``, and ``answer``, which holds the worked
solution with calculator marks such as ``<<3*4=12>>``, then a line ``#### 12``. Numbers may have
thousands commas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem, text
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem

_CALCULATOR = re.compile(r"<<[^<>]*>>")


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    worked, mark, final = (text(row["answer"]) or "").rpartition("####")
    answer = final.strip().replace(",", "")
    if not mark or not answer:
        return Drop(reason="no_final_answer", detail=f"{row['answer']!r}"[-80:])
    worked = _CALCULATOR.sub("", worked).strip()
    return math_problem(
        source="gsm8k",
        prompt=row["question"],
        answer=answer,
        solution=f"{worked}\nThe answer is \\boxed{{{answer}}}.",
    )


RECIPE = Recipe(
    task="math",
    source="gsm8k",
    repo="openai/gsm8k",
    parts=("main",),
    split="train",
    test_split="test",
    columns=("question", "answer"),
    convert=_convert,
)
