"""Numbers in words, English and Chinese, and the words that change the number after them."""

from __future__ import annotations

import re

from llmpipe.algo.answers.number_words import spelled_out
from llmpipe.algo.answers.units import is_unit

_REST = re.compile(r"(?:[a-z%.²³^/0-9-]+ ?){1,4}", re.IGNORECASE)
_MORE = re.compile(r"(?:and|or|to|by|in|over|plus|minus|times)\b", re.IGNORECASE)  # "one to one"
_WORD = re.compile(r"[A-Za-z]+")
_MOST_WORDS = 12
_PARTS = {"half": "1/2", "third": "1/3", "quarter": "1/4"}
_SIGNS = {"negative": "-", "minus": "-", "positive": "", "plus": "", "负": "-", "正": ""}
_SIGNED = re.compile(
    r"(negative|minus|positive|plus|负|正) ?(?=[\d.\\]|[a-z]+|[\u4e00-\u9fff])", re.I
)
_ACTS = (
    (re.compile(r"(?:one[- ])?half of (?=\S)", re.I), r"\frac{1}{2}\cdot "),
    (re.compile(r"(?:twice|double) (?=\S)", re.I), r"2\cdot "),
    (re.compile(r"(?:triple|thrice) (?=\S)", re.I), r"3\cdot "),
    (re.compile(r"(?:the )?(?:square )?root of (?=\S)|根号(?=\S)", re.I), r"\sqrt "),
    (re.compile(r"(?:the )?cube root of (?=\S)", re.I), r"\sqrt[3] "),
)
_VALUE = re.compile(r"\d+(?:\.\d+)?(?: ?/ ?\d+)?")
_HALF = re.compile(r"(?:a |one[- ])?half(?: an?(?= [A-Za-z]+$)|(?= of )|$)", re.IGNORECASE)
_A_DOZEN = re.compile(r"(?:a|one) dozen\b", re.IGNORECASE)
_ONE = re.compile(r"a (?=hundred|thousand|million|billion|third|quarter|fourth|fifth|tenth)", re.I)
_AND_A_PART = re.compile(
    r"(\w+(?:-\w+)?) and (?:a|one)[- ](half|third|quarter)\b(.*)", re.IGNORECASE
)


def spelled(text: str) -> str | None:
    """The answer in figures, where it begins with a number in words: "five apples" as "5 apples".

    "Negative 5" is -5, "half of 5" a half times 5. None where there is nothing to change.
    """
    if len(text) > 80 or not text or text[0] in "\\({[":
        return None
    if match := _SIGNED.match(text):
        value = _in_figures(text[match.end() :])
        return (
            f"{_SIGNS[match[1].lower()]}{value}" if value[0].isdigit() or value[0] == "\\" else None
        )
    for pattern, act in _ACTS:
        if match := pattern.match(text):
            value = _in_figures(text[match.end() :])
            return f"{act}{{{value}}}" if _VALUE.fullmatch(value) else None
    if match := _AND_A_PART.fullmatch(text):
        whole = match[1] if match[1].isdigit() else spelled_out(match[1])
        return f"{whole} {_PARTS[match[2].lower()]} {match[3].strip()}".strip() if whole else None
    if text[0].isascii():
        return _english(text) if text[0].isalpha() else None
    return _chinese(text)


def _in_figures(text: str) -> str:
    return spelled(text) or text


def _english(text: str) -> str | None:
    if match := _HALF.match(text):
        return f"1/2 {text[match.end() :]}".strip()
    if match := _A_DOZEN.match(text):
        return f"12 {text[match.end() :]}".strip()
    if match := _ONE.match(text):
        text = f"one {text[match.end() :]}"
    ends = [m.end() for m in _WORD.finditer(text)][:_MOST_WORDS]
    for end in reversed(ends):
        value, rest = spelled_out(text[:end]), text[end:].strip()
        if value is None:
            continue
        apart = not rest or (text[end] == " " and _REST.fullmatch(rest) and not _MORE.match(rest))
        if not apart or (rest and spelled_out(rest.split()[0])):  # "five six"
            return None
        return f"{value} {rest}".strip()
    return None


_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_BIG = {"万": 10**4, "亿": 10**8}
_NUMERAL = "[零〇一二三四五六七八九十百千万亿两]+"
_CHINESE = re.compile(
    rf"(?:(?P<under>{_NUMERAL})分之(?P<top>{_NUMERAL})"
    rf"|(?P<whole>{_NUMERAL})(?:点(?P<places>[零〇一二三四五六七八九]+))?)(?P<rest>.*)"
)
_COUNTED = re.compile(
    "[个只名位人条本张件块支辆道次组种页棵头匹把杯瓶箱袋盒朵台间双对套篇颗枚].{0,4}"
)


def _chinese(text: str) -> str | None:
    match = _CHINESE.fullmatch(text)
    if match is None or len(text) > 20:
        return None
    rest = match["rest"]
    if rest and not (is_unit(rest) or _COUNTED.fullmatch(rest)):
        return None
    if match["under"]:
        under, top = _han_value(match["under"]), _han_value(match["top"])
        if not under or top is None:
            return None
        return f"{top}{'%' if under == 100 else f'/{under}'}{_as_text(rest)}"
    whole = _han_value(match["whole"])
    if whole is None:
        return None
    places = "".join(str(_DIGITS[c]) for c in match["places"] or "")
    return f"{whole}{'.' if places else ''}{places}{_as_text(rest)}"


def _as_text(rest: str) -> str:
    return f"\\text{{{rest}}}" if rest else ""


def _han_value(text: str) -> int | None:
    total = section = 0
    digit: int | None = None
    for c in text:
        if c in _DIGITS:
            if digit:
                return None  # digits side by side
            digit = _DIGITS[c]
        elif c in _PLACES:
            section += (1 if digit is None else digit) * _PLACES[c]
            digit = None
        else:
            total = (total + section + (digit or 0)) * _BIG[c]
            section, digit = 0, None
    return total + section + (digit or 0)
