r"""MATH: competition problems of seven subjects at five levels (EleutherAI/hendrycks_math).

Layout as on the hub at 21a5633: a folder (and config) a subject, each with a train and a test file.
They are read in the order below. Columns ``problem``, ``level``, ``type`` and ``solution``
(Hendrycks et al. 2021, arXiv:2103.03874), as EleutherAI/lm-evaluation-harness reads them:
lm_eval/tasks/hendrycks_math/utils.py at 04bc51f.

The answer stands only in the last box of the solution. Some boxes have no braces (``\boxed 5``);
a row whose box is empty is dropped as ``no_final_answer``. "Level 4" is kept as 4, with difficulty
``(level - 1) / 4``; the few rows of "Level ?" have neither.
"""

from __future__ import annotations

from functools import partial

from llmpipe.algo.rows import math_row
from llmpipe.core.protocols import Recipe

RECIPE = Recipe(
    task="math",
    source="math",
    repo="EleutherAI/hendrycks_math",
    parts=(
        "algebra",
        "counting_and_probability",
        "geometry",
        "intermediate_algebra",
        "number_theory",
        "prealgebra",
        "precalculus",
    ),
    test_split="test",
    columns=("problem", "level", "type", "solution"),
    convert=partial(math_row, "math"),
)
