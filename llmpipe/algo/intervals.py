"""Intervals for the mean over problems of a figure of right samples: pass@k, avg@n and the like.

There are two, since a mean over problems is uncertain in two ways. `for_new_problems` holds the
mean that the model has over all problems of this kind, of which these were drawn.
`for_these_problems` holds the mean that it has over just these, when they are sampled anew: what to
look at when two models are asked the same questions.

Both take a problem's right samples as beta-binomial: with c of n right, its true pass rate is drawn
from a Beta that is fitted to all counts. So no interval is without width because every problem came
out the same, and one whose samples were all wrong may still be solvable.

- New problems: a Wilson score interval for a share (Wilson 1927), with as many trials as give the
  share the variance that the problems' values have (an effective sample size, as surveys use it),
  and Student's quantile for its being estimated. That variance is the larger of the sample's and
  the model's: with few problems the sample often misses the rare one that would have made it large.
- These problems: the mean, plus and minus 1.96 times the root of what their values vary by under
  new samples, each averaged over its problem's posterior; and as much for a problem more, of which
  the others say nothing: with all samples right, a fit says that they always are.

``benchmarks/coverage.py`` measures how often they hold the truth, beside a percentile bootstrap: 93
to 97 times of a hundred for pass rates from a Beta, more where a figure has few values (n = k). Of
rates that no Beta has, 0 for a third of the problems and near 1 for the others, the first interval
holds as well; the second is too wide for pass@8, and for pass^8 with n = 8 too narrow (85).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Statistic = Callable[[int], Floats]
"""The figure of a problem with n samples, for each count of right ones: n to shape (n + 1,)."""

CONFIDENCE = 0.95
"""How often an interval is to hold the truth."""

Z = 1.959963984540054  # of the normal distribution, at 0.975
_LEAST_SPREAD, _MOST_SPREAD = 1e-3, 0.999

_lgamma = np.frompyfunc(math.lgamma, 1, 1)


@dataclass(frozen=True)
class BetaBinomial:
    """Pass rates drawn from Beta(``a``, ``b``), and samples that are right at that rate."""

    a: float
    b: float

    @classmethod
    def fit(cls, n: Ints, c: Ints) -> Self:
        """By moments, from ``c`` right samples of ``n``, each of shape (problems,).

        Half a right and half a wrong sample are added, so that the mean is inside (0, 1). The
        spread is what the shares vary by beyond what their own samples explain.
        """
        mean = (c.sum() + 0.5) / (n.sum() + 1)
        several = n > 1
        if several.sum() > 1:
            shares, samples = c[several] / n[several], n[several]
            varies = float(((shares - mean) ** 2).sum()) / (len(shares) - 1)
            by_samples = float((1 / samples).mean())
            spread = (varies / (mean * (1 - mean)) - by_samples) / (1 - by_samples)
        else:
            spread = 0.5  # nothing is known of it: a flat prior's, a third, is no better founded
        size = 1 / min(max(spread, _LEAST_SPREAD), _MOST_SPREAD) - 1
        return cls(a=float(mean * size), b=float((1 - mean) * size))


UNKNOWN = BetaBinomial(0.5, 0.5)
"""Of a pass rate of which nothing is known (Jeffreys's prior)."""


def for_new_problems(values: Floats, model_variance: float) -> tuple[float, float]:
    """The interval of the mean over problems of this kind.

    Args:
        values: of shape (problems,), each from 0 to 1; at least one.
        model_variance: what the values of new problems vary by, such as `variance` says.
    """
    problems = len(values)
    mean = min(1.0, max(0.0, math.fsum(values) / problems))
    varies = max(float(values.var(ddof=1)) if problems > 1 else 0.0, model_variance)
    # Values of 0 and 1 alone vary most. The model may say more: near the ends, that would make the
    # interval wider than it is at the ends, where each problem is one trial that came out the same.
    share = mean * (1 - mean)
    varies = min(varies, share * problems / max(1, problems - 1))
    return wilson(
        mean, problems * share / varies if varies > 0 else problems, student(problems - 1)
    )


def for_these_problems(values: Floats, varies: float) -> tuple[float, float]:
    """The interval of the mean over these problems, under new samples.

    Args:
        values: of shape (problems,), each from 0 to 1; at least one.
        varies: what the sum of the values varies by under new samples.
    """
    mean = math.fsum(values) / len(values)
    half = Z * math.sqrt(varies) / len(values)
    return max(0.0, mean - half), min(1.0, mean + half)


def variance(model: BetaBinomial, n: Ints, statistic: Statistic) -> float:
    """What the figure of a new problem varies by, its number of samples being one of ``n``."""
    total = 0.0
    for samples, times in zip(*np.unique(n, return_counts=True), strict=True):
        f = statistic(int(samples))
        chances = _counts(model, int(samples), 0, np.zeros(1, np.int64))[0]
        mean = float(chances @ f)
        total += int(times) * (float(chances @ (f * f)) - mean * mean)
    return max(0.0, total / len(n))


def within(model: BetaBinomial, n: Ints, c: Ints, statistic: Statistic) -> Floats:
    """What each problem's figure varies by under new samples: shape (problems,).

    It depends on the problem's true pass rate p, and is averaged over its posterior: of the figure
    f of a count, E[f^2] - E[E[f | p]^2].
    """
    variances = np.zeros(len(n))
    for samples in np.unique(n):
        here = n == samples
        f = statistic(int(samples))
        one, two = _posterior(model, int(samples))
        # Of two sets of new samples at the same p only the sum of their right ones has a chance
        # that depends on p; which of them are in which set is a matter of drawing.
        both = (_split(int(samples)) * f * f[_other(int(samples))]).sum(axis=1)
        each = np.maximum(one @ (f * f) - two @ both, 0.0)
        variances[here] = each[c[here]]
    return variances


def wilson(mean: float, trials: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a share."""
    scale = 1 + z * z / trials
    center = (mean + z * z / (2 * trials)) / scale
    half = z * math.sqrt(mean * (1 - mean) / trials + z * z / (4 * trials * trials)) / scale
    # At an end it touches the mean, but for a rounding.
    return min(mean, max(0.0, center - half)), max(mean, min(1.0, center + half))


@functools.lru_cache(maxsize=256)
def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's distribution; for less than one degree, that of one."""
    import mpmath

    degrees = max(1, degrees)
    if degrees > _LARGE:  # the first terms of its expansion about the normal's leave out 1e-9
        z, v = Z, degrees
        return (
            z
            + (z**3 + z) / (4 * v)
            + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        )

    def outside(t: Any) -> Any:
        inside = mpmath.betainc(degrees / 2, 0.5, 0, degrees / (degrees + t * t), regularized=True)
        return inside - (1 - CONFIDENCE)

    return float(mpmath.findroot(outside, (1.0, 20.0), solver="anderson"))


_LARGE = 300


def _counts(model: BetaBinomial, new: int, seen: int, right: Ints) -> Floats:
    """The chance of each count of ``new`` samples, after each ``right`` of those ``seen``.

    Of shape (right counts, new + 1).
    """
    most = np.arange(seen + new + 1)
    a, b, both = (_floats(_lgamma(x + most)) for x in (model.a, model.b, model.a + model.b))
    c, s = right[:, None], np.arange(new + 1)
    after = a[c + s] + b[seen - c + new - s] - both[seen + new]
    before = a[c] + b[seen - c] - both[seen]
    return _floats(np.exp(_log_choose(new) + after - before))


@functools.lru_cache(maxsize=8)
def _posterior(model: BetaBinomial, n: int) -> tuple[Floats, Floats]:
    """After each count of n right: the chances of the counts of n and of 2n new samples."""
    right = np.arange(n + 1)
    return _counts(model, n, n, right), _counts(model, 2 * n, n, right)


@functools.lru_cache(maxsize=8)
def _split(n: int) -> Floats:
    """The chance that i right ones of s of 2n samples are in the first n: shape (2n + 1, n + 1)."""
    s, i = np.arange(2 * n + 1)[:, None], np.arange(n + 1)
    there = (i <= s) & (s - i <= n)
    logs = _log_choose(n)[i] + _log_choose(n)[_other(n)] - _log_choose(2 * n)[s]
    return _floats(np.where(there, np.exp(logs), 0.0))


def _other(n: int) -> Ints:
    """How many of s right ones are in the second n, if i are in the first; 0 where none can be."""
    s, i = np.arange(2 * n + 1)[:, None], np.arange(n + 1)
    rest = s - i
    return np.where((rest >= 0) & (rest <= n), rest, 0)


@functools.lru_cache(maxsize=1024)
def _log_choose(n: int) -> Floats:
    c = np.arange(n + 1.0)
    return _floats(math.lgamma(n + 1) - _lgamma(c + 1) - _lgamma(n - c + 1))


def _floats(values: Any) -> Floats:
    return np.asarray(values, np.float64)
