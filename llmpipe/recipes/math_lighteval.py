"""MATH in one table, as lighteval takes it (DigitalLearningGmbH/MATH-lighteval, config default).

The rows of `llmpipe.recipes.math`, not split by subject: columns ``problem``, ``level``,
``solution`` and ``type``. volcengine/verl reads ``problem`` and the last box of ``solution``:
examples/data_preprocess/math_dataset.py at 341ecbc. The card itself could not be read; that the
default config lies in ``data/`` beside a folder a subject is seen on the hub copy
MaziyarPanahi/MATH-lighteval at 4d50b8c. lighteval/MATH is a loading script and can't be read.

Answers, levels and difficulty as in MATH.
"""

from __future__ import annotations

from functools import partial

from llmpipe.algo.rows import math_row
from llmpipe.core.protocols import Recipe

RECIPE = Recipe(
    task="math",
    source="math-lighteval",
    repo="DigitalLearningGmbH/MATH-lighteval",
    parts=("data",),
    test_split="test",
    columns=("problem", "level", "solution", "type"),
    convert=partial(math_row, "math-lighteval"),
)
