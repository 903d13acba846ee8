"""Values with units, as trees: two of them in one unit."""

from __future__ import annotations

from collections.abc import Sequence

from llmpipe.algo.answers.tree import Node, num
from llmpipe.algo.answers.units import Conversion, conversions, is_symbol, is_unit
from llmpipe.algo.answers.values import exact

_PI = Node("const", value="pi")


def is_quantity(node: Node) -> bool:
    """Whether it is a value with a unit, or several that make one: "2 hours 30 minutes"."""
    return node.op in ("unit", "compound")


def in_one_unit(a: Node, b: Node) -> list[tuple[Node, Node]]:
    """Two values, at least one of which has a unit, as pairs of plain ones to compare.

    The values are equal if those of one pair are; no pair means that their units don't agree.
    Where one has no unit, or one that isn't known, units say nothing.
    """
    return [
        pair
        for x in _parted(a)
        for y in _parted(b)
        for pair in _pairs(_measured(x, y), _measured(y, x))
    ]


def comparable(a: Node, b: Node) -> tuple[Node, Node] | None:
    """Two trees of sets of numbers, the units in them as numbers; None if they don't agree."""
    left, right = ({n.value for n in t.walk() if n.op == "unit"} for t in (a, b))
    if not left and not right:
        return a, b
    known = [u for u in (*left, *right) if is_unit(u)]
    if not left or not right or not known:
        return _plain(a), _plain(b)
    base = known[0]
    found = {unit: conversions(unit, base) for unit in known}
    if any(not found[unit] for unit in known):
        return None
    return _in_unit(a, found), _in_unit(b, found)


def is_part_of(whole: str, part: Node, unit: str) -> bool:
    """Whether a value in ``unit`` goes on with one in a larger unit: "2 hours 30 minutes"."""
    value = exact(part)
    found = conversions(unit, whole)
    if not found or value is None:
        return False
    return any(not c.turns and not c.before and 0 <= value * c.factor < 1 for c in found)


def _parted(node: Node) -> Sequence[Node]:
    """Several values that make one: their sum, in each of their units."""
    if node.op != "compound":
        return (node,)
    return tuple(_total(node.args, whole.value) for whole in node.args)


def _total(parts: Sequence[Node], unit: str) -> Node:
    terms = []
    for part in parts:
        found = conversions(part.value, unit)
        terms.append(_converted(part.args[0], found[0]) if found else part.args[0])
    return Node("unit", (Node("add", tuple(terms)),), unit)


def _measured(node: Node, other: Node) -> Node:
    r"""Degrees, and letters that may be units, as such beside a unit: "12 h" is 12 hours."""
    if other.op != "unit" or not is_unit(other.value):
        return node
    if node.op == "deg":
        return Node("unit", node.args, "°")
    if node.op in ("mul", "div") and (split := _monomial(node)):
        value, powers = split
        if powers and all(is_symbol(name) for name in powers):
            return Node("unit", (value,), " ".join(f"{n} ^{p}" for n, p in powers.items()))
    return node


def _monomial(node: Node) -> tuple[Node, dict[str, int]] | None:
    """A coefficient and the powers of its letters."""
    if not node.symbols():
        return node, {}
    if node.op == "sym":
        return num(1), {node.value: 1}
    if node.op == "pow" and node.args[0].op == "sym":
        power = exact(node.args[1])
        if power is None or power.denominator != 1:
            return None
        return num(1), {node.args[0].value: int(power)}
    if node.op not in ("mul", "div"):
        return None
    parts = [_monomial(arg) for arg in node.args]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    (x, powers), (y, others) = parts[0], parts[1]
    sign = 1 if node.op == "mul" else -1
    for name, n in others.items():
        powers = {**powers, name: powers.get(name, 0) + sign * n}
    return (x if y == num(1) else Node(node.op, (x, y))), powers


def _pairs(a: Node, b: Node) -> list[tuple[Node, Node]]:
    x, y = (n.args[0] if n.op == "unit" else n for n in (a, b))
    if a.op != "unit" or b.op != "unit":
        unit, other = (a, b) if a.op == "unit" else (b, a)
        named = unit.op == "unit" and is_unit(unit.value) and other.op == "pct"
        return [] if named else [(x, y)]
    there, back = conversions(a.value, b.value), conversions(b.value, a.value)
    if there is None or back is None:
        return [(x, y)]
    return [(_converted(x, c), y) for c in there] + [(x, _converted(y, c)) for c in back]


def _converted(value: Node, by: Conversion) -> Node:
    if by.before:
        value = Node("add", (value, num(by.before)))
    if by.factor != 1:
        value = Node("mul", (value, num(by.factor)))
    if by.turns:
        value = Node("mul", (value, Node("pow", (_PI, num(by.turns)))))
    return Node("add", (value, num(by.after))) if by.after else value


def _plain(node: Node) -> Node:
    if node.op == "unit":
        return node.args[0]
    return Node(node.op, tuple(map(_plain, node.args)), node.value) if node.args else node


def _in_unit(node: Node, found: dict[str, tuple[Conversion, ...] | None]) -> Node:
    if node.op == "unit":
        by = found.get(node.value)
        return _converted(node.args[0], by[0]) if by else node.args[0]
    if not node.args:
        return node
    return Node(node.op, tuple(_in_unit(n, found) for n in node.args), node.value)
