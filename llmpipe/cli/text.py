"""Text of rows on a terminal."""

from __future__ import annotations

import re

from rich.markup import escape as as_markup

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """Text that can't command the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def escape(text: str) -> str:
    """Text that can't command the terminal or pass for markup."""
    return as_markup(printable(text))
