"""Two turns with real vLLM: wrong answers are replied to, and the second ones are new."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import needs_vllm
from scripted_rollouts import make_problems, rows, sample

from llmpipe import verify_math
from llmpipe.core.artifact import Artifact
from llmpipe.core.plugins import load
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed

pytestmark = [pytest.mark.slow, needs_vllm]


def test_a_small_model_is_told_and_tries_again(tmp_path: Path, smol_model: Path) -> None:
    problems = make_problems(tmp_path / "problems", range(4))
    put = tmp_path / "put.txt"
    put.write_text("{prompt} Put only the number in \\boxed{}.\n")
    result = sample(
        problems,
        tmp_path / "out",
        engine="vllm",
        model=str(smol_model),
        max_turns=2,
        prompt_template=put,
    )
    golds = {p.id: p.answer for p in Artifact.open(problems).iter_rows(Problem)}
    task = load("tasks", "math")
    told = 0
    for row in rows(tmp_path / "out"):
        assert row.messages[0]["content"].endswith("Put only the number in \\boxed{}.")
        (first, *rest) = row.messages[1:]
        score = verify_math(golds[row.problem_id], first["content"])
        if rest:
            reply, second = rest
            assert score.status in ("wrong", "no_answer")
            assert reply["content"] == task.reply(None, row.messages[:2], score)
            assert second["content"] == row.completion
            assert row.seed == sample_seed(0, row.problem_id, row.sample, 1)
            told += 1
        else:
            assert row.finish_reason == "length" or score.status == "correct"
        assert row.completion_tokens > 0
        assert row.prompt_tokens > 0
    assert result.figures["turns"]["2"] == told > 0
    assert result.figures["turns_not_drawn"] == 0
    second = [r for r in rows(tmp_path / "out") if len(r.messages) > 2]
    one_turn = [r for r in rows(tmp_path / "out") if len(r.messages) == 2]
    assert min(r.prompt_tokens for r in second) > max(r.prompt_tokens for r in one_turn)
