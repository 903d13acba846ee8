"""Clean answers as tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from llmpipe.algo.answers.clock import TIME, time
from llmpipe.algo.answers.tree import TooLargeError, UnreadableError, names
from llmpipe.algo.answers.units import SHORT

_TOKENS = 2000
_DIGITS = 4000

FUNCTIONS = names(
    "sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth sech"
    " csch asin acos atan acot asinh acosh atanh arcsinh arccosh arctanh arsinh arcosh artanh"
    " ln log lg exp sqrt abs floor ceil gcd lcm min max det sgn cbrt"
)
CONSTANTS = {"pi": "pi", "infty": "oo", "inf": "oo", "oo": "oo", "e": "e", "i": "i", "imath": "i"}
_GREEK = names(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi"
    " rho sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi"
    " Omega ell hbar aleph"
)
_COMMANDS = {
    "cdot": "*", "times": "*", "ast": "*", "div": "/", "le": "<=", "leq": "<=", "leqslant": "<=",
    "ge": ">=", "geq": ">=", "geqslant": ">=", "lt": "<", "gt": ">", "ne": "!=", "neq": "!=",
    "approx": "~", "simeq": "~", "doteq": "~", "equiv": "=", "lvert": "|", "rvert": "|",
    "vert": "|",
    "mid": "|", "lbrace": "{", "rbrace": "}", "colon": ":", "setminus": "setminus",
    "backslash": "setminus", "bigcup": "cup", "bigcap": "cap", "langle": "(", "rangle": ")",
    "lparen": "(", "rparen": ")", "lbrack": "[", "rbrack": "]", "wedge": "land", "vee": "lor",
    "neg": "lnot", "varnothing": "emptyset", "to": "->", "rightarrow": "->", "Rightarrow": "->",
    "implies": "->", "iff": "<->", "leftrightarrow": "<->", "Leftrightarrow": "<->",
    "dots": "ldots", "cdots": "ldots",
}  # fmt: skip
_KEPT = names(
    "frac sqrt binom cup cap in pm mp emptyset degree overline lfloor rfloor lceil rceil mathbb"
    " begin end ldots angle triangle forall ceil mod land lor lnot"
)

_TOKEN = re.compile(
    rf"(?P<clock>{TIME})"
    r"""
  | (?P<sci>\d+\.\d+[eE][+-]?\d{1,4}|\d+[eE][+-]?\d{2,4}|\d+E[+-]?\d{1,4})(?![\dA-Za-z])
  | (?P<num>\d+(?:\.\d+)?|\.\d+)\.?(?!\d)
  | \\text\s?\{(?P<text>[^{}]*)\}
  | \\(?P<command>[A-Za-z]+)
  | \\(?P<escape>[{}|%#&_\\])
  | (?P<word>[A-Za-z]+)
  | (?P<op>\*\*|<=|>=|=<|=>|!=|==|~=|[-+*/^_=<>!:|,;()\[\]{}'&%])
  | (?P<space>\s+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SPELLINGS = {"**": "^", "=<": "<=", "=>": ">=", "==": "=", "~=": "~"}
_SCIENTIFIC = re.compile(r"[-+]?\d+(?:\.\d+)?e[-+]?\d{1,4}")
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3})+)(?!\d|,\d)")
_BRACKET = re.compile(r"[()\[\]]|\\[{}]")
_GLUED_ROOT = re.compile(r"\\sqrt(\d)(?=\d)")  # TeX takes one digit: \sqrt23 is \sqrt{2}3
_PRIMES = re.compile(r"\^\s*(?:\{\s*((?:\\prime\s*)+)\}|(\\prime)(?![A-Za-z]))")
_UP_TO = re.compile(r"(?<=\d) to (?=\d)")
_LOGIC = {"∧": "land", "∨": "lor", "¬": "lnot", "→": "to", "⇒": "to", "⇔": "iff"}
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,^_] )(?<![\d.,^_])([1-9]\d{0,2}(?: \d{3})+)(?! ?\d)")


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is num, clock, name, fun, const, word (a unit or label), cmd, or op; ``glued`` says
    that no space stands before it."""

    kind: str
    value: Any
    glued: bool = True


def without_thousands(text: str) -> str:
    """The text without the commas that may be thousands separators.

    In brackets a comma is one only where it can't part a list: no number begins with a 0, as the
    second of (1,000) would; and where other commas there have a space after them, one without may.
    """
    return _THOUSANDS.sub(lambda match: _joined(match, text), text)


def _joined(match: re.Match[str], text: str) -> str:
    figure = match[1]
    opened: list[int] = []
    for bracket in _BRACKET.finditer(text, 0, match.start()):
        if bracket.group() in ("(", "[", "\\{"):
            opened.append(bracket.end())
        elif opened:
            opened.pop()
    if opened and ",0" not in figure:
        closing = _BRACKET.search(text, match.end())
        if ", " not in text[opened[-1] : closing.start() if closing else None]:
            return figure
    return figure.replace(",", "")


def is_word(word: str) -> bool:
    """Whether letters can only be a word: no function or its argument, no Greek letter."""
    return len(word) > 3 and all(t.kind == "word" for t in _word(word, True))


def tokens(text: str, thousands: bool = True) -> list[Token]:
    """The tokens of a clean answer.

    Raises:
        UnreadableError: a sign that no answer has.
        TooLargeError: too many of them.
    """
    if thousands:
        text = without_thousands(text)
    if _SCIENTIFIC.fullmatch(text):
        text = text.replace("e", "E")  # alone it is no product with Euler's number
    text = _SPACED_THOUSANDS.sub(lambda m: m[1].replace(" ", ""), text)
    text = _PRIMES.sub(lambda m: "'" * m.group().count("prime"), text)
    text = _UP_TO.sub(":", _GLUED_ROOT.sub(r"\\sqrt{\1}", text))
    text = text.replace("...", r"\ldots ").replace("…", r"\ldots ")
    found: list[Token] = []
    glued = False
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup or "", match.group()
        if kind == "space":
            glued = False
            continue
        found += _read(kind, match[kind] if kind else value, glued)
        glued = True
        if len(found) > _TOKENS:
            raise TooLargeError(f"more than {_TOKENS} tokens")
    return found


def _read(kind: str, value: str, glued: bool) -> list[Token]:
    if kind == "clock":
        if moment := time(value):
            return [Token("clock", moment.value, glued)]
        raise UnreadableError(f"no time: {value}")
    if kind in ("num", "sci"):
        return [_number(value, glued)]
    if kind == "op":
        return [Token("op", _SPELLINGS.get(value, value), glued)]
    if kind == "escape":
        return [
            Token("op", {"{": r"\{", "}": r"\}", "|": "|", "\\": r"\\"}.get(value, value), glued)
        ]
    if kind == "command":
        return _command(value, glued)
    if kind == "word":
        return _word(value, glued)
    if kind == "text":
        return _text(value, glued)
    if value in _LOGIC:
        return _command(_LOGIC[value], glued)
    raise UnreadableError(f"no sign of an answer: {value}")


def _number(value: str, glued: bool) -> Token:
    mantissa, _, exponent = value.lower().partition("e")
    if len(mantissa) > _DIGITS:
        raise TooLargeError(f"more than {_DIGITS} digits")
    power = int(exponent or 0)
    places = len(mantissa.partition(".")[2]) if "." in mantissa else None
    if exponent:
        places = (places or 0) - power
    return Token("num", (Fraction(mantissa) * Fraction(10) ** power, places), glued)


def _command(name: str, glued: bool) -> list[Token]:
    if name in FUNCTIONS:
        return [Token("fun", name, glued)]
    if name in CONSTANTS and len(name) > 1:
        return [Token("const", CONSTANTS[name], glued)]
    if name in _GREEK:
        return [Token("name", name, glued)]
    if name in _COMMANDS:
        value = _COMMANDS[name]
        kind = "cmd" if value.isalpha() else "op"
        return [Token(kind, {"{": r"\{", "}": r"\}"}.get(value, value), glued)]
    if name in _KEPT:
        return [Token("fun", "ceil", glued) if name == "ceil" else Token("cmd", name, glued)]
    raise UnreadableError(f"unknown command \\{name}")


def _word(word: str, glued: bool) -> list[Token]:
    """A function, a constant, a product of letters, a unit, or a function and its letters."""
    if word in FUNCTIONS:
        return [Token("fun", word, glued)]
    if word in CONSTANTS:
        return [Token("const", CONSTANTS[word], glued)]
    if word in ("and", "or"):
        return [Token("cmd", word, glued)]
    if word in ("if", "of", "for"):
        return [Token("word", word, glued)]
    if word in _GREEK and len(word) > 2:
        return [Token("name", word, glued)]
    if len(word) > 3:
        for size in (6, 5, 4, 3, 2):
            if word[:size] in FUNCTIONS and len(word) - size <= 2:
                return [Token("fun", word[:size], glued), *_word(word[size:], True)]
        return [Token("word", word, glued)]
    if word.lower() in SHORT:
        return [Token("word", word, glued)]
    if word.startswith("pi"):
        return [Token("const", "pi", glued), *_word(word[2:], True)]
    if word[:2] == "or" and word[2:].isupper():
        return [Token("cmd", "or", glued), *_word(word[2:], True)]
    return [_letter(c, glued or n > 0) for n, c in enumerate(word)]


def _letter(letter: str, glued: bool) -> Token:
    if letter in CONSTANTS:
        return Token("const", CONSTANTS[letter], glued)
    return Token("name", letter, glued)


def _text(content: str, glued: bool) -> list[Token]:
    content = content.strip()
    separator = content.strip(" ,").lower()
    if separator in ("and", "or"):
        return [Token("cmd", separator, glued)]
    if separator == "to":
        return [Token("op", ":", glued)]
    if content in (",", ";", ":"):
        return [Token("op", content, glued)]
    if not content:
        return []
    if content in FUNCTIONS:
        return [Token("fun", content, glued)]
    if content.endswith(":"):
        return [Token("word", content[:-1], glued), Token("op", ":", True)]
    if content[0].isdigit() or content[0] in "-(":
        return tokens(content)
    if len(content) == 1:
        return [Token("text", content, glued)]
    return [Token("word", content, glued)]
