"""Slips of the pen: a word misspelt, or with another ending."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from llmpipe.algo.vocabulary import NUMBERS, STOP, STRONG, TERMS, WEAK

_ENDINGS = ("", "s", "es", "d", "ed", "ing", "ly")
_NEGATIONS = ("un", "in", "im", "non", "dis", "ir")


@lru_cache(maxsize=1 << 16)
def slip(word: str, other: str) -> bool:
    """Whether one is a misspelling or another ending of the other, and no word with a class.

    One edit (a letter lost, added, changed, or two exchanged) a word, two in long ones.
    """
    if word == other:
        return True
    short, long = sorted((word, other), key=len)
    if len(short) < 3 or len(long) - len(short) > 3 or not short.isalpha():
        return False
    known = [
        w in STRONG or w in WEAK or w in STOP or w in NUMBERS or w in TERMS for w in (word, other)
    ]
    if all(known):
        return False
    if any(long == prefix + short for prefix in _NEGATIONS):
        return False
    shared = shared_ends(word, other)[0]
    if shared >= 3 and not any(known) and {word[shared:], other[shared:]} <= set(_ENDINGS):
        return True
    limit = 2 if len(short) >= 8 and not any(known) else 1
    if len(long) == 3 and any(known):  # odd and old are both words
        return sorted(word) == sorted(other)
    return within(word, other, limit)


def within(word: str, other: str, limit: int) -> bool:
    """Whether so many edits make one of the other; two neighbours exchanged are one edit."""
    start, stop = shared_ends(word, other)
    a, b = word[start : len(word) - stop], other[start : len(other) - stop]
    if not a or not b:
        return len(a) + len(b) <= limit
    if limit == 0:
        return False
    if len(a) == 1 and len(b) == 1:
        return True
    if len(a) >= 2 and a[:2] == b[1::-1] and within(a[2:], b[2:], limit - 1):
        return True
    return (
        within(a[1:], b[1:], limit - 1)
        or within(a[1:], b, limit - 1)
        or within(a, b[1:], limit - 1)
    )


def shared_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many tokens the two share at the start, and how many of the rest at the end."""
    shorter = min(len(one), len(other))
    start = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    rest = shorter - start
    stop = next((i for i in range(rest) if one[-1 - i] != other[-1 - i]), rest)
    return start, stop
