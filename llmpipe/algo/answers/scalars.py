"""Are two numbers, or two formulas, the same?

Rational numbers are compared exactly, decimals by `figures.is_rounding`, other constants to sixty
digits, and formulas by their values at fixed points: two formulas that agree there to twenty-five
digits are taken for equal (the chance that different ones do is nil for what people write down).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from llmpipe.algo.answers.figures import is_rounding, same_value
from llmpipe.algo.answers.quantities import in_one_unit, is_quantity
from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError, names, num
from llmpipe.algo.answers.values import context, exact, numeric

_DIGITS = 60
_AGREE = "1e-25"
_POINTS: tuple[Callable[[int], Fraction], ...] = (
    # Answers are about lengths, ages, angles below a right one: positive first.
    lambda seed: Fraction(200 + seed % 599, 1009),
    lambda seed: Fraction(1100 + seed % 1499, 1013),
    lambda seed: Fraction(300 + seed % 997, 1019),
    # Then of both signs.
    lambda seed: Fraction(300 + seed % 1409, 1021) * (1 if seed % 2 else -1),
    lambda seed: -Fraction(300 + seed % 1511, 1031),
)
_COUNTERS = frozenset("kmn")
_NUMBERS = names("num const add neg mul div pow fact fun")


def same_scalar(a: Node, b: Node) -> bool:
    """Whether two trees of numbers are equal; units and signs of percent or degree as they stand.

    Raises:
        UnreadableError, TooLargeError: it can't be decided.
    """
    if a == b:
        return True
    if is_quantity(a) or is_quantity(b):
        return any(same_scalar(x, y) for x, y in in_one_unit(a, b))
    if a.op == b.op == "base":
        return exact(a) == exact(b)
    try:
        return any(_same(x, y) for x, y in _readings(a, b))
    except TooLargeError:
        if folded(a) == folded(b):
            return True
        raise


def folded(node: Node) -> Node:
    """The tree with its rational parts as numbers, where they aren't too large."""
    try:
        value = exact(node)
    except (TooLargeError, ZeroDivisionError):
        value = None
    if value is not None:
        return num(value)
    return Node(node.op, tuple(map(folded, node.args)), node.value)


def _readings(a: Node, b: Node) -> list[tuple[Node, Node]]:
    """28% is 28 and 28/100, 90 degrees are 90 and pi/2; a base may go without saying."""
    pairs = [(_figure(a), _figure(b))]
    if (a.op in ("pct", "deg")) != (b.op in ("pct", "deg")):
        pairs.append((a, b))
    return pairs


def _figure(node: Node) -> Node:
    if node.op in ("pct", "deg"):
        return node.args[0]
    if node.op == "neg" and node.args[0].op in ("pct", "deg"):
        return Node("neg", node.args[0].args)
    return num(int(node.value[0])) if node.op == "base" else node


def _same(a: Node, b: Node) -> bool:
    try:
        x, y = exact(a), exact(b)
        if x is not None and y is not None:
            return same_value(x, _places(a), y, _places(b))
        for value, places, other in ((x, _places(a), b), (y, _places(b), a)):
            if value is not None and places is not None and not other.symbols():
                return same_values(a, b) or _rounds(value, places, other)
    except ZeroDivisionError:
        return False
    return same_values(a, b)


def _places(node: Node) -> int | None:
    """Places after the point, of a decimal alone or times a power of ten or with a percent sign."""
    if node.op == "num":
        places: int | None = node.value[1]
        return places
    if node.op == "neg":
        return _places(node.args[0])
    if node.op == "pct":
        places = _places(node.args[0])
        return None if places is None else places + 2
    if node.op == "mul" and len(node.args) == 2:
        left, right = node.args
        places = _places(left)
        if places is not None and right.op == "pow" and exact(right.args[0]) == 10:
            power = exact(right.args[1])
            return places - int(power) if power is not None and power.denominator == 1 else None
    return None


def _rounds(decimal: Fraction, places: int, other: Node) -> bool:
    mp = context()
    with mp.workdps(_DIGITS):
        try:
            value = numeric(other, {})
            if mp.im(value) != 0 or mp.isinf(value) or mp.isnan(value):
                return False
            value = mp.re(value)  # a sum of complex numbers stays one of their kind
            if value != 0 and abs(mp.log(abs(value), 10)) > 300:
                return False
            near = Fraction(int(mp.nint(value * mp.mpf(10) ** 40)), 10**40)
        except ZeroDivisionError:
            return False
    return is_rounding(decimal, places, near)


