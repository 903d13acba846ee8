"""Sets of real numbers: intervals, inequalities of one variable, unions of them.

Two of them are the same if every end point of either, and every gap between these, lies in both or
in neither. So no set is ever solved or simplified.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from llmpipe.algo.answers.scalars import same_scalar
from llmpipe.algo.answers.tree import (
    INFINITY,
    MINUS_INFINITY,
    Node,
    UnreadableError,
    neg,
    num,
    replaced,
    sym,
)
from llmpipe.algo.answers.values import context, exact, numeric

_MOST = 40  # end points
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "=": "="}


def is_region(node: Node) -> bool:
    """Whether a tree can only be a set of numbers: what `same_region` is to be asked about."""
    if node.op in ("cup", "cap", "minus", "set"):
        return True
    if node.op == "in":
        return is_region(node.args[1]) or _is_interval(node.args[1])
    if node.op == "seq" and node.value in ("", "&"):
        return (
            bool(node.args)
            and all(n.op == "rel" for n in node.args)
            and any(map(is_region, node.args))
        )
    if node.op == "rel":
        return any(sign != "=" for sign in node.value)
    return node.op == "seq" and node.value in ("(]", "[)")


def _is_interval(node: Node) -> bool:
    return node.op == "seq" and len(node.args) == 2 and node.value in ("()", "[]", "(]", "[)")


def same_region(a: Node, b: Node) -> bool | None:
    """Whether two sets of numbers are the same; None where one isn't such a set, or not plainly."""
    left, right = _intervals(a), _intervals(b)
    if left is None or right is None or not _same_variable(a, b):
        return None
    ends = _ranks([n for piece in (left, right) for n in _ends(piece)])
    if ends is None:
        return _same_shape(left, right)
    ranks, count = ends
    if any(_is_empty(n, ranks) for t in (left, right) for n in t.walk()):
        return _same_shape(left, right)
    positions = range(2 * count + 1)
    both = [(_holds(left, p, ranks), _holds(right, p, ranks)) for p in positions]
    if a.op == "seq" and a.value == "&" and not any(x for x, _ in both):
        return same_region(Node("seq", a.args), b)  # "x < 1 and x > 3", said of two parts
    if b.op == "seq" and b.value == "&" and not any(y for _, y in both):
        return same_region(a, Node("seq", b.args))
    return all(x == y for x, y in both)


def _same_variable(a: Node, b: Node) -> bool:
    left, right = _variables(a), _variables(b)
    return len(left | right) <= 1


def _variables(node: Node) -> frozenset[Node]:
    """What the inequalities in it are about."""
    if node.op == "in":
        return frozenset([node.args[0]])
    if node.op != "rel":
        is_union = node.op in ("cup", "cap", "minus") or (
            node.op == "seq" and node.value in ("", "&")
        )
        return frozenset().union(*map(_variables, node.args)) if is_union else frozenset()
    if len(node.args) == 3:
        return frozenset([node.args[1]])
    if found := _within(node):
        return _variables(found)
    return frozenset([next((n for n in node.args if n.op in ("sym", "apply")), node)])


def _within(node: Node) -> Node | None:
    """|2x - 1| < 3 as -1 < x < 2, and |x| > 3 as two rays; a line in one variable, nothing else."""
    if len(node.value) != 1 or node.value[0] in ("=", "!="):
        return None
    (left, right), sign = node.args, node.value[0]
    if left.op != "fun":
        (left, right), sign = (right, left), _FLIPPED[sign]
    if left.op != "fun" or left.value != "abs" or right.symbols() or len(left.symbols()) != 1:
        return None
    (name,) = left.symbols()
    line = _line(left.args[0], name)
    if line is None:
        return None
    slope, offset = line
    ends = [
        Node("div", (Node("add", (end, num(-offset))), num(slope))) for end in (right, neg(right))
    ]
    high, low = ends if slope > 0 else reversed(ends)
    if sign in ("<", "<="):
        return Node("rel", (low, sym(name), high), (sign, sign))
    rays = Node("rel", (sym(name), low), (_FLIPPED[sign],)), Node("rel", (sym(name), high), (sign,))
    return Node("seq", rays, "")


def _line(node: Node, name: str) -> tuple[Fraction, Fraction] | None:
    """Slope and offset, where the formula is a line with rational ones."""
    points = [exact(replaced(node, sym(name), num(x))) for x in (0, 1, 2, 5, 11)]
    if None in points:
        return None
    offset, at_one, *others = (p or Fraction(0) for p in points)
    slope = at_one - offset
    is_line = all(y == offset + slope * x for x, y in zip((2, 5, 11), others, strict=True))
    return (slope, offset) if slope and is_line else None


