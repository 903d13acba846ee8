"""Units after a number: what the words mean, and what turns one unit's values into another's.

The words are those that `terms` finds after a value, with single spaces: "km / h", "m ^2",
"square centimeters", "liters of water", "平方厘米".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product

from llmpipe.algo.answers.tree import names
from llmpipe.algo.answers.unit_table import TABLE, Unit

SHORT = names(
    "mm cm dm km in ft yd mi sec min hr day mg kg ml mph kmh kph rpm hz khz lb lbs oz gal cup pt"
    " qt men pm am st nd rd th cc usd eur yr yrs mol kj kw kwh mhz psi atm pie sq cu units"
    " unit per kpa mpa gpa ghz rad rev ton gbp cny rmb inr jpy wk dl cl hrs tsp yen ago old"
)
"""Known units of two or three letters; longer words after a number are taken for units anyway."""

_SYMBOLS = frozenset(name for name in TABLE if len(name) == 1 and name.isascii())
_READINGS = 12  # meanings of one text; "oz / min" has two
_PAIRS = (
    (re.compile(r"\b(?:fluid|fl\.?) ?(ounces?|oz)\b", re.I), "fluidounce"),
    (re.compile(r"\bnautical[ -]miles?\b", re.I), "nauticalmile"),
    (re.compile(r"\blight[ -]years?\b", re.I), "lightyear"),
    (re.compile(r"\b(?:metric|short) tons?\b", re.I), "ton"),
    (re.compile(r"\bkilowatt[ -]hours?\b", re.I), "kWh"),
    (re.compile(r"\bwatt[ -]hours?\b", re.I), "Wh"),
    (re.compile(r"\b(?:arc|angular) (minute|second)s?\b", re.I), r"arc\1"),
    (re.compile(r"°|\\degree"), "°"),
)
_TOKEN = re.compile(
    r"°[CF]?(?![A-Za-z])|[A-Za-zÅΩμℓ]+|[\u4e00-\u9fff]+|[$€£¥¢₹]|\^ ?\{? ?(-?\d+) ?\}?|[/*·⋅()]|²|³"
)
_BEFORE = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "平方": 2, "立方": 3}
_AFTER = {"squared": 2, "cubed": 3, "²": 2, "³": 3}
_PER = names("/ per a an each every 每")
# What follows is about the thing that is measured: "5 liters of water", "3 miles from town".
_ASIDES = names("of for from after before than in on at to by with until since ago into around")
_SIZES = names("tall wide long deep high thick wider longer taller deeper apart away")
_RATE = re.compile(r"/|\b(?:per|an?|each|every)\b|每")
_HAN = re.compile("[\u4e00-\u9fff]")
_MONEY = names("usd eur gbp cny jpy inr")


@dataclass(frozen=True, slots=True)
class Conversion:
    """A value v in one unit is ``(v + before) * factor * pi**turns + after`` in the other."""

    factor: Fraction
    turns: int = 0
    before: Fraction = Fraction(0)
    after: Fraction = Fraction(0)


def is_symbol(letter: str) -> bool:
    """Whether a letter alone may be a unit's symbol."""
    return letter in _SYMBOLS


def is_unit(text: str) -> bool:
    """Whether the words name a unit that is known."""
    return bool(meanings(text))


def begins_unit(text: str) -> bool:
    """Whether Chinese words begin with a unit's name of two signs or more."""
    return any(text[:n] in TABLE for n in (2, 3))


@lru_cache(maxsize=4096)
def conversions(one: str, other: str) -> tuple[Conversion, ...] | None:
    """What turns values in ``one`` into values in ``other``; none if they can't be turned.

    None where either is no known unit, but a word for what is counted: it says nothing. A price
    may leave out what it is for.
    """
    left, right = meanings(one), meanings(other)
    if not left or not right:
        return None
    found = dict.fromkeys(
        conversion for x, y in product(left, right) if (conversion := _conversion(x, y)) is not None
    )
    if not found and _is_money(left) != _is_money(right):
        short = [_RATE.split(text, maxsplit=1)[0] for text in (one, other)]
        if short != [one, other] and all(_is_money(meanings(text)) for text in short):
            return conversions(*short)
    return tuple(found)


def _conversion(x: Unit, y: Unit) -> Conversion | None:
    if x.powers != y.powers:
        return Conversion(Fraction(1)) if _is_any(x, y) or _is_any(y, x) else None
    return Conversion(
        x.size / y.size, x.turns - y.turns, before=x.zero / x.size, after=-y.zero / y.size
    )


