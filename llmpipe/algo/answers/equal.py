"""Are two answers, as trees, the same? Lists, labels and signs here; the rest is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from llmpipe.algo.answers.equations import difference, same_equation, same_inequality, solved
from llmpipe.algo.answers.matrices import multiplied_out
from llmpipe.algo.answers.regions import is_region, same_region
from llmpipe.algo.answers.scalars import same_scalar
from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError, num, sym
from llmpipe.algo.answers.values import exact

_MOST_ITEMS = 200
_MOST_SIGNS = 4
_PARAMETERS = frozenset("kmnlj")


def equal(a: Node, b: Node, free: bool = False) -> bool:
    """Whether two answers are the same; ``free``: one says that its variable may have any name.

    Raises:
        UnreadableError, TooLargeError: it can't be decided.
    """
    if _equal(a, b):
        return True
    x, y = _value(a), _value(b)
    names, others = x.symbols(), y.symbols()
    for constant, small in (("C", "c"), ("K", "k")):  # of integration, mostly
        if (constant in names) != (constant in others) and (small in names) != (small in others):
            return _equal(_renamed(x, small, constant), _renamed(y, small, constant))
    if len(names) != 1 or len(others) != 1 or names == others:
        return False
    (name,), (other,) = names, others
    if not free and not (_is_periodic(x, name) and _is_periodic(y, other)):
        return False
    return _equal(x, _renamed(y, other, name))


def _is_periodic(node: Node, name: str) -> bool:
    r"""The k of k\pi: its name says nothing."""
    return name in _PARAMETERS and any(n.op == "const" and n.value == "pi" for n in node.walk())


def _renamed(node: Node, old: str, new: str) -> Node:
    if node.op == "sym":
        return sym(new) if node.value == old else node
    return Node(node.op, tuple(_renamed(n, old, new) for n in node.args), node.value)


def _equal(a: Node, b: Node) -> bool:
    if a == b:
        return True
    a, b = multiplied_out(a), multiplied_out(b)
    if _is_conditional(a) != _is_conditional(b):
        return any(_equal(*pair) for pair in product(_unconditional(a), _unconditional(b)))
    if a.op == b.op == "mod":
        return _same_residue(a, b)
    a, b = (n.args[0] if n.op == "mod" else n for n in (a, b))
    if _signs(a) or _signs(b):
        return any(_equal(x, y) for x, y in product(_spread(a), _spread(b)))
    if is_region(a) or is_region(b):
        return _same_regions(a, b)
    if a.op == "rel" or b.op == "rel":
        return _same_equations(a, b)
    if a.op == "in" or b.op == "in":
        return _same_members(a, b)
    if a.op in ("seq", "matrix") or b.op in ("seq", "matrix"):
        return _same_lists(*(n.args[1] if n.op == "mul" and _is_call(n) else n for n in (a, b)))
    if a.op == b.op == "ratio" and len(a.args) == len(b.args):
        first = zip(a.args, b.args, strict=True)
        return all(
            same_scalar(Node("mul", (x, b.args[0])), Node("mul", (y, a.args[0]))) for x, y in first
        ) or _is_time(a, b)
    if a.op == b.op == "ratio":
        return _is_time(a, b)
    return same_scalar(a, b)


def _is_conditional(node: Node) -> bool:
    """A value and inequalities after it: "t^2, t > 0"."""
    if node.op != "seq" or node.value != "" or len(node.args) < 2:
        return False
    first, *others = node.args
    return not is_region(first) and all(n.op == "rel" and is_region(n) for n in others)


def _unconditional(node: Node) -> tuple[Node, ...]:
    return (node.args[0], node) if _is_conditional(node) else (node,)


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


# Signs of plus or minus: each is two answers.


def _signs(node: Node) -> int:
    return sum(n.op in ("pm", "mp") for n in node.walk())


def _spread(node: Node) -> Iterator[Node]:
    """The answer with its signs written out: all alike, or each by itself."""
    count = _signs(node)
    if not count:
        yield node
        return
    if count > _MOST_SIGNS:
        raise TooLargeError(f"more than {_MOST_SIGNS} signs of plus or minus")
    alike = [(True,) * count, (False,) * count]
    yield _with_signs(node, alike)
    if count > 1:
        yield _with_signs(node, list(product((True, False), repeat=count)))


def _with_signs(node: Node, choices: Sequence[tuple[bool, ...]]) -> Node:
    if node.op == "seq" and node.value in ("", "{}"):
        items: list[Node] = []
        for item in node.args:
            inner = _with_signs(item, _cut(choices, _signs(item))) if _signs(item) else item
            items += inner.args if inner.op == "seq" and inner.value == "" else [inner]
        return Node("seq", tuple(items), node.value)
    if node.op == "rel" and node.value == ("=",) and not _signs(node.args[0]):
        right = _with_signs(node.args[1], choices)
        items = [Node("rel", (node.args[0], x), ("=",)) for x in right.args]
        return Node("seq", tuple(items), "")
    written = [_signed(node, list(choice)) for choice in choices]
    return Node("seq", tuple(dict.fromkeys(written)), "")


def _cut(choices: Sequence[tuple[bool, ...]], size: int) -> list[tuple[bool, ...]]:
    return list(dict.fromkeys(choice[:size] for choice in choices))


def _signed(node: Node, choice: list[bool]) -> Node:
    if node.op in ("pm", "mp"):
        plus = choice.pop(0) == (node.op == "pm")
        left, right = (_signed(n, choice) for n in node.args)
        return Node("add", (left, right if plus else Node("neg", (right,))))
    return Node(node.op, tuple(_signed(n, choice) for n in node.args), node.value)


# Labels: "x = 5" is 5, and "x = 5" is not "y = 5".


def _value(node: Node) -> Node:
    split = _label(node)
    return split[1] if split else node


def _label(node: Node) -> tuple[Node, Node] | None:
    """The name and the value of "x = ... = 5", "5 = x", "f(x) = x + 1", "|AB| = 1"."""
    if node.op == "in":
        return node.args[0], node.args[1]
    if node.op != "rel" or set(node.value) != {"="}:
        return None
    first, last = node.args[0], node.args[-1]
    if not _is_name(first) or (last.op == "sym" and first.op != "sym" and not _is_call(first)):
        first, last = last, first
    return (first, last) if _is_name(first) else None


def _is_name(node: Node) -> bool:
    if _is_call(node):
        return True
    if node.op in ("num", "const", "matrix", "mod") or (node.op == "seq" and node.value == ""):
        return False
    return all(map(_is_name, node.args))


def _is_call(node: Node) -> bool:
    return node.op == "apply" or (node.op == "mul" and node.value == "call")


def _same_name(a: Node, b: Node) -> bool:
    """The same variable; of functions, the same function."""
    if a.op == b.op == "apply":
        return bool(a.value == b.value)
    if a == b:
        return True
    called = a.op == b.op == "mul" and a.value == b.value == "call"
    return called and a.args[0] == b.args[0] and a.args[1].op == b.args[1].op == "sym"


def _variables(a: Node, b: Node) -> tuple[str, str]:
    """The variables of two functions' names: f(z) = z is f(x) = x."""
    if a != b and a.args and b.args and a.args[-1].op == b.args[-1].op == "sym":
        return a.args[-1].value, b.args[-1].value
    return "", ""


