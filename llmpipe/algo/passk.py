"""Figures of a problem from its count of right samples: pass@k, pass^k, avg@n, coverage.

Each is worked out in whole numbers and rounded once. `Figure` has the value for every count, so
that the mean over many problems looks it up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from llmpipe.algo.intervals import Floats, Ints


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The chance that at least one of k samples is right, estimated from c right ones of n.

    This is the unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374),
    worked out in whole numbers and rounded once.

    Returns:
        A share from 0 to 1, or None where n < k: k samples can't be judged by fewer.

    Raises:
        ValueError: a negative count, more right samples than samples, or k below 1.
    """
    if not _defined(n, c, k):
        return None
    every = math.comb(n, k)
    return (every - math.comb(n - c, k)) / every


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """pass^k: the chance that all of k samples are right, estimated from c right ones of n.

    This is the unbiased estimator C(c, k) / C(n, k), as tau-bench has it (arXiv:2406.12045). None
    and errors as in `pass_at_k`.
    """
    return math.comb(c, k) / math.comb(n, k) if _defined(n, c, k) else None


def _defined(n: int, c: int, k: int) -> bool:
    if not 0 <= c <= n:
        raise ValueError(f"{c} right samples of {n}")
    if k < 1:
        raise ValueError(f"k is {k}, but must be at least 1")
    return n >= k


@dataclass(frozen=True)
class Figure:
    """A figure of a problem that depends on its counts alone.

    ``value`` is a function of (n, c, k); ``k`` is 0 where it has none. ``needs`` is how many
    samples a problem must have.
    """

    name: str
    value: Callable[[int, int, int], float | None]
    k: int = 0

    @property
    def needs(self) -> int:
        return max(1, self.k)

    def table(self, n: int) -> Floats:
        """The figure of n samples for each count of right ones: shape (n + 1,).

        Raises:
            ValueError: n is less than it needs.
        """
        return _table(self.value, self.k, n)

    def values(self, n: Ints, c: Ints) -> Floats:
        """The figure of each problem: all of shape (problems,)."""
        found = np.zeros(len(n))
        for samples in np.unique(n):
            here = n == samples
            found[here] = self.table(int(samples))[c[here]]
        return found


def pass_at(k: int) -> Figure:
    return Figure(f"pass@{k}", pass_at_k, k)


def pass_hat(k: int) -> Figure:
    return Figure(f"pass^{k}", pass_hat_k, k)


def _share(n: int, c: int, k: int) -> float:
    return c / n


def _any(n: int, c: int, k: int) -> float:
    return float(c > 0)


AVERAGE = Figure("avg@n", _share)
"""The share of a problem's samples that are right."""

COVERAGE = Figure("coverage", _any)
"""Whether any of them is: what selection can't do without. It grows with n."""


@functools.lru_cache(maxsize=4096)
def _table(value: Callable[[int, int, int], float | None], k: int, n: int) -> Floats:
    found = [value(n, c, k) for c in range(n + 1)]
    if n < 1 or None in found:
        raise ValueError(f"{n} samples are too few")
    return np.asarray(found, np.float64)
