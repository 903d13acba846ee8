from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmpipe.viewer.mathml import formula, with_math

HOSTILE = [
    r"\href{javascript:alert(1)}{x}",
    r"\style{position:fixed}{x}",
    r"\class{home}{x}",
    r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
    r"\text{<script>alert(1)</script>}",
    r"\text{<img src=x onerror=alert(1)>}",
    r"\color{red;background:url(http://x)}{x}",
    r"\mathrm{</math><script>alert(1)</script>}",
    r"\operatorname{<b>}",
    r"\hspace{-99em}x",
    r"\hspace{9999em}x",
    "\x00\x1b<>&\"'",
]


def names(markup: str) -> set[str]:
    """The elements and attributes in it."""
    root = ElementTree.fromstring(f"<p>{markup}</p>")
    return {e.tag for e in root.iter()} | {name for e in root.iter() for name in e.attrib}


def test_a_formula_is_drawn() -> None:
    drawn = formula(r"\frac{1}{2}", False)
    assert drawn is not None
    root = ElementTree.fromstring(drawn)
    (fraction,) = root.iter("mfrac")
    assert ["".join(part.itertext()) for part in fraction] == ["1", "2"]
    assert root.get("display") == "inline"


@pytest.mark.parametrize("latex", HOSTILE)
def test_nothing_but_drawing_comes_through(latex: str) -> None:
    shown = with_math(f"So ${latex}$ and {latex}.")
    assert names(shown) <= {
        *("p", "code", "math", "mrow", "mi", "mn", "mo", "msup", "mtext", "mspace", "mstyle"),
        *("display", "mathvariant", "mathcolor", "stretchy"),
    }
    root = ElementTree.fromstring(f"<p>{shown}</p>")
    assert all(e.get("mathcolor", "red") == "red" for e in root.iter())


PIECES = (
    *(r"\href", r"\style", r"\class", r"\text", r"\mathrm", r"\color", r"\textcolor", r"\hspace"),
    *(r"\frac", r"\sqrt", r"\left(", r"\right)", r"\begin{array}{c}", r"\end{array}", r"\tag"),
    *(r"\overset", r"\hbox", r"\operatorname", r"\genfrac", r"\verb|", r"\not", r"\char"),
    *("{", "}", "{", "}", "[", "]", "^", "_", "&", r"\\", "x", "1", "<script>", "&lt;b&gt;"),
    *("javascript:alert(1)", '" onload="', "'", "-9em", "red;x:url(http://x)", "]]>", "<!--"),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_whatever_is_written_only_draws(pieces: list[str]) -> None:
    shown = formula("".join(pieces), False)
    if shown:
        root = ElementTree.fromstring(shown)
        assert all(e.tag[0] == "m" or e.tag == "none" for e in root.iter())
        values = [v for e in root.iter() for v in e.attrib.values()]
        assert not any(re.search("[:;(<>\"'-]", value) for value in values)
        assert not {"href", "style", "class", "id", "onload"} & names(shown)


def test_what_a_formula_says_is_read_once() -> None:
    shown = formula(r"\text{a<b&c}", False)
    assert shown is not None
    assert "<mtext>a&lt;b&amp;c</mtext>" in shown


def test_money_is_no_formula() -> None:
    text = "A pen is $5, a book is $10; they cost US$ 3 and $ 4."
    assert with_math(text) == text
    assert with_math(r"\$5 and \$6") == r"\$5 and \$6"
    assert with_math("It costs $5, and $x$ more.").count("<math") == 1


@pytest.mark.parametrize(
    ("text", "display"),
    [("$x$", "inline"), (r"\(x\)", "inline"), ("$$x$$", "block"), (r"\[x\]", "block"),
     (r"\begin{align*}x&=1\\y&=2\end{align*}", "block")],
)  # fmt: skip
def test_the_signs_of_mathematics(text: str, display: str) -> None:
    shown = with_math(f"a {text} b")
    assert f'display="{display}"' in shown
    assert (shown[:2], shown[-1]) == ("a ", "b")
    assert (shown[-2] == " ") == (display == "inline")


@pytest.mark.parametrize(
    "latex",
    [
        r"\left(x",
        "{" * 1500,
        r"\newcommand{\a}{xxxxxxxx}\newcommand{\b}{\a\a\a\a}\b",
        r"\def\a{x}\a",
        "x" + "^{x" * 600 + "}" * 600,
    ],
)
def test_what_can_not_be_drawn_stands_as_it_was_written(latex: str) -> None:
    assert formula(latex, False) is None
    assert latex in with_math(f"${latex}$")


def test_a_text_full_of_openings_is_read_in_its_length() -> None:
    for sign in ("$", "$$", r"\[", r"\(", "$x", r"\begin{align}"):
        assert "<math" not in with_math((sign + " ") * 20_000)
