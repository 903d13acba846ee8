"""Equations and inequalities between formulas: the same up to a factor, or with the same roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llmpipe.algo.answers.scalars import point, same_values
from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError, neg, num, sym
from llmpipe.algo.answers.values import context, numeric

_DIGITS = 30
_ROUNDS = 25
_STARTS = ("0.7", "-1.3", "3.1", "-6.7", "19.3")


def difference(relation: Node) -> Node:
    """What an equation or inequality of two sides says is 0, or positive or negative."""
    left, right = relation.args[0], relation.args[-1]
    return Node("add", (left, neg(right)))


def same_equation(f: Node, g: Node) -> bool:
    """Whether ``f = 0`` and ``g = 0`` are the same: one a multiple of the other, or equal roots.

    For the roots all variables but one are fixed; the one is solved for from several starts, and
    every root of one equation must be one of the other.
    """
    names = f.symbols() & g.symbols()
    if not names or f.symbols() != g.symbols():
        return False
    if same_values(f, g, ratio=True):
        return True
    return all(
        _roots_agree(f, g, name, number) for name in sorted(names)[:2] for number in range(2)
    )


def has_roots(f: Node, roots: Sequence[Node]) -> bool:
    """Whether two or more numbers are all the roots of an equation ``f = 0`` of one variable."""
    if len(f.symbols()) != 1 or len(roots) < 2:
        return False
    (name,) = f.symbols()
    factors = tuple(Node("add", (sym(name), neg(root))) for root in roots)
    return same_equation(f, Node("mul", factors))


def same_inequality(a: Node, b: Node) -> bool:
    """Whether two chains of inequalities say the same, from left to right or turned round."""
    x, y = _rising(a), _rising(b)
    if x is None or y is None or x.value != y.value:
        return False
    links = zip(_links(x), _links(y), strict=True)
    return all(_same_link(f, g) for f, g in links)


def _rising(node: Node) -> Node | None:
    signs = set(node.value)
    if signs <= {"<", "<=", "="}:
        return node
    if signs <= {">", ">=", "="}:
        flipped = {">": "<", ">=": "<=", "=": "="}
        return Node("rel", node.args[::-1], tuple(flipped[s] for s in reversed(node.value)))
    return node if signs == {"!="} and len(node.value) == 1 else None


def _links(node: Node) -> list[Node]:
    pairs = zip(node.args, node.args[1:], node.value, strict=False)
    return [Node("rel", (x, y), (s,)) for x, y, s in pairs]


def _same_link(a: Node, b: Node) -> bool:
    if all(x == y or same_values(x, y) for x, y in zip(a.args, b.args, strict=True)):
        return True
    f, g = difference(a), difference(b)
    if not f.symbols() or f.symbols() != g.symbols() or not same_values(f, g, ratio=True):
        return False
    if a.value == ("!=",):
        return True
    at = point(f.symbols(), 1)
    mp = context()
    return bool(mp.re(numeric(f, at) / numeric(g, at)) > 0)


def _roots_agree(f: Node, g: Node, name: str, number: int) -> bool:
    mp = context()
    with mp.workdps(_DIGITS):
        at = point(f.symbols(), number)
        roots_f, roots_g = (
            [r for r in _roots(_numerator(n), name, at) if _is_root(n, name, at, r)] for n in (f, g)
        )
        if not roots_f or not roots_g:
            return False
        return all(_is_root(g, name, at, r) for r in roots_f) and all(
            _is_root(f, name, at, r) for r in roots_g
        )


def _numerator(node: Node) -> Node:
    """The formula times its denominators: what has the same roots and no poles."""
    return _over(node)[0]


def _over(node: Node) -> tuple[Node, Node]:
    """A formula as numerator and denominator."""
    one = num(1)
    parts = [_over(n) for n in node.args] if node.op in ("neg", "add", "mul", "div") else []
    if node.op == "neg":
        return neg(parts[0][0]), parts[0][1]
    if node.op == "div":
        (a, b), (c, d) = parts
        return _times(a, d), _times(b, c)
    if node.op not in ("add", "mul"):
        return node, one
    top, bottom = parts[0]
    for x, y in parts[1:]:
        if node.op == "mul":
            top = _times(top, x)
        elif y == bottom:
            top, y = Node("add", (top, x)), one
        else:
            top = Node("add", (_times(top, y), _times(x, bottom)))
        bottom = _times(bottom, y)
    return top, bottom


def _times(x: Node, y: Node) -> Node:
    one = num(1)
    if x == one or y == one:
        return y if x == one else x
    return Node("mul", (x, y))


def _value(f: Node, name: str, at: dict[str, Any], x: Any) -> Any:
    return numeric(f, {**at, name: x})


def _is_root(f: Node, name: str, at: dict[str, Any], x: Any) -> bool:
    mp = context()
    try:
        step = mp.mpf("1e-12") * (1 + abs(x))
        slope = max(abs(_value(f, name, at, x + step)), abs(_value(f, name, at, x - step)))
        return bool(abs(_value(f, name, at, x)) <= mp.mpf("1e-6") * slope)
    except (ZeroDivisionError, OverflowError, TooLargeError):
        return False


def _roots(f: Node, name: str, at: dict[str, Any]) -> list[Any]:
    """Roots that the secant method finds, real and complex, each once."""
    mp = context()
    found: list[Any] = []
    for start in _STARTS:
        x, y = mp.mpc(start, "0.4"), mp.mpc(start, "0.41") * mp.mpf("1.01")
        try:
            root = _secant(f, name, at, x, y)
        except (ZeroDivisionError, OverflowError, TooLargeError):
            continue
        if root is not None and all(abs(root - r) > mp.mpf("1e-10") * (1 + abs(r)) for r in found):
            found.append(root)
    return found


def _secant(f: Node, name: str, at: dict[str, Any], x: Any, y: Any) -> Any:
    mp = context()
    fx = _value(f, name, at, x)
    for _ in range(_ROUNDS):
        fy = _value(f, name, at, y)
        if fy == fx:
            return None
        x, y, fx = y, y - fy * (y - x) / (fy - fx), fy
        if abs(y - x) <= mp.mpf("1e-22") * (1 + abs(y)):
            return y
    return None


def solved(relation: Node, formula: Node) -> bool:
    """Whether an equation, solved for the one variable that a formula lacks, gives that."""
    f = difference(relation)
    missing = f.symbols() - formula.symbols()
    if len(missing) != 1 or not formula.symbols():
        return False
    (name,) = missing
    try:
        return same_equation(f, Node("add", (sym(name), neg(formula))))
    except UnreadableError:
        return False
