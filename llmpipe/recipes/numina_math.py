"""NuminaMath-1.5: 896,215 competition problems with solutions (AI-MO/NuminaMath-1.5).

Files data/train-*; columns ``problem``, ``solution``, ``answer``, ``problem_type``,
``question_type``, ``problem_is_valid``, ``solution_is_valid``, ``source`` and ``synthetic``, as the
card at 9a5aae8 lists them. The repo is also found as project-numina/NuminaMath-1.5 (at 1b05109).

Two marks say that a row is a proof, and neither is enough: the question type "proof" and the
answer "proof". The answer "notfound" is none. Rows are kept only where both problem and solution
are marked valid ("Yes"). Multiple choice is left to `filter`; synthetic rows are kept, and told by
their source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem, of_set, text
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    answer, kind = text(row["answer"]), text(row["question_type"])
    if "proof" in ((answer or "").lower(), (kind or "").lower()):
        return Drop(reason="proof", detail=f"question_type {kind}, answer {answer}"[:200])
    if answer is None or answer.lower() == "notfound":
        return Drop(reason="no_answer", detail=f"{row['answer']!r:.200}")
    for what in ("problem", "solution"):
        if row[f"{what}_is_valid"] != "Yes":
            return Drop(reason=f"invalid_{what}", detail=f"{row[f'{what}_is_valid']!r:.200}")
    return math_problem(
        source=of_set("numina-math", row["source"]),
        prompt=row["problem"],
        answer=answer,
        solution=row["solution"],
        subject=row["problem_type"],
    )


RECIPE = Recipe(
    task="math",
    source="numina-math",
    repo="AI-MO/NuminaMath-1.5",
    also=("project-numina/NuminaMath-1.5",),
    columns=(
        "problem",
        "solution",
        "answer",
        "problem_type",
        "question_type",
        "problem_is_valid",
        "solution_is_valid",
        "source",
    ),
    convert=_convert,
)
