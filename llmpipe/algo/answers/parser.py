r"""The grammar of answers, plain or LaTeX, by recursive descent.

    answer   := item (("," | ";" | and | or) item)*
    item     := [words ":"] logic [condition]
    logic    := either ["\to" logic] ; either := both ("\lor" both)*
    both     := relation ("\land" relation)*
    relation := union (("=" | "<" | ... | "\in") union)*      # "~" ends it
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

from llmpipe.algo.answers.cursor import plain
from llmpipe.algo.answers.lexer import Token, tokens
from llmpipe.algo.answers.logic import joined
from llmpipe.algo.answers.scalars import is_near
from llmpipe.algo.answers.terms import Terms, has_numbers, is_condition
from llmpipe.algo.answers.tree import Node, UnreadableError, names, sym

_RELATIONS = frozenset(["=", "<", "<=", ">", ">=", "!="])
_IDLE_LABELS = names("the a an final answer answers result solution solutions ans")
_IDLE_IN_CONDITIONS = names("if when for whenever is are the a an all every then number")
_NAME = 3  # letters; longer ones are words anyway
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
        label = self._worded_label()
        self._accept("=")
        node = self._logic()
        if self._kind() == "word" and is_condition(str(self._tokens[self._at].value)):
            node = Node("given", (node,), self._condition())
        if label is None or node.op == "rel":
            return node
        return Node("rel", (Node("label", value=label), node), ("=",))

    def _condition(self) -> tuple[str, ...]:
        """Words of an "if n is even", up to the end of the item."""
        start = self._at
        while self.more() and not self._is(",", ";", "and", "or", ")", "]", "}", r"\}"):
            self._take()
        words = _written(self._tokens[start : self._at]).split()
        return tuple(word for word in words if word not in _IDLE_IN_CONDITIONS)

    def _logic(self) -> Node:
        left = self._either()
        if sign := self._accept("->", "<->"):
            return Node("logic", (left, self._logic()), sign)
        return left

    def _either(self) -> Node:
        parts = [self._both()]
        while self._accept("lor"):
            parts.append(self._both())
        return joined(parts, "or")

    def _both(self) -> Node:
        parts = [self._relation()]
        while self._accept("land"):
            parts.append(self._relation())
        return joined(parts, "and")

    def _relation(self) -> Node:
        start = self._at
        parts = [self._union()]
        signs: list[str] = []
        while self._is(*_RELATIONS, "~", "in"):
            sign = self._take().value
            right = self._union()
            if sign == "~" and (signs or has_numbers(parts[0])) and is_near(parts[-1], right):
                continue  # an approximation of what stands before it
            if sign == "in":
                return Node("in", (parts[0], right))
            parts.append(right)
            signs.append("=" if sign == "~" else sign)
        if self._accept("mod"):
            parts[-1] = Node("mod", (parts[-1], self._sum()))
        if signs:
            return Node("rel", tuple(parts), tuple(signs))
        return self._spelled(start) or parts[0]

    def _spelled(self, start: int) -> Node | None:
        """An item of capital letters alone, or a short word: its letters have an order."""
        read = self._tokens[start : self._at]
        if len(read) == 1 and read[0].kind == "word":
            letters = str(read[0].value)
        elif len(read) > 1 and all(t.kind in ("name", "text") and t.glued for t in read[1:]):
            letters = "".join(str(t.value) for t in read)
            if len(letters) != len(read) or not letters.isupper():
                return None
        else:
            return None
        return Node("mul", tuple(map(sym, letters)), "word") if len(letters) > 1 else None

    def _worded_label(self) -> str | None:
        """Words before a value: "Minimum: 1", "Sequence 2: ...", "Area = 5"."""
        ahead = self._short_name()
        while self._kind(ahead) in ("word", "text") or (
            ahead and self._kind(ahead) in ("name", "num")
        ):
            ahead += 1
        named = ahead == _NAME or (
            self._kind() == "word" and len(str(self._tokens[self._at].value)) > 3
        )
        if not ahead or not (self._is(":", ahead=ahead) or (named and self._is("=", ahead=ahead))):
            return None
        read = self._tokens[self._at : self._at + ahead]
        words = _written(read)
        self._at += ahead + 1
        return None if _IDLE_LABELS.issuperset(words.split()) else words

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

    def _short_name(self) -> int:
        """How many tokens a name of three letters takes here: "Bob = 5", "Amy: 3"."""
        read = self._tokens[self._at : self._at + _NAME]
        letters = "".join(str(t.value) for t in read if t.kind in ("name", "const"))
        is_name = len(letters) == len(read) == _NAME and all(t.glued for t in read[1:])
        return _NAME if is_name and letters[0].isupper() and letters[1:].islower() else 0


def _written(read: list[Token]) -> str:
    return "".join(plain(t) if t.glued else f" {plain(t)}" for t in read).casefold().strip()


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
