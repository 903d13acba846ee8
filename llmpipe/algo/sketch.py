"""How alike texts are, by MinHash over their words: signatures, and bands for many texts.

Two texts that share the share J of their words meet in one of b bands of r hashes with
probability ``1 - (1 - J^r)^b`` (Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3):
0.998 at J = 0.45 with the 30 bands of 2 used here. They only propose; see `llmpipe.algo.near`.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

_BANDS, _ROWS = 30, 2
_PRIME = np.uint64((1 << 31) - 1)  # products with 31-bit factors fit into 64 bits
_MOST = 20  # earlier texts proposed for one, those it meets in most bands
_CROWD = 60  # texts of one bucket that are remembered


def _factors(count: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    size = (count, 1)
    high = int(_PRIME)
    return (
        draw.integers(1, high, size, dtype=np.uint64),
        draw.integers(0, high, size, dtype=np.uint64),
    )


_BANDED = _factors(_BANDS * _ROWS)
_SIGNED = _factors(128)


def _least(words: Collection[str], factors: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """For each function of a family the least hash of the words."""
    hashes = np.array([zlib.crc32(w.encode()) & 0x7FFFFFFF for w in words or ("",)], np.uint64)
    factor, offset = factors
    least: np.ndarray = ((factor * hashes + offset) % _PRIME).min(axis=1).astype(np.uint32)
    return least


def signature(words: Collection[str]) -> np.ndarray:
    """128 numbers (uint32); those that two texts share are the share of their words, estimated.

    The standard error is 0.045 at most (Broder 1997, On the resemblance and containment of
    documents).
    """
    return _least(words, _SIGNED)


def bands(words: Collection[str]) -> list[bytes]:
    """The keys of a text's buckets, one a band."""
    raw = _least(words, _BANDED).tobytes()
    width = 4 * _ROWS
    return [raw[i : i + width] for i in range(0, len(raw), width)]


def candidates(texts: Sequence[Collection[str]]) -> Iterator[list[int]]:
    """For each text the earlier ones that it may be like, the likest first."""
    buckets: list[dict[bytes, list[int]]] = [defaultdict(list) for _ in range(_BANDS)]
    for number, words in enumerate(texts):
        met: Counter[int] = Counter()
        for band, key in zip(buckets, bands(words), strict=True):
            bucket = band[key]
            met.update(bucket)
            if len(bucket) < _CROWD:
                bucket.append(number)
        yield [other for other, _ in met.most_common(_MOST)]
