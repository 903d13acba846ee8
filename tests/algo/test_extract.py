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
        (r"\boxed{4 and \boxed{5}", "5", "box"),  # the last one is whole
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
        ("The answer is 42 apples. Not 43.", "42 apples", "phrase"),
        ("The answer is: $x^2$, for x > 1", "x^2", "phrase"),
        ("The answer is:\n\n\\[ x = 5 \\]", "x = 5", "phrase"),
        ("**Answer:** 2x", "2x", "phrase"),
        ("**Final Answer**: **B**", "B", "phrase"),
        ("answer: 1,2,3", "1,2,3", "phrase"),
        ("所以答案是 7。", "7", "phrase"),
        ("The answer is 5.5.", "5.5", "phrase"),
        ("3 + 4\n#### 1,234\n", "1,234", "hashes"),
        ("so 5 - 3 = 2", "2", "last_number"),
        ("it is -3.5%", "-3.5%", "last_number"),
        ("it costs $5 and $7.", "$5 and $7", "last_number"),
        ("it costs $1,234,567.", "$1,234,567", "last_number"),
        ("about 3/4 of it", "3/4", "last_number"),
        (r"it is \frac{3}{4}", r"\frac{3}{4}", "last_number"),
        (r"thus $\frac{a}{b}$ of it", r"\frac{a}{b}", "last_number"),
        ("with $a = 3$ we get $b = 4$", "b = 4", "last_number"),
    ],
)
def test_finds_the_answer(response: str, text: str, method: str) -> None:
    assert final_answer(response) == Found(text, method)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response", "text", "method"),
    [
        # The whole of what is said, with its expression and unit.
        ("The answer is √5.", "√5", "phrase"),
        ("The answer is – 5.", "– 5", "phrase"),
        ("The answer is negative 5.", "negative 5", "phrase"),
        ("The answer is at least 5.", "at least 5", "phrase"),
        ("The answer is not 5.", "not 5", "phrase"),
        ("The answer is 5 million dollars.", "5 million dollars", "phrase"),
        ("The answer is 5 dollars per hour on Monday.", "5 dollars per hour", "phrase"),
        ("The answer is 5, not 6.", "5", "phrase"),
        ("The answer is 5 or 6.", "5 or 6", "phrase"),
        ("The answer is $5$ or $6$.", "$5$ or $6$", "phrase"),
        ("The answer is B, because x = 12.", "B", "phrase"),
        ("The answer is Tuesday.", "Tuesday", "phrase"),
        ("The answer is 2 + 3 = 5 apples.", "5 apples", "phrase"),
        ("The answer to part (b) is 5.", "5", "phrase"),
        ("The answer is 5<|im_end|>6", "5", "phrase"),
        ("The answer is 5. I checked that the answer is correct.", "5", "phrase"),
        ("The answer is 5. See whether the answer is 6.", "5", "phrase"),
        ("Final Answer\n\n$5$", "5", "phrase"),
        ("### Final answer\n\\[ x = 5 \\]", "x = 5", "phrase"),
        ("(C) is the correct choice.", "C", "phrase"),
        ("The correct option is (B).", "(B)", "phrase"),
        ("故选：B", "B", "phrase"),
        ("答案为 $5$ 元。", "$5$ 元", "phrase"),
        ("答：一共有5个苹果。", "5", "phrase"),
        ("答案是负5。", "负5", "phrase"),
        ("So x = √5", "x = √5", "last_number"),
        ("so we get x > 5", "x > 5", "last_number"),
        ("hence x = 2^3", "x = 2^3", "last_number"),
        ("So there are 3 * 2 = 6 eggs in all.", "6 eggs", "last_number"),
        ("she pays $2.50 x 4 = $10.", "$10", "last_number"),
        ("so 5 (five) of them", "5", "last_number"),
        ("so log 5 it is", "log 5", "last_number"),
        ("the points are (1, 2) and (3, 4)", "(1, 2) and (3, 4)", "last_number"),
        ("The number of girls who are not here is 5.", "5", "last_number"),
        ("<thinking>1</thinking> it is 2", "2", "last_number"),
        ("[THINK]1[/THINK] it is 2 [THINK] or 3", "2", "last_number"),
        ("<|begin_of_thought|>1<|end_of_thought|>it is 2", "2", "last_number"),
        ("◁think▷1◁/think▷it is 2", "2", "last_number"),
    ],
)
def test_takes_the_whole_of_what_is_said(response: str, text: str, method: str) -> None:
    assert final_answer(response) == Found(text, method)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "response",
    [
        *["we get half of 5", "it is at least 5", "there are not 5", "so 10-5", "is it 5?"],
        *["it is twice 5", "the root of 5", "5 is wrong", "suppose it is 5", "5 squared"],
        *["it is 5 to the n", "2 apples and 5 pears", "a 5-year plan", "see step 5", "5 dozen"],
        *["x5 it is", "the sum is <<2+3=5>>", "the prime after 5", "for it can't be 5"],
        *["The answer is a multiple of 5.", "The answer is 5 doubled.", "the answer is 5?"],
        *["I doubt that the answer is 5.", "The answer is 5. No, that answer is wrong."],
        *["一共不是5个", "x小于5", "是5吗？", "除以5", "5的一半", "第5"],
    ],
)
def test_takes_no_part_of_what_is_said(response: str) -> None:
    assert final_answer(response).text is None


