"""pass@k and avg@n from counts of right samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The chance that at least one of k samples is right, estimated from c right ones of n.

    This is the unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021 (arXiv:2107.03374),
    worked out in whole numbers and rounded once.

    Returns:
        A share from 0 to 1, or None where n < k: k samples can't be judged by fewer.

    Raises:
        ValueError: a negative count, more right samples than samples, or k below 1.
    """
    if not 0 <= c <= n:
        raise ValueError(f"{c} right samples of {n}")
    if k < 1:
        raise ValueError(f"k is {k}, but must be at least 1")
    if n < k:
        return None
    every = math.comb(n, k)
    return (every - math.comb(n - c, k)) / every


def mean_pass_at_k(counts: Iterable[tuple[int, int]], k: int) -> float | None:
    """The mean of pass@k over problems, each given as (n, c).

    None where there are no problems, or where any of them has fewer than k samples: leaving those
    out would make it a figure of other problems.
    """
    return _mean(counts, lambda n, c: pass_at_k(n, c, k))


def mean_accuracy(counts: Iterable[tuple[int, int]]) -> float | None:
    """avg@n: the mean over problems, each given as (n, c), of their share of right samples.

    None where there are no problems, or where any of them has no sample.
    """
    return _mean(counts, lambda n, c: c / n if n else None)


def _mean(
    counts: Iterable[tuple[int, int]], value: Callable[[int, int], float | None]
) -> float | None:
    terms: list[float] = []
    problems = 0
    for (n, c), times in Counter(counts).items():  # few distinct counts, many problems
        one = value(n, c)
        if one is None:
            return None
        terms.append(one * times)
        problems += times
    return math.fsum(terms) / problems if problems else None