def is_near(exact_value: Node, rounded: Node) -> bool:
    """Whether a number may be given for another as about that: within one hundredth of it, or one
    unit of its own last place. Of formulas, units and the like nothing is known: they may."""
    if any(n.op not in _NUMBERS for t in (exact_value, rounded) for n in t.walk()):
        return True
    mp = context()
    with mp.workdps(30):
        try:
            x, y = numeric(exact_value, {}), numeric(rounded, {})
        except (ZeroDivisionError, UnreadableError, TooLargeError):
            return True
        step = mp.mpf(10) ** -(_places(rounded) or 0) if _places(rounded) or _is_whole(y) else 0
        gap = abs(x - y)
        return bool(mp.isnan(gap) or mp.isinf(gap) or gap < step or gap <= abs(x) / 100)


def _is_whole(value: Any) -> bool:
    return bool(context().isint(value))


def same_values(a: Node, b: Node, ratio: bool = False) -> bool:
    """Whether two formulas have the same values; or values of one ratio, where ``ratio`` is set."""
    bare_log = any(
        n.op == "fun" and n.value == "log" and len(n.args) == 1 for t in (a, b) for n in t.walk()
    )
    return _agree(a, b, False, ratio) or (bare_log and _agree(a, b, True, ratio))


def point(names: frozenset[str], number: int) -> dict[str, Any]:
    """Values for variables, always the same for the same names."""
    mp, draw = context(), _POINTS[number]
    values = {name: draw(zlib.crc32(f"{name} {number}".encode())) for name in names}
    return {name: mp.mpf(v.numerator) / v.denominator for name, v in values.items()}


def _agree(a: Node, b: Node, log10: bool, ratio: bool) -> bool:
    names = a.symbols() | b.symbols()
    counters = names & _COUNTERS if _alternates(a) or _alternates(b) else frozenset()
    mp = context()
    with mp.workdps(_DIGITS):
        seen: list[Any] = []
        for number in range(len(_POINTS) if names else 1):
            at = point(names, number)
            at.update({name: mp.mpf(number + 1 + len(name)) for name in counters})
            pair = _values(a, b, at, log10)
            if pair is None:
                continue
            x, y = pair
            real = mp.im(x) == 0 and mp.im(y) == 0
            if ratio:
                if x == 0 or y == 0:
                    return False
                x, y = x / y, seen[0] if seen else x / y
            if not _close(x, y, a, b, at, log10, ratio):
                if number >= 3 and not real and seen:
                    continue  # where a root or logarithm leaves the real numbers
                return False
            seen.append(x)
        return len(seen) >= (2 if names else 1)


def _values(a: Node, b: Node, at: Mapping[str, Any], log10: bool) -> tuple[Any, Any] | None:
    # Both are asked, even if the first has a pole: whether one can be computed is no matter of
    # which comes first.
    x, y = (_finite(node, at, log10) for node in (a, b))
    return None if x is None or y is None else (x, y)


def _finite(node: Node, at: Mapping[str, Any], log10: bool) -> Any | None:
    """The value, None at a pole."""
    mp = context()
    try:
        value = numeric(node, at, log10)
    except (ZeroDivisionError, ValueError) as e:
        if isinstance(e, ValueError) and type(e) is not ValueError:
            raise
        return None
    return None if mp.isnan(value) else value


def _close(
    x: Any, y: Any, a: Node, b: Node, at: Mapping[str, Any], log10: bool, ratio: bool
) -> bool:
    mp = context()
    if mp.isinf(x) or mp.isinf(y):
        return bool(x == y)
    size, gap = max(abs(x), abs(y)), abs(x - y)
    if gap <= size * mp.mpf(_AGREE):
        return True
    if ratio or size > mp.mpf("1e-30"):
        return False
    # Tiny: the noise of a zero, which shrinks with more digits, or a tiny number, which doesn't.
    with mp.workdps(3 * _DIGITS):
        pair = _values(a, b, at, log10)
        return pair is not None and all(abs(v) <= size * mp.mpf(_AGREE) for v in pair if v)


def _alternates(node: Node) -> bool:
    """Whether it holds a power of a negative number or a factorial of a variable: whole numbers."""
    return any(
        (n.op == "pow" and n.args[1].symbols() and not n.args[0].symbols() and _negative(n.args[0]))
        or (n.op in ("fact", "dfact") and n.symbols())
        or (n.op == "fun" and n.value == "binom" and n.symbols())
        for n in node.walk()
    )


def _negative(node: Node) -> bool:
    value = exact(node)
    return value is not None and value < 0
