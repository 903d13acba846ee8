"""LaTeX in a text as MathML, which browsers draw by themselves.

What a formula becomes is built anew, of elements and attributes that are known to do nothing but
draw: a link or a style in a formula of a model's does not come through. A formula that can't be
converted, or would take too much, stands as it was written.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from llmpipe.core.libraries import needs
from llmpipe.core.markup import Html, el, join, text

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_LONGEST = 2_000  # characters of a formula: the slowest known one takes 30 ms
_MOST = 400  # formulas of a text
_READ = 40_000  # characters of a text in which formulas are looked for

# Between signs of money there is no formula: nothing but $ stands at its inner ends, and no digit
# follows. No stretch is looked for further than a formula may be long.
_MATH = re.compile(
    rf"(?<!\\)\$\$(?P<display>[^$]{{1,{_LONGEST}}})\$\$"
    rf"|\\\[(?P<bracket>.{{1,{_LONGEST}}}?)\\\]"
    rf"|\\\((?P<paren>.{{1,{_LONGEST}}}?)\\\)"
    rf"|(?P<env>\\begin\{{(?P<name>(?:align|equation|gather|multline|eqnarray)\*?)\}}"
    rf".{{1,{_LONGEST}}}?\\end\{{(?P=name)\}})"
    rf"|(?<![\\$])\$(?P<inline>(?=[^\s$])(?:\\.|[^$\\]){{1,{_LONGEST}}}(?<!\s))\$(?!\d)",
    re.DOTALL,
)
# "$10; they cost US$" is money at both ends.
_PROSE = re.compile(r"[A-Za-z]{3,},? [A-Za-z]{2,}")
_COMMAND = re.compile(r"\\[A-Za-z]+(?:\s*\{[^{}]*\})?")
# What defines commands can make a short formula endless; mathchoice draws its parts four times.
_REFUSED = re.compile(
    r"\\(?:(?:re)?newcommand|(?:re)?newenvironment|providecommand|[egx]?def|let|mathchoice"
    r"|DeclareMathOperator)(?![A-Za-z])"
)
_ELEMENTS = frozenset(
    {
        *("math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot"),
        *("mstyle", "mpadded", "mphantom", "menclose", "msub", "msup", "msubsup", "munder"),
        *("mover", "munderover", "mmultiscripts", "mprescripts", "none", "mtable", "mtr", "mtd"),
    }
)
_ATTRIBUTES = frozenset(
    {
        *("accent", "accentunder", "columnalign", "columnlines", "display", "displaystyle"),
        *("fence", "form", "largeop", "linethickness", "lspace", "mathcolor", "mathvariant"),
        *("maxsize", "minsize", "movablelimits", "notation", "rowlines", "rspace", "scriptlevel"),
        *("separator", "stretchy", "symmetric", "width"),
    }
)
_VALUE = re.compile(r"[A-Za-z ]{1,200}|#[0-9A-Fa-f]{3,6}|\d{0,2}(?:\.\d{1,6})?(?:em|ex|px|pt|mu)?")


def with_math(words: str) -> Html:
    """A text, its formulas drawn.

    Raises:
        UserError: latex2mathml is not installed.
    """
    return join(_parts(words))


def _parts(words: str) -> Iterator[Html]:
    end = 0
    for number, match in enumerate(_MATH.finditer(words[:_READ])):
        if number >= _MOST:
            break
        latex = next(match[g] for g in ("env", *_GROUPS) if match[g] is not None)
        if match["inline"] and _PROSE.search(_COMMAND.sub("", latex)):
            continue
        display = match["inline"] is None and match["paren"] is None
        yield text(words[end : match.start()])
        yield formula(latex, display) or el("code", match[0])
        # A formula on its own line ends that line.
        end = match.end() + (display and words[match.end() : match.end() + 1] in (" ", "\n"))
    yield text(words[end:])


_GROUPS = ("display", "bracket", "paren", "inline")


@lru_cache(maxsize=4096)
def formula(latex: str, display: bool) -> Html | None:
    """A formula as MathML; None where it can't be, or had better not be, converted.

    Raises:
        UserError: latex2mathml is not installed.
    """
    with needs("latex2mathml", "pip install 'llmpipe[view]'"):
        from latex2mathml.converter import Converter
    if len(latex) > 2 * _LONGEST or _REFUSED.search(latex):
        return None
    try:
        # Its convert() takes escapes back at the end, and would turn text into markup.
        tree = Converter(display="block" if display else "inline").convert_to_element(latex)
        return _clean(tree)
    except (Exception, RecursionError):  # it raises whatever its parser stumbles over
        return None


def _clean(element: Element) -> Html:
    """The element, of known names and values; what is in an unknown one stays."""
    inner = join(_text(element.text), *((_clean(c), _text(c.tail)) for c in element))
    if element.tag not in _ELEMENTS:
        return inner
    known = {k: v for k, v in element.attrib.items() if k in _ATTRIBUTES and _VALUE.fullmatch(v)}
    return el(element.tag, inner, **known)


def _text(words: str | None) -> Html:
    """It writes characters by their numbers."""
    return text(html.unescape(words or ""))
