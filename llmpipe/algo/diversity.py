"""Solutions that are not all the same one: sketches of texts, and a choice spread out among them.

A solution's sketch is a MinHash signature (`llmpipe.algo.sketch`) of its runs of three words. The
choice is greedy max-min (Gonzalez 1985, Clustering to minimize the maximum intercluster distance):
after the first, always the one whose nearest among the chosen is farthest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.sketch import signature

THRESHOLD = 0.8
"""The share of their runs of three words from which on two solutions are near-identical."""

Sketch = NDArray[np.uint32]

_RUN = 3
_MARKS = re.compile(r"[*`#$]+|\\[\[\](),;:! ]")  # how a text is set says nothing
_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def sketch(text: str) -> Sketch:
    """A text's sketch: without case, spacing and Markdown's and formulas' marks."""
    words = _WORD.findall(_MARKS.sub(" ", text).casefold())
    runs = {" ".join(words[i : i + _RUN]) for i in range(max(1, len(words) - _RUN + 1))}
    return signature(runs)


def likeness(one: Sketch, others: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Of a sketch with each row of ``others``, from 0 to 1."""
    alike: NDArray[np.float64] = (others == one).mean(axis=1)
    return alike


@dataclass(frozen=True, slots=True)
class Near:
    """A text's nearest among the chosen: its number, and how alike they are."""

    other: int
    likeness: float


def spread(
    sketches: Sequence[Sketch], most: int | None = None, threshold: float = THRESHOLD
) -> tuple[list[int], dict[int, Near]]:
    """At most ``most`` of some texts, unlike each other, and those left out as near-identical.

    The texts come in the order of preference: the first is chosen, and of two that are equally far
    from the chosen the earlier one. No two chosen are alike by ``threshold`` or more; what is left
    and is that near to a chosen one is near-identical. Time grows with texts times chosen ones.

    Returns:
        The numbers of the chosen in the order of choice, and for each near-identical one its
        nearest.
    """
    table = np.stack(sketches)
    nearest = np.full(len(table), -1.0)
    other = np.zeros(len(table), np.int64)
    chosen: list[int] = []
    while len(chosen) < len(table) and (most is None or len(chosen) < most):
        best = int(np.argmin(nearest))
        if nearest[best] >= threshold:
            break
        chosen.append(best)
        alike = likeness(table[best], table)
        closer = alike > nearest
        nearest[closer], other[closer] = alike[closer], best
        nearest[best] = np.inf
    nearest[chosen] = -1.0
    near = np.flatnonzero(nearest >= threshold)
    return chosen, {int(i): Near(int(other[i]), float(nearest[i])) for i in near}
