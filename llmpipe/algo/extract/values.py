"""The value that a number in a sentence is part of, as far as the mathematics around it goes."""

from __future__ import annotations

import re

from llmpipe.algo.extract.tokens import Token, tokens

DASHES = frozenset("-−–—‐‑‒―﹣－")
EQUALS = frozenset(["=", "＝", "→", "⇒", "=>", "->", "➔"])
_PARTNERS = {")": "(", "]": "[", "）": "（"}
_OPENING = frozenset(_PARTNERS.values())
_COLONS = frozenset(":：")
_WORDS_TOO = frozenset("aAI")  # letters that are words as well
_PREFIXES = DASHES | frozenset("+±∓√∛$€£¥|({[（￥≈∼~＋")
_NO_OPERATORS = frozenset("$€£¥:：(（[|")
_POSTFIX = re.compile(r"[!|)\]}'%°）％‰$€£¥²³⁰-⁹½¼¾⅐-⅞]")
_UNIT = re.compile(
    r"[A-Za-z]{4,}|USD|EUR|GBP|CNY|[kcdmn]m|ft|yd|mi|[km]g|oz|lbs?|m[lL]|sec|min|hrs?|mph|kph"
)
_CJK_UNIT = re.compile(
    "(?:平方|立方)?[千厘毫分公微纳]?[米克升里斤吨顷瓦]|[元角分秒时天日年月周度亩吨]|小时"
)
_UNIT_WORDS = 3


class Clause:
    """A stretch of text as tokens, with what is mathematics in it and which brackets belong."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.partners = self._brackets()
        self._bare = [self._is_bare(n) for n in range(len(self.tokens))]
        self.math = [self._is_math(n) for n in range(len(self.tokens))]

    def glued(self, at: int) -> bool:
        """Whether nothing stands between a token and the one before it."""
        return 0 < at < len(self.tokens) and self.tokens[at - 1].end == self.tokens[at].start

    def shown(self, first: int, last: int) -> str:
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def near(self, at: int) -> list[Token]:
        """The tokens on both sides of one."""
        return [self.tokens[n] for n in (at - 1, at + 1) if 0 <= n < len(self.tokens)]

    def _brackets(self) -> dict[int, int]:
        """For each bracket its partner, where nothing but mathematics stands between them."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.text in _OPENING:
                opened.append(at)
            elif token.text in _PARTNERS:
                if opened:
                    found[at] = opened.pop()
                    found[found[at]] = at
            elif token.kind in ("cjk", "end", "stop") or (
                token.kind == "word" and not self._is_factor(at) and token.text not in ("and", "or")
            ):
                opened.clear()
        return found

    def _is_factor(self, at: int) -> bool:
        """Whether letters are written to a number, as in 5xy, 5cm or x5."""
        return (self.glued(at) and self.tokens[at - 1].kind == "number") or (
            self.glued(at + 1) and self.tokens[at + 1].kind == "number"
        )

    def _is_bare(self, at: int) -> bool:
        token = self.tokens[at]
        if token.kind in ("number", "formula"):
            return True
        if token.kind == "name":
            if token.text not in _WORDS_TOO:
                return True
            return self.glued(at) or self.glued(at + 1) or any(
                t.kind == "sign" and t.text not in _NO_OPERATORS for t in self.near(at)
            )  # fmt: skip
        if token.kind == "sign":
            if token.text in _PARTNERS or token.text in _OPENING:
                return at in self.partners
            return token.text not in _COLONS or self._is_ratio(at)
        return token.kind == "word" and self._is_factor(at)

    def _is_math(self, at: int) -> bool:
        """Bare mathematics, or what parts the items of a list."""
        if self._bare[at]:
            return True
        joins = self.tokens[at].kind == "comma" or self.tokens[at].text in ("and", "or")
        return (
            joins and 0 < at < len(self.tokens) - 1 and self._ends(at - 1) and self._begins(at + 1)
        )

    def _begins(self, at: int) -> bool:
        token = self.tokens[at]
        return self._bare[at] and (token.kind != "sign" or token.text in _PREFIXES)

    def _ends(self, at: int) -> bool:
        token = self.tokens[at]
        return self._bare[at] and (token.kind != "sign" or bool(_POSTFIX.match(token.text)))

    def _is_ratio(self, at: int) -> bool:
        """A colon of a ratio or a clock: between numbers, with spaces on both sides or on none."""
        if any(t.kind not in ("number", "name") for t in self.near(at)):
            return False
        return 0 < at < len(self.tokens) - 1 and self.glued(at) == self.glued(at + 1)


def extent(clause: Clause, at: int) -> tuple[int, int] | None:
    """The first and last token of the expression around ``at``; None if it has an open end."""
    found = clause.tokens
    first = last = at
    while first > 0 and clause.math[first - 1]:
        first -= 1
    while last < len(found) - 1 and clause.math[last + 1]:
        last += 1
    if clause.partners.get(first) == last and any(t.text in EQUALS for t in found[first:last]):
        first, last = first + 1, last - 1  # "(x = 5)"
    while first < at and found[first].text in EQUALS:
        first += 1
    if last > at and found[last].text in DASHES and not clause.glued(last):
        last -= 1  # a dash, and a remark behind it
    if last > at and (found[last].text in EQUALS or _is_rate(clause, last)):
        last -= 1  # "5 = the sum", "5/hour"
    if found[first].kind == "sign" and found[first].text not in _PREFIXES | _OPENING:
        if not first or found[first - 1].kind != "word":
            return None
        first -= 1  # "distance < 5"
    if found[last].kind == "sign" and not _POSTFIX.match(found[last].text):
        return None
    return first, last


def _is_rate(clause: Clause, at: int) -> bool:
    """Whether a slash stands before a word, as in 5/hour."""
    following = clause.tokens[at + 1 : at + 2]
    return clause.tokens[at].text == "/" and any(
        t.kind == "word" and len(t.text) > 2 for t in following
    )


def conclusion(clause: Clause, first: int, last: int) -> int:
    """Where the outcome of a calculation begins: behind the last "=", no variable before it."""
    equals = [n for n in range(first + 1, last) if clause.tokens[n].text in EQUALS]
    if not equals or not all(_is_calculation(clause, n) for n in range(first, equals[-1])):
        return first
    return equals[-1] + 1


def _is_calculation(clause: Clause, at: int) -> bool:
    token = clause.tokens[at]
    if token.text in ("x", "X"):  # "3 x 4"
        near = clause.near(at)
        return len(near) == 2 and all(t.kind == "number" or t.text in ")($" for t in near)
    if token.kind == "word" or token.text == "degrees":
        return len(token.text) > 3
    return token.kind in ("number", "sign", "comma")


def unit_end(clause: Clause, last: int, idle: frozenset[str]) -> int:
    """The last token of the words behind a value that may be its unit; ``idle`` ones are none."""
    found = clause.tokens
    end = last
    for n in range(last + 1, min(last + 1 + _UNIT_WORDS, len(found))):
        token = found[n]
        if n == last + 1 and token.kind == "cjk" and _CJK_UNIT.match(token.text):
            return n
        if token.text == "per" and n > last + 1:
            continue
        if token.kind != "word" or token.text.lower() in idle or not _UNIT.fullmatch(token.text):
            break
        end = n
    return end
