"""Equal keys among millions, in numpy: no Python object a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def number_groups(*keys: NDArray[np.uint64]) -> Ints:
    """A number for each row, the same for rows that agree in all keys: the first such row's."""
    order = np.lexsort(keys)
    new = np.ones(len(order), bool)
    if len(order):
        new[1:] = False
        for key in keys:
            ranked = key[order]
            new[1:] |= ranked[1:] != ranked[:-1]
    # lexsort is stable, so that the first row of a run is the first in the file.
    firsts = order[new]
    groups = np.empty(len(order), np.int64)
    groups[order] = np.repeat(firsts, np.diff(np.append(np.flatnonzero(new), len(order))))
    return groups


def best_rows(groups: Ints, rank: NDArray[np.int8]) -> Ints:
    """For each row the row that stands for its group: of the lowest rank, then the first."""
    order = np.lexsort((rank, groups))
    ranked = groups[order]
    new = np.ones(len(order), bool)
    new[1:] = ranked[1:] != ranked[:-1]
    best = np.empty(len(order), np.int64)
    best[order] = np.repeat(order[new], np.diff(np.append(np.flatnonzero(new), len(order))))
    return best


def runs(values: NDArray[np.uint64]) -> tuple[Ints, Ints, Ints]:
    """Where each value that comes more than once is found.

    An order that sorts the values (and keeps that of equal ones), and where in it the runs of equal
    ones start and stop.
    """
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    edges = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1], [True])))
    long = np.flatnonzero(np.diff(edges) > 1)
    return order, edges[long], edges[long + 1]
