"""The scripts that a text is written in."""

from __future__ import annotations

import functools
import unicodedata

# Latin and Greek letters are mathematics as well as words.
_ANYWHERE = frozenset(["LATIN", "GREEK", "MODIFIER"])
_KINDS = ("LETTER", "IDEOGRAPH", "SYLLABLE", "CHARACTER")


def scripts(text: str) -> dict[str, str]:
    """The scripts of a text's letters, Latin and Greek aside, each with a letter of it.

    Named as Unicode names its letters: "CJK", "CYRILLIC". Letters that are symbols by Unicode's
    compatibility forms (a bold x, a micro sign, an aleph of set theory) are of none.
    """
    if text.isascii():
        return {}
    found: dict[str, str] = {}
    for char in sorted(set(text)):
        if script := _script(char):
            found.setdefault(script, char)
    return found


@functools.lru_cache(maxsize=1 << 16)
def _script(char: str) -> str | None:
    if char.isascii() or not char.isalpha() or unicodedata.normalize("NFKC", char) != char:
        return None
    name = unicodedata.name(char, "")
    first = name.split(" ")[0]
    if first in _ANYWHERE or not any(kind in name for kind in _KINDS):
        return None
    return "CJK" if first == "IDEOGRAPHIC" else first
