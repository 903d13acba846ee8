r"""Units in the spelling that the grammar reads: after the value, in `\text{}`."""

from __future__ import annotations

import re

from llmpipe.algo.answers.units import is_unit

_FIGURE = r"(?:\d{1,3}(?:(?:,|\{,\}|,?\\[,!]) ?\d{3})+|\d+)(?:\.\d+)?|\.\d+"
_SIGN = r"(?:US)?\\\$|€|£|¥|₹|(?<![A-Za-z])Rs\.?"
_PREFIXED = re.compile(
    rf"(-?) ?({_SIGN})\s*(-?)({_FIGURE})"
    r"(?: ?(?:\\text ?\{)? ?(hundred|thousand|million|billion|trillion|[kKMB]|bn)\b(?: ?\})?)?"
    r"(?!\s*\\(?:[dt]?frac|sqrt|pi|cdot|times|div|left)|\s*[\^_(*+]|\s*/\s*\d|[A-Za-z\d])"
)
_SUFFIXED = re.compile(rf"(?<=[\d}}])\s*({_SIGN}|¢|￠)(?!\s*\d)")
_LONE_DOLLAR = re.compile(rf"^\s*(-?)(?:US)?\$(?=\s*-?(?:{_FIGURE}))")
_NAMES = {"€": "euros", "£": "gbp", "¥": "yuanyen", "₹": "rupees", "¢": "cents", "￠": "cents"}
_MULTIPLES = {"k": "thousand", "K": "thousand", "M": "million", "B": "billion", "bn": "billion"}


def with_currency(text: str) -> str:
    r"""The text with its currency signs as units: "\$5 million" as "5\text{ million dollars}".

    A dollar sign that isn't escaped is one if it is the only one.
    """
    if text.isascii() and "$" not in text and "Rs" not in text:
        return text
    if text.count("$") == 1:
        text = _LONE_DOLLAR.sub(r"\1\\$", text)
    return _SUFFIXED.sub(lambda m: f"\\text{{ {_name(m[1])}}}", _PREFIXED.sub(_after, text))


def _after(match: re.Match[str]) -> str:
    before, sign, minus, figure, multiple = match.groups()
    scale = f"{_MULTIPLES.get(multiple, multiple)} " if multiple else ""
    return f"{before or minus}{figure}\\text{{ {scale}{_name(sign)}}}"


def _name(sign: str) -> str:
    return "rupees" if sign.startswith("Rs") else _NAMES.get(sign, "dollars")


_HAN = re.compile("[\u4e00-\u9fff]")
_HAN_RATE = re.compile(
    r"^每(小时|分钟?|秒钟?|天|日|年|月|周|千克|公斤|米|人|个) ?(-?\d.*[\u4e00-\u9fff])$"
)
_HAN_UNIT = re.compile(
    r"(?<=[\d})\]%]) ?((?!的)[\u4e00-\u9fff][\u4e00-\u9fffA-Za-z/·]*)(?![^{}]*\})"
)
_HAN_BEFORE = re.compile(r"^(?:答[:：]?|大?约|共有?|一共|第)\s?(?=[-\d\\.])")
_HAN_TEXT = re.compile(r"\\text ?\{ ?(-?\d[^{}]*[\u4e00-\u9fff][^{}]*)\}")
_QUOTIENT = re.compile(
    r"(?<=[\d}]) ((?:k?m|k?g|k?J|k?N|L|mol|C|V|k?W) ?/ ?(?:s|h|k?g|m|K|L|min|mol|C|A)"
    r"(?: ?\^ ?\{? ?[23] ?\}?)?)(?=$| *[,;)]| [A-Za-z]{3})"
)
# Of several letters, one of them a capital: "Pa" is no product where a space stands before it.
_CAPITALS = re.compile(
    r"(?<=[\d}]) ([kMGm]?(?:Pa|Hz)|[km][NVAWJ]|[MG][WJ]|[kMG]?eV|Wb|Bq|dB|mL|dL|kWh|Wh)"
    r"(?=$| *[,;)])"
)
_MIN = re.compile(r"(?<=[\d}])\s*(?:\\text ?\{ ?min[s.]* ?\}|mins?\b(?!\s*[({\\_]))")  # no minimum
_WITH_PART = re.compile(r"(?<=\d) ?([hmg]) ?(?=\d+(?:\.\d+)? ?(?:cm|mm|dm|min|s|sec|mg|ml|g)\b)")
_FEET = re.compile(r"(\d+) ?' ?(\d+) ?(?:\"|'')")
_MICRO = re.compile(r"\\mu ?\\text ?\{ ?(?=[msgAFLCVW] ?\})")
_OHM = re.compile(
    r"(?<=\d) ?(?:\\text ?\{ ?)?([kM]?) ?\}? ?(?:\\text ?\{ ?)?(?:\\Omega|Ω) ?\}?(?![_^(A-Za-z])"
)
_PLAIN_POWER = re.compile(r"(?<=\d)(?: (m)| ?([kcdm]m|ft|yd|mi))([23])(?![\d.A-Za-z])")
_GROUP = r"\{ ?(\\text ?\{)?([A-Za-z ]+)\}?(?: ?\^ ?\{?([23])\}?)? ?\}"
_FRACTION = re.compile(rf"(?<=[\d}}) ]) ?\\frac ?{_GROUP} ?{_GROUP}")
_TEXT_POWER = re.compile(r"(\\text ?\{[^{}]*)\^ ?\{ ?(-?\d+) ?\}")


def with_units(text: str) -> str:
    r"""The text with units that are written otherwise in `\text{}`: "5 m/s", "5平方米"."""
    if "/" in text:
        text = _QUOTIENT.sub(lambda m: f"\\text{{ {re.sub('[{} ]', '', m[1])}}}", text)
    text = _WITH_PART.sub(r"\\text{\1} ", text)
    if " " in text:
        text = _CAPITALS.sub(r"\\text{ \1}", text)
    if "min" in text:
        text = _MIN.sub(r"\\text{ minutes}", text)
    if "\\text" in text:
        text = _TEXT_POWER.sub(r"\1^\2", text)
        text = _MICRO.sub(r"\\text{μ", text)
    if "\\Omega" in text or "Ω" in text:
        text = _OHM.sub(r"\\text{\1Ω}", text)
    if "'" in text and (feet := _FEET.fullmatch(text)):
        return f"{feet[1]}\\text{{ feet}} {feet[2]}\\text{{ inches}}"
    if text.endswith(("2", "3")):
        text = _PLAIN_POWER.sub(r"\\text{\1\2}^{\3}", text)
    if "\\frac" in text:
        text = _FRACTION.sub(_quotient, text)
    if not text.isascii() and _HAN.search(text):
        text = _HAN_RATE.sub(r"\2/\1", text)
        text = _HAN_BEFORE.sub("", _HAN_TEXT.sub(r"\1", text))
        text = _HAN_UNIT.sub(r"\\text{\1}", text)
    return text


def _quotient(match: re.Match[str]) -> str:
    r"""5\frac{\text{m}}{\text{s}}, but not 5\frac{m}{s}, which may be a formula."""
    over, top, power, under, bottom, other = match.groups()
    top, bottom = top.strip(), bottom.strip()
    sure = over or under or (len(top) > 1 and len(bottom) > 1)
    if not (sure and is_unit(top) and is_unit(bottom)):
        return match.group()
    powers = [f"^{p}" if p else "" for p in (power, other)]
    return f"\\text{{ {top}{powers[0]}/{bottom}{powers[1]}}}"
