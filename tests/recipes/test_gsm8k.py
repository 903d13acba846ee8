"""GSM8K rows to problems."""

from __future__ import annotations

import pytest

from llmpipe.core.plugins import load
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Problem

RECIPE = load("recipes", "gsm8k")


def convert(answer: str) -> Problem | Drop:
    result: Problem | Drop = RECIPE.convert({"question": " How many? \n", "answer": answer})
    return result


def test_a_row_becomes_a_problem_with_its_working() -> None:
    problem = convert(
        "She sold 48/2 = <<48/2=24>>24 in May.\nIn all 48+24 = <<48+24=72>>72.\n#### 72"
    )
    assert isinstance(problem, Problem)
    assert (problem.prompt, problem.answer, problem.source) == ("How many?", "72", "gsm8k")
    assert problem.solution == (
        "She sold 48/2 = 24 in May.\nIn all 48+24 = 72.\nThe answer is \\boxed{72}."
    )


@pytest.mark.parametrize(
    ("written", "answer"),
    [("1,234,567", "1234567"), ("-3", "-3"), ("0.5", "0.5"), (" 18 ", "18")],
)
def test_answers_lose_their_commas(written: str, answer: str) -> None:
    problem = convert(f"So it is.\n#### {written}")
    assert isinstance(problem, Problem)
    assert problem.answer == answer


@pytest.mark.parametrize("written", ["It is 72.", "It is 72.\n#### ", ""])
def test_a_row_without_a_final_answer_is_dropped(written: str) -> None:
    result = convert(written)
    assert isinstance(result, Drop)
    assert result.reason == "no_final_answer"
