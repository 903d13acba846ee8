"""Words after a value that change it: "5 dozen", "5 squared", "5 tenths"."""

from __future__ import annotations

from fractions import Fraction

from llmpipe.algo.answers.tree import Node, UnreadableError, num
from llmpipe.algo.answers.units import begins_unit
from llmpipe.algo.answers.values import exact

_SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "dozen": 12, "lakh": 10**5, "crore": 10**7, "k": 1000, "mn": 10**6, "bn": 10**9,
    "十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8, "打": 12,
}  # fmt: skip
_PARTS = {
    "halve": 2, "half": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "twelfth": 12, "sixteenth": 16, "twentieth": 20,
    "hundredth": 100, "thousandth": 1000, "millionth": 10**6,
}  # fmt: skip
_POWERS = {"squared": 2, "cubed": 3}
_MOST_WORDS = 40
_HAN = "十百千万亿"
_OPERATORS = frozenset(["plus", "minus", "times", "over", "divided", "power", "root", "factorial"])
_TIMES_AS = frozenset(["as", "more", "larger", "bigger", "greater", "faster", "the", "a", "per"])


def is_scale(word: str) -> bool:
    """Whether the word multiplies the number before it: "million", "dozen", "万"."""
    return (word if word in _SCALES else word.lower().removesuffix("s")) in _SCALES


def scaled(value: Node, words: list[str]) -> tuple[Node, str]:
    """The value of "5 dozen eggs", and what is left of the words: its unit.

    Raises:
        UnreadableError: they say to compute something.
    """
    if len(words) > _MOST_WORDS:
        raise UnreadableError("too many words")
    left = list(words)
    while left and (changed := _changed(value, left)):
        value, left = changed
    for at, word in enumerate(left):
        following = left[at + 1 :]
        if word.lower() in _OPERATORS and not (
            word == "times" and (not following or following[0] in _TIMES_AS)
        ):
            raise UnreadableError(f"words that compute: {word}")
    return value, " ".join(left)


def _changed(value: Node, words: list[str]) -> tuple[Node, list[str]] | None:
    word, *rest = words
    lower = word.lower()
    name = word if word in _SCALES else lower.removesuffix("s")
    if name in _SCALES and not (name == "k" and word != "k"):  # "K" is kelvin
        return Node("mul", (value, num(_SCALES[name]))), rest
    part = _PARTS.get(lower.removesuffix("s"))
    if part and (lower.endswith("s") or exact(value) == 1):  # "5 tenths", "1 tenth"
        return Node("mul", (value, num(Fraction(1, part)))), rest
    if lower in _POWERS and not rest:
        return Node("pow", (value, num(_POWERS[lower]))), rest
    if lower == "factorial":
        return Node("fact", (value,)), rest
    if word[0] in _HAN and len(word) > 1 and not begins_unit(word):  # "万元", but not "千克"
        return Node("mul", (value, num(_SCALES[word[0]]))), [word[1:], *rest]
    return None