@pytest.mark.parametrize(
    ("response", "mode", "why_not"),
    [
        (r"the answer is 5, so \boxed{5", "auto", "the last box is never closed"),
        (r"\boxed{{5}", "boxed", "the last box is never closed"),
        (r"\boxed{4} and then \boxed{", "auto", "the last box is never closed"),
        (r"\boxed{4}. Hmm, \boxed{5", "boxed", "the last box is never closed"),
        (r"\boxed{}", "auto", "the box is empty"),
        ("the answer is 5", "boxed", "no box"),
        ("x2 it is", "auto", "no answer that stands alone"),
        ("", "auto", "no answer that stands alone"),
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
    assert boxes == Boxes(closed=4, open=True, cut_off=True, last="2", answer=None)
    pair = find_boxes(r"\boxed{1}, \boxed{2} or $\boxed{1}$")
    assert pair == Boxes(3, open=False, cut_off=False, last="1", answer="1, 2")
    assert find_boxes(r"\boxed{1 \boxed{2}") == Boxes(1, True, False, "2", "2")
    assert find_boxes("none") == Boxes(0, False, False, None, None)


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


_PIECES = [
    *["The answer is ", "5", " of ", "is", " not ", "$", "<<", ">>", "\\(", "\\)", "**", "答案是"],
    *["负", "万", " and ", ", ", ". ", "\n", "=", "x", "√", "(", ")", "\ue000", "\ue001", "!", "?"],
]


@given(
    st.text(alphabet="\\{}$[]()<>/abox. 1,#answeri:-", max_size=200)
    | st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)
)
def test_never_raises(text: str) -> None:
    for mode in ("auto", "boxed"):
        found = final_answer(text, mode)
        assert (found.text is None) == (found.method is None) == bool(found.why_not)


_UNITS = [
    *["\\boxed{", "\\boxed", "\\boxed ", "\\boxed{1} ", "\\boxed{1} and ", "\\", "{", "}", "{}"],
    *["\\[", "\\(", "$", "$$", "1", "1,", "1,111,", "1.", "-", "1/", "1%", " ", "\n", "a;", "**"],
    *["answer", "answer is ", "answer **", "答案", "####", "<answer>", "</answer>", "<think>"],
    *[
        "\\frac{",
        "\\frac{1}",
        "\\(",
        "$ ",
        "(1",
        "1)",
        "1=",
        "1 and ",
        "答案是",
        "负",
        "选A",
        "the ",
    ],
    *["if the answer is 1", "the answer is correct ", "answer to ", "not ", "x is 1 ", "<<1", "*a"],
    *["_", "\ue000", "1 (", "final answer\n", "A is the ", "</think>", "[THINK]", "5 of ", "__a__"],
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
