from __future__ import annotations

import random

import pytest

from llmpipe.core.protocols import Request, Sampling
from llmpipe.core.records import Problem
from llmpipe.core.seeds import sample_seed
from llmpipe.engines.scripted import ScriptedEngine


def _requests(count: int, task: str = "math", answer: str = "7") -> list[Request]:
    problem = Problem.make(task=task, source="test", prompt="Count.", answer=answer)
    return [
        Request(
            problem=problem,
            sample=i,
            seed=sample_seed(1, problem.id, i),
            messages=[{"role": "user", "content": problem.prompt}],
        )
        for i in range(count)
    ]


def _engine(max_tokens: int = 100, **options: str) -> ScriptedEngine:
    return ScriptedEngine("any", Sampling(max_tokens=max_tokens), options)


def test_shares_are_those_asked_for() -> None:
    engine = _engine(p_correct="0.25", p_truncated="0.1", p_no_answer="0.2")
    made = list(engine.stream(_requests(4000)))

    right = sum("\\boxed{7}" in g.text for g in made)
    boxed = sum("\\boxed" in g.text for g in made)
    cut = sum(g.finish_reason == "length" for g in made)
    assert cut == pytest.approx(400, abs=80)
    assert boxed == pytest.approx(2800, abs=130)
    assert right == pytest.approx(700, abs=110)


def test_answers_do_not_depend_on_order_and_come_out_of_order() -> None:
    requests = _requests(200)
    shuffled = random.Random(0).sample(requests, len(requests))

    made = list(_engine().stream(requests))
    again = {g.request.sample: g.text for g in _engine(window="3").stream(shuffled)}

    assert [g.request.sample for g in made] != list(range(200))
    assert {g.request.sample: g.text for g in made} == again


def test_a_wrong_maze_path_does_not_end_on_the_goal() -> None:
    [made] = _engine(p_correct="0").stream(_requests(1, "maze", "RRDD"))
    assert "\\boxed{RRDDU}" in made.text


def test_breaks_after_the_given_count() -> None:
    answers = _engine(fail_after="5").stream(_requests(20))
    seen = [next(answers) for _ in range(5)]
    with pytest.raises(RuntimeError, match="after 5 answers"):
        next(answers)
    assert len(seen) == 5


def test_answers_are_cut_at_max_tokens() -> None:
    made = list(_engine(max_tokens=2).stream(_requests(3)))
    assert [(g.finish_reason, g.completion_tokens) for g in made] == [("length", 2)] * 3
