from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact

from llmpipe.algo.metrics import Counts, measure
from llmpipe.algo.passk import pass_at
from llmpipe.algo.results import RESULTS, results
from llmpipe.core.errors import UserError
from llmpipe.core.records import ProblemScore
from llmpipe.stages.compare import Config, run

SETTINGS: Mapping[str, Any] = {
    "model": "a",
    "model_digest": "1",
    "seed": 0,
    "temperature": 1.0,
    "max_tokens": 2048,
    "prompt_template": None,
    "few_shot_digest": None,
    "rules": {"verifiers/math": "1"},
    "problem_set": "1",
    "versions": {"llmpipe": "1", "math-verify": "0.9", "vllm": "0.32"},
}


def an_eval(out: Path, right: Mapping[str, int], n: int = 4, **settings: Any) -> Path:
    """So many right ones of n samples for each problem; the wrong ones say all the same."""
    scores = [
        ProblemScore(
            problem_id=name,
            task="math",
            source="s",
            level=None,
            subject=None,
            n=n,
            correct=c,
            wrong=n - c,
            no_answer=0,
            truncated=0,
            error=0,
            answers=[
                {"answer": "1", "correct": True, "samples": [*range(c)]},
                {"answer": "2", "correct": False, "samples": [*range(c, n)]},
            ],
        )
        for name, c in right.items()
    ]
    make_artifact(out, scores, stage="score")
    found = results(scores, (1, 2), greedy=settings.get("temperature") == 0)
    found["settings"] = {**SETTINGS, **settings}
    (out / RESULTS).write_text(json.dumps(found))
    return out


RIGHT = {"p": 4, "q": 1, "r": 0}


def test_runs_of_one_side_are_put_together(tmp_path: Path) -> None:
    first = an_eval(tmp_path / "a", RIGHT)
    other = an_eval(tmp_path / "a2", {"p": 3, "q": 0, "r": 1}, seed=1)
    second = an_eval(tmp_path / "b", {"r": 4, "q": 4, "p": 4}, model="b", model_digest="2")
    found = run(Config(), [[first, other], [second]])
    assert (found.problems, found.n, found.of) == (3, [8, 4], [3, 3])
    assert found.warnings == []
    pooled = measure(pass_at(2), Counts.of([(8, 7), (8, 1), (8, 1)]))
    both, alone = found.rows["pass@2"]
    assert both.metric == pooled
    assert len(both.runs) == 2
    assert alone.runs == []
    assert alone.difference is not None
    assert alone.difference.value == pytest.approx(1 - pooled["value"])
    assert (alone.difference.won, alone.difference.tied) == (2, 1)
    assert (both.won, alone.won, alone.lost) == ((), ["q", "r"], [])
    # An election is held in each run: (1 + 0 + 0) / 3 and (1 + 0 + 0) / 3 here.
    votes, _ = found.rows["maj@4"]
    assert votes.metric["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"temperature": 0.6}, "temperature differs: 1.0, 0.6"),
        ({"max_tokens": 4096}, "max_tokens differs: 2048, 4096"),
        ({"prompt_template": "Q: {prompt}"}, 'prompt_template differs: null, "Q: {prompt}"'),
        ({"few_shot_digest": "x"}, "the worked examples differ"),
        ({"rules": {"verifiers/math": "2"}}, "the verifiers' source differs"),
        ({"problem_set": "2"}, "the problems are the same, but not all that is known of them"),
        ({"versions": {"llmpipe": "1", "math-verify": "1.0"}}, 'math-verify differs: "0.9", "1.0"'),
        ({"n": 8}, "n differs: 4, 8"),
    ],
)
def test_what_else_differs_is_said(
    tmp_path: Path, settings: Mapping[str, Any], warning: str
) -> None:
    first = an_eval(tmp_path / "a", RIGHT)
    second = an_eval(tmp_path / "b", RIGHT, model="b", model_digest="2", **settings)
    assert run(Config(metrics=("pass@1",)), [[first], [second]]).warnings == [warning]


def test_a_number_of_samples_that_varies_is_said_in_words(tmp_path: Path) -> None:
    evals = [an_eval(tmp_path / name, RIGHT) for name in ("a", "b")]
    results = json.loads((evals[1] / "results.json").read_text())
    results["n"] = {"min": 0, "max": 4}
    (evals[1] / "results.json").write_text(json.dumps(results))
    found = run(Config(metrics=("avg@n",)), [[path] for path in evals])
    assert "n differs: 4, 0 to 4" in found.warnings


def test_only_problems_that_all_have_are_compared(tmp_path: Path) -> None:
    first = an_eval(tmp_path / "a", RIGHT)
    second = an_eval(tmp_path / "b", {"q": 2, "s": 4}, problem_set="2")
    found = run(Config(metrics=("avg@n",)), [[first], [second]])
    assert (found.problems, found.of) == (1, [3, 2])
    assert [row.metric["value"] for row in found.rows["avg@n"]] == [0.25, 0.5]
    assert found.warnings == [
        f"{first} has 2 problems that not all have: they are left out",
        f"{second} has 1 problems that not all have: they are left out",
    ]
    third = an_eval(tmp_path / "c", {"t": 1})
    with pytest.raises(UserError, match="no problem that all of them have"):
        run(Config(), [[first], [second], [third]])


def test_the_same_samples_twice_are_no_second_run(tmp_path: Path) -> None:
    sides = [an_eval(tmp_path / name, RIGHT) for name in ("a", "again")]
    other = an_eval(tmp_path / "b", RIGHT, model_digest="2", seed=5)
    found = run(Config(), [[*sides, other], [an_eval(tmp_path / "c", RIGHT)]])
    assert f"{sides[1]} drew the same samples as another run of its side" in found.warnings
    assert f"{other} is of another model than the others of its side" in found.warnings


def test_scores_of_an_older_llmpipe_are_made_again(tmp_path: Path) -> None:
    first = an_eval(tmp_path / "a", RIGHT)
    second = an_eval(tmp_path / "b", RIGHT)
    (second / RESULTS).unlink()
    with pytest.raises(UserError, match="can't be read") as e:
        run(Config(), [[first], [second]])
    assert "run its eval again" in (e.value.hint or "")
