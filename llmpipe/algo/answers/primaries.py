r"""The innermost part of the grammar: numbers, names, functions, brackets, sets, matrices."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from llmpipe.algo.answers.cursor import Cursor, plain
from llmpipe.algo.answers.lexer import Token
from llmpipe.algo.answers.tree import Node, UnreadableError, names, neg, num, sym

_APPLIED = frozenset(["f", "g"])  # "f(x+1)" is no product; of other letters it may be one
_COUNTERS = frozenset("jklmn")  # "n(180)" is a product
_FIGURES = frozenset(["/", "-", "{", "}", "frac"])  # with digits, what a number is written with
_STATED = frozenset(["=", "<", "<=", ">", ">=", "!=", r"\{", "in", "cup", "cap"])
_MATRICES = frozenset(["pmatrix", "bmatrix", "matrix", "Bmatrix", "smallmatrix", "array"])
_DIGIT_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "twelve": 12, "sixteen": 16,
}  # fmt: skip

_STARTS = names("frac sqrt binom lfloor lceil begin overline angle triangle mathbb emptyset ldots")


class Primaries(Cursor):
    """Reads one primary; the rest of the grammar stands in the classes below it."""

    _bars = 0  # absolute values that are open
    _is_builder = False  # in a set that may turn out to be "x such that ..."

    @abstractmethod
    def answer(self) -> Node: ...

    @abstractmethod
    def _items(self) -> tuple[list[Node], list[str], bool]: ...

    @abstractmethod
    def _item(self) -> Node: ...

    @abstractmethod
    def _union(self) -> Node: ...

    @abstractmethod
    def _sum(self) -> Node: ...

    @abstractmethod
    def _power(self) -> Node: ...

    @abstractmethod
    def _exponent(self) -> Node: ...

    def _starts(self) -> bool:
        kind = self._kind()
        if kind in ("num", "name", "const", "fun"):
            return True
        if self._is("|"):
            return self._bars == 0 and not self._is_builder
        return self._is("(", "[", "{", r"\{") or (kind == "cmd" and self._is(*_STARTS))

    def _primary(self) -> Node:
        token = self._take()
        kind, value = token.kind, token.value
        if kind == "num":
            return self._based(value) if self._is("_") else Node("num", value=value)
        if kind == "clock":
            return Node("clock", value=value)
        if kind in ("name", "text"):
            return self._name(str(value))
        if kind == "const":
            if value in ("e", "i") and self._is("_"):
                return self._name(str(value))
            return Node("const", value=value)
        if kind == "fun":
            return self._function(str(value))
        if kind == "word" and len(str(value)) <= 3 and str(value).isalpha():
            letters = tuple(sym(c) for c in str(value))
            return Node("mul", (letters[0], _multiplied(letters[1:])))
        if kind in ("op", "cmd"):
            return self._marked(str(value))
        raise UnreadableError(f"no number: {value}")

    def _marked(self, mark: str) -> Node:
        if mark in ("(", "["):
            return self._bracket(mark)
        if mark == "{":
            inner = self.answer()
            self._expect("}")
            return inner
        if mark == r"\{":
            return self._set()
        if mark == "|":
            self._bars += 1
            inner = self._sum()
            self._expect("|")
            self._bars -= 1
            return Node("fun", (inner,), "abs")
        if mark == "frac":
            return self._fraction()
        if mark == "binom":
            top = self._argument()
            return Node("fun", (top, self._argument()), "binom")
        if mark in ("lfloor", "lceil"):
            inner = self._sum()
            self._expect("rfloor" if mark == "lfloor" else "rceil")
            return Node("fun", (inner,), "floor" if mark == "lfloor" else "ceil")
        if mark == "begin":
            return self._matrix()
        if mark == "overline":
            return _overlined(self._primary())
        if mark in ("angle", "triangle"):
            return self._corners(mark)
        if mark == "ldots":
            return Node("dots")
        if mark == "lnot":
            return Node("logic", (self._primary(),), "not")
        if mark == "mathbb":
            return self._number_set()
        if mark == "emptyset":
            return Node("seq", (), "{}")
        raise UnreadableError(f"no number: {mark}")

    def _number_set(self) -> Node:
        name = self._subscript()
        while mark := self._accept("^", "_"):
            name += mark + self._subscript()
        return Node("set", value=name)

    def _fraction(self) -> Node:
        top = self._argument()
        bottom = self._argument()
        if top == sym("d") and bottom.op == "mul" and bottom.args[0] == top:
            raise UnreadableError("a derivative")
        return Node("div", (top, bottom))

    def _bracket(self, opening: str) -> Node:
        bars, self._bars = self._bars, 0
        items, _, trailing = self._items()
        closing = self._expect(")", "]")
        self._bars = bars
        if len(items) == 1 and not trailing and opening + closing in ("()", "[]"):
            return items[0]
        if len(items) != 2 and opening + closing not in ("()", "[]"):
            raise UnreadableError("brackets that don't match")
        return Node("seq", tuple(items), opening + closing)

    def _set(self) -> Node:
        if self._accept(r"\}"):
            return Node("seq", (), "{}")
        bars, self._bars = self._bars, 0
        start = self._at
        self._is_builder = True
        try:
            variable = self._union()
            self._accept("in") and self._union()
            is_builder = variable.op == "sym" and bool(self._accept("|", ":"))
        finally:
            self._is_builder = False
        if is_builder:
            inner = self.answer()
        else:
            self._at = start
            inner = Node("seq", tuple(self._items()[0]), "{}")
        self._expect(r"\}")
        self._bars = bars
        return inner

    def _name(self, name: str) -> Node:
        if self._accept("_"):
            name = f"{name}_{self._subscript()}"
        while self._accept("'"):
            name += "'"
        inside = self._inside()
        if not inside:
            return sym(name)
        if any(t.value in _STATED for t in inside if t.kind in ("op", "cmd")) or (
            sum(t.value == "|" for t in inside) == 1
        ):  # P(X = 2), P(A | B), P(\{1\})
            self._at += len(inside) + 2
            return sym(f"{name}({''.join(map(plain, inside))})")
        if not _is_called(name, inside):
            return sym(name)
        self._take()
        args = self._bracket("(")
        return Node("apply", args.args if args.op == "seq" else (args,), name)

    def _inside(self) -> list[Token] | None:
        """The tokens between the bracket that opens here and the one that closes it."""
        if not self._is("("):
            return None
        depth = 0
        for at in range(self._at, len(self._tokens)):
            token = self._tokens[at]
            if token.kind == "op":
                depth += (token.value in ("(", "[")) - (token.value in (")", "]"))
                if not depth:
                    return self._tokens[self._at + 1 : at] if token.value == ")" else None
        return None

    def _corners(self, mark: str) -> Node:
        """ABC of an angle or a triangle; an angle is the same read backwards."""
        if self._kind() not in ("name", "text"):
            return self._primary()
        letters = [str(self._take().value)]
        while self._kind() in ("name", "text") and self._tokens[self._at].glued:
            letters.append(str(self._take().value))
        if mark == "angle" and len(letters) > 1:
            return sym(min("".join(letters), "".join(reversed(letters))))
        return _multiplied(tuple(sym(letter) for letter in letters))

    def _subscript(self) -> str:
        if not self._accept("{"):
            return str(plain(self._take()))
        depth = 1
        words: list[str] = []
        while True:
            if self._is("{"):
                depth += 1
            elif self._is("}"):
                depth -= 1
                if not depth:
                    self._take()
                    return "".join(words)
            words.append(plain(self._take()))

    def _based(self, value: tuple[Fraction, int | None]) -> Node:
        self._expect("_")
        word = self._subscript()
        base = _DIGIT_WORDS.get(word.lower()) or (
            int(word) if word.isdigit() and len(word) < 3 else 0
        )
        digits = str(value[0])
        if not 2 <= base <= 36 or not digits.isdigit() or any(int(d) >= base for d in digits):
            raise UnreadableError("no number of that base")
        return Node("base", value=(digits, base))

    def _argument(self) -> Node:
        r"""What follows \frac: a group, or one digit, or one letter."""
        token = self._tokens[self._at] if self.more() else None
        if token and token.kind == "num" and token.value[1] is None and token.value[0] > 9:
            digits = str(token.value[0])
            self._tokens[self._at] = Token("num", (Fraction(digits[1:]), None))
            return num(int(digits[0]))
        return self._primary()

    def _function(self, name: str) -> Node:
        if name == "sqrt":
            return self._root()
        power = base = None
        for _ in range(2):
            if self._accept("^"):
                power = self._exponent()
            if name in ("log", "max", "min", "lg") and self._accept("_"):
                base = self._primary()
        args = self._arguments()
        if base is not None and name == "log":
            args = (*args, base)
        value = Node("fun", args, name)
        if power is None:
            return value
        if power == num(-1):
            return Node("fun", args, f"arc{name}")
        return Node("pow", (value, power))

    def _root(self) -> Node:
        index = num(2)
        if self._is("["):
            self._take()
            index = self._sum()
            self._expect("]")
        return Node("fun", (self._primary(), index), "root")

    def _arguments(self) -> tuple[Node, ...]:
        if self._is("(", "["):
            inner = self._bracket(str(self._take().value))
            return inner.args if inner.op == "seq" else (inner,)
        if self._accept("-"):
            return (neg(self._power()),)
        value = self._power()
        while self._starts() and self._kind() != "fun":
            value = Node("mul", (value, self._power()))
        return (value,)

    def _matrix(self) -> Node:
        name = self._subscript()
        if name not in _MATRICES:
            raise UnreadableError(f"{name} is no matrix")
        if name == "array":
            self._subscript()
        rows: list[list[Node]] = [[]]
        while not self._accept("end"):
            if self._accept("\\\\"):
                rows.append([])
            elif not self._accept("&"):
                rows[-1].append(self._item())
        self._subscript()
        rows = [r for r in rows if r]
        if not rows or len({len(r) for r in rows}) > 1:
            raise UnreadableError("a matrix of uneven rows")
        return Node("matrix", tuple(c for r in rows for c in r), len(rows[0]))


def _is_called(name: str, inside: list[Token]) -> bool:
    """Whether a letter before a bracket is a function: f(x+1), y'(x+1), P(3), I(0), y(t), u(x, y).

    a(b+c), x(x+1) and n(180) are products.
    """
    letter = name.rstrip("'").removesuffix("^-1")
    if letter in _APPLIED or name != letter:
        return True
    signs = [t.value for t in inside if t.kind in ("op", "cmd")]
    if "," in signs:
        return True
    if len(inside) == 1 and inside[0].kind in ("name", "text"):
        return bool(inside[0].value != letter)
    numbers = all(t.kind in ("num", "const") for t in inside if t.value not in _FIGURES)
    is_number = numbers and "-" not in [t.value for t in inside[1:]]
    return is_number and letter not in _COUNTERS


def _overlined(node: Node) -> Node:
    r"""\overline{abc} is a number of three digits, \overline{AB} a segment."""
    parts = [n for n in _factors(node) if n.op == "sym" or (n.op == "num" and n.value[1] is None)]
    if len(parts) < 2 or len(parts) != len(_factors(node)):
        return Node("apply", (node,), r"\overline")
    if len(parts) == 2 and all(n.op == "sym" and n.value.isupper() for n in parts):
        return Node("mul", tuple(parts), "word")
    value = parts[0]
    for digit in parts[1:]:
        value = Node("add", (Node("mul", (num(10), value)), digit))
    return value


def _factors(node: Node) -> tuple[Node, ...]:
    return tuple(f for n in node.args for f in _factors(n)) if node.op == "mul" else (node,)


def _multiplied(factors: tuple[Node, ...]) -> Node:
    return factors[0] if len(factors) == 1 else Node("mul", factors)
