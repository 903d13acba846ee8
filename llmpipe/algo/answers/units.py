"""Units that may follow a number, and which of them can be converted into each other."""

from __future__ import annotations

from fractions import Fraction

from llmpipe.algo.answers.tree import names

_SCALES: dict[str, dict[str, Fraction]] = {
    "length": {
        "mm millimeter millimetre": Fraction(1, 1000),
        "cm centimeter centimetre": Fraction(1, 100),
        "dm": Fraction(1, 10),
        "m meter metre": Fraction(1),
        "km kilometer kilometre": Fraction(1000),
        "in inch inches": Fraction(254, 10000),
        "ft foot feet": Fraction(3048, 10000),
        "yd yard": Fraction(9144, 10000),
        "mi mile": Fraction(1609344, 1000),
    },
    "time": {
        "s sec second": Fraction(1),
        "min minute": Fraction(60),
        "h hr hour": Fraction(3600),
        "day": Fraction(86400),
        "week": Fraction(604800),
    },
    "mass": {
        "mg milligram": Fraction(1, 1000),
        "g gram": Fraction(1),
        "kg kilogram": Fraction(1000),
    },
    "volume": {"ml milliliter": Fraction(1, 1000), "l liter litre": Fraction(1)},
    "money": {"cent": Fraction(1, 100), "dollar usd": Fraction(1)},
}
SCALES = {
    name: (kind, factor)
    for kind, units in _SCALES.items()
    for names, factor in units.items()
    for name in names.split()
}
"""Unit to its kind and its size in the kind's base unit."""

MULTIPLES = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9}
"""Words after a number that multiply it."""

SHORT = names(
    "mm cm dm km in ft yd mi sec min hr day mg kg ml mph kmh kph rpm hz khz lb lbs oz gal cup pt"
    " qt men pm am st nd rd th cc usd eur yr yrs mol kj kw kwh mhz psi atm pie sq cu units"
    " unit per"
)
"""Known units of two or three letters; longer words after a number are taken for units anyway."""


def convert(x: str, y: str) -> Fraction | None:
    """What one ``x`` is in ``y``; 1 where either is unknown, None for units of two kinds."""
    left, right = (SCALES.get(_singular(u.lower().strip(" ."))) for u in (x, y))
    if left is None or right is None:
        return Fraction(1)
    return left[1] / right[1] if left[0] == right[0] else None


def _singular(unit: str) -> str:
    return unit[:-1] if unit.endswith("s") and unit[:-1] in SCALES else unit
