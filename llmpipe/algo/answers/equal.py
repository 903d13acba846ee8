"""Are two answers, as trees, the same? Lists, labels and signs here; the rest is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from llmpipe.algo.answers.clock import same_time
from llmpipe.algo.answers.equations import (
    difference,
    has_roots,
    same_equation,
    same_inequality,
    solved,
)
from llmpipe.algo.answers.labels import (
    apart,
    as_point,
    in_usual_order,
    is_call,
    is_named,
    label,
    same_name,
    value,
    variables,
    worded,
)
from llmpipe.algo.answers.logic import same_logic
from llmpipe.algo.answers.matrices import multiplied_out
from llmpipe.algo.answers.quantities import comparable
from llmpipe.algo.answers.regions import is_region, same_region
from llmpipe.algo.answers.scalars import same_scalar
from llmpipe.algo.answers.signs import signs, spread
from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError, num, replaced, sym
from llmpipe.algo.answers.values import exact

_MOST_ITEMS = 200
_PARAMETERS = frozenset("kmnlj")


def equal(a: Node, b: Node, free: bool = False) -> bool:
    """Whether two answers are the same; ``free``: one says that its variable may have any name.

    Raises:
        UnreadableError, TooLargeError: it can't be decided.
    """
    if _equal(a, b):
        return True
    if (worded(a) is None) != (worded(b) is None):  # "Area: 5" is 5, and S = 5
        return _equal(*(value(n) if worded(n) is not None else n for n in (a, b)))
    if (a.op == "given") != (b.op == "given"):
        return _equal(*(n.args[0] if n.op == "given" else n for n in (a, b)))
    x, y = value(a), value(b)
    names, others = x.symbols(), y.symbols()
    for constant, small in (("C", "c"), ("K", "k")):  # of integration, mostly
        if (constant in names) != (constant in others) and (small in names) != (small in others):
            return _equal(*(replaced(n, sym(small), sym(constant)) for n in (x, y)))
    if len(names) != 1 or len(others) != 1 or names == others:
        return False
    (name,), (other,) = names, others
    if not free and not (_is_periodic(x, name) and _is_periodic(y, other)):
        return False
    return _equal(x, replaced(y, sym(other), sym(name)))


def _is_periodic(node: Node, name: str) -> bool:
    r"""The k of k\pi: its name says nothing."""
    return name in _PARAMETERS and any(n.op == "const" and n.value == "pi" for n in node.walk())


def _equal(a: Node, b: Node) -> bool:
    if a == b:
        return True
    if a.op == b.op == "mul" and a.value == b.value == "word":  # an order of letters: SOS, HHT
        return [n.value for n in a.args] == [n.value for n in b.args]
    if "given" in (a.op, b.op):
        return a.op == b.op and _same_case(a, b)
    if "logic" in (a.op, b.op):
        return a.op == b.op and same_logic(a, b)
    a, b = multiplied_out(a), multiplied_out(b)
    if _is_conditional(a) != _is_conditional(b) and _equal(_unconditional(a), _unconditional(b)):
        return True
    if a.op == b.op == "mod":
        return _same_residue(a, b)
    a, b = (n.args[0] if n.op == "mod" else n for n in (a, b))
    if signs(a) or signs(b):
        return _equal(spread(a), spread(b))
    if is_region(a) or is_region(b):
        pair = comparable(a, b)
        return pair is not None and _same_regions(*pair)
    if a.op == "rel" or b.op == "rel":
        return _same_equations(a, b)
    if a.op == "in" or b.op == "in":
        return _same_members(a, b)
    if a.op in ("seq", "matrix") or b.op in ("seq", "matrix"):
        return _same_lists(as_point(a), as_point(b))
    if "clock" in (a.op, b.op):
        return same_time(a, b)
    if a.op == b.op == "ratio" and len(a.args) == len(b.args):
        first = zip(a.args, b.args, strict=True)
        return all(
            same_scalar(Node("mul", (x, b.args[0])), Node("mul", (y, a.args[0]))) for x, y in first
        ) or _is_time(a, b)
    if a.op == b.op == "ratio":
        return _is_time(a, b)
    return same_scalar(a, b)


def _same_case(a: Node, b: Node) -> bool:
    left, right = label(a), label(b)
    return bool(left and right and same_name(left[0], right[0]) and _equal(left[1], right[1]))


def _is_conditional(node: Node) -> bool:
    """A formula and inequalities of its variables after it: "t^2, t > 0"."""
    if node.op != "seq" or node.value != "" or len(node.args) < 2:
        return False
    first, *others = node.args
    known = first.symbols()
    return not is_region(first) and all(
        n.op == "rel" and is_region(n) and n.symbols() <= known for n in others
    )


def _unconditional(node: Node) -> Node:
    return node.args[0] if _is_conditional(node) else node


def _same_residue(a: Node, b: Node) -> bool:
    (x, modulus), (y, other) = a.args, b.args
    if not same_scalar(modulus, other):
        return False
    values = [exact(n) for n in (x, y, modulus)]
    if None in values or not values[2]:
        return same_scalar(x, y)
    left, right, whole = (v or 0 for v in values)
    return (left - right) % whole == 0


def _is_time(a: Node, b: Node) -> bool:
    """20:34 is 20:34:00."""
    longer, shorter = sorted((a.args, b.args), key=len, reverse=True)
    extra = longer[len(shorter) :]
    return longer[: len(shorter)] == shorter and extra == (num(0),) and len(shorter) == 2


def _same_equations(a: Node, b: Node) -> bool:
    left, right = label(a), label(b)
    if a.op == b.op == "rel":
        if (
            left
            and right
            and same_name(left[0], right[0])
            and _equal(left[1], replaced(right[1], *variables(right[0], left[0])))
        ):
            return True
        if worded(a) is not None or worded(b) is not None:
            return False
        f, g = difference(a), difference(b)
        if not f.symbols() and not g.symbols():
            return any(_in_order(x, b.args) for x in (a.args, a.args[::-1]))
        return _is_scalar(f) and _is_scalar(g) and same_equation(f, g)
    (relation, labelled), other = ((a, left), b) if a.op == "rel" else ((b, right), a)
    if other.op == "seq" and other.value in ("", "()") and labelled and labelled[0].op == "seq":
        return _same_lists(apart(labelled), other)
    if labelled and _equal(labelled[1], other):
        return True
    if labelled and (labelled[0].op in ("sym", "label") or is_call(labelled[0])):
        return False  # solved already: y = 2x + 1 is no formula for x
    if _is_identity(relation):
        return _equal(relation.args[-1], other)
    f = difference(relation)
    if other.op == "seq" and other.value in ("", "{}"):
        return _is_scalar(f) and has_roots(f, _values(other, f.symbols()))
    return _is_scalar(f) and _is_scalar(other) and solved(relation, other)


def _is_identity(relation: Node) -> bool:
    """2 + 3 = 5, and (x + 1)^2 = x^2 + 2x + 1."""
    return all(_is_scalar(n) for n in relation.args) and all(
        same_scalar(x, y) for x, y in pairwise(relation.args)
    )


def _values(items: Node, names: frozenset[str]) -> list[Node]:
    """The numbers of a list, or of "x = 2, x = -2" where x is the only one of ``names``."""
    found = []
    for item in items.args:
        split = label(item)
        if split and split[0].symbols() != names:
            return []
        found.append(split[1] if split else item)
    return found if all(_is_scalar(n) and not n.symbols() for n in found) else []


def _is_scalar(node: Node) -> bool:
    return not any(
        n.op in ("seq", "matrix", "set", "cup", "rel", "in", "minus") for n in node.walk()
    )


def _same_members(a: Node, b: Node) -> bool:
    if a.op == b.op == "in" and a.args[0] != b.args[0]:
        return False
    return _equal(*(n.args[1] if n.op == "in" else n for n in (a, b)))


def _same_regions(a: Node, b: Node) -> bool:
    same = same_region(a, b)
    if same is not None:
        return same
    if "in" in (a.op, b.op):
        return _same_members(a, b)
    if a.op == b.op == "rel":
        return same_inequality(a, b)
    for one, other in ((a, b), (b, a)):
        if one.op == "rel" and other.op == "seq" and other.value == "" and len(one.args) > 2:
            return one.args == other.args  # "b < a < c", asked for as an order
    if a.op == b.op == "seq":
        return _same_lists(a, b)
    return False


# Lists, sets, tuples, matrices.


def _same_lists(a: Node, b: Node) -> bool:
    left, right = _list(a), _list(b)
    if left is None or right is None:
        return _is_only(left, b) or _is_only(right, a)
    (kind, x), (other, y) = left, right
    if max(len(x), len(y)) > _MOST_ITEMS:
        raise TooLargeError(f"more than {_MOST_ITEMS} items")
    if "matrix" in (kind, other) and kind != other and a.value != 1 and b.value != 1:
        return len(x) == len(y) and (a.value == len(x) or b.value == len(y)) and _in_order(x, y)
    if kind == other == "matrix":
        return a.value == b.value and _in_order(x, y)
    for (one, items), rest in (((kind, x), b), ((other, y), a)):
        if one == "{}" and len(items) == 1 and items[0].op == "seq" and _equal(items[0], rest):
            return True
    if "{}" in (kind, other):
        return {kind, other} <= {"{}", "", "&"} and _covers(x, y) and _covers(y, x)
    if {kind, other} <= {"", "&"} and all(n.op == "seq" for n in (*x, *y)):
        return _covers(x, y) and _covers(y, x)  # solutions: one said twice is one
    if is_named(x) != is_named(y) and not (
        {kind, other} == {""} and all(worded(n) is not None for n in (*x, *y) if label(n))
    ):
        return _in_order(*(in_usual_order(items) if is_named(items) else items for items in (x, y)))
    if {kind, other} <= {"", "&"}:
        return len(x) == len(y) and _matched(x, y)
    if "" in (kind, other) and ("[]" in (kind, other)) and len(x) == 2:
        return False  # an interval is no pair
    loose = {kind, other} <= {"", "()"} or {kind, other} <= {"", "[]"} or "matrix" in (kind, other)
    return (kind == other or loose) and _in_order(x, y)


def _list(node: Node) -> tuple[str, tuple[Node, ...]] | None:
    if node.op == "seq":
        return str(node.value), node.args
    return ("matrix", node.args) if node.op == "matrix" else None


def _is_only(found: tuple[str, tuple[Node, ...]] | None, item: Node) -> bool:
    """{5} is 5."""
    return (
        found is not None and found[0] == "{}" and len(found[1]) == 1 and _equal(found[1][0], item)
    )


def _same_item(x: Node, y: Node) -> bool:
    try:
        return _equal(x, y)
    except UnreadableError:
        return False


def _in_order(x: Sequence[Node], y: Sequence[Node]) -> bool:
    return len(x) == len(y) and all(_same_item(*pair) for pair in zip(x, y, strict=True))


def _covers(x: Sequence[Node], y: Sequence[Node]) -> bool:
    return all(any(_same_item(i, j) for j in y) for i in x)


def _matched(x: Sequence[Node], y: Sequence[Node]) -> bool:
    left = list(y)
    for item in x:
        match = next((n for n, other in enumerate(left) if _same_item(item, other)), None)
        if match is None:
            return False
        del left[match]
    return True
