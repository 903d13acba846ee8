"""Answers that are words: compared as words, never as products of their letters."""

from __future__ import annotations

import re

from llmpipe.algo.answers.lexer import FUNCTIONS, is_word
from llmpipe.algo.answers.tree import names

_WRAPPED = re.compile(r"\\text\s?\{([^{}]*)\}")
_WORDS = re.compile(r"[^\W\d_]+(?:[ ,'’/-]+[^\W\d_]+)*")
_CJK = re.compile("[\u4e00-\u9fff]")
_PARTED = re.compile(r",(?: and\b)?|\band\b")
_SHORT_WORDS = names("yes no odd even true none dne mon tue wed thu fri sat sun")
_IDLE = frozenset(["a", "an", "the"])
_PROSE_WORDS = 6  # so many words are a sentence, not an answer
_IT_IS = re.compile(r"(?:it is|it's|this is|they are) ")
_NOTHING = re.compile(
    r"(?:there (?:is|are) )?(?:none|no (?:such )?(?:(?:real|integer|positive|valid|possible) )*"
    r"(?:solutions?|roots?|values?|numbers?|integers?)(?: exists?)?|(?:the )?empty set|nothing|"
    r"无解|空集|无实数解)"
)
_UNDEFINED = re.compile(r"(?:it |the limit )?(?:dne|does not exist|doesn't exist|undefined|不存在)")
_INFINITE = re.compile(r"infinitely many(?: solutions?)?|infinite(?: solutions?)?")
_REALS = re.compile(r"(?:the )?(?:set of )?(?:all )?(?:real numbers|reals)|全体实数")
_EMPTY = frozenset([r"\emptyset", r"\varnothing", r"\{\}", r"\{ \}", r"\phi"])


def unwrapped(text: str) -> str:
    r"""The text without ``\\text{}``."""
    return " ".join(_WRAPPED.sub(r" \1 ", text).split())


def as_prose(text: str) -> str:
    r"""The text with what stands in ``\\text{}`` as words of it."""
    return _WRAPPED.sub(r" \1 ", text)


def words(text: str) -> str | None:
    r"""A clean answer of words alone, in one spelling: lower case, no articles; None for others.

    "No solution", "none" and \emptyset are one answer; so are "DNE" and "does not exist".
    """
    if text in _EMPTY:
        return "none"
    text = unwrapped(text).rstrip(".!")
    if not _WORDS.fullmatch(text):
        return None
    lower = _IT_IS.sub("", text.casefold())
    for name, pattern in (("none", _NOTHING), ("undefined", _UNDEFINED), ("infinite", _INFINITE)):
        if pattern.fullmatch(lower):
            return name
    found = re.findall(r"[^\W\d_]+", lower)
    long = any(is_word(w) for w in found) or bool(_CJK.search(text)) or lower in _SHORT_WORDS
    if not long or FUNCTIONS.intersection(found) or len(found) >= _PROSE_WORDS:
        return None
    kept = " ".join(w for w in re.findall(r"[^\W\d_]+|,", lower) if w not in _IDLE)
    return ", ".join(sorted(p.strip() for p in _PARTED.split(kept) if p.strip())) or None


def is_all_reals(text: str) -> bool:
    """Whether a clean answer says "all real numbers"."""
    return bool(_REALS.fullmatch(unwrapped(text).casefold()))


_CHOICE = re.compile(
    r"(?:(?i:option|choice|answer)|选项|答案)?:?\s*(?:\(([A-J])\)|([A-J])(?=[.):]|$)[.):]?)\s*(.*)",
    re.DOTALL,
)


def choice(text: str) -> tuple[str, str] | None:
    """The letter of a multiple-choice answer and what stands after it: "(B) 12", "B", "B. 12"."""
    match = _CHOICE.fullmatch(unwrapped(text))
    return (match[1] or match[2], match[3].strip()) if match else None


_COMMAND = re.compile(r"\\[A-Za-z]+")
_LONG_WORD = re.compile(r"[A-Za-z]{3,}")
_STOP = re.compile(
    r"\b(?:the|is|are|was|were|we|thus|hence|therefore|because|answer|which|that|it|its|there|this"
    r"|these|so|get|have|has|must|can|cannot|be|not|only)\b",
    re.IGNORECASE,
)


def is_sentence(text: str) -> bool:
    """Words of which the answer is only a part."""
    return has_verb(text) or len(_LONG_WORD.findall(_COMMAND.sub(" ", text))) >= _PROSE_WORDS


def has_verb(text: str) -> bool:
    """Whether the words make a sentence, or part of one."""
    return bool(_STOP.search(_COMMAND.sub(" ", text)))


_CONDITION = re.compile(
    r"[\s,;(]*(?:\\text\s?\{\s*[,(]?\s*(?:for|where|with|when|such that|as)\b[^{}]*\}"
    r"|\b(?:for (?:all|any|every|some|each)|where|with)\b)"
    r"(?:(?!\\text\s?\{\s*,?\s*(?:and|or)\s*\}|,?\s*\b(?:and|or)\b).)*",
    re.IGNORECASE,
)
_DOMAIN = re.compile(
    r"(?:[\s,;(]|\\quad)+(?:[a-zA-Z],?\s*){1,3}\\in\s*(?:\\mathbb\s*\{?[A-Z]\}?|[ZNRQC])"
    r"(?:[_^]\{?[^{}]{1,8}\}?)*\s*\)?\s*$"
)
_ANY = re.compile(r"integer|arbitrary|\\in\b|constant|for some", re.IGNORECASE)


def without_condition(text: str) -> tuple[str, bool]:
    r"""The answer without "for all x" or ", k \in Z"; and whether that names a free variable."""
    short = _DOMAIN.sub("", _CONDITION.sub("", text)).strip(" ,;")
    if not short or short == text:
        return text, False
    return short, bool(_ANY.search(text))
