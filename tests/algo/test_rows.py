"""Values of rows, whatever their types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo import rows

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("$5$", "5"),
        ("$$5$$", "5"),
        ("$5$.", "5"),
        (r"\(x+1\)", "x+1"),
        (r"\[ 5 \]", "5"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"$\boxed{5}$", "5"),
        (r"\boxed{1}, \boxed{2}", r"\boxed{1}, \boxed{2}"),
        ("$3$ and $5$", "$3$ and $5$"),
        (r"\(3\) and \(5\)", r"\(3\) and \(5\)"),
        (r"\$5", r"\$5"),
        (" 12 ", "12"),
        (12.0, "12"),
        (0.5, "0.5"),
        ("$$", "$$"),
        ("$ $", None),
        (True, None),
        (["5"], None),
    ],
)
def test_an_answer_loses_what_is_around_the_whole_of_it(answer: Any, read: str | None) -> None:
    assert rows.bare(answer) == read


@pytest.mark.parametrize(
    ("value", "of", "read"),
    [
        (3, 4, 0.75),
        ("0.5", 1, 0.5),
        (1.5, 1, None),
        (-0.1, 1, None),
        ("many", 1, None),
        (float("nan"), 1, None),
        (10**400, 1, None),
        (True, 1, None),
    ],
)
def test_shares_are_between_0_and_1(value: Any, of: float, read: float | None) -> None:
    assert rows.share(value, of) == read


def test_a_chat_prompt_has_one_user_turn() -> None:
    turn = {"role": "user", "content": "What?"}
    assert rows.asked([{"role": "system", "content": "Be brief."}, turn]) == "What?"
    assert rows.asked([turn, {"role": "assistant", "content": "4"}, turn]) is None
    assert rows.asked("What?") is None


@given(ANYTHING)
def test_nothing_is_an_exception(value: Any) -> None:
    for read in (rows.text, rows.bare, rows.boxed, rows.asked, rows.domains):
        assert (found := read(value)) is None or (isinstance(found, str) and found)
    rows.one_answer(value)
    rows.math_level(value)
    rows.inside(value, "a", "b")
    rows.number(value)
