"""Answers of several parts: functions and their values, labels, lists, conditions, readability."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llmpipe import verify_math
from llmpipe.algo.answers import equal as trees
from llmpipe.algo.answers.number_words import spelled_out
from llmpipe.algo.answers.read import read
from llmpipe.algo.answers.tree import TooLargeError, UnreadableError
from llmpipe.verifiers.math import same_answer, unreadable

SAME = {
    "a letter before a sum is a factor, a counter before a number too": [
        ("x(x+1)", "x^2+x"),
        ("a(b+c)", "ab+ac"),
        ("2(3)", "6"),
        ("2(3)(4)", "24"),
        ("(2)(3)", "6"),
        (r"\pi(2)", r"2\pi"),
        ("e(2)", "2e"),
        ("P(1+r)^n", "(1+r)^nP"),
        (r"30^\circ+k(360^\circ)", r"k(360^\circ)+30^\circ"),
        (r"\frac{\pi}{4}+n(2\pi)", r"\frac{\pi}{4}+2n\pi"),
        ("n(n+1)/2", r"\frac{n^2+n}{2}"),
        ("x(x)", "x^2"),
        (r"e^{2x}(1+x)", r"e^{2x}+xe^{2x}"),
    ],
    "values of unknown functions": [
        ("y(0)+y'(0)", "y'(0)+y(0)"),
        (r"I(0)e^{-t/(RC)}", r"I(0)\exp(-\frac{t}{RC})"),
        ("2P(1)", "P(1)+P(1)"),
        (r"y^{\prime}(0)", "y'(0)"),
        (r"s^2Y(s)-sy(0)-y^{\prime}(0)", "s(sY(s)-y(0))-y'(0)"),
        ("P(1)=5", "5"),
        ("P(X=2)=1/4", "1/4"),
        ("E(X)=6", "6"),
        ("y(t)=2t", "2t"),
        ("A(3,4)", "(3,4)"),
        ("A(1,2), B(3,4)", "(1,2), (3,4)"),
        ("u(x,y)=x+y", "x+y"),
        ("g(z)=z+1", "g(x)=x+1"),
    ],
    "labels of words": [
        ("width = 3, length = 4", "length = 4, width = 3"),
        (r"\text{width}=3, \text{length}=4", "w=3, l=4"),
        ("Alice: 5, Bob: 3", "Bob: 3, Alice: 5"),
        ("Area: 5", "5"),
        ("Area: 5", "Area = 5"),
        ("Area of the triangle: 5", "Area: 5"),
        ("Area = 5", "S = 5"),
        ("Answer: 5", "x = 5"),
        ("Answer: x = 5", "x = 5"),
        ("Minimum value: 1", "Minimum: 1"),
        ("Paolo: 18, Qing: 14", "14, 18"),
    ],
    "labels and tuples": [
        ("(2,3)", "y=3, x=2"),
        ("(2,3)", "x=2, y=3"),
        ("(1,2,3)", "c=3, a=1, b=2"),
        ("(1,2)", "a_2=2, a_1=1"),
        ("(1,2)", r"\beta=2, \alpha=1"),
        ("y=3, x=2", "(x,y)=(2,3)"),
        ("(y,x)=(3,2)", "(2,3)"),
        ("w=16, d=3", "16, 3"),
        ("(1,2),(3,4)", "y=2,x=1;y=4,x=3"),
    ],
    "commas": [
        ("1,500", "1500"),
        (r"\{1,500, 2,500\}", r"\{2500, 1500\}"),
        ("(1,000)", "1000"),
        (r"\{1,500\}", r"\{500, 1\}"),
        ("12,345,678", "12345678"),
        ("(2{,}345, 1)", "(2345, 1)"),
    ],
    "all the parts": [
        ("x>0, y>0", "y>0, x>0"),
        ("x>0 and x<2", "(0,2)"),
        ("(A) and (C)", "A, C"),
        ("(A) and (C)", "(C) and (A)"),
        (r"1,2,3,\ldots", r"1,2,3,\dots"),
        ("1,2,3,...", r"1,2,3,\cdots"),
        ("t^2, t>0", "t^2"),
        ("5 if n is even, 3 if n is odd", "3 if n is odd, 5 if n is even"),
        (r"5 \text{ if } n \text{ is even}, 3 \text{ if odd}", "3 if odd, 5 if n even"),
        ("5 if n is even", "5"),
    ],
    "letters in an order": [
        ("SOS", r"\text{SOS}"),
        ("HHT, HTH", "HTH, HHT"),
        (r"\{HH, TT\}", r"\{TT, HH\}"),
        ("AB", r"A \cdot B"),
        ("t/(RC)", "t/(CR)"),
        (r"\angle ABC", r"\angle CBA"),
        (r"\overline{abc}", "100a+10b+c"),
        (r"\overline{AB}", "AB"),
        ("AB=5", "BA=5"),
    ],
    "logic": [
        (r"p\land q", r"q \wedge p"),
        (r"p\to q", r"\neg p\lor q"),
        (r"\lnot(p\lor q)", r"\lnot p\land\lnot q"),
        (r"p\rightarrow q", r"\neg q\to\neg p"),
        (r"x=1 \lor x=2", "1, 2"),
        (r"x>1 \land x<3", "(1,3)"),
        (r"x<1 \lor x>3", r"(-\infty,1)\cup(3,\infty)"),
        ("p ∧ q", r"p\land q"),
    ],
    "decimals": [
        ("1/3", "0.3333"),
        ("10.00", "10"),
        ("3.1416", r"\pi"),
        (r"\sqrt{2}\approx 1.41", r"\sqrt2"),
        (r"\frac{22}{7}\approx 3.14", "22/7"),
        ("x = 10/3 = 3.3333", "10/3"),
        ("x = 2+3 = 5", "5"),
        (r"\sqrt{23}", "√23"),
        (r"\sqrt{23}", "sqrt(23)"),
        (r"\sqrt23", r"3\sqrt{2}"),
    ],
    "signs of plus or minus": [
        (r"(\pm1,\pm2)", "(1,2),(1,-2),(-1,2),(-1,-2)"),
        (r"(\pm1,\mp2)", "(1,-2),(-1,2)"),
        (r"\pm1,\pm2", "1,-1,2,-2"),
        (r"\pm\sqrt{2\pm\sqrt3}",
         r"\sqrt{2+\sqrt3},-\sqrt{2+\sqrt3},\sqrt{2-\sqrt3},-\sqrt{2-\sqrt3}"),
    ],
    "ratios": [
        ("4 to 3", "4:3"),
        (r"4 \text{ to } 3", "8:6"),
    ],
    "solved or not": [
        ("|x|<3", "-3<x<3"),
        ("|x|<3", "(-3,3)"),
        (r"|x-1|\le 2", "[-1,3]"),
        (r"|2x-1|\ge 3", r"(-\infty,-1]\cup[2,\infty)"),
        ("|1-x|>2", "x<-1 or x>3"),
        ("3>|x|", "-3<x<3"),
        (r"|x| < \pi", r"(-\pi,\pi)"),
        ("x^2=4", r"x=\pm2"),
        ("x^2=4", r"\pm 2"),
        ("x^2-5x+6=0", "x=2 or x=3"),
        ("(x-1)(x-2)(x-3)=0", r"\{1,2,3\}"),
        ("xy=6", "6/x"),
        ("2+3=5", "5"),
        ("(x+1)^2=x^2+2x+1", "x^2+2x+1"),
    ],
    "numbers in words": [
        ("5", "five"),
        (r"\text{two}", "2"),
        ("21", "twenty-one"),
        ("205", "Two hundred and five"),
        ("2/3", "two thirds"),
        ("1/2", "one half"),
        ("one", "One"),
    ],
    "text that no grammar has": [
        (r"\begin{cases}x&x>0\\-x&x<0\end{cases}", r"\begin{cases} x & x>0 \\ -x & x<0\end{cases}"),
        (">5", "> 5"),
        ("5元", "5元"),
        (r"p \leadsto q", r"p \leadsto q"),
        ("The claim holds for all even n.", "The claim holds for all even n."),
        (r"\nabla\cdot F", r"\nabla\cdot F"),
        ("9^{9^{9^9}}", "9^{9^{9^9}}"),
        ("(" * 200, "(" * 200),
    ],
}  # fmt: skip

DIFFERENT = {
    "values of unknown functions": [
        ("0", r"I(0) e^{-t/RC}"),
        ("0", "y(0)+y'(0)"),
        ("0", r"\theta(0)"),
        ("0", r"y^{\prime}(0)"),
        ("5", "T(0)+5"),
        ("P", "P(1)"),
        ("2x", "x(2)"),
        ("y(0)", "y'(0)"),
        ("y(0)", "x(0)"),
        ("y(1)", "y(0)"),
        ("yt", "y(t)"),
        ("6", "P(2)P(3)"),
        ("P(2)", "2P(1)"),
        ("-y", "y(-1)"),
        ("v_0/2", "v_0(1/2)"),
        (r"\frac{y}{2}", r"y(\frac{1}{2})"),
        ("f(1)=2", "f(3)=2"),
        ("P(A)=1/2", "P(B)=1/2"),
        ("P(X=2)=1/4", "P(X=3)=1/4"),
        ("E(X)=6", "E(Y)=6"),
        ("E(X)=6", "V(X)=6"),
        ("P(A|B)=1/2", "P(B|A)=1/2"),
        ("A(1,2)", "B(1,2)"),
        ("A(1,2), B(3,4)", "A(3,4), B(1,2)"),
        ("f(1)=2, f(2)=3", "f(1)=3, f(2)=2"),
        (r"\overline{z}", "z"),
    ],
    "labels of words": [
        ("width = 3, length = 4", "width = 4, length = 3"),
        ("width = 3, length = 4", "w=4, l=3"),
        ("Alice: 5, Bob: 3", "Alice: 3, Bob: 5"),
        ("Area: 5", "Perimeter: 5"),
        ("Minimum: 1", "Maximum: 1"),
        ("Area: 5", "Area: 6"),
        ("Alice = 5", "Bob = 5"),
        (r"\text{Mean: } 5", r"\text{Median: } 5"),
        ("Case 1: 5, Case 2: 6", "Case 1: 6, Case 2: 5"),
    ],
    "labels and tuples": [
        ("(2,3)", "y=2, x=3"),
        ("(2,3)", "x=3, y=2"),
        ("(1,2,3)", "a=3, b=2, c=1"),
        ("(1,2)", "a_1=2, a_2=1"),
        ("(2,3)", "(y,x)=(2,3)"),
        ("x=2, y=3", "y=2, x=3"),
        ("(2,3)", "x=2"),
    ],
    "commas": [
        ("(2,345)", "2345"),
        ("[1,500]", "1500"),
        (r"\{1,500\}", r"\{1500\}"),
        (r"\{1,500\}", "1500"),
        ("(2,345)", "(2345)"),
        ("(1,500,200)", "1500200"),
        (r"x \in [1,500]", "x=1500"),
        (r"[1,500]\cup[2,600]", r"\{1500,2600\}"),
    ],
    "a part for the whole": [
        ("x>0, y>0", "x>0"),
        ("x>0, y>0", r"(0,\infty)"),
        ("x>0 and y>0", "x>0"),
        ("x>0 or y>0", "x>0"),
        ("x=5, y>3", "x=5"),
        ("5, x>3", "5"),
        ("(A) and (C)", "(A)"),
        ("(A), (C)", "A"),
        ("A and C", "A"),
        ("(A) or (B)", "(A)"),
        (r"1,2,3,\ldots", "1,2,3"),
        ("1,2,3,...", "1,2,3"),
        (r"\{1,2,3,\ldots\}", r"\{1,2,3\}"),
        (r"1,2,\ldots,10", "1,2,10"),
        ("5 if n is even, 3 if n is odd", "3 if n is even, 5 if n is odd"),
        ("5 if n is even, 3 if n is odd", "5"),
        (r"5 \text{ if } n \text{ is even}, 3 \text{ if } n \text{ is odd}",
         r"3 \text{ if } n \text{ is even}, 5 \text{ if } n \text{ is odd}"),
        (r"n+1 \text{ for even } n, n-1 \text{ for odd } n", "n+1"),
        (r"n+1 \text{ for even } n, n-1 \text{ for odd } n",
         r"n-1 \text{ for even } n, n+1 \text{ for odd } n"),
        (r"0 \text{ when } x<0, 1 \text{ when } x>0", "0"),
        (r"\begin{cases}x&x>0\\-x&x<0\end{cases}", r"\begin{cases}-x&x>0\\x&x<0\end{cases}"),
    ],
    "letters in an order": [
        ("SOS", "OSS"),
        ("HHT", "HTH"),
        ("NE", "EN"),
        (r"\text{SOS}", r"\text{OSS}"),
        (r"\text{NE}", "EN"),
        (r"\text{cat}", r"\text{act}"),
        (r"\mathrm{HT}", r"\mathrm{TH}"),
        ("HHT, TTH", "HTH, THT"),
        (r"\{HT\}", r"\{TH\}"),
        (r"\overline{abc}", r"\overline{cba}"),
        (r"\overline{abc}", "abc"),
        (r"\overline{3a}", r"3a"),
        (r"\angle ABC", r"\angle ACB"),
    ],
    "logic": [
        (r"p\land q", r"p\lor q"),
        (r"p\to q", r"q\to p"),
        (r"p\to q", r"p\land q"),
        (r"p\land q", "p, q"),
        (r"\neg p", "p"),
        (r"p\leftrightarrow q", r"p\to q"),
        ("p ∧ q", "p ∨ q"),
        (r"x>1 \land x<3", r"x>1 \lor x<3"),
    ],
    "decimals": [
        ("10.00", "10.004"),
        ("5.000", "5.0004"),
        ("0.5000", "0.50004"),
        ("100.0", "100.04"),
        (r"12.50\%", r"12.504\%"),
        ("5", r"5 \approx 6"),
        ("6", r"5 \approx 6"),
        ("5", "x = 4 = 5"),
        ("4", "x = 4 = 5"),
        (r"\sqrt23", r"\sqrt{23}"),
    ],
    "signs of plus or minus": [
        (r"(\pm1,\pm2)", "(1,2),(-1,-2)"),
        (r"(\pm1,\mp2)", "(1,2),(1,-2),(-1,2),(-1,-2)"),
        (r"\pm1\pm2", "3,-3"),
    ],
    "ratios": [
        ("4 to 3", "3 to 4"),
        (r"4 \text{ to } 3", "3:4"),
        ("4 of 3", "3 of 4"),
    ],
    "solved or not": [
        ("y=2x+1", r"\frac{y-1}{2}"),
        ("f(x)=2x", "f/2"),
        ("x^2=4", "2"),
        ("x^2=4", "x=2"),
        ("x^2=4", "2, 3"),
        ("x^2=4", "2, -2, 3"),
        ("x^2=4", "y=2, y=-2"),
        ("x^3=8", "2"),
        ("|x|<3", r"-3\le x\le 3"),
        ("|x|<3", "x<3"),
        ("|x|>3", "-3<x<3"),
        ("|x|<3", "|y|<3"),
        ("|x^2-1|<3", "-2<x<2 and x>0"),
    ],
    "numbers in words": [
        ("5", "six"),
        ("one", "two"),
        ("21", "twenty one to one"),
        ("1/3", "third"),
        ("twenty", "2"),
    ],
}  # fmt: skip


def _pairs(kinds: dict[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    return list(itertools.chain.from_iterable(kinds.values()))


@pytest.mark.parametrize(("one", "other"), _pairs(SAME))
def test_the_same_both_ways_round(one: str, other: str) -> None:
    assert same_answer(one, other)[0] is True
    assert same_answer(other, one)[0] is True
    assert _by_trees(one, other) == _by_trees(other, one)


@pytest.mark.parametrize(("one", "other"), _pairs(DIFFERENT))
def test_different_both_ways_round(one: str, other: str) -> None:
    assert not same_answer(one, other)[0]
    assert same_answer(one, other)[0] is same_answer(other, one)[0]
    assert _by_trees(one, other) == _by_trees(other, one)


def _by_trees(one: str, other: str) -> set[bool | None]:
    """What the trees say, in this order: `same_answer` asks in one order only."""
    found: set[bool | None] = set()
    for x, y in itertools.product(read(one).trees, read(other).trees):
        try:
            found.add(trees.equal(x, y))
        except (UnreadableError, TooLargeError):
            found.add(None)  # which of them comes first may depend on the order
    return found


UNREADABLE = [r"\begin{cases}x&x>0\\-x&x<0\end{cases}", "The claim holds for all even n.", "5元>"]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_itself_and_no_value(text: str) -> None:
    assert "can't be read" in (unreadable(text) or "")
    assert verify_math(text, f"\\boxed{{{text}}}").status == "correct"
    for value in ("5", "x+1", r"\frac{1}{2}", "(1,2)"):
        assert unreadable(value) is None
        assert verify_math(text, f"\\boxed{{{value}}}").status == "wrong"
        assert verify_math(value, f"\\boxed{{{text}}}").status == "wrong"


def test_of_two_that_cannot_be_read_nobody_knows() -> None:
    for one, other in itertools.permutations(UNREADABLE, 2):
        assert same_answer(one, other)[0] is None
        assert verify_math(one, f"\\boxed{{{other}}}").status == "error"


def test_what_is_cut_off_or_too_large_is_an_error_both_ways_round() -> None:
    for text in (r"\frac{1}{", "9^{9^{9^9}}", "(" * 200, "1" * 30_000):
        assert same_answer(text, "x+1")[0] is None
        assert same_answer("x+1", text)[0] is None
    assert unreadable("") == "the gold answer is empty"
    assert unreadable(r"\frac{1}{")
    assert unreadable("1" * 30_000)


def test_numbers_in_words() -> None:
    numbers = {
        "zero": "0", "nineteen": "19", "forty two": "42", "one hundred": "100",
        "two thousand and five": "2005", "three million four hundred": "3000400",
        "three quarters": "3/4", "one-third": "1/3",
    }  # fmt: skip
    assert {text: spelled_out(text) for text in numbers} == numbers
    for text in ("", "hundred", "third", "five six", "and five", "five and", "twenty twenty",
                 "one to one", "half", "five apples", "one million million"):  # fmt: skip
        assert spelled_out(text) is None


_TOKENS = (
    r"max min \max \min \gcd lcm floor \lfloor \rfloor \lceil \rceil \binom det \log _ ^ { } ( )"
    r" [ ] \{ \} | , ; : = < > \le \ne \in \cup \cap \setminus \pm \mp \frac \sqrt ! !! % \degree"
    r" ' x y n i e P(A) f(x) y'(0) 0 1 2 3.5 0.333 10^{30} 1e400 \infty \pi \mathbb{R} \emptyset"
    r" \land \lor \lnot \to \ldots \text{if} Area: AB \overline{ab} \angle 1011_2 \pmod{7} cm and"
    r" \text{or} \\ & \begin{pmatrix} \end{pmatrix} + - / * ^2 0.\overline{1} 1,000 -1 2/3 dozen"
)
_answers = st.lists(st.sampled_from([*_TOKENS.split(), " "]), min_size=1, max_size=12).map(" ".join)


@settings(max_examples=600, deadline=None)
@given(_answers, _answers)
@example(r"\gcd 0.\overline{1}", r"0.\overline{1} / \log 1")  # no value, against a pole
def test_the_comparison_raises_nothing_but_its_own_errors(one: str, other: str) -> None:
    """And is the same both ways round."""
    assert _by_trees(one, other) == _by_trees(other, one)
    assert same_answer(one, one)[0] is True or not read(one).text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("max 5", "min 5"),
        (r"\max(1+i,2)", "2"),
        (r"\min(i)", r"\max(i)"),
        (r"\gcd(1/2, 3)", "1"),
        (r"\lfloor i \rfloor", "1"),
        ("0." + r"\overline{" + "1" * 9000 + "}", "1/9"),
        ("0.(" + "1" * 5000 + ")", "1/9"),
        ("1" * 3999 + "E9000", "x"),
        (r"\frac" + "1" * 3999 + "E9000", "5"),
        (r"\log_0 5", "1"),
        (r"\log_1 5", "1"),
        (r"\log 0", r"\infty"),
        (r"\infty-\infty", "0"),
        (r"(0)^{i}", "0"),
        (r"\sqrt[0]{5}", "1"),
        (r"x^{1/0}", "1"),
        (r"\tan 90^\circ", r"\infty"),
        (r"\begin{pmatrix}1&2\end{pmatrix}^{x}", "1"),
        (r"\binom{1/2}{-3}", "5"),
        ("(-1)!", "1"),
        (r"\det(3)", "3"),
        (r"\det\begin{pmatrix}1&2\\3&4\end{pmatrix}", "-2"),
    ],
)  # fmt: skip
def test_no_other_error_leaves_it(one: str, other: str) -> None:
    for a, b in ((one, other), (other, one)):
        assert same_answer(a, b)[0] in (True, False, None)
    assert same_answer(one, one)[0] is True


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (r"x>0 \text{ and } y>0", r"x>0 \text{ or } y>0", False),
        ("x>0且y>0", "x>0或y>0", False),
        ("x=1 and y=2", "x=1 or y=2", False),
        (r"x>0 \text{ and } y>0", "x>0, y>0", True),
        ("x=1 or x=2", r"x=1 \text{ and } x=2", True),
        ("3 and 5", "3 or 5", True),
    ],
)
def test_and_is_not_or_where_there_are_several_variables(one: str, other: str, same: bool) -> None:
    assert same_answer(one, other)[0] is same
    assert same_answer(other, one)[0] is same


@pytest.mark.parametrize(
    ("gold", "dressed"),
    [
        ("5", r"\color{red}{5}"),
        ("5", r"\textcolor{red}{5}"),
        (r"\frac{1}{2}", r"{\color{blue} \frac12}"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&2\\[4pt]3&4\end{pmatrix}"),
        ("3:2", "3∶2"),
        ("10:30", "10{:}30"),
    ],
)
def test_colours_and_row_spacing_say_nothing(gold: str, dressed: str) -> None:
    assert verify_math(gold, rf"\boxed{{{dressed}}}").status == "correct"
    assert verify_math(dressed, rf"\boxed{{{gold}}}").status == "correct"
