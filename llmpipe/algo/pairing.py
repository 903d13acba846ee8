"""Right and wrong answers of like length, one to one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MOST = 256  # of each kind: the table has a cell for each two of them and each number of pairs


def match(
    chosen: Sequence[int], rejected: Sequence[int], *, max_ratio: float, most: int | None = None
) -> list[tuple[int, int]]:
    """Pairs of places in the two lists of lengths, no place twice, the most alike pair first.

    As many pairs as there can be, but no more than ``most``, whose longer text is at most
    ``max_ratio`` times as long as the shorter; among all such choices the one with the least sum of
    ``|log(length / length)|``. By dynamic programming over both lists in order of length: on a line
    two pairs that cross can be exchanged at no cost. Of more than 256 texts of a kind, so many are
    looked at, evenly spread over the lengths.
    """
    first, second = _by_length(chosen), _by_length(rejected)
    if not len(first) or not len(second):
        return []
    logs = np.log(np.maximum(1, np.asarray(chosen)[first]))[:, None]
    cost = np.abs(logs - np.log(np.maximum(1, np.asarray(rejected)[second])))
    cost[cost > math.log(max_ratio) + 1e-9] = np.inf
    cells = sorted(_cheapest(cost, most), key=lambda cell: (float(cost[cell]), cell))
    return [(int(first[i]), int(second[j])) for i, j in cells]


def _by_length(lengths: Sequence[int]) -> NDArray[np.int64]:
    order = np.argsort(lengths, kind="stable")
    if len(order) > _MOST:
        order = order[np.linspace(0, len(order) - 1, _MOST).round().astype(np.int64)]
    return order


def _cheapest(cost: NDArray[np.float64], most: int | None) -> list[tuple[int, int]]:
    """The cells of the cheapest choice of as many as possible, ``most`` at most, in both orders."""
    rows, columns = cost.shape
    layers = min(rows, columns, rows if most is None else most)
    # least[i, j, k]: the cost of k pairs among the first i rows and j columns.
    least = np.full((rows + 1, columns + 1, layers + 1), np.inf, np.float32)
    least[:, :, 0] = 0.0
    for i in range(rows):
        with_this = least[i, :-1, :-1] + cost[i][:, None].astype(np.float32)
        best = least[i].copy()
        best[1:, 1:] = np.minimum(best[1:, 1:], with_this)
        least[i + 1] = np.minimum.accumulate(best, axis=0)
    k = int(np.flatnonzero(np.isfinite(least[rows, columns]))[-1])
    cells = []
    i, j = rows, columns
    while k:
        here = least[i, j, k]
        if least[i - 1, j, k] == here:
            i -= 1
        elif least[i, j - 1, k] == here:
            j -= 1
        else:
            i, j, k = i - 1, j - 1, k - 1
            cells.append((i, j))
    return cells
