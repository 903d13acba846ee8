from __future__ import annotations

import pytest

from llmpipe.algo.faults import FAULTS, Answer, Screen
from llmpipe.algo.loops import loop
from llmpipe.algo.scripts import scripts


def said(text: str, asked: str = "What is it?") -> Answer:
    return Answer(text, lambda: asked)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"Either \boxed{3} or not: it is \boxed{4}.", "3 | 4"),
        (
            r"First \boxed{3}, then \boxed{4}, so finally \boxed{\frac{1}{2}}.",
            r"3 | 4 | \frac{1}{2}",
        ),
        (r"<think>\boxed{3}?</think> It is \boxed{4}.", None),
        (r"So \boxed{ 1{,}000 }. The answer is \boxed{1{,}000}.", None),
        (r"So \boxed{\dfrac12 x}. Then \boxed{ \frac12x }.", None),
        (r"It is \boxed{3} and \boxed{4}.", None),  # one answer of two parts
        (r"Fill in \boxed{\phantom{2}}: it is \boxed{4}.", None),
        (r"\boxed{\text{so } \boxed{7}}", None),
        (
            r"It is \boxed{\frac{1}{2}}, which is \boxed{0.5} as a decimal. So \boxed{x = 1/2}.",
            None,
        ),
        (r"We get \boxed{x^2} and later \boxed{x \cdot x}.", None),
        (r"Go \boxed{RRDD}, no, \boxed{RDRD}.", "RRDD | RDRD"),
        (
            rf"Both \boxed{{9^{{9^{{9^9}}}}}} and then \boxed{{{'1' * 5000}}}.",
            rf"9^{{9^{{9^9}}}} | {'1' * 57}...",
        ),
        (r"No box at all.", None),
    ],
)
def test_boxes_that_give_several_answers(text: str, found: str | None) -> None:
    assert FAULTS["several_boxes"](said(text)) == found


SENTENCE = "Wait, let me check the sum of the digits of that number once more. "
CHINESE = "我们再检查一下这个数的各位数字之和是否正确。"


@pytest.mark.parametrize(
    "text",
    [
        "The sum is 12. " + SENTENCE * 4,
        SENTENCE * 4 + "So it is 12.",
        "所以，" + CHINESE * 4 + "答案是12。",
        " the" * 300,
        "0 " * 400,
        "Step one adds and then divides by two. So x is 4, since both sides are even. " * 3,
    ],
)
def test_a_text_that_goes_in_circles(text: str) -> None:
    assert loop(text)


def test_what_repeats_is_told() -> None:
    found = loop("It is 12. " + SENTENCE * 5 + "So 12.")
    assert found is not None
    assert found.startswith("5 times in a row: ")
    assert "sum of the digits" in found


def test_passages_that_come_again_between_others_are_a_loop() -> None:
    passage = " ".join(f"word{chr(97 + i)} comes" for i in range(26))
    text = " ".join(f"{passage} in {name}." for name in ("one", "two", "three"))
    assert loop(text) == "65% of it are passages said before"
    # Said twice, as by those who think and then write it down, it is no loop.
    assert loop(f"{passage} in short. {passage}.") is None


@pytest.mark.parametrize(
    "text",
    [
        "The sum of six halves is "
        + " + ".join([r"\frac{1}{2}"] * 12)
        + r" = 6. Each of the twelve terms is the same, so the total is \boxed{6}.",
        r"\begin{pmatrix} " + r" \\ ".join([" & ".join("0" * 6)] * 6) + r" \end{pmatrix} is zero.",
        "".join(f"Step {i}: multiply by {i}, which gives {i * 7} cents. " for i in range(1, 9)),
        "2 \\cdot " * 20 + "2 = 2^{21}, which is what was to be shown about powers of two here.",
        SENTENCE * 2 + "So it is 12, as was said.",
        "We go " + "left left up up " * 12 + "and are there.",
        "",
        "7",
    ],
)
def test_mathematics_that_repeats_its_notation_does_not(text: str) -> None:
    assert loop(text) is None


def test_a_long_text_is_no_long_work() -> None:
    text = " ".join(f"n{i * 7919 % 1009} is {i * i % 977}," for i in range(20_000))
    assert loop(text) is None
    assert loop(text + SENTENCE * 6)


@pytest.mark.parametrize(
    ("text", "asked", "found"),
    [
        ("So the answer 则 is 4.", "What is 2+2?", "CJK 则"),
        ("Ответ 4", "What is 2+2?", "CYRILLIC О"),
        ("答案是 4", "2+2 等于几？", None),
        ("x ∈ ℝ, α ≤ µ, 𝐱 = ℵ₀, naïve café, ² ℘ ½ →", "What is x?", None),
        ("The answer is 4.", "2+2 等于几？", None),  # Latin letters are everywhere
        ("答えは 4", "2+2 等于几？", "HIRAGANA え"),
        ("的 а א ก ა", "What?", "CJK 的, CYRILLIC а, GEORGIAN ა, HEBREW א and 1 more"),
    ],
)
def test_a_script_that_the_prompt_does_not_use(text: str, asked: str, found: str | None) -> None:
    assert FAULTS["other_script"](said(text, asked)) == found


def test_letters_tell_scripts() -> None:
    assert scripts("a β µ 々 한 х 5 。") == {"CJK": "々", "HANGUL": "한", "CYRILLIC": "х"}
    assert scripts("plain") == {}


def test_the_screen_gives_the_first_reason() -> None:
    screen = Screen({"several_boxes"})
    bad = said(r"\boxed{1}, no, it's \boxed{2} 则")

    def reason(problem: str, sample: int, answer: Answer, finish: str = "stop") -> str | None:
        drop = screen(problem, sample, finish, answer)  # type: ignore[arg-type]
        return drop and f"{drop.reason}: {drop.detail}"

    assert reason("p", 0, bad, "length") == "not_stopped: length"
    assert reason("p", 1, bad) == "several_boxes: 1 | 2"
    assert reason("p", 2, said("则 4")) is None  # a rule that is not asked for
    assert reason("p", 3, said("则 4")) == "duplicate_text: the same as sample 2"
    assert reason("q", 3, said("则 4")) is None
    screen.forget("p")
    assert reason("p", 4, said("则 4")) is None
