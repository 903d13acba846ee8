"""AIME 2025: the 30 problems of both papers (opencompass/AIME2025, configs AIME2025-I and -II).

On the hub at a6ad95f each config is one file, aime2025-I.jsonl and aime2025-II.jsonl, of split
test; they are read in that order. Columns ``question`` and ``answer``, as NVIDIA-NeMo/RL reads
them: nemo_rl/data/datasets/response_datasets/aime25.py at c8edb48. There are no solutions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(source="aime-2025", prompt=row["question"], answer=row["answer"])


RECIPE = Recipe(
    task="math",
    source="aime-2025",
    repo="opencompass/AIME2025",
    parts=("aime2025-I.jsonl", "aime2025-II.jsonl"),
    split=None,
    columns=("question", "answer"),
    convert=_convert,
)
