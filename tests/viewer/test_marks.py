from __future__ import annotations

import pytest

from llmpipe.viewer.marks import answer_span, thinking


@pytest.mark.parametrize(
    ("response", "extracted", "marked"),
    [
        (r"3 is not it; \boxed{3}, as 3 shows.", "3", r"3 is not it; \boxed{[3]}, as 3 shows."),
        ("The answer is 2.", "2", "The answer is [2]."),
        (r"<think>\boxed{5}</think> Now \boxed{5} it is.", "5",
         r"<think>\boxed{5}</think> Now \boxed{[5]} it is."),
        (r"\boxed{R, R, D}", "RRD", r"\boxed{[R, R, D]}"),
        ("<answer> up, up </answer>", "UU", "<answer> [up, up] </answer>"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", r"\boxed{[\frac{1}{2}]}"),
        ("Nothing of it.", "7", None),
        ("<think>7", "7", None),
        ("The answer is 7.", None, None),
    ],
)  # fmt: skip
def test_where_the_answer_stands(response: str, extracted: str | None, marked: str | None) -> None:
    span = answer_span(response, extracted)
    if span is None:
        assert marked is None
    else:
        start, end = span
        assert f"{response[:start]}[{response[start:end]}]{response[end:]}" == marked


def test_the_thinking_ends_where_the_answer_begins() -> None:
    assert thinking("<think>Hm.</think>So 5.") == len("<think>Hm.</think>")
    assert thinking("So 5.") == 0
