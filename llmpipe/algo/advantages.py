"""Advantages of responses within their group: the n responses to one problem, c of them right.

Both are the pass@k training of Chen et al. 2025 ("Pass@k Training for Adaptively Balancing
Exploration and Exploitation of Large Reasoning Models", arXiv:2508.10751) in its analytical form,
for k = 1 and for a k of one's choice. A set of k responses is rewarded with 1 if any of them is
right, so over all sets of k the reward has the mean R = pass@k = 1 - C(n-c, k) / C(n, k) and the
standard deviation s = sqrt(R (1 - R)). A response's advantage is the mean of (reward - R) / s over
the sets that it is in:

    right   (1 - R) / s
    wrong   (1 - R - C(n-c-1, k-1) / C(n-1, k-1)) / s

For k = 1 that is (r - mean) / std with the population's standard deviation, as in GRPO. The paper's
code adds 1e-6 to s; here s is exact, and where it is 0 so are the advantages: all sets are worth
the same, and there is nothing to learn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Advantages:
    """What a right and a wrong response of a group get."""

    right: float
    wrong: float


def pass_at_k_advantages(n: int, c: int, k: int) -> Advantages | None:
    """The advantages in a group of ``n`` responses with ``c`` right ones.

    Worked out in whole numbers and rounded at the end.

    Returns:
        None where n < k: there is no set of k responses.

    Raises:
        ValueError: a negative count, more right responses than responses, or k below 1.
    """
    if not 0 <= c <= n:
        raise ValueError(f"{c} right responses of {n}")
    if k < 1:
        raise ValueError(f"k is {k}, but must be at least 1")
    if n < k:
        return None
    every, failing = math.comb(n, k), math.comb(n - c, k)
    if failing in (0, every):
        return Advantages(0.0, 0.0)
    deviation = math.sqrt(failing / every) * math.sqrt((every - failing) / every)
    among = math.comb(n - 1, k - 1)  # sets that one response is in
    failing_among = math.comb(n - c - 1, k - 1)
    above = failing * among - failing_among * every
    return Advantages(failing / every / deviation, above / (every * among) / deviation)


def group_advantages(
    groups: NDArray[np.integer[Any]], right: NDArray[np.bool_], judged: NDArray[np.bool_], k: int
) -> NDArray[np.float64]:
    """The advantage for pass@k of each response; NaN where it has none.

    None has one that is not ``judged`` (it is left out of its group), nor one in a group of fewer
    than k.

    Args:
        groups: the number of each response's problem, from 0.
        right: whether the response is right; of no matter where it isn't judged.
        judged: whether there is a verdict on it.
        k: the k of pass@k, from 1.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    n = np.bincount(groups[judged], minlength=count)
    c = np.bincount(groups[judged & right], minlength=count)
    values = np.full((count, 2), np.nan)
    pairs, which = np.unique(np.stack([n, c], axis=1), axis=0, return_inverse=True)
    for number, (size, good) in enumerate(pairs.tolist()):
        made = pass_at_k_advantages(size, good, k)
        if made:
            values[which.ravel() == number] = made.wrong, made.right
    advantages: NDArray[np.float64] = values[groups, right.astype(np.intp)]
    advantages[~judged] = np.nan
    return advantages
