from __future__ import annotations

import pytest

from llmpipe.tasks import _voting
from llmpipe.tasks._voting import answer_classes, classes

HALF = ["1/2", r"\frac12", "0.5", r"\frac{1}{2}", "x = 1/2"]


@pytest.mark.parametrize(
    ("task", "answers", "expected"),
    [
        ("math", HALF, [0, 0, 0, 0, 0]),
        ("math", ["7", "-7", "007", "+7", "8"], [0, 1, 0, 0, 2]),
        ("math", ["x + 1", "2", "1+x", "2.0", "(1, 2)", "(2, 1)"], [0, 1, 0, 1, 2, 3]),
        ("math", [], []),
        ("maze", ["RD", "DR", "RD"], [0, 1, 0]),  # each way is an answer of its own
    ],
)
def test_equal_answers_are_one_class(task: str, answers: list[str], expected: list[int]) -> None:
    assert classes(task, answers) == expected


def test_many_problems_are_put_to_workers_and_come_in_order() -> None:
    asked = [("math", ["1", "2"]), ("math", HALF), ("maze", ["R"]), ("math", ["3", "3.0"])]
    assert list(answer_classes(asked)) == [
        ([0, 1], True),
        ([0] * 5, True),
        ([0], True),
        ([0, 0], True),
    ]


def test_what_takes_too_long_is_told_apart_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_voting, "CPU_SECONDS", 0.05)
    many = [rf"\sin(x) + x^{{{i}}}" for i in range(2, 60)]
    slow, quick = answer_classes([("math", [*many, r"\sin (x) + x^2"]), ("math", ["1", "1.0"])])
    assert slow == ([*range(len(many)), 0], False)
    assert quick == ([0, 0], True)
