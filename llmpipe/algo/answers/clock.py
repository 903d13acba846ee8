"""Times of day and dates: "5:30 pm", "17:30", "2023-05-06", "May 6, 2023"."""

from __future__ import annotations

import re

from llmpipe.algo.answers.tree import Node

TIME = r"""(?<![\d:.,\w])\d{1,2}
    (?:(?::[0-5]\d){0,2}\ ?[ap]m(?![A-Za-z])|:0\d(?::[0-5]\d)?|:[0-5]\d:0\d)(?![\d:])"""
"""What can be nothing else than a time; "5:30" may be a ratio."""

_PARTS = re.compile(r"(\d{1,2})(?::(\d\d))?(?::(\d\d))? ?([ap]m)?")
_HALF = re.compile(
    r"(?<![\d.,])((?:1[0-2]|0?[1-9])(?::[0-5]\d){0,2})(?: |~)?(?:\\text ?\{)? ?\(?"
    r"([ap])(?:m|\. ?m\b\.?)(?![A-Za-z(^_])\)? ?\}?",
    re.IGNORECASE,
)
_O_CLOCK = re.compile(r"(?<![\d.,:])(\d{1,2}) ?(?:\\text ?\{)? ?o'? ?clock\b ?\}?", re.IGNORECASE)
_NAMED = re.compile(r"(?:12(?::00)? ?)?(?:\\text ?\{)? ?(noon|midday|midnight) ?\}?", re.IGNORECASE)
_HAN = re.compile(
    r"(上午|早上|早晨|凌晨|中午|下午|傍晚|晚上)?\s?(\d{1,2}) ?点(?:钟|整|(半)|(\d{1,2})分)?(?!\d)"
)
_AFTERNOON = frozenset(["中午", "下午", "傍晚", "晚上"])


def with_times(text: str) -> str:
    """The text with its times of day in one spelling: "5:30 P.M." as "5:30pm"."""
    if named := _NAMED.fullmatch(text):
        return "12:00am" if named[1].lower() == "midnight" else "12:00pm"
    if "点" in text:
        text = _HAN.sub(_from_chinese, text)
    lower = text.lower()
    if "clock" in lower:
        text = _O_CLOCK.sub(r"\1:00", text)
    if "m" in lower and ("a" in lower or "p" in lower):
        text = _HALF.sub(lambda m: f"{m[1]}{m[2].lower()}m", text)
    return text


def _from_chinese(match: re.Match[str]) -> str:
    half = "" if not match[1] else "pm" if match[1] in _AFTERNOON else "am"
    minutes = 30 if match[3] else int(match[4] or 0)
    hour = int(match[2])
    return f"{hour}:{minutes:02}{half if hour <= 12 else ''}"


def time(text: str) -> Node | None:
    """A time of day, as `with_times` spells it; None if there is none such."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    return _time(hour, minute, second, match[4] or "")


def _time(hour: int, minute: int, second: int, half: str) -> Node | None:
    """``value`` is the hour from 0 to 11, minute, second, and am, pm, or "" if it isn't said."""
    if hour > 24 or (half and not 1 <= hour <= 12):
        return None
    if not half and (hour > 12 or hour == 0):
        half = "pm" if 12 < hour < 24 else "am"
    return Node("clock", value=(hour % 12, minute, second, half))


def same_time(a: Node, b: Node) -> bool:
    """Whether two times are the same; morning or afternoon may go without saying.

    A ratio is a time if it can be one, and a whole number an hour.
    """
    x, y = _as_time(a), _as_time(b)
    if x is None or y is None:
        return False
    halves = {x.value[3], y.value[3]}
    return bool(x.value[:3] == y.value[:3]) and (len(halves) == 1 or "" in halves)


def _as_time(node: Node) -> Node | None:
    if node.op == "clock":
        return node
    parts = node.args if node.op == "ratio" else (node,)
    if len(parts) > 3 or any(n.op != "num" or n.value[1] is not None for n in parts):
        return None
    figures = [n.value[0] for n in parts]
    if any(v.denominator != 1 or not 0 <= v < 60 for v in figures):
        return None
    hour, minute, second = (*map(int, figures), 0, 0)[:3]
    return _time(hour, minute, second, "")


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_YEAR} ?[-/] ?(?P<month>\d{{1,2}}) ?[-/] ?(?P<day>\d{{1,2}})",
        rf"(?P<month>\d{{1,2}}) ?[/-] ?(?P<day>\d{{1,2}}) ?[/-] ?{_YEAR}",
        rf"{_MONTH} ?{_DAY}(?:,? ?{_YEAR})?",
        rf"(?:the )?{_DAY} ?(?:of )?{_MONTH}(?:,? ?{_YEAR})?",
        rf"(?:{_YEAR} ?年)? ?(?P<month>\d{{1,2}}) ?月 ?(?P<day>\d{{1,2}}) ?[日号]?",
    )
)


def date(text: str) -> str | None:
    """A day in one spelling: "2023-05-06", "-05-06" without its year; None for other texts.

    Of three numbers with slashes the first is the month, unless it can't be one.
    """
    if len(text) > 40 or not any(c.isdigit() for c in text):
        return None
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            name = match["month"]
            month = int(name) if name.isdigit() else _MONTHS.index(name[:3].lower()) + 1
            day = int(match["day"])
            if month > 12 and pattern is _DATES[1]:
                month, day = day, month
            if 1 <= month <= 12 and 1 <= day <= 31:
                return f"{match['year'] or ''}-{month:02}-{day:02}"
    return None