def _intervals(node: Node) -> Node | None:
    """The tree with inequalities turned into intervals; None where it isn't made of such."""
    if _is_interval(node):
        return node
    if node.op == "set":
        return Node("seq", (MINUS_INFINITY, INFINITY), "()") if node.value == "R" else None
    if node.op == "in":
        return _intervals(node.args[1])
    if node.op == "rel":
        return _inequality(node)
    if node.op == "seq" and node.value == "{}":
        points = tuple(Node("seq", (n, n), "[]") for n in node.args)
        return Node("cup", points) if points else None
    if node.op == "seq" and node.value not in ("", "&"):
        return None
    if node.op in ("cup", "cap", "minus", "seq"):
        parts = [_intervals(n) for n in node.args]
        if not parts or any(p is None for p in parts):
            return None
        op = {"&": "cap", "": "cup"}[node.value] if node.op == "seq" else node.op
        return Node(op, tuple(p for p in parts if p))
    return None


def _inequality(node: Node) -> Node | None:
    if found := _within(node):
        return _intervals(found)
    signs, args = node.value, node.args
    if len(signs) == 1:
        (left, right), sign = args, signs[0]
        if left.op not in ("sym", "apply", "fun") or left in right.walk():
            (left, right), sign = (right, left), _FLIPPED[sign]
        if left.op not in ("sym", "apply") or left.symbols() & right.symbols():
            return None
        return _ray(sign, right)
    if len(signs) == 2 and args[1].op in ("sym", "apply"):
        low, _, high = args
        if set(signs) <= {">", ">="}:
            low, high, signs = high, low, tuple(_FLIPPED[s] for s in reversed(signs))
        if set(signs) <= {"<", "<="}:
            brackets = ("[" if signs[0] == "<=" else "(") + ("]" if signs[1] == "<=" else ")")
            return Node("seq", (low, high), brackets)
    return None


def _ray(sign: str, end: Node) -> Node:
    if sign == "=":
        return Node("seq", (end, end), "[]")
    if sign == "!=":
        return Node("cup", (_ray("<", end), _ray(">", end)))
    if sign in ("<", "<="):
        return Node("seq", (MINUS_INFINITY, end), "(]" if sign == "<=" else "()")
    return Node("seq", (end, INFINITY), "[)" if sign == ">=" else "()")


def _ends(node: Node) -> list[Node]:
    return [n for piece in node.walk() if piece.op == "seq" for n in piece.args]


def _ranks(ends: list[Node]) -> tuple[dict[Node, int], int] | None:
    """The order of the end points, equal ones alike; None where they aren't all known numbers."""
    if len(ends) > _MOST or any(n.symbols() for n in ends):
        return None
    mp = context()
    values: dict[Node, Any] = {}
    with mp.workdps(30):
        for node in ends:
            try:
                value = numeric(node, {})
            except ZeroDivisionError:
                return None
            if mp.im(value) != 0:
                return None
            values[node] = mp.re(value)
    ranks: dict[Node, int] = {}
    count = 0
    previous: Node | None = None
    for node in sorted((n for n in values if not mp.isinf(values[n])), key=lambda n: values[n]):
        if previous is None or not same_scalar(previous, node):
            count += 1
        ranks[node] = 2 * count - 1
        previous = node
    for node, value in values.items():
        if mp.isinf(value):
            ranks[node] = -1 if value < 0 else 2 * count + 1
    return ranks, count


def _is_empty(node: Node, ranks: dict[Node, int]) -> bool:
    if node.op != "seq":
        return False
    low, high = (ranks[n] for n in node.args)
    return low > high or (low == high and node.value != "[]")


def _holds(node: Node, position: int, ranks: dict[Node, int]) -> bool:
    if node.op == "cup":
        return any(_holds(n, position, ranks) for n in node.args)
    if node.op == "cap":
        return all(_holds(n, position, ranks) for n in node.args)
    if node.op == "minus":
        first, *others = (_holds(n, position, ranks) for n in node.args)
        return first and not any(others)
    low, high = (ranks[n] for n in node.args)
    above = position > low or (position == low and node.value[0] == "[")
    return above and (position < high or (position == high and node.value[1] == "]"))


def _same_shape(a: Node, b: Node) -> bool:
    """Intervals with variables as ends: compared one by one."""
    if (a.op, a.value if a.op == "seq" else None) != (b.op, b.value if b.op == "seq" else None):
        return False
    if len(a.args) != len(b.args):
        return False
    same = _same_shape if a.op != "seq" else _same_end
    return all(same(x, y) for x, y in zip(a.args, b.args, strict=True))


def _same_end(x: Node, y: Node) -> bool:
    try:
        return same_scalar(x, y)
    except UnreadableError:
        return False
