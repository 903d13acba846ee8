"""DeepScaleR: 40,315 problems of AIME, AMC, Omni-MATH and STILL (DeepScaleR-Preview-Dataset).

agentica-org/DeepScaleR-Preview-Dataset at b6ae8c6: one file, deepscaler.json, a list of objects
with ``problem``, ``answer`` and ``solution``, as the card of its copy WaltonFuture/DeepScaleR at
626b5f3 lists them, and as rllm-org/rllm reads them: scripts/data/deepscaler_dataset.py at 64ba14c.

``solution`` is empty for many rows. A few rows have no answer (discussion 4 of the hub repo): they
are dropped as ``no_answer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(
        source="deepscaler",
        prompt=row["problem"],
        answer=row["answer"],
        solution=row["solution"],
    )


RECIPE = Recipe(
    task="math",
    source="deepscaler",
    repo="agentica-org/DeepScaleR-Preview-Dataset",
    columns=("problem", "answer", "solution"),
    convert=_convert,
)
