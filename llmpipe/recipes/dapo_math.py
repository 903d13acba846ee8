"""DAPO-Math-17k: problems with whole-number answers, in verl's columns (BytedTsinghua-SIA).

BytedTsinghua-SIA/DAPO-Math-17k, data/dapo-math-17k.parquet: ``data_source``, ``prompt`` (a list of
one user message), ``ability``, ``reward_model`` (``ground_truth`` and ``style``) and ``extra_info``
(``index``), as the card of its copy LuyiCui/DAPO-Math-17k at a063f5c lists them.

Each row is there about a hundred times (1.79 million rows, some 17,400 prompts): of rows with the
same prompt and the same answer the first is kept, the others are ``repeated_row``. The instruction
around the problem is taken off; its wording is as in elliot-zzh/from-transparent-to-opaque,
dataset/dapo_math.py at 4f4d301. Problems are in English and in Chinese.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import asked, inside, math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem

_BEFORE = (
    "Solve the following math problem step by step. The last line of your response should be of "
    "the form Answer: $Answer (without quotes) where $Answer is the answer to the problem."
)
_AFTER = 'Remember to put your answer on its own line after "Answer:".'


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    problem = (asked(row["prompt"]) or "").removeprefix(_BEFORE).removesuffix(_AFTER)
    return math_problem(
        source="dapo-math", prompt=problem, answer=inside(row["reward_model"], "ground_truth")
    )


RECIPE = Recipe(
    task="math",
    source="dapo-math",
    repo="BytedTsinghua-SIA/DAPO-Math-17k",
    columns=("prompt", "reward_model"),
    once=("prompt", "reward_model"),
    convert=_convert,
)
