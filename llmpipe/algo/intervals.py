"""Intervals for the mean over problems of a figure of right samples: pass@k, avg@n and the like.

There are two, since a mean over problems is uncertain in two ways. `for_new_problems` holds the mean
that the model has over all problems of this kind, of which these were drawn. `for_these_problems`
holds the mean that it has over just these, when they are sampled anew: what to look at when two
models are asked the same questions.

Both take a problem's right samples as beta-binomial: with c of n right, its true pass rate is drawn
from a Beta that is fitted to all counts. So no interval is without width because every problem came
out the same, and one whose samples were all wrong may still be solvable.

- New problems: a Wilson score interval for a share (Wilson 1927), with as many trials as give the
  share the variance that the problems' values have (an effective sample size, as surveys use it),
  and Student's quantile for its being estimated. That variance is the larger of the sample's and the
  model's: with few problems the sample often misses the rare one that would have made it large.
- These problems: the mean, plus and minus 1.96 times the root of what their values vary by under
  new samples, each averaged over its problem's posterior.

``benchmarks/coverage.py`` measures how often they hold the truth: 93 to 97 times of a hundred.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Statistic = Callable[[int], Floats]
"""The figure of a problem with n samples, for each count of right ones: n to shape (n + 1,)."""

_SURE = 0.95
_Z = 1.959963984540054  # of the normal distribution, at 0.975
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

        Half a right and half a wrong sample are added, so that the mean is inside (0, 1). The spread
        is what the shares vary by beyond what their own samples explain.
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
        return cls(a=mean * size, b=(1 - mean) * size)

    def counts(self, n: int, a: Floats | float, b: Floats | float) -> Floats:
        """The chance of each count of n new samples, for each posterior: shape (..., n + 1)."""
        c = np.arange(n + 1)
        a, b = np.asarray(a)[..., None], np.asarray(b)[..., None]
        return np.exp(_log_choose(n) + _log_beta(a + c, b + n - c) - _log_beta(a, b))


def _log_beta(a: Floats, b: Floats) -> Floats:
    return np.asarray(_lgamma(a) + _lgamma(b) - _lgamma(a + b), np.float64)


@functools.lru_cache(maxsize=1024)
def _log_choose(n: int) -> Floats:
    c = np.arange(n + 1.0)
    return np.asarray(math.lgamma(n + 1) - _lgamma(c + 1) - _lgamma(n - c + 1), np.float64)


def for_new_problems(
    values: Floats, model_variance: float | None, confidence: float = _SURE
) -> tuple[float, float]:
    """The interval of the mean over problems of this kind.

    Args:
        values: of shape (problems,), each from 0 to 1; at least one.
        model_variance: what the values of new problems vary by, by `variance`; None where there is
            no model of them.
        confidence: how often the interval is to hold the truth.
    """
    problems = len(values)
    mean = float(values.mean())
    varies = float(values.var(ddof=1)) if problems > 1 else 0.0
    varies = max(varies, model_variance or 0.0)
    # At most 1/4, and none at the ends: there, each problem is one trial that came out the same.
    trials = problems * mean * (1 - mean) / varies if varies > 0 else 0.0
    return _wilson(mean, trials or problems, _student(problems - 1, confidence))


def for_these_problems(
    values: Floats, variances: Floats, confidence: float = _SURE
) -> tuple[float, float]:
    """The interval of the mean over these problems, under new samples.

    Args:
        values: of shape (problems,), each from 0 to 1; at least one.
        variances: what each problem's value varies by under new samples, by `within`.
        confidence: how often the interval is to hold the truth.
    """
    mean = float(values.mean())
    z = _Z if confidence == _SURE else _student(10**9, confidence)
    half = z * math.sqrt(float(variances.sum())) / len(values)
    return max(0.0, mean - half), min(1.0, mean + half)


def variance(model: BetaBinomial, n: Ints, statistic: Statistic) -> float:
    """What the figure of a new problem varies by, its number of samples being one of ``n``."""
    total = 0.0
    for samples, times in zip(*np.unique(n, return_counts=True), strict=True):
        f = statistic(int(samples))
        chances = model.counts(int(samples), model.a, model.b)
        mean = float(chances @ f)
        total += int(times) * (float(chances @ (f * f)) - mean * mean)
    return max(0.0, total / len(n))


def within(model: BetaBinomial, n: Ints, c: Ints, statistic: Statistic) -> Floats:
    """What each problem's figure varies by under new samples: shape (problems,).

    It depends on the problem's true pass rate p, and is averaged over its posterior: of the figure f
    of a count, E[f^2] - E[E[f | p]^2].
    """
    variances = np.zeros(len(n))
    for samples in np.unique(n):
        here = n == samples
        each = _within(model, int(samples), statistic(int(samples)))
        variances[here] = each[c[here]]
    return variances


def _within(model: BetaBinomial, n: int, f: Floats) -> Floats:
    """For each count of right samples of n: shape (n + 1,)."""
    c = np.arange(n + 1)
    a, b = model.a + c, model.b + n - c  # the posterior's
    squares = model.counts(n, a, b) @ (f * f)
    # Two sets of new samples at the same p: only the sum of their right ones matters to its chance.
    chosen = _log_choose(n)
    top = float(chosen.max())
    ways = np.exp(chosen - top) * f
    both = np.convolve(ways, ways)
    sums = np.arange(2 * n + 1)
    chances = np.exp(
        2 * top + _log_beta(a[:, None] + sums, b[:, None] + 2 * n - sums) - _log_beta(a, b)[:, None]
    )
    return np.maximum(squares - chances @ both, 0.0)


def _wilson(mean: float, trials: float, z: float) -> tuple[float, float]:
    """Wilson's score interval of a share."""
    scale = 1 + z * z / trials
    center = (mean + z * z / (2 * trials)) / scale
    half = z * math.sqrt(mean * (1 - mean) / trials + z * z / (4 * trials * trials)) / scale
    return max(0.0, center - half), min(1.0, center + half)


@functools.lru_cache(maxsize=256)
def _student(degrees: int, confidence: float) -> float:
    """The quantile of Student's distribution that bounds the middle ``confidence`` of it."""
    import mpmath

    degrees = max(1, degrees)

    def outside(t: float) -> float:
        inside: float = mpmath.betainc(
            degrees / 2, 0.5, 0, degrees / (degrees + t * t), regularized=True
        )
        return inside - (1 - confidence)

    if degrees > 10**6:  # the normal's, to seven places
        return float(mpmath.sqrt(2) * mpmath.erfinv(confidence))
    return float(mpmath.findroot(outside, (1.0, 20.0 if degrees > 2 else 400.0), solver="anderson"))
