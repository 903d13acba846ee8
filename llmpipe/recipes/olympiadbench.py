"""OlympiadBench: open-ended, text-only competition maths in English (Hothan/OlympiadBench).

The config OE_TO_maths_en_COMP, 674 problems: one file,
OlympiadBench/OE_TO_maths_en_COMP/OE_TO_maths_en_COMP.parquet, of split train, at 91184b5. Columns
as README.md of OpenBMB/OlympiadBench at 1289b12 describes them (He et al. 2024, arXiv:2402.14008):
``context``, ``question``, ``solution`` and ``final_answer`` (lists), ``is_multiple_answer``,
``answer_type``, ``subfield``; ``question_type`` and ``modality`` come on top on the hub.

The context goes before the question, the first solution is kept. Answers have dollars around them.
Where a problem has several answers they are one answer with commas, as the set's own prompt asks;
several final answers to a problem that has one are ``several_answers``. Rows with an image,
theorems to prove and answers that only a person can judge are dropped. ``unit`` is not part of an
answer there, and ``error``, the tolerance of some, is not kept: the verifier has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import bare, math_problem, one_answer, text, texts
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    question = text(row["question"])
    if row["modality"] == "Multimodal" or "<img_" in (question or ""):
        return Drop(reason="has_image", detail=(question or "")[:200])
    if row["question_type"] == "Theorem proof":
        return Drop(reason="proof", detail=(question or "")[:200])
    if "Need_human_evaluate" in (text(row["answer_type"]) or ""):
        return Drop(reason="needs_human_judge", detail=f"{row['final_answer']!r:.200}")
    answers = [a for t in texts(row["final_answer"]) if (a := bare(t))]
    answer = ", ".join(answers) if row["is_multiple_answer"] is True else one_answer(answers)
    if isinstance(answer, Drop):
        return answer
    context = text(row["context"])
    return math_problem(
        source="olympiadbench",
        prompt=f"{context}\n\n{question}" if context and question else question,
        answer=answer,
        solution=next(iter(texts(row["solution"])), None),
        subject=row["subfield"],
    )


RECIPE = Recipe(
    task="math",
    source="olympiadbench",
    repo="Hothan/OlympiadBench",
    parts=("OlympiadBench/OE_TO_maths_en_COMP",),
    test_split="train",
    columns=(
        "context",
        "question",
        "solution",
        "final_answer",
        "is_multiple_answer",
        "answer_type",
        "question_type",
        "modality",
        "subfield",
    ),
    convert=_convert,
)
