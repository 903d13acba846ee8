"""How long answers took: percentiles in bounded memory."""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping

import numpy as np

from llmpipe.core.protocols import Timing

_KEPT = 100_000  # times; of more, an even sample


class Times:
    """Times in seconds, of which a uniform random sample is kept (reservoir sampling, Vitter 1985).

    Percentiles are exact up to 100,000 times.
    """

    def __init__(self) -> None:
        self._times = array("d")
        self._count = 0
        self._draw = random.Random(0)

    def add(self, seconds: float) -> None:
        self._count += 1
        if len(self._times) < _KEPT:
            self._times.append(seconds)
        elif (place := self._draw.randrange(self._count)) < _KEPT:
            self._times[place] = seconds

    def percentiles(self) -> dict[str, float]:
        """``p50``, ``p90`` and ``p99`` in seconds, to four digits; empty if nothing was timed."""
        if not self._times:
            return {}
        at = (50, 90, 99)
        found = np.percentile(np.frombuffer(self._times), at)
        return {f"p{p}": float(f"{x:.4g}") for p, x in zip(at, found, strict=True)}


class Latency:
    """The times of a run's answers, under the names that serving benchmarks have for them.

    ``latency_seconds`` is an answer's whole time (E2E), ``ttft_seconds`` the time to its first
    token, ``tpot_seconds`` the time per output token after the first. All count from when the
    engine took the request: in an offline run the first two are mostly waiting for a seat.
    """

    def __init__(self) -> None:
        self._total, self._first, self._per_token = Times(), Times(), Times()

    def add(self, timing: Timing, tokens: int) -> None:
        """Count an answer of ``tokens`` tokens. One that has no first token adds to the total only,
        one of a single token nothing to the time per token."""
        self._total.add(timing.total)
        if timing.first_token is None:
            return
        self._first.add(timing.first_token)
        if tokens > 1:
            self._per_token.add((timing.total - timing.first_token) / (tokens - 1))

    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """Percentiles of each time; those that no answer had are left out."""
        named = {
            "latency_seconds": self._total,
            "ttft_seconds": self._first,
            "tpot_seconds": self._per_token,
        }
        found = {name: times.percentiles() for name, times in named.items()}
        return {name: percentiles for name, percentiles in found.items() if percentiles}
