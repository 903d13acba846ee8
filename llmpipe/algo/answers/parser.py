r"""The grammar of answers, plain or LaTeX, by recursive descent.

    answer   := item (("," | ";" | and | or) item)*
    item     := [words ":"] union (("=" | "<" | ... | "\in") union)*      # "~" ends it
    union    := ratio (("\cup" | "\cap" | "\setminus") ratio)*
    ratio    := sum (":" sum)*
    sum      := product (("+" | "-" | "\pm" | "\mp") product)*
    product  := unary (("*" | "/" | nothing) unary)* [unit]
    unary    := ("-" | "+" | "\pm")* power
    power    := postfix ["^" exponent] ; postfix := primary ("!" | "%" | "\degree")*
    primary  := number | name | constant | function | bracket | set | "|" sum "|" | matrix | ...

Products need no sign, so "xy" is x times y; two numbers side by side are no product.
"""

from __future__ import annotations

from llmpipe.algo.answers.lexer import tokens
from llmpipe.algo.answers.terms import Terms, has_numbers
from llmpipe.algo.answers.tree import Node, UnreadableError

_RELATIONS = frozenset(["=", "<", "<=", ">", ">=", "!="])
_SET_SIGNS = {"cup": "cup", "cap": "cap", "setminus": "minus"}


def parse(text: str, thousands: bool = True) -> Node:
    """The tree of a clean answer (see `llmpipe.algo.answers.clean`).

    Raises:
        UnreadableError: it is not of the grammar.
        TooLargeError: it is nested too deeply, or too long.
    """
    parser = _Parser(tokens(text, thousands))
    node = parser.answer()
    if parser.more():
        raise UnreadableError(f"{parser.shown()} is left over")
    return node


class _Parser(Terms):
    def answer(self) -> Node:
        items, signs, trailing = self._items()
        if len(items) == 1 and not trailing:
            return items[0]
        if groups := _groups(items, signs):
            return Node("seq", groups, "")
        inequalities = all(n.op == "rel" and "=" not in n.value for n in items)
        return Node("seq", tuple(items), "&" if inequalities and "and" in signs else "")

    def _items(self) -> tuple[list[Node], list[str], bool]:
        """Items, the sign after each, and whether the last sign has no item after it."""
        items = [self._item()]
        signs: list[str] = []
        while sign := self._accept(",", ";", "and", "or"):
            while extra := self._accept("and", "or"):
                sign = extra
            signs.append(sign)
            if not self.more() or self._is(")", "]", "}", r"\}"):
                return items, signs, True
            items.append(self._item())
        return items, signs, False

    def _item(self) -> Node:
        self._skip_label()
        self._accept("=")
        parts = [self._union()]
        signs: list[str] = []
        while self._is(*_RELATIONS, "~", "in"):
            sign = self._take().value
            if sign == "~" and (signs or has_numbers(parts[0])):
                self._union()  # an approximation of what stands before it
                continue
            right = self._union()
            if sign == "in":
                return Node("in", (parts[0], right))
            parts.append(right)
            signs.append("=" if sign == "~" else sign)
        if self._accept("mod"):
            parts[-1] = Node("mod", (parts[-1], self._sum()))
        return Node("rel", tuple(parts), tuple(signs)) if signs else parts[0]

    def _skip_label(self) -> None:
        """Words before a value: "Minimum: 1", "Sequence 2: ...", "Area = 5"."""
        ahead = 0
        while self._kind(ahead) in ("word", "text") or (
            ahead and self._kind(ahead) in ("name", "num")
        ):
            ahead += 1
        named = self._kind() == "word" and len(str(self._tokens[self._at].value)) > 3
        if ahead and (self._is(":", ahead=ahead) or (named and self._is("=", ahead=ahead))):
            self._at += ahead + 1

    def _union(self) -> Node:
        left = self._ratio()
        while sign := self._accept(*_SET_SIGNS):
            left = Node(_SET_SIGNS[sign], (left, self._ratio()))
        return left

    def _ratio(self) -> Node:
        parts = [self._sum()]
        while self._is(":") and not self._is_builder:
            self._take()
            parts.append(self._sum())
        return Node("ratio", tuple(parts)) if len(parts) > 1 else parts[0]


def _groups(items: list[Node], signs: list[str]) -> tuple[Node, ...] | None:
    """ "1, 2; 3, 4" as pairs; and "x = 1, y = 2 or x = 3, y = 4"."""
    if "," not in signs or set(signs) == {","}:
        return None
    labelled = all(n.op == "rel" and n.value == ("=",) for n in items)
    groups: list[list[Node]] = [items[:1]]
    for item, sign in zip(items[1:], signs, strict=False):
        if sign == ",":
            groups[-1].append(item)
        else:
            groups.append([item])
    if len({len(g) for g in groups}) > 1 or not (labelled or ";" in signs):
        return None
    return tuple(Node("seq", tuple(g), "()") for g in groups)
