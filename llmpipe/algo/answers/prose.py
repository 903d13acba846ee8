"""Words before or after a value that bound it, deny it, or say which way it goes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmpipe.algo.answers.words import has_verb

_SIGNS = {
    ">=": r"(?:at (?:the )?least|(?:no|not) (?:less|fewer|smaller|lower) than|not below"
    r"|(?:greater|more|larger|bigger|higher) than or equal to)",
    "<=": r"(?:at (?:the )?most|(?:no|not) (?:more|greater|larger|bigger|higher) than|not above"
    r"|(?:less|fewer|smaller|lower) than or equal to|not exceeding|up to|not over)",
    ">": r"(?:(?:strictly )?(?:more|greater|larger|bigger|higher) than|over|above|exceeding"
    r"|exceeds)",
    "<": r"(?:(?:strictly )?(?:less|fewer|smaller|lower) than|under|below)",
    "!=": r"(?:not equal to|not|never|isn't|aren't|can't be|cannot be|anything but|other than"
    r"|different from|does not equal|doesn't equal)",
}
_HAN_SIGNS = {
    ">=": "大于或?等于|不小于|不少于|不低于|至少|最少|不下于",
    "<=": "小于或?等于|不大于|不超过|不多于|不高于|至多|最多",
    ">": "大于|多于|超过|高于",
    "<": "小于|少于|低于|不足|不到|不满",
    "!=": "不等于|不是|不为|并非|不可能是",
}
_AFTER = {
    ">=": r"(?:,? ?(?:or|and) (?:more|greater|larger|above|higher|over|up)|,? at least|以上)",
    "<=": r"(?:,? ?(?:or|and) (?:less|fewer|smaller|below|lower|under)|,? at most|以下|以内)",
}
_SUBJECT = (
    r"(?:(?:it|this|that|there|they|(?:the|its|their) (?:[A-Za-z]+ ){1,3})"
    r" ?(?:is|are|was|must be|can be|should be|may be|has to be|have to be)? ?"
    r"|(?P<name>[A-Za-z])(?: ?=| is| must be| can be| should be| has to be|的?值)? ?)?"
)
_BEFORE = re.compile(
    _SUBJECT
    + "(?:is |are |be )?(?:"
    + "|".join(
        f"(?P<s{n}>{english}(?= |\\\\)|{han})"
        for n, (english, han) in enumerate((_SIGNS[sign], _HAN_SIGNS[sign]) for sign in _SIGNS)
    )
    + r") ?(?P<value>[^=<>]*)",
    re.IGNORECASE,
)
_BEHIND = tuple(
    (sign, re.compile(rf"(?P<value>[^=<>]*?) ?{words}(?P<unit>.*)", re.IGNORECASE))
    for sign, words in _AFTER.items()
)
_JOINT = re.compile(
    r",? (?:and|but) (?!(?:more|greater|larger|above|higher|over|up|less|fewer|smaller|below|lower"
    r"|under)$)"
)
_BETWEEN = re.compile(r"(?:strictly )?between (?P<low>[^,]+?) and (?P<high>[^,]+)", re.IGNORECASE)
_VALUE = re.compile(
    r"\d|\\(?:frac|sqrt|pi|infty)|^[a-z]$|^(?:zero|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|[零一二三四五六七八九十百两]+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """``value`` in words or figures, ``name`` of the variable or "x" if it has none."""

    sign: str
    value: str
    name: str | None = None


def bounds(text: str) -> tuple[Bound, ...]:
    """What words say of a value instead of giving it: "at least 5", "5 or more", "not 5".

    Two of them for "between 3 and 5". None for other texts.
    """
    if len(text) > 120 or not (" " in text or not text.isascii()):
        return ()
    if match := _BETWEEN.fullmatch(text):
        return _checked(Bound(">", match["low"]), Bound("<", match["high"]))
    parts = _JOINT.split(text)
    found = [_bound(part) for part in parts] if len(parts) == 2 else [_bound(text)]
    return _checked(*found)


def _bound(text: str) -> Bound | None:
    if match := _BEFORE.fullmatch(text):
        sign = next(s for n, s in enumerate(_SIGNS) if match[f"s{n}"])
        return Bound(sign, match["value"], match["name"])
    for sign, pattern in _BEHIND:
        if match := pattern.fullmatch(text):
            return Bound(sign, f"{match['value']}{match['unit']}")
    return None


def _checked(*found: Bound | None) -> tuple[Bound, ...]:
    known = tuple(
        bound
        for bound in found
        if bound and _VALUE.search(bound.value) and not has_verb(bound.value)
    )
    return known if len(known) == len(found) else ()


# Words that say which way a value goes: two answers with opposite ones differ.

_OPPOSITES = (
    ("profits? gain(?:s|ed)? earn(?:s|ed|ings)? w[io]ns? surplus 盈利 赚 盈余",
     "loss(?:es)? los[et]s? deficit shortfall 亏损 亏 赔"),
    ("increas(?:e|es|ed|ing) rise[sn]? rose growth grew 增加 上升 增长 提高 涨",
     "decreas(?:e|es|ed|ing) declin(?:e|es|ed) drop(?:s|ped)? f[ae]ll(?:s|en)? reduc(?:tion|ed)"
     " 减少 下降 降低 跌"),
    ("more higher", "less fewer lower"),
    ("up(?:wards?)?", "down(?:wards?)?"),
    ("(?<!counter)(?<!counter-)(?<!anti)(?<!anti-)clockwise (?<!逆)顺时针",
     "(?:counter|anti)-?clockwise 逆时针"),
    ("left(?:wards?)? [向往偏]左", "right(?:wards?)? [向往偏]右"),
    ("north(?:east|west|wards?|ern)? [向往偏]北", "south(?:east|west|wards?|ern)? [向往偏]南"),
    ("(?:north|south)?east(?:wards?|ern)? [向往偏]东",
     "(?:north|south)?west(?:wards?|ern)? [向往偏]西"),
    ("before earlier ago 以?前 之前", "after later hence 以?后 之后"),
    ("maximum maximal max greatest largest biggest highest 最大",
     "minimum minimal min least smallest lowest 最小"),
    ("inside interior", "outside exterior"),
    ("above", "below beneath"),
    ("deposit(?:s|ed)? credit", "withdraw(?:s|al|als|n)? withdrew debit"),
    ("faster", "slower"), ("older", "younger"), ("longer taller", "shorter"), ("heads", "tails"),
    ("boys?", "girls?"), ("m[ae]n males?", "wom[ae]n females?"), ("adults?", "child(?:ren)?"),
    ("odd", "even"), ("hot(?:ter)? warmer", "cold(?:er)? cooler"),
)  # fmt: skip
_SIDES = [side for pair in _OPPOSITES for side in pair]


def _alternatives(side: str) -> str:
    words = side.split(" ")
    latin = "|".join(w for w in words if w.isascii())
    han = "|".join(w for w in words if not w.isascii())
    return f"(?<![A-Za-z\\\\])(?:{latin})(?![A-Za-z(_{{])" + (f"|{han}" if han else "")


_WAYS = [re.compile(_alternatives(side), re.IGNORECASE) for side in _SIDES]
_ANY_WAY = re.compile("|".join(f"(?:{p.pattern})" for p in _WAYS), re.IGNORECASE)
_NAMED = re.compile(
    r"(?:(?:the|an?|its) )?(?:[a-z]+ ){0,2}?(?:"
    + "|".join(f"(?:{p.pattern})" for p in _WAYS)
    + r")(?: (?:value|price|number|side|point)|值)?"
    r"(?: ?(?:of|by|is|was|at|is at|为|是|了) ?| |)"
    r"(?P<value>[-+]?[\d.\\].*)",
    re.IGNORECASE,
)


def opposed(one: str, other: str) -> bool:
    """Whether two texts go opposite ways: "a profit of 5" and "a loss of 5"."""
    if not (_ANY_WAY.search(one) and _ANY_WAY.search(other)):
        return False
    x, y = ([bool(p.search(text)) for p in _WAYS] for text in (one, other))
    return any(
        (x[n], x[n + 1]) == (y[n + 1], y[n]) and x[n] != x[n + 1] for n in range(0, len(x), 2)
    )


def named(text: str) -> str | None:
    """The value in "maximum 5", "a loss of 5": what follows the word that says which way."""
    match = _NAMED.fullmatch(text) if len(text) <= 120 else None
    return match["value"] if match else None
