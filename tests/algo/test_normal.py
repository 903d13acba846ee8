"""The form that two texts of one problem share, and that no two problems may."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe.algo import normal
from llmpipe.algo.normal import normal_form
from llmpipe.core.records import canonical

SAME = [
    (r"Find $\dfrac{1}{2}+\tfrac{1}{3}$.", r"find \( \frac{1}{2} + \frac13 \)."),
    (r"\[x^{2}=4\]", "$$x^2 = 4$$"),
    (r"\left( a + b \right)", "(a+b)"),
    (r"$\left\{1, 2\right\}$", r"$\{1,2\}$"),
    (r"f'(x) \left.\right|_{0}", "f’(x)|_0"),
    (r"5\,\text{cm} and 3~kg", "5 cm and 3 kg"),
    (r"\mathrm{lcm}(4,\ 6)", r"\operatorname{lcm}(4, 6)"),
    ("He has $1,000 left.", r"He has \$1000 left."),
    (r"$10\,000$ or 12{,}345.6", "10000 or 12,345.6"),
    ("A  train\n leaves\tat 5", "a train leaves at 5"),
    ("x² + x⁻¹⁰", "x^{2} + x^{-10}"),
    ("a₁₂", "a_{12}"),
    ("3 × 4 ÷ 2 − 1", r"3 \times 4 \div 2 - 1"),
    ("x ≤ 3, y ≥ 4, z ≠ 5", r"x \leq 3, y \geqslant 4, z \ne 5"),
    ("x <= 3", r"x \le 3"),
    ("area of π r", r"area of \pi r"),
    ("angle of 90°", r"angle of $90^{\circ}$"),
    ("Ｆｉｎｄ ｘ ＋ １２", "find x + 12"),
    ("求 $x$ 的值", "求x的值"),
    ("1+2+…+9", r"1+2+\cdots+9"),
    (r"\sqrt{2}3", r"\sqrt23"),
    (r"\frac{1}{2}3", r"\frac123"),
    (r"50\%", "50%"),
    ("zero\u200bwidth", "zerowidth"),
    ("已知等差数列{a_n}中,a_1=3", r"已知等差数列$\{a_n\}$中,$a_1=3$"),
    ("the sequence {a_{n}} has a_1 = 3", r"The sequence $\{a_n\}$ has $a_1 = 3$"),
    ("Let S = {1, 2, 3}.", r"Let $S = \{1, 2, 3\}$."),
    ("It is 5. A train leaves", "it is 5. a train leaves"),
]

DIFFERENT = [
    ("1 23", "123"),
    ("12 3", "1 23"),
    ("1.5", "15"),
    ("1 .5", "1.5"),
    ("2 - 3", "2 + 3"),
    ("3 * 4", "3 / 4"),
    ("x < 3", r"x \le 3"),
    ("x < 3", "x > 3"),
    ("n! = 6", "n != 6"),
    ("x²", "x2"),
    ("x^2", "x2"),
    ("2½", r"21/2"),
    ("1①", "11"),
    (r"\frac{1}{23}", r"\frac{12}{3}"),
    (r"\frac{1}{23}", r"\frac123"),
    (r"\sqrt{23}", r"\sqrt23"),
    (r"\frac{x}{23}", r"\frac x23"),
    ("x^{a+b}", "x^a+b"),
    (r"\mathrm{a+b}^2", "a+b^2"),
    (r"x^\text{a+b}", "x^a+b"),
    (r"\frac{a+b}{2}", r"\frac a+b 2"),
    ("gcd(1,200)", "gcd(1200)"),
    (r"\{1,200\}", r"\{1200\}"),
    ("{1,200}", "{1200}"),
    ("f(2, 1,200)", "f(2, 1200)"),
    ("0.5,100", "0.5100"),
    ("12,34", "1234"),
    ("1,2000", "12000"),
    ("0,123", "0123"),
    ("0.50", "0.5"),
    (r"2 \cdot 3", r"2 \div 3"),
    (r"\Delta x", r"\delta x"),
    ("Σ x", "σ x"),
    (r"\sin x", r"\cos x"),
    ("x ~ y", "x y"),
    ("5!", "5"),
    ("|x|", "x"),
    ("50%", "50"),
    ("-5", "5"),
    ("10^2", "102"),
    ("x_12", "x12"),
    (r"\binom{5}{2}", r"\frac{5}{2}"),
    (r"\{1,2\}", "1,2"),
    ("[1,2)", "(1,2]"),
    ("5!!", "5!"),
    ("2 3", "23"),
    ("Find $2a$ where $a=4$ and $A=6$ hold.", "Find $2A$ where $a=4$ and $A=6$ hold."),
    ("Let $b$ be 3. $A$ holds", "Let $b$ be 3. $a$ holds"),
    ("A is 3 more than b", "a is 3 more than b"),
    ("find $3 A$ where", "find $3 a$ where"),
    ("$2Ab$", "$2aB$"),
    (r"Find ${a_n}$", r"Find $\{a_n\}$"),
    (r"\frac {a_n}{b_n}", r"\frac \{a_n\}\{b_n\}"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_problem_written_differently(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_problems_that_differ_stay_apart(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


NUMBERS = st.integers(0, 2_000_000)
OPERATORS = st.sampled_from(["+", "-", r"\times", r"\div", "=", "<", r"\le", "^", "/"])
EXPRESSIONS = st.lists(st.tuples(NUMBERS, OPERATORS), min_size=1, max_size=6)
UNICODE = {r"\times": "×", r"\div": "÷", r"\le": "≤", "-": "−", "+": "+", "/": "⁄"}


def plain(terms: list[tuple[int, str]]) -> str:
    return "What is " + " ".join(f"{n} {op}" for n, op in terms) + " 7 in all?"


@st.composite
def disguised(draw: st.DrawFn, terms: list[tuple[int, str]]) -> str:
    """The same expression, written otherwise."""
    parts = ["WHAT" if draw(st.booleans()) else "what", " is", draw(st.sampled_from(["", "$"]))]
    for number, operator in terms:
        digits = draw(st.sampled_from([f"{number}", f"{number:,}"]))
        if number >= 10_000 and draw(st.booleans()):
            digits = f"{number:,}".replace(",", r"\,")
        space = draw(st.sampled_from([" ", r"\;", "\n", r"\ ", r"\quad "]))
        sign = draw(st.sampled_from([operator, UNICODE.get(operator, operator)]))
        parts += [" ", digits, space, sign]
    return "".join([*parts, "\t7", parts[2], " in  all?"])


@given(st.data(), EXPRESSIONS)
def test_any_disguise_of_an_expression_is_seen_through(
    data: st.DataObject, terms: list[tuple[int, str]]
) -> None:
    assert normal_form(data.draw(disguised(terms))) == normal_form(plain(terms))


@given(st.data(), EXPRESSIONS, EXPRESSIONS)
def test_other_numbers_or_operators_are_another_problem(
    data: st.DataObject, one: list[tuple[int, str]], other: list[tuple[int, str]]
) -> None:
    same = normal_form(data.draw(disguised(one))) == normal_form(data.draw(disguised(other)))
    assert same == (one == other)


def tokens(text: str) -> list[str]:
    pattern = r"\d+(?:\.\d+)?|\.\d+|x+|\.\.\.|!=|<=|>=|\S"
    return re.findall(pattern, text.replace("$", " "))


@given(st.data(), st.lists(st.sampled_from([*"12.+-*/=<>!()^x", " ", "$"]), max_size=12))
def test_plain_text_keeps_every_token_however_it_is_cut(
    data: st.DataObject, text: list[str]
) -> None:
    """Two texts of one form have the same tokens: no digit moves, no sign is lost."""
    other = data.draw(st.permutations(text))
    one, two = "".join(text), "".join(other)
    assert (normal_form(one) == normal_form(two)) == (tokens(one) == tokens(two))


@given(st.text(max_size=60))
def test_prompts_of_one_id_have_one_form(text: str) -> None:
    assert normal_form(canonical(f" {text}\n")) == normal_form(text)


@given(st.text(alphabet=r"\{}[]()$^_,.12ab fractextsq", max_size=40))
def test_broken_latex_has_a_form(text: str) -> None:
    form = normal_form(text)
    assert sorted(c for c in form if c.isdigit()) == sorted(c for c in text if c.isdigit())


LEAF = st.integers(0, 130).map(str)
NODE = st.one_of(
    st.tuples(st.just("number"), LEAF),
    st.tuples(st.just("frac"), LEAF, LEAF),
    st.tuples(st.just("sqrt"), LEAF),
    st.tuples(st.just("power"), LEAF, LEAF),
)
PRODUCT = st.lists(NODE, min_size=1, max_size=4)


@st.composite
def latex(draw: st.DrawFn, product: list[tuple[str, ...]]) -> str:
    """A product written without signs, with and without the braces that LaTeX doesn't need."""

    def argument(digits: str, after_a_command: bool = False) -> str:
        if len(digits) == 1 and draw(st.booleans()):
            return f" {digits}" if after_a_command and draw(st.booleans()) else digits
        return f"{{{digits}}}"

    text, before = "", ""
    for kind, *parts in product:
        match kind:
            case "number":
                # After a command's last digit a number needs no space, after a number it does.
                text += f" {parts[0]}" if before == "number" else parts[0]
            case "frac":
                name = draw(st.sampled_from([r"\frac", r"\dfrac"]))
                text += name + argument(parts[0], True) + argument(parts[1])
            case "sqrt":
                text += r"\sqrt" + argument(parts[0], True)
            case "power":
                text += f" {parts[0]}^{{{parts[1]}}}"
        before = kind
    return text


