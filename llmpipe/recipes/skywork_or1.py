"""Skywork-OR1: 105,055 problems with measured difficulty (Skywork-OR1-RL-Data, split math).

Skywork/Skywork-OR1-RL-Data, files data/math-*, in verl's columns, as the card at 1cdedc5 lists
them: ``data_source``, ``prompt`` (messages), ``ability``, ``reward_model`` (``ground_truth``,
``style``), ``extra_info`` (``index``, ``model_difficulty``: a number a model). The split code is
not read.

``ground_truth`` is a JSON list with one answer (SkyworkAI/Skywork-OR1, or1_scripts/data_preprocess/
download_and_filter_data_7b.py at 2336f0a); some are empty, and several answers are dropped as
``several_answers``. ``model_difficulty``, from 0 to 16, is taken for how many of 16 tries a model
failed, as users of the set do (what the card says of it could not be read); that of
DeepSeek-R1-Distill-Qwen-7B, by which the script filters, gives difficulty ``n / 16`` and pass rate
``1 - n / 16``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llmpipe.algo.rows import asked, inside, math_problem, of_set, one_answer, share
from llmpipe.core.protocols import Drop, Recipe
from llmpipe.core.records import Problem

_MODEL = "DeepSeek-R1-Distill-Qwen-7B"


def _convert(row: Mapping[str, Any]) -> Problem | Drop:
    answer = one_answer(_listed(inside(row["reward_model"], "ground_truth")))
    if isinstance(answer, Drop):
        return answer
    failed = share(inside(row["extra_info"], "model_difficulty", _MODEL), of=16)
    return math_problem(
        source=of_set("skywork-or1", row["data_source"]),
        prompt=asked(row["prompt"]),
        answer=answer,
        difficulty=failed,
        pass_rate=None if failed is None else 1 - failed,
    )


def _listed(ground_truth: Any) -> Any:
    """The answers in a JSON list; what is none is one answer, but for null and a cut list."""
    try:
        listed = json.loads(ground_truth, parse_int=str, parse_float=str)
    except (TypeError, ValueError, RecursionError):
        cut = isinstance(ground_truth, str) and ground_truth.lstrip().startswith('["')
        return None if cut else ground_truth
    return listed if listed is None or isinstance(listed, list) else ground_truth


RECIPE = Recipe(
    task="math",
    source="skywork-or1",
    repo="Skywork/Skywork-OR1-RL-Data",
    split="math",
    columns=("data_source", "prompt", "reward_model", "extra_info"),
    convert=_convert,
)
