"""Sums and products of matrices, so that 2(1, 2) and (2, 4) are one."""

from __future__ import annotations

from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError
from llmpipe.algo.answers.values import exact

_MOST_CELLS = 400
_MOST_POWER = 16


def multiplied_out(node: Node) -> Node:
    """The tree with the arithmetic of the matrices in it done; others as they are.

    Raises:
        UnreadableError: sizes that don't fit.
        TooLargeError: more cells or a higher power than is ever computed.
    """
    if not any(n.op == "matrix" for n in node.args if n.op != "seq") and not (
        node.op in _RULES and any(n.op == "matrix" for n in node.walk())
    ):
        return node
    node = Node(node.op, tuple(multiplied_out(n) for n in node.args), node.value)
    rule = _RULES.get(node.op)
    return rule(node) if rule and any(n.op == "matrix" for n in node.args) else node


def _cells(node: Node, cells: list[Node]) -> Node:
    return Node("matrix", tuple(cells), node.value)


def _negative(node: Node) -> Node:
    return _cells(node.args[0], [Node("neg", (c,)) for c in node.args[0].args])


def _sum(node: Node) -> Node:
    first = node.args[0]
    if (
        any(m.op != "matrix" or m.value != first.value for m in node.args)
        or len({len(m.args) for m in node.args}) > 1
    ):
        raise UnreadableError("a sum of matrices that don't fit")
    return _cells(first, [Node("add", c) for c in zip(*(m.args for m in node.args), strict=True)])


def _product(node: Node) -> Node:
    value = node.args[0]
    for right in node.args[1:]:
        if value.op == right.op == "matrix":
            value = _rows_by_columns(value, right)
        elif value.op == "matrix" or right.op == "matrix":
            matrix, factor = (value, right) if value.op == "matrix" else (right, value)
            value = _cells(matrix, [Node("mul", (factor, c)) for c in matrix.args])
        else:
            value = Node("mul", (value, right))
    return value


def _rows_by_columns(left: Node, right: Node) -> Node:
    inner, columns = left.value, right.value
    if len(right.args) != inner * columns:
        raise UnreadableError("a product of matrices that don't fit")
    rows = len(left.args) // inner
    if rows * columns * inner > _MOST_CELLS:
        raise TooLargeError("a product of large matrices")
    cells = [
        Node(
            "add",
            tuple(
                Node("mul", (left.args[i * inner + k], right.args[k * columns + j]))
                for k in range(inner)
            ),
        )
        for i in range(rows)
        for j in range(columns)
    ]
    return Node("matrix", tuple(cells), columns)


def _quotient(node: Node) -> Node:
    matrix, divisor = node.args
    if matrix.op != "matrix":
        raise UnreadableError("a number over a matrix")
    return _cells(matrix, [Node("div", (c, divisor)) for c in matrix.args])


def _power(node: Node) -> Node:
    matrix, power = node.args
    columns = matrix.value
    if power == Node("sym", value="T"):
        rows = len(matrix.args) // columns
        cells = [matrix.args[i * columns + j] for j in range(columns) for i in range(rows)]
        return Node("matrix", tuple(cells), rows)
    times = exact(power)
    if times is None or times.denominator != 1 or times < 1:
        raise UnreadableError("a power of a matrix")
    if times > _MOST_POWER or len(matrix.args) * times > _MOST_CELLS:
        raise TooLargeError("a high power of a matrix")
    return _product(Node("mul", (matrix,) * int(times)))


_RULES = {"neg": _negative, "add": _sum, "mul": _product, "div": _quotient, "pow": _power}
