"""What an answer says, as a tree; and the two ways in which reading or computing it may fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


class UnreadableError(ValueError):
    """The text is not of the grammar."""


class TooLargeError(ValueError):
    """The value is bigger than the bounds that it may be computed in: it can't be decided."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operation, its operands, and what belongs to it.

    Leaves: ``num`` (a `Fraction`, places written after the point or None), ``sym`` (a name),
    ``const`` (pi, e, i, oo), ``set`` (a name such as R). Numbers: ``add mul div pow neg fact dfact
    pct deg pm mp base ratio``, ``fun`` (a known function's name), ``apply`` (f of something),
    ``unit`` (a name), ``compound`` (of units), ``clock`` (a time of day). Others: ``seq`` (its
    brackets, "" for a bare list), ``rel`` (its signs),
    ``cup cap minus in``, ``matrix`` (its columns), ``given`` (a value; the words of its condition),
    ``logic`` (its sign), ``label`` (words before a value), ``dots`` (what was left out). A ``mul``
    with the value "word" is an answer of letters alone: they may be a product, or have an order.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: Any = None

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.args)

    def symbols(self) -> frozenset[str]:
        """Names of the variables in it."""
        return frozenset(n.value for n in self.walk() if n.op == "sym")


def num(value: int | Fraction, places: int | None = None) -> Node:
    """A number; ``places`` where it was written as a decimal."""
    return Node("num", value=(Fraction(value), places))


def sym(name: str) -> Node:
    """A variable."""
    return Node("sym", value=name)


def neg(node: Node) -> Node:
    """The negative; of a number, a number."""
    if node.op == "num":
        value, places = node.value
        return Node("num", value=(-value, places))
    return Node("neg", (node,))


def replaced(node: Node, old: Node, new: Node) -> Node:
    """The tree with ``new`` wherever ``old`` stood."""
    if node == old:
        return new
    return Node(node.op, tuple(replaced(n, old, new) for n in node.args), node.value)


INFINITY = Node("const", value="oo")
MINUS_INFINITY = Node("neg", (INFINITY,))


def names(text: str) -> frozenset[str]:
    """Words of a table."""
    return frozenset(text.split())
