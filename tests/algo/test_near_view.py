"""What of a text is compared: signs, words, and no instructions."""

from __future__ import annotations

import pytest

from llmpipe.algo.normal import normal_form
from llmpipe.algo.view import view


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("Tom's 3-digit number, twenty-one or half of it", " 3 21 1/2"),
        ("two hundred and five of three thousand", " 205 3000"),
        ("five six", " 5 6"),
        ("one of them has one hat, no one has none", " 1"),
        ("x-axis, x - 1 and 2x-3", " x x - 1 2 x - 3"),
        ("a cat and a + b", " a + b"),
        ("(in cm) f(x) = 5!", " f ( x ) = 5 !"),
        ("the ratio 3:4 is: good", " 3 : 4"),
        ("f'(x) isn't don't", " f ' ( x )"),
        (r"$\frac{1}{2}$ of 90 degrees", " 1 / 2 90 °"),
        (r"$\frac{x+1}{2}$", " ( x + 1 ) / 2"),
        (r"put it in \boxed{}", ""),
        ("triangle ABC", " ABC"),
        ("一共三十二个，两百零五个，一万二千个", " 32 205 12000"),
        ("一个和十一个", " 11"),
    ],
)
def test_signs_in_their_order(text: str, signs: str) -> None:
    assert view(normal_form(text)).signs == signs


@pytest.mark.parametrize(
    "note",
    [
        "Show your work.",
        "Please reason step by step, and put your final answer within \\boxed{}.",
        "Solve the following math problem:",
        "Think carefully before you answer.",
        "Let's think step by step.",
        "请逐步推理，写出答案。",
    ],
)
def test_instructions_are_left_out(note: str) -> None:
    bare = view(normal_form("A hen lays 3 eggs. How many eggs in 4 days?"))
    assert view(normal_form(f"A hen lays 3 eggs. How many eggs in 4 days? {note}")) == bare
    assert view(normal_form(f"{note} A hen lays 3 eggs. How many eggs in 4 days?")) == bare


def test_what_is_asked_is_no_instruction() -> None:
    for text in ("Work out the domain of the function.", "Solve the puzzle of the old tower."):
        assert view(normal_form(f"{text} x + 1")).sentences[0][0] in ("work", "solve")
    assert view(normal_form("Solve the problem.")).tokens == ["solve", "the", "problem"]
