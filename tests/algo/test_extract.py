from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo.extract import Boxes, Found, after_thinking, final_answer, find_boxes, last_tag
from llmpipe.core.pool import WorkerPool


@pytest.mark.parametrize(
    ("response", "text", "method"),
    [
        (r"so \boxed{3}, wait, \boxed{\frac{1}{2}}", r"\frac{1}{2}", "box"),
        (r"\fbox{x}", "x", "box"),
        (r"\boxed {7}", "7", "box"),
        (r"\\boxed{8}", "8", "box"),
        (r"\boxed{\boxed{9}}", "9", "box"),
        (r"\boxed{x = \boxed{3}}", "3", "box"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", "box"),
        (r"{ \boxed{5}", "5", "box"),
        (r"\boxed{4} and then \boxed{", "4", "box"),
        (r"\boxed{4}, I write it in \boxed{}", "4", "box"),
        (r"\boxed{1} and $\boxed{2}$", "1, 2", "box"),
        (r"\boxed{1}, \boxed{1}", "1", "box"),
        (r"\boxed{6} <answer>7</answer>", "6", "box"),
        (r"\( y_1 = \boxed{2x} \) and \( y_2 = \boxed{3x} \)", "2x, 3x", "box"),
        (r"\boxed{35} +++ \boxed{4}", "4", "box"),
        (r"\boxed{3}. Wait, actually \boxed{4}", "4", "box"),
        ("boxed{42}", "42", "box"),
        ("\boxed{43}", "43", "box"),  # "\b" became a backspace
        (r"\beginboxed{8\sqrt{6}}", r"8\sqrt{6}", "box"),
        ("```output\n1\n3.0\n```\nSo 3 trucks take 80 stones.", "3.0", "output_block"),
        ("```output\n7\n``` #### 8", "8", "hashes"),
        ("因此，最终结果为：12", "12", "phrase"),
        ("<answer> 7 </answer> 8", "7", "answer_tag"),
        ("<think>\\boxed{1}</think> it is 4", "4", "last_number"),
        ("The answer is 42 apples. Not 43.", "42", "phrase"),
        ("The answer is: $x^2$, for x > 1", "x^2", "phrase"),
        ("The answer is:\n\n\\[ x = 5 \\]", "x = 5", "phrase"),
        ("**Answer:** 2x", "2x", "phrase"),
        ("**Final Answer**: **B**", "B", "phrase"),
        ("answer: 1,2,3", "1,2,3", "phrase"),
        ("所以答案是 7。", "7", "phrase"),
        ("The answer is 5.5.", "5.5", "phrase"),
        ("3 + 4\n#### 1,234\n", "1,234", "hashes"),
        ("so 5 - 3 = 2", "2", "last_number"),
        ("10-3", "3", "last_number"),
        ("it is -3.5%", "-3.5%", "last_number"),
        ("it costs $5 and $7.", "7", "last_number"),
        ("it costs $1,234,567.", "1,234,567", "last_number"),
        ("about 3/4 of it", "3/4", "last_number"),
        (r"it is \frac{3}{4}", r"\frac{3}{4}", "last_number"),
        (r"thus $\frac{a}{b}$ of it", r"\frac{a}{b}", "last_number"),
        ("with $a = 3$ we get $b = 4$", "b = 4", "last_number"),
    ],
)
def test_finds_the_answer(response: str, text: str, method: str) -> None:
    assert final_answer(response) == Found(text, method)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response", "mode", "why_not"),
    [
        (r"the answer is 5, so \boxed{5", "auto", "the box is never closed"),
        (r"\boxed{{5}", "boxed", "the box is never closed"),
        (r"\boxed{}", "auto", "the box is empty"),
        ("the answer is 5", "boxed", "no box"),
        ("x2 it is", "auto", "no answer, no number, no formula"),
        ("", "auto", "no answer, no number, no formula"),
        (r"<think> it must be \boxed{5}", "auto", "nothing after the thinking"),
    ],
)
def test_says_why_there_is_none(response: str, mode: str, why_not: str) -> None:
    assert final_answer(response, mode) == Found(None, None, why_not)


def test_only_marks_that_close_are_closed() -> None:
    closed = [
        final_answer(t).closed for t in (r"\boxed{1}", "<answer>1</answer>", "answer: 1", "1")
    ]
    assert closed == [True, True, False, False]


def test_another_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="auto or boxed"):
        final_answer("1", "any")


def test_thinking_is_left_out() -> None:
    assert after_thinking("a</think>b</think>c") == "c"
    assert after_thinking("<think>a</think>b<think>c") == "b"
    assert after_thinking("a") == "a"


def test_boxes_are_counted() -> None:
    boxes = find_boxes(r"\boxed{1} no: \boxed{} and \boxed{\fbox{2}} \boxed{3")
    assert boxes == Boxes(closed=4, open=True, last="2", answer="2")
    assert find_boxes(r"\boxed{1}, \boxed{2} or $\boxed{1}$") == Boxes(3, False, "1", "1, 2")
    assert find_boxes("none") == Boxes(0, False, None, None)


def test_the_last_complete_tag() -> None:
    assert last_tag("<answer>1</answer><answer>2</answer><answer>3") == "2"
    assert last_tag("1</answer>") is None


balanced = st.recursive(
    st.text(alphabet="ax1 +=,", max_size=8),
    lambda inner: st.tuples(inner, inner).map(lambda t: f"{t[0]}{{{t[1]}}}"),
    max_leaves=8,
).filter(lambda t: t.strip())


@given(balanced, st.text(alphabet="ab .{}$", max_size=20))
def test_what_is_put_in_a_box_comes_out(content: str, before: str) -> None:
    assert final_answer(f"{before}\\boxed{{{content}}}").text == content.strip()


@given(st.text(alphabet="\\{}$[]()<>/abox. 1,#answeri:-", max_size=200))
def test_never_raises(text: str) -> None:
    for mode in ("auto", "boxed"):
        found = final_answer(text, mode)
        assert (found.text is None) == (found.method is None) == bool(found.why_not)


_UNITS = [
    *["\\boxed{", "\\boxed", "\\boxed ", "\\boxed{1} ", "\\boxed{1} and ", "\\", "{", "}", "{}"],
    *["\\[", "\\(", "$", "$$", "1", "1,", "1,111,", "1.", "-", "1/", "1%", " ", "\n", "a;", "**"],
    *["answer", "answer is ", "answer **", "答案", "####", "<answer>", "</answer>", "<think>"],
    *["\\frac{", "\\frac{1}"],
]


def test_long_hostile_text_costs_little() -> None:
    """Each 200,000 characters long; a quadratic scan of one would take far over the limit."""
    texts = [unit * (200_000 // len(unit)) for unit in _UNITS]
    texts += ["\\boxed{" * 20_000 + "}" * 20_000, "\\boxed{1}{" * 15_000 + "}" * 15_000]
    texts += [f"the answer is {t}" for t in texts] + [f"\\boxed{{{t}" for t in texts]
    with WorkerPool("llmpipe.algo.extract:final_answer", cpu_seconds=3) as pool:
        results = list(pool.map((t,) for t in texts))
    slow = [t[:40] for t, r in zip(texts, results, strict=True) if not isinstance(r, Found)]
    assert not slow
