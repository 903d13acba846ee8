"""Numbers written as words: five, twenty-one, two hundred and five, two thirds."""

from __future__ import annotations

import re

_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SMALL = {w: n for n, w in enumerate(_UNITS)} | {w: 10 * n for n, w in enumerate(_TENS, 2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip
_GAP = re.compile(r"[ -]+")
_LONGEST = 12  # words


def spelled_out(text: str) -> str | None:
    """The digits of a number that is written in words, as "21" or "2/3"; None for other words."""
    words = _GAP.split(text.strip().casefold())
    if not 0 < len(words) <= _LONGEST or words[0] not in _SMALL:
        return None
    part = _PARTS.get(words[-1]) or _PARTS.get(words[-1].removesuffix("s"))
    if part and len(words) > 1:
        top = _whole(words[:-1])
        return None if top is None else f"{top}/{part}"
    value = _whole(words)
    return None if value is None else str(value)


def _whole(words: list[str]) -> int | None:
    total, group, last = 0, 0, 10**12
    step = 100  # what the next word of a group has to be smaller than
    for at, word in enumerate(words):
        if word == "and" and 0 < at < len(words) - 1 and step <= 100:
            continue
        if word in _SMALL and _SMALL[word] < step:
            group += _SMALL[word]
            step = 10 if word in _TENS else 0
        elif word == "hundred" and 0 < group < 10:
            group, step = 100 * group, 100
        elif word in _LARGE and group and _LARGE[word] < last:
            last = _LARGE[word]
            total, group, step = total + group * last, 0, 100
        else:
            return None
    return total + group