def _same_equations(a: Node, b: Node) -> bool:
    left, right = _label(a), _label(b)
    if a.op == b.op == "rel":
        if left and right and _same_name(left[0], right[0]):
            value = _renamed(right[1], *_variables(right[0], left[0]))
            if _equal(left[1], value):
                return True
        f, g = difference(a), difference(b)
        if not f.symbols() and not g.symbols():
            return any(_in_order(x, b.args) for x in (a.args, a.args[::-1]))
        return _is_scalar(f) and _is_scalar(g) and same_equation(f, g)
    (relation, labelled), other = ((a, left), b) if a.op == "rel" else ((b, right), a)
    if other.op == "seq" and other.value == "" and labelled and labelled[0].op == "seq":
        return _same_lists(_apart(labelled), other)
    if labelled and _equal(labelled[1], other):
        return True
    f = difference(relation)
    return _is_scalar(f) and _is_scalar(other) and solved(relation, other)


def _apart(labelled: tuple[Node, Node]) -> Node:
    """(f, g) = (1, 2) as f = 1, g = 2."""
    names, values = labelled
    pairs = zip(names.args, values.args, strict=False)
    return Node("seq", tuple(Node("rel", pair, ("=",)) for pair in pairs), "")


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
    if _is_named(x) != _is_named(y):
        return _in_order(x, y)
    if {kind, other} <= {"", "&"}:
        return len(x) == len(y) and _matched(x, y)
    if "" in (kind, other) and ("[]" in (kind, other)) and len(x) == 2:
        return False  # an interval is no pair
    loose = {kind, other} <= {"", "()"} or {kind, other} <= {"", "[]"} or "matrix" in (kind, other)
    return (kind == other or loose) and _in_order(x, y)


def _is_named(items: Sequence[Node]) -> bool:
    """ "x = 1, y = 2": each with a name of its own, so that their order says something."""
    labels = [_label(n) for n in items]
    return len({found[0] if found else None for found in labels} - {None}) == len(items) > 1


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
