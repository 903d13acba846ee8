"""What a tree of numbers is worth: exactly where it is rational, else to many digits.

Sizes are looked at before anything is computed: a power tower or a huge factorial costs nothing
and raises `TooLargeError`.
"""

from __future__ import annotations

import math
import threading
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError, names

_BITS = 100_000  # of an exact number
_FACTORIAL = 3000
_MAGNITUDE = 1e6  # bits before or after the point of an inexact one

_local = threading.local()


def context() -> Any:
    """This thread's mpmath context: its precision is nobody else's."""
    if not hasattr(_local, "context"):
        import mpmath

        _local.context = mpmath.mp.clone()
    return _local.context


def exact(node: Node) -> Fraction | None:
    """The rational number that a tree is; None where it isn't plainly one.

    Raises:
        TooLargeError: it has more digits than are ever computed.
        ZeroDivisionError: it is no number.
    """
    rule = _EXACT.get(node.op)
    return rule(node) if rule else None


def _operands(node: Node) -> list[Fraction] | None:
    found = []
    for arg in node.args:
        value = exact(arg)
        if value is None:
            return None
        found.append(value)
    return found


def _sized(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > 2 * _BITS:
        raise TooLargeError("a number of too many digits")
    return value


def _fold(fold: Callable[[list[Fraction]], Fraction]) -> Callable[[Node], Fraction | None]:
    def rule(node: Node) -> Fraction | None:
        operands = _operands(node)
        return None if operands is None else _sized(fold(operands))

    return rule


def _power(node: Node) -> Fraction | None:
    operands = _operands(node)
    if operands is None:
        return None
    base, exponent = operands
    if base in (0, 1) and exponent > 0:
        return base
    if exponent.denominator != 1:
        return _root(base, exponent)
    size = base.numerator.bit_length() + base.denominator.bit_length()
    if abs(exponent) * size > _BITS:
        raise TooLargeError("a power of too many digits")
    return base ** int(exponent)


def _root(base: Fraction, exponent: Fraction) -> Fraction | None:
    """Square roots of squares; others are left to the numeric comparison."""
    if exponent.denominator != 2 or base < 0 or abs(exponent.numerator) > 64:
        return None
    top, bottom = math.isqrt(base.numerator), math.isqrt(base.denominator)
    if top * top != base.numerator or bottom * bottom != base.denominator:
        return None
    return _sized(Fraction(top, bottom)) ** exponent.numerator


def _factorial(node: Node) -> Fraction | None:
    value = exact(node.args[0])
    if value is None or value.denominator != 1:
        return None
    if value < 0:
        raise ZeroDivisionError
    if value > _FACTORIAL:
        raise TooLargeError("a factorial of too many digits")
    step = 1 if node.op == "fact" else 2
    return Fraction(math.prod(range(int(value), 0, -step)))


def _ratio(node: Node) -> Fraction | None:
    operands = _operands(node)
    return operands[0] / operands[1] if operands and len(operands) == 2 else None


def _based(node: Node) -> Fraction:
    digits, base = node.value
    return Fraction(int(digits, base))


def _function(node: Node) -> Fraction | None:
    operands = _operands(node) if node.value in _WHOLE or node.value == "root" else None
    if not operands:
        return None
    if node.value == "root":
        base, index = operands
        return _root(base, Fraction(1, 2)) if index == 2 else None
    if node.value not in ("abs", "floor", "ceil", "max", "min") and any(
        x.denominator != 1 for x in operands
    ):
        return None
    try:
        return _sized(Fraction(_WHOLE[node.value](*operands)))
    except TypeError as e:
        raise UnreadableError(f"{node.value} of {len(operands)} numbers") from e


def _binomial(n: Fraction, k: Fraction) -> int:
    if n > _FACTORIAL:
        raise TooLargeError("a binomial of too many digits")
    return math.comb(int(n), int(k)) if n >= 0 and k >= 0 else 0


_WHOLE: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "max": lambda *xs: max(xs),
    "min": lambda *xs: min(xs),
    "gcd": lambda *xs: math.gcd(*map(int, xs)),
    "lcm": lambda *xs: math.lcm(*map(int, xs)),
    "binom": _binomial,
}
_EXACT: Mapping[str, Callable[[Node], Fraction | None]] = {
    "num": lambda node: node.value[0],
    "neg": _fold(lambda xs: -xs[0]),
    "add": _fold(lambda xs: sum(xs, Fraction(0))),
    "mul": _fold(lambda xs: math.prod(xs, start=Fraction(1))),
    "div": _fold(lambda xs: xs[0] / xs[1]),
    "ratio": _ratio,
    "pct": _fold(lambda xs: xs[0] / 100),
    "pow": _power,
    "fact": _factorial,
    "dfact": _factorial,
    "base": _based,
    "fun": _function,
}  # fmt: skip


