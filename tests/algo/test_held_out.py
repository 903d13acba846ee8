"""Held-out problems in other texts."""

from __future__ import annotations

import pickle

import pytest

from llmpipe.algo.held_out import HeldOut, Hit
from llmpipe.algo.normal import normal_form
from llmpipe.algo.view import view

PROBLEMS = [
    r"Compute $\frac{3}{4} + 4$.",
    "A hen lays 3 eggs a day. How many eggs in 4 days?",
    "Simplify $2(x+1)$",
    "Find all real roots of the map",
    "1+1",
]
INDEX = HeldOut([normal_form(p) for p in PROBLEMS], [True] * len(PROBLEMS))


def find(text: str) -> Hit | None:
    form = normal_form(text)
    return INDEX.find(text, form, view(form))


@pytest.mark.parametrize(
    ("text", "problem"),
    [("compute \\( \\tfrac34+4 \\)", 0), ("1 + 1 = ?".replace(" = ?", ""), 4), (PROBLEMS[1], 1)],
)
def test_the_same_problem_however_it_is_set(text: str, problem: int) -> None:
    assert find(text) == Hit(problem, "same")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Problem 7 (5 points). A hen lays 3 eggs a day.\nHow many eggs in 4 days? Explain.", 1),
        ('Solve this:\n\n"compute $\\dfrac34 + 4$"\n\nThink first.', 0),
        ("Simplify $2(x+1)$ A train leaves at noon.", 2),
        ("Simplify $2(x+1)$ In how many ways can 3 cats sit?", 2),
        (
            "A cat has 9 lives. How many have 2? A hen lays 3 eggs a day. How many eggs in 4 days?",
            1,
        ),
    ],
)
def test_inside_of_a_longer_text(text: str, problem: int) -> None:
    assert find(text) == Hit(problem, "embedded")


@pytest.mark.parametrize(
    "text",
    [
        r"Compute $\frac{3}{4} + 4 + 5$.",
        r"Compute $\frac{3}{4} + 4$ in lowest terms of seven",
        "Simplify $2(x+1)^2$",
        "Find all real roots of the map of x.",
        "Add 1+1 to 5",
    ],
)
def test_a_text_that_goes_on_is_another_problem(text: str) -> None:
    hit = find(text)
    assert hit is None or hit.tier == "template"


def test_the_same_template_with_other_numbers() -> None:
    assert find("A hen lays 12 eggs a day. How many eggs in 30 days?") == Hit(1, "template")
    assert find("A hen lays 12 eggs a week. How many eggs in 30 days?") is None
    assert find("2 + 3") is None  # too little for a template


def test_what_is_no_prose_is_only_compared_whole() -> None:
    index = HeldOut(["0f3a", "12"], [False, False])
    assert index.find_whole("0f3a") == Hit(0, "same")
    assert index.find("13", "13", view("13")) is None


def test_it_can_be_handed_to_workers() -> None:
    form = normal_form(PROBLEMS[2])
    assert pickle.loads(pickle.dumps(INDEX)).find_whole(form) == Hit(2, "same")
