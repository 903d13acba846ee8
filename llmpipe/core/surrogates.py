"""Halves of characters: JSON can write one (``"\\ud800"``), UTF-8 and so every file here can't."""

from __future__ import annotations


def has_half(text: str) -> bool:
    """Whether there is half a character in it."""
    return any("\ud800" <= c <= "\udfff" for c in text)


def without_halves(text: str) -> str:
    """The text with U+FFFD in the place of each half; two that belong together are joined."""
    if not has_half(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