def numeric(node: Node, at: Mapping[str, Any], log10: bool = False) -> Any:
    r"""The value where the variables are ``at``, an mpmath number of the context's precision.

    ``log10`` says what `\log` without a base is: of base ten, or natural.

    Raises:
        UnreadableError: it is no number.
        TooLargeError, ZeroDivisionError: it can't be computed.
    """
    mp = context()
    op = node.op
    if op == "num":
        value = node.value[0]
        return mp.mpf(value.numerator) / value.denominator
    if op == "sym":
        return at[node.value]
    if op == "const":
        return {"pi": mp.pi, "e": mp.e, "i": mp.j, "oo": mp.inf}[node.value] * 1
    if op == "base":
        return mp.mpf(int(exact(node) or 0))
    if op not in _NUMERIC:
        raise UnreadableError(f"{op} is no number")
    xs = [numeric(arg, at, log10) for arg in node.args]
    if op == "fun" and node.value == "log" and len(xs) == 1 and log10:
        return mp.log(xs[0]) / mp.log(10)
    value = _NUMERIC[op](mp, node, xs)
    if mp.isinf(value) and not any(mp.isinf(x) for x in xs):
        raise ZeroDivisionError
    return value


def _numeric_power(mp: Any, node: Node, xs: list[Any]) -> Any:
    base, exponent = xs
    if base != 0 and abs(mp.log(abs(base), 2) * exponent) > _MAGNITUDE:
        raise TooLargeError("a power of too many digits")
    if base == 0 and mp.re(exponent) <= 0:
        raise ZeroDivisionError
    return mp.power(base, exponent)


def _numeric_root(mp: Any, base: Any, index: Any) -> Any:
    if mp.im(base) == 0 and mp.re(base) < 0 and mp.isint(index) and int(mp.re(index)) % 2:
        return -mp.power(-base, 1 / index)  # the real root of a negative number
    return mp.sqrt(base) if index == 2 else mp.power(base, 1 / index)


def _numeric_factorial(mp: Any, node: Node, xs: list[Any]) -> Any:
    if abs(xs[0]) > _FACTORIAL:
        raise TooLargeError("a factorial of too many digits")
    return mp.factorial(xs[0]) if node.op == "fact" else mp.fac2(xs[0])


def _numeric_function(mp: Any, node: Node, xs: list[Any]) -> Any:
    name = _ALIASES.get(node.value, node.value)
    if any(abs(x) > _MAGNITUDE for x in xs) and name not in ("root", "abs", "max", "min", "ln"):
        raise TooLargeError("a function of too large a number")
    if name not in _FUNCTIONS:
        raise UnreadableError(f"{name} can't be computed")
    try:
        return _FUNCTIONS[name](mp, *xs)
    except TypeError as e:
        raise UnreadableError(f"{name} of {len(xs)} numbers") from e


def _applied(mp: Any, node: Node, xs: list[Any]) -> Any:
    """An unknown function: some smooth one, always the same."""
    seed = zlib.crc32(node.value.encode()) % 1_000_003
    return mp.cos(sum(x * (seed % 997 + 7 * n) / 499 for n, x in enumerate(xs, 1)) + seed)


def _binom(mp: Any, n: Any, k: Any) -> Any:
    if abs(n) > _FACTORIAL:
        raise TooLargeError("a binomial of too many digits")
    return mp.binomial(n, k)


_ALIASES = {
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "cot", "sinh", "cosh", "tanh")},
    **{f"ar{n}": f"arc{n}" for n in ("sinh", "cosh", "tanh")},
    "log": "ln",
}
_CIRCULAR = names("sin cos tan cot sec csc sinh cosh tanh coth sech csch")
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{
        name: (lambda mp, x, f=name: getattr(mp, f)(x))
        for name in (*_CIRCULAR, "exp", "floor", "ceil")
    },
    **{f"arc{name}": (lambda mp, x, f=f"a{name}": getattr(mp, f)(x)) for name in _CIRCULAR},
    "ln": lambda mp, x, base=None: mp.log(x) if base is None else mp.log(x) / mp.log(base),
    "lg": lambda mp, x: mp.log(x) / mp.log(10),
    "abs": lambda mp, x: abs(x),
    "root": _numeric_root,
    "cbrt": lambda mp, x: _numeric_root(mp, x, mp.mpf(3)),
    "sgn": lambda mp, x: mp.sign(x),
    "min": lambda mp, *xs: min(xs),
    "max": lambda mp, *xs: max(xs),
    "binom": _binom,
}
_NUMERIC: Mapping[str, Callable[..., Any]] = {
    "neg": lambda mp, node, xs: -xs[0],
    "add": lambda mp, node, xs: sum(xs[1:], xs[0]),
    "mul": lambda mp, node, xs: mp.mpf(1) * math.prod(xs[1:], start=xs[0]),
    "div": lambda mp, node, xs: xs[0] / xs[1],
    "pct": lambda mp, node, xs: xs[0] / 100,
    "deg": lambda mp, node, xs: xs[0] * mp.pi / 180,
    "pow": _numeric_power,
    "fact": _numeric_factorial,
    "dfact": _numeric_factorial,
    "fun": _numeric_function,
    "apply": _applied,
    "ratio": lambda mp, node, xs: xs[0] / xs[1],
    "unit": lambda mp, node, xs: xs[0],
}  # fmt: skip
