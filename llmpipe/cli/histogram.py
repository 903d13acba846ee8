"""How numbers between 0 and 1, or of any other range, are spread: bars of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

_BINS = 10
_WIDTH = 40
_BLOCKS = " ▏▎▍▌▋▊▉"


def histogram(columns: Iterable[pa.Array]) -> list[str]:
    """Lines "from - to  count  bar" of ten equal bins, and one of rows without a number.

    The bins go from 0 to 1, or between whole numbers where values lie outside of that. A value on
    an edge is in the upper bin. No lines where no row has a number.
    """
    values = pa.chunked_array(columns, pa.float64())
    known = pc.drop_null(values)
    known = known.filter(pc.is_finite(known))
    if not len(known):
        return []
    ends = pc.min_max(known)
    low, high = _span(ends["min"].as_py(), ends["max"].as_py())
    scaled = pc.floor(pc.multiply(pc.divide(pc.subtract(known, low), high - low), _BINS))
    places = pc.cast(pc.min_element_wise(scaled, _BINS - 1.0), pa.int64())
    counts = {e["values"]: e["counts"] for e in pc.value_counts(places).to_pylist()}
    lines = list(_lines(low, high, [counts.get(i, 0) for i in range(_BINS)]))
    unknown = len(values) - len(known)
    return [*lines, f"without one {unknown}"] if unknown else lines


def _span(low: float, high: float) -> tuple[float, float]:
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    first = math.floor(low)
    return float(first), float(max(math.ceil(high), first + 1))


def _lines(low: float, high: float, counts: list[int]) -> Iterator[str]:
    edges = [f"{low + (high - low) * i / _BINS:.4g}" for i in range(_BINS + 1)]
    wide, most = max(map(len, edges)), max(counts)
    digits = len(str(most))
    for start, end, count in zip(edges, edges[1:], counts, strict=False):
        bar = _bar(count / most)
        yield f"{start:>{wide}} - {end:<{wide}} {count:>{digits}} {bar}".rstrip()


def _bar(share: float) -> str:
    """A bar of eighths of a character; what isn't nothing is seen."""
    eighths = max(round(share * _WIDTH * 8), share > 0)
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()
