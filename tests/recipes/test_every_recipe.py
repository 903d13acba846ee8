"""What holds for every recipe of a data set."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from layouts import configs, lay_out, prepared, verl

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load, names
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Problem
from llmpipe.recipes import resolve

SETS = sorted(name for name in names("recipes") if load("recipes", name).repo)
GRID = "S.\n.E"

# A value of the right kind for every column that a recipe reads.
GOOD: dict[str, Any] = {
    **verl(f"Go.\n\n{GRID}", GRID),
    "question": "How many?",
    "problem": "How many?",
    "answer": "So.\n#### 4",
    "solution": "So \\boxed{4}.",
    "final_answer": ["$4$"],
    "is_multiple_answer": False,
    "answer_type": "Numerical",
    "modality": "Text-only",
    "question_type": "Open-ended",
    "context": "Let it be.",
    "level": "Level 2",
    "type": "Algebra",
    "subject": "Algebra",
    "subfield": "Algebra",
    "problem_type": "Algebra",
    "domain": ["Mathematics -> Algebra"],
    "difficulty": 3.5,
    "source": "somewhere",
    "problem_is_valid": "Yes",
    "solution_is_valid": "Yes",
    "llama8b_solve_rate": 0.5,
    "correctness_math_verify": [True],
    "correctness_llama": [None],
    "0": {"value": "How many?"},
    "1": {"ground_truth": {"value": "4"}},
}

ODD: list[Any] = [
    None,
    "",
    " \n",
    "Level 9",
    "[[",
    "[" * 100_000,
    0,
    -7,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    True,
    b"bytes",
    [],
    [None],
    ["x", "y"],
    [1, 2.5, [3]],
    [{"role": "user"}, {"role": "user", "content": ["a"]}],
    {},
    {"value": None},
    {"ground_truth": {"value": ["4"]}},
    {"ground_truth": 4},
    {"model_difficulty": {"DeepSeek-R1-Distill-Qwen-7B": "many"}},
]


def test_all_sets_of_the_issue_are_there() -> None:
    assert set(SETS) >= {
        *("gsm8k", "math", "math-lighteval", "math-500", "aime-2024", "aime-2025", "amc-23"),
        *("omni-math", "olympiadbench", "minerva-math", "hmmt", "liveaopsbench", "numina-math"),
        *("dapo-math", "orz-math", "deepscaler", "skywork-or1", "still-3", "big-math"),
        *("openr1-math", "passk-maze"),
    }


@pytest.mark.parametrize("name", SETS)
def test_a_good_row_makes_a_problem(name: str) -> None:
    recipe = load("recipes", name)
    made = recipe.convert({c: GOOD[c] for c in recipe.columns})
    assert isinstance(made, Problem), made
    assert made.task == recipe.task
    assert made.source.partition("/")[0] == recipe.source == name
    assert made.prompt
    assert made.answer
    for rate in (made.difficulty, made.pass_rate):
        assert rate is None or 0 <= rate <= 1


@pytest.mark.parametrize("name", SETS)
def test_no_value_in_any_column_is_an_exception(name: str) -> None:
    recipe = load("recipes", name)
    good = {c: GOOD[c] for c in recipe.columns}
    rows = [{**good, column: odd} for column in recipe.columns for odd in ODD]
    for row in [*rows, dict.fromkeys(recipe.columns)]:
        made = recipe.convert(row)
        assert isinstance(made, Problem | Drop)
        if isinstance(made, Problem):
            texts = (made.prompt, made.answer, made.solution, made.level, made.subject)
            assert all(t is None or (isinstance(t, str) and t) for t in texts), row
        else:
            assert made.reason.replace("_", "").isalpha()
            assert made.reason.islower()
    nothing = recipe.convert(dict.fromkeys(recipe.columns))
    assert isinstance(nothing, Drop)


@pytest.mark.parametrize("name", SETS)
def test_a_missing_column_is_one_clear_error(name: str, tmp_path: Path) -> None:
    recipe = load("recipes", name)
    split = recipe.split or "train"
    for part in recipe.parts:
        file = part if part.endswith(".jsonl") else f"{part}/{split}.jsonl".lstrip("/")
        card = "" if part else configs(default={split: file})
        lay_out(tmp_path, recipe.repo, {file: [{"other": 1}]}, card=card)
    with pytest.raises(UserError) as caught:
        prepared(tmp_path, name)
    assert caught.value.message.endswith(f"has no column {', '.join(recipe.columns)}")
    assert "\n" not in caught.value.message
    assert caught.value.hint == "its columns are: other"


@pytest.mark.parametrize("name", SETS)
def test_it_is_found_by_its_name_and_by_its_repos(name: str, tmp_path: Path) -> None:
    recipe = load("recipes", name)
    for source in (name, name.replace("-", "_"), recipe.repo, *recipe.also):
        repo = source if "/" in source else recipe.repo
        with pytest.raises(UserError) as missing:
            resolve(source, tmp_path)
        assert missing.value.hint == f"llmpipe download {repo} --repo-type dataset"
        folder = tmp_path / "datasets" / repo
        folder.mkdir(parents=True)
        origin = resolve(source, tmp_path)
        assert (origin.name, origin.recipe, origin.path) == (name, recipe, folder)
        folder.rmdir()


@pytest.mark.parametrize("name", SETS)
def test_a_misspelt_name_is_told_the_right_one(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        resolve(f"{name}x", tmp_path)
    assert name in (caught.value.hint or "")


@pytest.mark.parametrize("name", SETS)
def test_it_says_where_its_schema_is_from(name: str) -> None:
    doc = importlib.import_module(f"llmpipe.recipes.{name.replace('-', '_')}").__doc__ or ""
    assert re.search(r"\bat\s[0-9a-f]{7}\b", doc)
