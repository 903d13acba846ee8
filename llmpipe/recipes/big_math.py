"""Big-Math: 251,122 problems with a measured pass rate (SynthLabsAI/Big-Math-RL-Verified).

Files data/train-*; columns ``problem``, ``answer``, ``source``, ``domain`` (a list of paths) and
``llama8b_solve_rate``, as the card at ce48889 lists them (Albalak et al. 2025, arXiv:2502.17387).

``llama8b_solve_rate``, what Llama 3.1 8B solved of its tries, is the pass rate; it is null for some
rows. There are no solutions. Users found some 6,800 problems twice (discussion 8 of the hub repo):
that is for `dedupe`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import domains, math_problem, of_set, share
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(
        source=of_set("big-math", row["source"]),
        prompt=row["problem"],
        answer=row["answer"],
        subject=domains(row["domain"]),
        pass_rate=share(row["llama8b_solve_rate"]),
    )


RECIPE = Recipe(
    task="math",
    source="big-math",
    repo="SynthLabsAI/Big-Math-RL-Verified",
    columns=("problem", "answer", "source", "domain", "llama8b_solve_rate"),
    convert=_convert,
)
