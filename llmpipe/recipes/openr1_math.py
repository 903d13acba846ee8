"""OpenR1-Math: 93,733 problems that DeepSeek R1 solved at least once (OpenR1-Math-220k, default).

open-r1/OpenR1-Math-220k at e4e141e: the config default is data/train-*, beside ``extended`` and
``all``. Columns ``problem``, ``solution``, ``answer``, ``problem_type``, ``question_type``,
``source``, ``correctness_math_verify`` and ``correctness_llama`` (lists of booleans, one a trace),
and more, as the card copied in Xin-Rui/BudgetThinker-Data-Source at b5ab3c8 lists them.

The solution kept is the gold one; R1's traces (``generations``, most of the set's bytes) are not
read. The pass rate is the share of a problem's two to four traces that Math-Verify or, where it
judged, Llama found right: never 0, as problems without a right trace are not in the set. Proofs are
marked as in NuminaMath, where the problems are from.
"""

from __future__ import annotations

import itertools
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
    return math_problem(
        source=of_set("openr1-math", row["source"]),
        prompt=row["problem"],
        answer=answer,
        solution=row["solution"],
        subject=row["problem_type"],
        pass_rate=_pass_rate(row["correctness_math_verify"], row["correctness_llama"]),
    )


def _pass_rate(by_rule: Any, by_model: Any) -> float | None:
    verdicts = [v if isinstance(v, list) else [] for v in (by_rule, by_model)]
    right = [any(v is True for v in trace) for trace in itertools.zip_longest(*verdicts)]
    return sum(right) / len(right) if right else None


RECIPE = Recipe(
    task="math",
    source="openr1-math",
    repo="open-r1/OpenR1-Math-220k",
    parts=("data",),
    columns=(
        "problem",
        "solution",
        "answer",
        "problem_type",
        "question_type",
        "source",
        "correctness_math_verify",
        "correctness_llama",
    ),
    convert=_convert,
)
