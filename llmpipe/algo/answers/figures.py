"""Plain numbers: integers, decimals, fractions, percentages; read and compared exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_LENGTH = 1000  # characters; longer ones are no figures anyone writes down
_DIGITS = 4  # from there a decimal may be the rounding of a number
_FLOAT = 10**14  # fifteen digits: what a program printed, its last digits noise
_FLOAT_NOISE = Fraction(1, 10**12)

_DECIMAL = r"(?:\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_FIGURE = re.compile(
    rf"(?P<sign>[-+]?) ?(?:(?P<whole>{_DECIMAL})(?: ?/ ?(?P<over>{_DECIMAL}))?"
    rf"|\\frac ?(?:\{{ ?(?P<top>-?{_DECIMAL}) ?\}} ?\{{ ?(?P<under>{_DECIMAL}) ?\}}"
    r"|(?P<digit>\d) ?(?P<below>\d)))(?P<percent> ?\\?%)?"
)


@dataclass(frozen=True, slots=True)
class Number:
    """``value`` is the figure before a percent sign; ``places`` those after a decimal's point."""

    value: Fraction
    percent: bool = False
    places: int | None = None


def number(text: str) -> Number | None:
    """A clean integer, decimal, fraction or percentage; thousands may be separated."""
    match = _FIGURE.fullmatch(text) if len(text) <= _LENGTH else None
    if match is None:
        return None
    top = match["whole"] or match["top"] or match["digit"]
    bottom = match["over"] or match["under"] or match["below"]
    value = _fraction(top)
    if bottom is not None:
        divisor = _fraction(bottom)
        if divisor == 0:
            return None
        value /= divisor
    places = len(top.partition(".")[2]) if bottom is None and "." in top else None
    return Number(-value if match["sign"] == "-" else value, bool(match["percent"]), places)


def _fraction(digits: str) -> Fraction:
    return Fraction(digits.replace(",", "").replace(" ", "").rstrip("."))


def equal_numbers(x: Number, y: Number) -> bool:
    """28% is 28, as answers to "how many per cent" are given, and 0.28."""
    if same_value(x.value, x.places, y.value, y.places):
        return True
    if x.percent == y.percent:
        return False
    if y.percent:
        x, y = y, x
    places = None if x.places is None else x.places + 2
    return same_value(x.value / 100, places, y.value, y.places)


def same_value(x: Fraction, x_places: int | None, y: Fraction, y_places: int | None) -> bool:
    """Whether two numbers are equal, decimals by the rule in `is_rounding`.

    Of two decimals the one with fewer places may be the rounding of the other; against a number
    that was not written as a decimal only the decimal may be.
    """
    if x == y:
        return True
    if x_places is not None and (y_places is None or x_places <= y_places):
        return is_rounding(x, x_places, y)
    return y_places is not None and is_rounding(y, y_places, x)


def is_rounding(decimal: Fraction, places: int, exact: Fraction) -> bool:
    """A decimal stands for a number if it is that, correctly rounded to four digits or more.

    The digits are counted from the first that isn't 0 to the last: 0.0833 has three, 10.00 has two.
    Decimals of 15 digits or more are floating point numbers, equal up to their noise.
    """
    step = Fraction(10) ** -places
    gap, figure = abs(decimal - exact), abs(decimal) / step
    rounded = 2 * gap <= step and _digits(figure) >= _DIGITS
    printed = figure >= _FLOAT or exact.denominator >= _FLOAT
    return rounded or (printed and gap <= _FLOAT_NOISE * max(abs(decimal), abs(exact)))


def _digits(figure: Fraction) -> int:
    return len(str(int(figure)).rstrip("0")) if figure < _FLOAT else _DIGITS
