"""Formulas of logic: equal if no values of their atoms tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from llmpipe.algo.answers.tree import Node, TooLargeError

_MOST_ATOMS = 10


def joined(parts: Sequence[Node], sign: str) -> Node:
    """Parts with "and" or "or" between them: of relations or numbers a list, else a formula."""
    if len(parts) == 1:
        return parts[0]
    if all(n.op == "rel" or not n.symbols() for n in parts):
        inequalities = all(n.op == "rel" and "=" not in n.value for n in parts)
        return Node("seq", tuple(parts), "&" if inequalities and sign == "and" else "")
    return Node("logic", tuple(parts), sign)


def same_logic(a: Node, b: Node) -> bool:
    """Whether two formulas have the same table of truth; what isn't logic in them is an atom.

    Raises:
        TooLargeError: more atoms than are ever tried.
    """
    atoms = list(dict.fromkeys([*_atoms(a), *_atoms(b)]))
    if len(atoms) > _MOST_ATOMS:
        raise TooLargeError(f"a formula of more than {_MOST_ATOMS} parts")
    tables = (dict(zip(atoms, row, strict=True)) for row in product((0, 1), repeat=len(atoms)))
    return all(_truth(a, at) == _truth(b, at) for at in tables)


def _atoms(node: Node) -> list[Node]:
    return [atom for n in node.args for atom in _atoms(n)] if node.op == "logic" else [node]


def _truth(node: Node, at: Mapping[Node, int]) -> bool:
    if node.op != "logic":
        return bool(at[node])
    return _TABLES[node.value]([_truth(n, at) for n in node.args])


_TABLES: Mapping[str, Callable[[list[bool]], bool]] = {
    "and": all,
    "or": any,
    "not": lambda xs: not xs[0],
    "->": lambda xs: not xs[0] or xs[1],
    "<->": lambda xs: xs[0] == xs[1],
}
