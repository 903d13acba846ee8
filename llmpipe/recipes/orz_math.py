"""Open-Reasoner-Zero: 57,000 problems with answers (Open-Reasoner-Zero/orz_math_57k_collection).

One JSON file: a list of pairs, each a turn of "human" with the problem under ``value`` and a turn
of "assistant" with the answer under ``ground_truth.value``; `datasets` calls the two columns 0 and
1. So allenai/open-instruct reads it: scripts/data/rlvr/open_reasoner.py at 469cf2d; the hub repo's
own card could not be read. Tonic/OpenReasonerZero (at 11b27f8) holds orz_math_57k_collected.json of
the same form and is read by its id.

Some problems begin with a number or with points ("4. (7 points)"), which stay. ``pass_at_n`` is not
taken for a pass rate: what it measures isn't said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import inside, math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(
        source="orz-math",
        prompt=inside(row["0"], "value"),
        answer=inside(row["1"], "ground_truth", "value"),
    )


RECIPE = Recipe(
    task="math",
    source="orz-math",
    repo="Open-Reasoner-Zero/orz_math_57k_collection",
    also=("Tonic/OpenReasonerZero",),
    columns=("0", "1"),
    convert=_convert,
)