@given(st.data(), PRODUCT, PRODUCT)
def test_arguments_of_commands_are_told_from_what_follows(
    data: st.DataObject, one: list[tuple[str, ...]], other: list[tuple[str, ...]]
) -> None:
    assert normal_form(data.draw(latex(one))) == normal_form(data.draw(latex(one)))
    same = normal_form(data.draw(latex(one))) == normal_form(data.draw(latex(other)))
    assert same == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Find $x$.", "Find x"),
        ("What is 1 + 1?", "what is 1+1"),
        ("求 √2 的值。", r"求$\sqrt{2}$的值"),
        ("√23", r"\sqrt{23}"),
        (r"$\lvert x \rvert \lt 3$", "|x| < 3"),
        (r"90^\degree", "90°"),
        ("A train. A car.", "a train. a car"),
        ("find the gcd", "Find The gcd"),
        (r"a \ b", "a b"),
        ("(see f(2,300) and $1,000", r"(see $f(2,300)$ and 1,000"),
    ],
)
def test_endings_case_and_signs_of_one_problem(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("In triangle ABC, find a.", "In triangle ABC, find A."),
        ("find AB", "find ab"),
        ("Find X + x", "find x + X"),
        ("1, 2, 4, ...", "1, 2, 4"),
        ("4!", "4"),
        ("√23", r"\sqrt{2}3"),
        ("f(1,200) is", "f(1200) is"),
        ("f( 1,200 ) is", "f( 1200 ) is"),
    ],
)
def test_symbols_keep_their_case_and_endings_that_mean_something_stay(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


CHUNKS = st.sampled_from(
    [r"\frac{1}", "{2}", r"\left(", "1,200", r"\right)", "x^", "{ab}", "(", ")", r"\text{", "cm}",
     "7", "A", "train", r"\sqrt", "23", "[3,", "000]", "\\", "$", "}", "{"]
)  # fmt: skip


@given(st.lists(CHUNKS, max_size=10))
def test_reading_chunk_by_chunk_is_reading_at_one_go(chunks: list[str]) -> None:
    """What a chunk's form is remembered as may not depend on where it was first met."""
    text = " ".join(chunks)
    scan = normal._Scan()
    for chunk in normal._prepared(text).split():
        scan.feed(chunk)
    whole = " ".join(scan.out)
    form = normal_form(text)
    assert whole == form or whole.startswith(form)
    assert not whole.removeprefix(form).strip(" .?:,;")
