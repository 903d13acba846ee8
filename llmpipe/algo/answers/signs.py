"""Signs of plus or minus: each is two answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from llmpipe.algo.answers.tree import Node, TooLargeError

_MOST_SIGNS = 4


def signs(node: Node) -> int:
    """How many signs of plus or minus there are in it."""
    return sum(n.op in ("pm", "mp") for n in node.walk())


def spread(node: Node) -> Node:
    r"""The answer with its signs written out: each by itself, or all alike where a "\\mp" says so.

    Raises:
        TooLargeError: it has more of them than are ever written out.
    """
    count = signs(node)
    if not count:
        return node
    if count > _MOST_SIGNS:
        raise TooLargeError(f"more than {_MOST_SIGNS} signs of plus or minus")
    if any(n.op == "mp" for n in node.walk()):
        return _with_signs(node, [(True,) * count, (False,) * count])
    return _with_signs(node, list(product((True, False), repeat=count)))


def _with_signs(node: Node, choices: Sequence[tuple[bool, ...]]) -> Node:
    if node.op == "seq" and node.value in ("", "{}"):
        items: list[Node] = []
        for item in node.args:
            inner = _with_signs(item, _cut(choices, signs(item))) if signs(item) else item
            items += inner.args if inner.op == "seq" and inner.value == "" else [inner]
        return Node("seq", tuple(items), node.value)
    if node.op == "rel" and node.value == ("=",) and not signs(node.args[0]):
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
