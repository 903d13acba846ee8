"""Characters that look alike as one, and those of mathematics as LaTeX."""

from __future__ import annotations

import re
import unicodedata

# Unicode. NFKC alone would make x² into x2 and 2½ into 21⁄2, so what it does is seen to character
# by character.
_RAISE, _LOWER, _END = "\ue000", "\ue001", "\ue002"
_SYMBOLS = {
    "−": "-", "–": "-", "‐": "-", "‑": "-", "‒": "-", "⁄": "/", "∕": "/", "∗": "*", "∶": ":",
    "‘": "'", "’": "'", "“": '"', "”": '"', "′": "'", "´": "'",
    "×": r"\times ", "⋅": r"\cdot ", "·": r"\cdot ", "÷": r"\div ", "±": r"\pm ", "∓": r"\mp ",
    "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\neq ", "≈": r"\approx ",
    "≡": r"\equiv ", "∼": r"\sim ", "≅": r"\cong ", "∝": r"\propto ", "∞": r"\infty ",
    "∑": r"\sum ", "∏": r"\prod ", "∫": r"\int ", "∂": r"\partial ",
    "∠": r"\angle ", "△": r"\triangle ", "⊥": r"\perp ", "∥": r"\parallel ", "→": r"\to ",
    "∈": r"\in ", "∪": r"\cup ", "∩": r"\cap ", "⊂": r"\subset ", "⊆": r"\subseteq ",
    "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ", "⌉": r"\rceil ",
    "°": r"^\circ ", "º": r"^\circ ",
    "\u200b": "", "\ufeff": "", "\u00ad": "", "\u200e": "", "\u200f": "",
    "。": ".", "｡": ".", "．": ".", "√": r"\sqrt ",
    _RAISE: " ", _LOWER: " ", _END: " ",
}  # fmt: skip
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)$")


_ROOT = re.compile(r"√\s*(\d+(?:\.\d+)?)")  # the whole number is under it, not its first digit


class _Characters(dict[int, str]):
    """What each character is written as; worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = written = _written(chr(code))
        return written


def _written(char: str) -> str:
    if char.isascii():
        return char
    if char in _SYMBOLS:
        return _SYMBOLS[char]
    greek = _GREEK.match(unicodedata.name(char, ""))
    if greek:
        name = greek[2].lower().replace("lamda", "lambda")
        return rf"\{name if greek[1] == 'SMALL' else name.capitalize()} "
    folded = unicodedata.normalize("NFKC", char)
    if folded == char:
        return char
    written = "".join(_written(c) for c in folded)
    match unicodedata.decomposition(char).partition(" ")[0]:
        case "<super>":
            return _RAISE + written + _END
        case "<sub>":
            return _LOWER + written + _END
        case "<fraction>" | "<circle>" | "<compat>" | "<square>":
            return f" {written} "
    return written


_CHARACTERS = _Characters()


def plain(text: str) -> str:
    """Characters that look alike as one, powers and indices as ``^{..}`` and ``_{..}``."""
    text = unicodedata.normalize("NFC", text)
    if "√" in text:
        text = _ROOT.sub(r"\\sqrt{\1}", text)
    text = text.translate(_CHARACTERS)
    text = text.replace(_END + _RAISE, "").replace(_END + _LOWER, "")
    return text.replace(_RAISE, "^{").replace(_LOWER, "_{").replace(_END, "}")
