"""Sums, products, powers, and what may follow a value: units, percent, degrees, factorials."""

from __future__ import annotations

from llmpipe.algo.answers.cursor import plain
from llmpipe.algo.answers.primaries import Primaries
from llmpipe.algo.answers.quantities import is_part_of
from llmpipe.algo.answers.scales import is_scale, scaled
from llmpipe.algo.answers.tree import Node, UnreadableError, names, neg, num
from llmpipe.algo.answers.units import is_symbol
from llmpipe.algo.answers.values import exact

_FACTORIALS = 60  # in a row
_SCALES = 4  # "thousand million"


class Terms(Primaries):
    """Reads numbers and formulas, without lists and relations."""

    def _sum(self) -> Node:
        self._deeper(1)
        terms = [self._product()]
        while sign := self._accept("+", "-", "pm", "mp"):
            right = self._product()
            if sign in ("pm", "mp"):
                terms = [Node(sign, (_added(terms), right))]
            elif sign == "-" and (terms[-1].op in ("set", "seq", "cup") or right.op == "seq"):
                terms[-1] = Node("minus", (terms[-1], right))
            else:
                terms.append(right if sign == "+" else neg(right))
        self._deeper(-1)
        return _added(terms)

    def _product(self) -> Node:
        value = self._unary()
        plain = value.op == "num"  # a bare number, which another may not follow
        while True:
            if self._accept("*"):
                value, plain = Node("mul", (value, self._unary())), False
            elif self._is("/") or self._accept("setdiv"):
                self._take()
                value, plain = Node("div", (value, self._unary())), False
            elif self._kind() in ("word", "text") and self._is_unit(value):
                value, plain = self._measured(value), False
            elif self._starts():
                value, plain = self._juxtaposed(value, plain)
            else:
                return value

    def _is_unit(self, value: Node) -> bool:
        if is_condition(str(self._tokens[self._at].value)):
            return False
        if self._tokens[self._at].value == "of" and self._kind(1) == "num":
            raise UnreadableError("a number of a number")
        return value.op != "mul" or has_numbers(value)

    def _juxtaposed(self, left: Node, plain: bool) -> tuple[Node, bool]:
        is_number, is_fraction = self._kind() == "num", self._is("frac")
        glued = self._tokens[self._at].glued
        right = self._power()
        whole = plain and left.value[1] is None and left.value[0].denominator == 1
        if is_number and plain:
            if glued or not whole or not self._accept("/") or self._kind() != "num":
                raise UnreadableError("two numbers side by side")
            right = Node("div", (right, self._power()))
            is_fraction = True
        inner = right.args[0] if right.op in ("pct", "deg") else right
        if is_fraction and whole and _is_proper(inner):  # a mixed number
            top, bottom = (a.value[0] for a in inner.args)
            fraction = top / bottom
            value = left.value[0]
            mixed = num(value - fraction if value < 0 else value + fraction)
            return mixed if inner is right else Node(right.op, (mixed,)), False
        if left.op == "seq" or right.op == "seq":
            raise UnreadableError("a product of lists")
        return Node("mul", (left, right)), False

    def _measured(self, value: Node) -> Node:
        """A value and the words after it: those that multiply it, its unit, and smaller parts."""
        for _ in range(_SCALES):
            if self._kind() not in ("word", "text") or not is_scale(
                str(self._tokens[self._at].value)
            ):
                break
            value = scaled(value, [str(self._take().value)])[0]
        if self._kind() not in ("word", "text"):
            return value
        value, unit = scaled(value, self._unit())
        if not unit:
            return value
        parts = [Node("unit", (value,), unit)]
        while part := self._smaller_part(unit):
            parts.append(part)
            unit = part.value
        if self._kind() == "num":
            raise UnreadableError(f"words before {self.shown()}")
        return Node("compound", tuple(parts)) if len(parts) > 1 else parts[0]

    def _smaller_part(self, unit: str) -> Node | None:
        """ "30 minutes" after "2 hours", "2 hours," or "2 hours and"."""
        start = self._at
        self._accept(",", "and")
        if self._kind() == "num" and self._kind(1) in ("word", "text"):
            value = Node("num", value=self._take().value)
            smaller = " ".join(self._unit())
            if is_part_of(unit, value, smaller):
                return Node("unit", (value,), smaller)
        self._at = start
        return None

    def _unit(self) -> list[str]:
        """Words, powers and slashes after a value, up to the end of the item."""
        words: list[str] = []
        while True:
            if self._kind() in ("word", "text"):
                words += str(self._take().value).split()
            elif self._kind() == "name" and is_symbol(str(self._tokens[self._at].value)):
                words.append(str(self._take().value))
            elif self._is("^"):
                self._take()
                power = exact(self._exponent())
                if power is None or power.denominator != 1:
                    raise UnreadableError("no power of a unit")
                words.append(f"^{power}")
            elif self._is("/", "*") and self._kind(1) in ("word", "text", "name"):
                words.append(str(self._take().value))
            elif self._accept(".", "'"):
                continue
            else:
                break
        if self.more() and self._kind() != "num" and not self._is(
            ",", ";", "and", "or", ")", "]", "}", r"\}", "+", "-", "~", "=", ":"
        ):  # fmt: skip
            raise UnreadableError(f"words before {self.shown()}")
        return words

    def _unary(self) -> Node:
        if self._accept("-"):
            self._deeper(1)
            value = neg(self._unary())
            self._deeper(-1)
            return value
        if self._accept("+"):
            return self._unary()
        if sign := self._accept("pm", "mp"):
            return Node(sign, (num(0), self._unary()))
        return self._power()

    def _power(self) -> Node:
        self._deeper(1)
        value = self._postfix(self._primary())
        if self._accept("^"):
            value = self._raised(value)
        self._deeper(-1)
        return value

    def _raised(self, base: Node) -> Node:
        if base.op == "sym" and self._inverse():
            return self._postfix(self._name(f"{base.value}^-1"))
        return self._postfix(Node("pow", (base, self._exponent())))

    def _inverse(self) -> bool:
        """f^{-1}(x): takes the exponent if that is what stands here."""
        inverse = self._tokens[self._at : self._at + 4]
        shown = "".join(plain(t) for t in inverse)
        if shown != "{-1}" or not self._is("(", ahead=4):
            return False
        self._at += 4
        return True

    def _exponent(self) -> Node:
        self._deeper(1)
        if self._accept("-"):
            value = neg(self._exponent())
        else:
            value = self._primary()
            if self._accept("^"):
                value = Node("pow", (value, self._exponent()))
        self._deeper(-1)
        return value

    def _postfix(self, value: Node) -> Node:
        while True:
            if self._is("!"):
                run = 0
                while self._accept("!"):
                    run += 1
                if run == 2:
                    value = Node("dfact", (value,))
                else:
                    for _ in range(min(run, _FACTORIALS)):
                        value = Node("fact", (value,))
            elif self._accept("%"):
                value = Node("pct", (value,))
            elif self._accept("degree"):
                value = self._minutes(value)
            else:
                return value

    def _minutes(self, value: Node) -> Node:
        for scale in (60, 3600):
            if self._kind() == "num" and self._is("'", ahead=1):
                part = self._take().value[0]
                while self._accept("'"):
                    pass
                value = Node("add", (value, num(part / scale)))
        return Node("deg", (value,))


_CONDITIONS = names("if when whenever otherwise unless for")


def is_condition(words: str) -> bool:
    """Whether words begin a condition: "if n is even"."""
    return words.split(maxsplit=1)[0].casefold() in _CONDITIONS if words.strip() else False


def _added(terms: list[Node]) -> Node:
    return terms[0] if len(terms) == 1 else Node("add", tuple(terms))


def has_numbers(node: Node) -> bool:
    """Whether it is more than names of variables."""
    return any(n.op in ("num", "const", "fun") for n in node.walk())


def _is_proper(node: Node) -> bool:
    if node.op != "div" or any(a.op != "num" or a.value[1] is not None for a in node.args):
        return False
    top, bottom = (a.value[0] for a in node.args)
    return bool(0 <= top < bottom)
