"""Minerva math: 272 university problems of science and mathematics (math-ai/minervamath).

One file, test.jsonl, on the hub at ee46ddc. Columns ``question`` and ``answer`` as
MikaStars39/Nano-Eval reads them: nanoeval/tasks/minerva.py at a5b8478; the card's list of columns
could not be read. (The evaluation of QwenLM/Qwen2.5-Math ships the same problems with the answer in
the last box of ``solution``.) The problems are OCW's (Lewkowycz et al. 2022, arXiv:2206.14858); a
box around an answer is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import math_problem
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    return math_problem(source="minerva-math", prompt=row["question"], answer=row["answer"])


RECIPE = Recipe(
    task="math",
    source="minerva-math",
    repo="math-ai/minervamath",
    split="test",
    test_split="test",
    columns=("question", "answer"),
    convert=_convert,
)