def _is_any(x: Unit, y: Unit) -> bool:
    """Units that aren't named: "square units" are any area, "units" are anything."""
    if dict(x.powers).keys() != {"unit"}:
        return False
    power = dict(x.powers)["unit"]
    return power == 1 or y.powers == (("m", power),)


def _is_money(units: tuple[Unit, ...]) -> bool:
    return bool(units) and all(len(u.powers) == 1 and u.powers[0][0] in _MONEY for u in units)


@lru_cache(maxsize=4096)
def meanings(text: str) -> tuple[Unit, ...]:
    """The units that the words may mean, none if they name no known unit."""
    for pattern, name in _PAIRS:
        text = pattern.sub(name, text)
    factors = _Reader(text).factors
    if not factors:
        return ()
    readings = 1
    for units, _ in factors:
        readings *= len(units)
    if readings > _READINGS:
        return ()
    return tuple(
        _product([(unit, power) for unit, (_, power) in zip(choice, factors, strict=True)])
        for choice in product(*(units for units, _ in factors))
    )


def _product(factors: list[tuple[Unit, int]]) -> Unit:
    powers: dict[str, int] = {}
    size, turns = Fraction(1), 0
    for unit, power in factors:
        for name, n in unit.powers:
            powers[name] = powers.get(name, 0) + n * power
        size *= unit.size**power
        turns += unit.turns * power
    alone = len(factors) == 1 and factors[0][1] == 1
    zero = factors[0][0].zero if alone else Fraction(0)  # a rise of 1 °C is one of 1 K
    kept = tuple(sorted((name, n) for name, n in powers.items() if n))
    return Unit(kept, size, turns, zero)


class _Reader:
    """Reads the words of a unit: its factors, and the power of each."""

    def __init__(self, text: str) -> None:
        self.factors: list[tuple[tuple[Unit, ...], int]] = []
        self._sign = 1
        self._power = 1
        self._nouns = False
        tokens = [m.group() for m in _TOKEN.finditer(text)]
        words = [piece for token in tokens for piece in _pieces(token)]
        for at, word in enumerate(words):
            if not self._take(word, words[at + 1 : at + 2]):
                break

    def _take(self, word: str, following: list[str]) -> bool:
        """Reads one word; False where the unit has ended."""
        lower = word.lower()
        if word.startswith("^"):
            self._raise(int(re.sub(r"[^-\d]", "", word)))
        elif lower in _AFTER:
            self._raise(_AFTER[lower])
        elif lower in _PER and (lower not in ("a", "an") or self.factors or self._nouns):
            self._sign = -1
        elif lower in _BEFORE:
            self._power = _BEFORE[lower]
        elif lower in _ASIDES and not (lower == "in" and self._is_inch(following)):
            return False
        elif units := _named(word):
            self.factors.append((units, self._sign * self._power))
            self._power = 1
        elif word not in "*·⋅()":
            self._nouns = True
        return True

    def _is_inch(self, following: list[str]) -> bool:
        started = self.factors or self._nouns
        ends = not following or following[0][0] in "^/*·⋅()²³" or following[0].lower() in _SIZES
        return ends and (not started or self._sign < 0 or self._power > 1)

    def _raise(self, power: int) -> None:
        if self.factors:
            units, before = self.factors[-1]
            self.factors[-1] = (units, before * power)


def _named(word: str) -> tuple[Unit, ...]:
    if word in TABLE:
        return TABLE[word]
    if len(word) == 1:
        return ()
    lower = word.lower()
    for name in (lower, word.removesuffix("s"), lower.removesuffix("s"), lower.removesuffix("es")):
        if name in TABLE and (len(name) > 1 or name == word):
            return TABLE[name]
    return _FOLDED.get(lower, ())


_FOLDED = {
    name.lower(): units
    for name, units in TABLE.items()
    if len(name) > 1 and name.isascii() and not name.islower() and name.lower() not in TABLE
}


def _pieces(token: str) -> list[str]:
    """Chinese words have no spaces: the longest that is known, again and again."""
    if not _HAN.match(token):
        return [token]
    found: list[str] = []
    while token:
        size = next(
            (
                n
                for n in range(min(4, len(token)), 0, -1)
                if token[:n] in TABLE or token[:n] in _BEFORE or token[:n] in _PER
            ),
            1,
        )
        found.append(token[:size])
        token = token[size:]
    return found
