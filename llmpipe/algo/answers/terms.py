"""Sums, products, powers, and what may follow a value: units, percent, degrees, factorials."""

from __future__ import annotations

from llmpipe.algo.answers.cursor import plain
from llmpipe.algo.answers.primaries import Primaries
from llmpipe.algo.answers.tree import Node, UnreadableError, neg, num
from llmpipe.algo.answers.units import MULTIPLES

_FACTORIALS = 60  # in a row


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
            elif self._kind() in ("word", "text") and (value.op != "mul" or has_numbers(value)):
                if scale := MULTIPLES.get(str(self._tokens[self._at].value).lower()):
                    self._take()
                    value = Node("mul", (value, num(scale)))
                else:
                    value = Node("unit", (value,), self._unit())
            elif self._starts():
                value, plain = self._juxtaposed(value, plain)
            else:
                return value

    def _juxtaposed(self, left: Node, plain: bool) -> tuple[Node, bool]:
        is_number, is_fraction = self._kind() == "num", self._is("frac")
        glued = self._tokens[self._at].glued
        bracketed = glued and self._is("(")
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
        called = (
            left.op == "sym"
            and bracketed
            and all(n.op in ("sym", "num") for n in (right.args if right.op == "seq" else (right,)))
        )
        if called:
            return Node("mul", (left, right), "call"), False
        if left.op == "seq" or right.op == "seq":
            raise UnreadableError("a product of lists")
        return Node("mul", (left, right)), False

    def _unit(self) -> str:
        """Words, powers and slashes after a value, up to the end of the item."""
        words: list[str] = []
        while True:
            if self._kind() in ("word", "text", "name"):
                words.append(str(self._take().value))
            elif self._is("^"):
                self._take()
                words.append(f"^{self._exponent()!r}")
            elif self._is("/", "*") and self._kind(1) in ("word", "text", "name"):
                words.append(str(self._take().value))
            elif self._accept(".", "'"):
                continue
            else:
                break
        if self.more() and not self._is(",", ";", "and", "or", ")", "]", "}", r"\}", "+", "-", "~",
                                        "=", ":"):  # fmt: skip
            raise UnreadableError(f"words before {self.shown()}")
        return " ".join(words)

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
