"""Prose with mathematics in it, as tokens: enough to see where a value begins and ends."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Kind = Literal["formula", "number", "name", "word", "cjk", "sign", "comma", "stop", "end"]

FORMULA = (
    r"\$\$[^$]+\$\$"
    # As Pandoc has it: "$5 and $7" is no formula. Models also write "$ x $".
    r"|\$(?! )[^$]*(?<!\s)\$(?!\d)|\$ [^$]* \$(?!\d)"
    r"|\\\((?:(?!\\[()]).)*\\\)|\\\[(?:(?!\\[\[\]]).)*\\\]"
)
"""A delimited formula (to be compiled with DOTALL)."""

NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\s?\\?%)?|\.\d+(?:\s?\\?%)?"
SPECIAL = r"<\|[^|<>\n]{1,40}\|>|</?(?:s|eos|end|answer|solution)>"
"""Tokens of chat templates: what stands after one is no part of the sentence."""

_FUNCTIONS = (
    "log|ln|lg|exp|sqrt|cbrt|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|sinh|cosh|tanh|pi|abs"
    "|gcd|lcm|min|max|mod|infinity|degrees?"
)
_CJK = "\u3400-\u9fff"
_TOKEN = re.compile(
    rf"(?P<formula>{FORMULA})|(?P<special>{SPECIAL})"
    r"|(?P<command>\\(?:text\w*|mathrm|mathbf|operatorname)\s?\{[^{}]*\}|\\[A-Za-z]+|\\[{}|,;:!% ])"
    rf"|(?P<number>{NUMBER})"
    rf"|(?P<function>(?:{_FUNCTIONS})(?![A-Za-z]))"
    r"|(?P<word>[^\W\d_\u0370-\u03ff" + _CJK + r"]{2,}(?:['’][A-Za-z]+)?)"
    rf"|(?P<cjk>[{_CJK}]+)|(?P<name>[^\W\d_])|(?P<break>[\r\n]+)|(?P<space>\s+)"
    r"|(?P<dots>\.{2,}|…+)|(?P<stop>\.(?=\s|$)|[.?!](?=[\"'”’)\]*]*\s*$)|[。；？！?]|;(?=\s))"
    r"|(?P<comma>[,，、])|(?P<relation>=>|->|>=|<=|!=|\*\*|⇒|→|➔)|(?P<other>.)",
    re.DOTALL,
)
_ABBREVIATED = frozenset(
    [
        "approx",
        "ca",
        "cu",
        "dr",
        "eq",
        "fig",
        "ft",
        "hr",
        "lb",
        "lbs",
        "mr",
        "mrs",
        "no",
        "oz",
        "rs",
    ]
)
_SIGNS = frozenset("-+*/^_=<>!|()[]{}'&%$:−–—‐‑‒―﹣－﹢＋＝＜＞（）［］：％‰°√π")
_SYMBOLS = frozenset(["Sm", "Pd", "No", "Sc", "Nl"])


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` "end" is the end of a sentence or line, "stop" any other mark that parts clauses.

    ``start`` and ``end`` are places in the text.
    """

    kind: Kind
    text: str
    start: int
    end: int


_EMPHASIS = re.compile(
    r"(?<![A-Za-z0-9_)*])(\*{1,3}|__)(?=\S)([^*\n]{1,200}?)(?<=\S)\1(?![A-Za-z0-9_(*])"
)
_BULLET = re.compile(r"^[ \t]*[*•][ \t]+", re.MULTILINE)
_IDLE = re.compile(r"`|<<[^<>]*>>|(?<!\S)\*\*(?=\s)|\*\*(?=\s*$)")


def plain(text: str) -> str:
    """Text without Markdown's emphasis, and without a calculator's ``<<1+1=2>>``."""
    text = _BULLET.sub("", text)
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return _IDLE.sub("", text)


def tokens(text: str) -> list[Token]:
    """The tokens of a stretch of text; spaces are left out.

    Some patterns look ahead for a closing mark: the caller keeps the text short.
    """
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        kind, shown = match.lastgroup or "", match.group()
        if kind == "space" or kind == "dots":
            continue
        if kind == "stop" and shown == "." and found and found[-1].text.lower() in _ABBREVIATED:
            continue
        if shown == "!" and found and found[-1].end == match.start() and found[-1].kind != "word":
            kind = "other"  # a factorial, or as good as one
        found.append(Token(_kind(kind, shown), shown, *match.span()))
    return found


def _kind(group: str, shown: str) -> Kind:
    if group in ("formula", "number", "word", "cjk", "comma"):
        return group  # type: ignore[return-value]
    if group in ("command", "function", "name"):
        return "name"
    if group in ("special", "break"):
        return "end"
    if group == "stop":
        return "end" if shown not in (";", "；") else "stop"
    if group == "relation" or shown in _SIGNS or unicodedata.category(shown) in _SYMBOLS:
        return "sign"
    return "stop"
