"""Does a text go round in circles?"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

# Words, numbers, single signs; a Chinese character, kana or syllable of Hangul is a word.
_TOKEN = re.compile(r"\\?[A-Za-z]+|\d+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+|[^\w\s]")
_PROSE = re.compile(r"[^\W\d_]{2,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_COPIES = 3  # of a block, one after the other
_WORDS = 30  # of prose in them; \frac{1}{2} has none
_DIFFERENT = 5  # of these in the block; a way through a maze has four
_TOKENS = 300  # or of anything: a matrix of zeros may be large
_PASSAGE = 40  # tokens
_DIFFERENT_IN_PASSAGES = 10  # words of prose in all of them
_PERIODS = 8  # distances looked at
_WINDOW = 8  # tokens by which they are found


def loop(text: str) -> str | None:
    """What a text repeats without end, or None.

    It loops where a block of words comes three times or more in a row, with 30 words of prose in
    all and five different ones, or 300 tokens of any kind; and where more than half of it are
    passages of 40 tokens or more that it holds already, with ten different words of prose. Of 6,900
    public solutions of mathematical problems one is hit, and it does loop; the others have 72
    tokens of notation in a row, and a fifth, at most. Linear in the text, but for a sort.
    """
    tokens = _TOKEN.findall(text)
    if len(tokens) < _WORDS:
        return None
    numbers: dict[str, int] = {}
    ids = np.array([numbers.setdefault(t, len(numbers)) for t in tokens])
    is_prose = np.array([bool(_PROSE.fullmatch(t)) for t in numbers])
    prose = np.concatenate(([0], np.cumsum(is_prose[ids])))
    for period in _distances(ids):
        for start, stop in _periodic(ids, period):
            block = np.unique(ids[start : start + period])
            told = prose[stop] - prose[start] >= _WORDS and is_prose[block].sum() >= _DIFFERENT
            if told or stop - start >= _TOKENS:
                said = _excerpt(text, start, start + period)
                return f"{(stop - start) // period} times in a row: {said}"
    again = np.zeros(len(ids) + 1, np.int64)  # +1 where such a passage begins, -1 behind it
    starts = np.flatnonzero(_earlier(ids, _PASSAGE) >= 0)
    again[starts] += 1
    again[starts + _PASSAGE] -= 1
    covered = ids[np.cumsum(again)[:-1] > 0]
    varied = is_prose[np.unique(covered)].sum() >= _DIFFERENT_IN_PASSAGES
    share = len(covered) / len(ids)
    return f"{share:.0%} of it are passages said before" if varied and share > 0.5 else None


def _earlier(ids: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """For each window of so many tokens, where the same one was last before it; -1 if nowhere."""
    count = len(ids) - width + 1
    if count < 1:
        return np.empty(0, np.int64)
    key = np.zeros(count, np.uint64)
    spread = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
    for i in range(width):  # modulo 2**64
        key = key * np.uint64(0xD1342543DE82EF95) + spread[i : i + count]
    order = np.argsort(key, kind="stable")
    same = key[order[1:]] == key[order[:-1]]
    earlier = np.full(count, -1)
    earlier[order[1:][same]] = order[:-1][same]
    return earlier


def _distances(ids: NDArray[np.int64]) -> list[int]:
    """How far apart windows and their repeats most often are."""
    earlier = _earlier(ids, _WINDOW)
    found = np.flatnonzero(earlier >= 0)
    counts = np.bincount(found - earlier[found])
    likely = np.argsort(-counts, kind="stable")[:_PERIODS]
    return [int(d) for d in likely if counts[d] >= _WINDOW]


def _periodic(ids: NDArray[np.int64], period: int) -> list[tuple[int, int]]:
    """Where enough copies of a block so long stand one after the other."""
    equal = np.concatenate(([False], ids[period:] == ids[:-period], [False]))
    starts, stops = np.flatnonzero(np.diff(equal.astype(np.int8))).reshape(-1, 2).T
    stops = stops + period
    long = stops - starts >= _COPIES * period
    return list(zip(starts[long].tolist(), stops[long].tolist(), strict=True))


def _excerpt(text: str, start: int, stop: int) -> str:
    """The tokens of that range as they stand, cut short."""
    spans = [m.span() for m in _TOKEN.finditer(text)]
    words = " ".join(text[spans[start][0] : spans[stop - 1][1]].split())
    return words if len(words) <= 80 else f"{words[:77]}..."
