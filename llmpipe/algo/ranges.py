"""Ranges as they are written on the command line: "A:B", "A:", ":B"."""

from __future__ import annotations

from llmpipe.core.errors import UserError


def parse_range(text: str, flag: str, example: str) -> tuple[float, float]:
    """The ends of "A:B"; an end that is left out is infinite.

    Raises:
        UserError: it is no range, or ends before it begins.
    """
    low, mark, high = text.partition(":")
    try:
        ends = float(low or "-inf"), float(high or "inf")
    except ValueError:
        ends = 1.0, 0.0
    if not mark or not (low or high) or not ends[0] <= ends[1]:
        raise UserError(f"{flag} {text!r} is no range A:B", f"{flag} {example}")
    return ends
