"""GSM8K: grade-school word problems with worked answers (openai/gsm8k, config main).

Columns as in the hub repository openai/gsm8k and its origin, openai/grade-school-math (Cobbe et
al. 2021, arXiv:2110.14168): ``question``, and ``answer``, which holds the worked solution with
calculator marks such as ``<<3*4=12>>``, then a line ``#### 12``. Numbers may have thousands commas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem

_CALCULATOR = re.compile(r"<<[^<>]*>>")


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    worked, mark, final = row["answer"].rpartition("####")
    answer = final.strip().replace(",", "")
    if not mark or not answer:
        return Drop(reason="no_final_answer", detail=row["answer"][-80:])
    worked = _CALCULATOR.sub("", worked).strip()
    return Problem.make(
        task="math",
        source="gsm8k",
        prompt=row["question"].strip(),
        answer=answer,
        solution=f"{worked}\nThe answer is \\boxed{{{answer}}}.",
    )


RECIPE = Recipe(
    task="math",
    source="gsm8k",
    repo="openai/gsm8k",
    folder="main",
    split="train",
    test_split="test",
    columns=("question", "answer"),
    convert=_convert,
)
