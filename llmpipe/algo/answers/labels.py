r"""Labels: "x = 5" is 5, and "x = 5" is not "y = 5"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from llmpipe.algo.answers.scalars import is_near
from llmpipe.algo.answers.tree import Node

_INDEXED = re.compile(r"([A-Za-z]+)(?:_(\d+))?'*")
_GREEK = ("alpha", "beta", "gamma", "delta")


def label(node: Node) -> tuple[Node, Node] | None:
    """The name and the value of "x = ... = 5", "5 = x", "f(x) = x + 1", "|AB| = 1".

    None where the numbers in such a chain contradict each other, as in "x = 4 = 5".
    """
    if node.op == "in":
        return node.args[0], node.args[1]
    if node.op == "given":
        return Node("label", value=" ".join(node.value)), node.args[0]
    if node.op != "rel" or set(node.value) != {"="}:
        return None
    first, last = node.args[0], node.args[-1]
    if not _is_name(first) or (last.op == "sym" and first.op != "sym" and not is_call(first)):
        first, last = last, first
    if not _is_name(first):
        return None
    numbers = [n for n in node.args if not n.symbols()] if len(node.args) > 2 else []
    if any(not is_near(one, other) for one, other in pairwise(numbers)):
        return None
    return first, last


def value(node: Node) -> Node:
    """The answer without its label."""
    split = label(node)
    return split[1] if split else node


def worded(node: Node) -> str | None:
    """The words before a value: "Area: 5", "Alice = 5"."""
    split = label(node) if node.op == "rel" else None
    return split[0].value if split and split[0].op == "label" else None


def _is_name(node: Node) -> bool:
    if is_call(node):
        return True
    if node.op in ("num", "const", "matrix", "mod") or (node.op == "seq" and node.value == ""):
        return False
    return all(map(_is_name, node.args))


def is_call(node: Node) -> bool:
    """Whether it is f(x), or a point A(1, 2)."""
    return node.op == "apply"


def as_point(node: Node) -> Node:
    """A(1, 2) as (1, 2)."""
    is_point = node.op == "apply" and len(node.args) > 1 and node.value[0].isupper()
    return Node("seq", node.args, "()") if is_point else node


def same_name(a: Node, b: Node) -> bool:
    """The same variable, the same words; of functions, the same one of the same values.

    f(x) is f(z), names of a variable; but f(1) isn't f(3), nor P(A) P(B). A word is a letter's if
    it begins with that; and words are the same that only say more.
    """
    if a == b:
        return True
    if a.op == b.op == "label":
        one, other = set(a.value.split()), set(b.value.split())
        return (one <= other or other <= one) and all(word.isalnum() for word in one | other)
    if "label" in (a.op, b.op):
        words, name = (a, b) if a.op == "label" else (b, a)
        letter = name.value[:1].casefold() if name.op in ("sym", "apply") else ""
        return any(word.startswith(letter) for word in words.value.split()) and bool(letter)
    called = a.op == b.op == "apply" and a.value == b.value and len(a.args) == len(b.args)
    return called and all(map(_is_dummy, (*a.args, *b.args)))


def _is_dummy(node: Node) -> bool:
    return node.op == "sym" and not node.value[:1].isupper()


def variables(a: Node, b: Node) -> tuple[Node, Node]:
    """The variables of two functions' names: f(z) = z is f(x) = x."""
    return (a.args[-1], b.args[-1]) if a.args and b.args else (a, a)


def apart(labelled: tuple[Node, Node]) -> Node:
    """(f, g) = (1, 2) as f = 1, g = 2."""
    names, values = labelled
    pairs = zip(names.args, values.args, strict=False)
    return Node("seq", tuple(Node("rel", pair, ("=",)) for pair in pairs), "")


def is_named(items: Sequence[Node]) -> bool:
    """ "x = 1, y = 2": each with a name of its own, so that their order says nothing."""
    labels = [label(n) for n in items]
    return len({found[0] if found else None for found in labels} - {None}) == len(items) > 1


def in_usual_order(items: Sequence[Node]) -> Sequence[Node]:
    """Named items as a tuple would have them: x before y before z, a_1 before a_2.

    Where the names have no such order (w and d, words) they are left as they were written.
    """
    places = [_place(found[0]) for found in map(label, items) if found]
    known = sorted(p for p in places if p)
    letters = [letter for letter, _ in known]
    in_a_row = letters == list(range(letters[0], letters[0] + len(letters))) if known else False
    if len(known) < len(items) or not (in_a_row or len(set(letters)) == 1):
        return items
    return [items[n] for _, n in sorted((p, n) for n, p in enumerate(places) if p)]


def _place(name: Node) -> tuple[int, int] | None:
    """A letter's place in its alphabet, and its index."""
    match = _INDEXED.fullmatch(str(name.value)) if name.op == "sym" else None
    if match is None:
        return None
    letter, index = match[1], int(match[2] or -1)
    if letter in _GREEK:
        return 1000 + _GREEK.index(letter), index
    return (ord(letter), index) if len(letter) == 1 else None
