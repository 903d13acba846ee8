"""Pack sequences into rows of a fixed capacity, none cut: which sequences share a row."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo import jit, packing_kernels

log = logging.getLogger(__name__)

WIDTH = 1024
"""Lengths tried for a gap. A million reasoning traces in rows of 16k (``benchmarks/pack.py``) need
0.026 % more rows than the bound with 64 of them, 0.008 % with 256, and 0.004 % with 1024 as with
all."""

_BY_HAND = 100_000  # sequences that Python plans in the time that Numba takes to start


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Row r holds ``sequences[bounds[r]:bounds[r + 1]]``, by their numbers, in ascending order."""

    sequences: NDArray[np.int64]
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1


def kernels_for(sequences: int) -> ModuleType:
    """What plans so many: Numba where that is worth its start, else Python.

    Both give the same.
    """
    if sequences < _BY_HAND:
        return packing_kernels
    if not jit.has_numba():
        log.info("pip install numba plans rows several times as fast")
        return packing_kernels
    return jit.compiled(packing_kernels.__name__)


def plan(lengths: NDArray[np.integer], capacity: int, *, seed: int | None = None) -> Plan:
    """Share out sequences among few rows: by look-ahead, or by best fit where that needs fewer.

    Both go from the longest sequence to the shortest, over all of them at once: in windows of 1000,
    as the usual dataset map has it, 5 % of every row stays empty on short sequences. Best-fit
    decreasing takes at most 11/9 of the fewest rows possible, plus 4 (Johnson et al. 1974), and the
    plan never takes more than it. The plan depends on the lengths, their order and the seed only.

    Args:
        lengths: shape (sequences,), in tokens.
        capacity: the most tokens a row may hold.
        seed: of the order of the rows; None leaves them as they were filled, the longest sequences
            first, which is no order to train in.

    Raises:
        ValueError: a length below 1 or over the capacity.
    """
    if len(lengths) and not 1 <= lengths.min() <= lengths.max() <= capacity:
        raise ValueError(
            f"lengths from {lengths.min()} to {lengths.max()}, but they must be 1 to {capacity}"
        )
    row_of, rows = _rows(lengths, capacity) if len(lengths) else (np.zeros(0, np.int64), 0)
    if seed is not None:
        row_of = np.random.default_rng(seed % 2**64).permutation(rows)[row_of]
    sequences = _sorted(row_of)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=rows))])
    return Plan(sequences=sequences, bounds=bounds)


def _rows(lengths: NDArray[np.integer], capacity: int) -> tuple[NDArray[np.int64], int]:
    """The row of each sequence, and how many rows there are."""
    # More room than there are tokens is never used, and would only be kept account of.
    capacity = min(capacity, int(lengths.sum()))
    counts = np.bincount(lengths.astype(np.int64))
    begins, order = np.cumsum(counts) - counts, _sorted(lengths)
    kernels = kernels_for(len(lengths))

    def run(kernel: str, *settings: int, room: Sequence[NDArray[Any]]) -> tuple[Any, int]:
        arrays = [counts, begins, order, np.zeros_like(order), *room]
        # Python is three times as fast on lists.
        given = [a.tolist() if kernels is packing_kernels else a.copy() for a in arrays]
        rows = getattr(kernels, kernel)(capacity, *settings, *given)
        return np.asarray(given[3]), int(rows)

    per_length = np.zeros_like(counts)
    plan = run("look_ahead", WIDTH, room=[per_length, per_length, np.zeros_like(order)])
    if plan[1] > lower_bound(lengths, capacity):
        side = math.isqrt(capacity) + 1
        top, blocks = np.full(capacity + 1, -1), np.zeros(capacity // side + 1, np.int64)
        other = run("best_fit", side, room=[top, np.zeros_like(order), blocks])
        plan = min(plan, other, key=lambda made: made[1])
    return plan


def _sorted(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """The places of the values in ascending order, equal ones as they come.

    Numpy's stable sort of 16 bits is ten times as fast as of more.
    """
    narrow = np.min_scalar_type(int(values.max(initial=0)))
    order: NDArray[np.int64] = np.argsort(values.astype(narrow), kind="stable")
    return order


def lower_bound(lengths: NDArray[np.integer], capacity: int) -> int:
    """No packing has fewer rows: the bound L2 of Martello and Toth (1990).

    At each threshold up to half the capacity, sequences over half of it need a row each, and what
    is not below the threshold must go into their gaps or into rows of its own. The sum over the
    capacity is the weaker bound at threshold 0.

    Args:
        lengths: shape (sequences,), each 1 to ``capacity``.
    """
    if not len(lengths):
        return 0
    sizes, counts = np.unique(lengths.astype(np.int64), return_counts=True)
    number = np.concatenate([[0], np.cumsum(counts)])
    tokens = np.concatenate([[0], np.cumsum(counts * sizes)])
    half = int(np.searchsorted(sizes, capacity // 2, "right"))
    thresholds = np.concatenate([[0], sizes[:half]])
    small = np.searchsorted(sizes, thresholds, "left")  # the first size at the threshold
    full = np.searchsorted(sizes, capacity - thresholds, "right")  # the first with no room for it
    gaps = (number[full] - number[half]) * capacity - (tokens[full] - tokens[half])
    more = -((gaps - (tokens[half] - tokens[small])) // capacity)
    return int(number[-1] - number[half] + np.maximum(more, 0).max())


def utilisation(tokens: int, rows: int, capacity: int) -> float:
    """The share of the rows' room that holds tokens; 0 where there are no rows."""
    return tokens / (rows * capacity) if rows else 0.0
