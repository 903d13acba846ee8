"""How long answers took: percentiles in bounded memory."""

from __future__ import annotations

import random
from array import array

import numpy as np

_KEPT = 100_000  # times; of more, an even sample


class Latency:
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
        """``p50``, ``p90`` and ``p99`` in seconds; empty where there are no times."""
        if not self._times:
            return {}
        at = (50, 90, 99)
        found = np.percentile(np.frombuffer(self._times), at)
        return {f"p{p}": round(float(x), 3) for p, x in zip(at, found, strict=True)}
