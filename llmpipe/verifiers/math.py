"""Is a response's final answer the gold answer? Numbers first, then text, then algebra.

Power towers, factorials and nested radicals may keep sympy busy for hours, and nothing in this file
stops them: stages call it through `llmpipe.core.pool.WorkerPool`, which does. No text is ever run
as code: only LaTeX goes to math-verify, whose other parser evaluates what it reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from llmpipe.algo.extract import final_answer, find_boxes
from llmpipe.core.records import FinishReason, Score

_PLACES = 6  # decimals are compared rounded to so many places, as math-verify does
_PROSE_WORDS = 6  # so many words are a sentence, not an answer
_NUMBER_LENGTH = 1000  # characters; longer ones are no figures anyone writes down


def verify_math(
    gold: str, response: str, *, extract: str = "auto", finish_reason: FinishReason = "stop"
) -> Score:
    """Judge a response against a gold answer (bare, or with ``$..$`` or ``\\boxed{}`` around it).

    ``extract`` is "auto" or "boxed" (see `llmpipe.algo.extract`). A response that was cut off
    (``finish_reason`` length) before it closed its answer is truncated, whatever number it ends on.
    A gold that can't be read is an error, never a wrong answer. Runs in this process and has no
    time limit.

    Raises:
        ValueError: ``extract`` is something else.
    """
    found = final_answer(response, extract)
    if finish_reason == "length" and not found.closed:
        return Score(status="truncated", extracted=None, detail="cut off before its answer")
    if found.text is None:
        return Score(status="no_answer", extracted=None, detail=found.why_not)
    equal, detail = same_answer(gold, found.text)
    if equal is None:
        return Score(status="error", extracted=found.text, detail=detail)
    return Score(status="correct" if equal else "wrong", extracted=found.text, detail=detail)


def same_answer(gold: str, answer: str) -> tuple[bool | None, str]:
    """Whether two answers are equal, None if the gold can't be read; and what decided it."""
    left, right = tidy(gold), tidy(answer)
    x, y = number(left), number(right)
    if x is None and not _is_words(left) and not _readable(left):
        return None, f"the gold answer can't be read: {_short(left)}"
    if _plain(left) == _plain(right):
        return True, f"same text: {_short(left)}"
    if y is None and _is_sentence(answer):  # the answer is in it
        right = tidy(final_answer(answer).text or answer)
        y = number(right)
    shown = f"{_short(right)} against {_short(left)}"
    if x is not None and y is not None:
        return _equal_numbers(x, y), f"numbers: {shown}"
    if _is_words(left) and _is_words(right):
        return False, f"words: {shown}"
    return _equal_algebra(left, right), f"math-verify: {shown}"


_DELIMITED = re.compile(r"\$\$(.*)\$\$|\$([^$]*)\$|\\\((.*)\\\)|\\\[(.*)\\\]", re.DOTALL)
_SYMBOLS = str.maketrans(
    {
        "−": "-",
        "×": r"\times ",
        "·": r"\cdot ",
        "÷": r"\div ",
        "±": r"\pm ",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "∞": r"\infty ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "√": r"\sqrt ",
        "π": r"\pi ",
        "°": r"^\circ ",
        "％": r"\%",
    }
)
_TIDY = (
    (re.compile(r"(?<!\\)\\!\s*|\\?\$|\*\*|\\(?:display|text)style(?![A-Za-z])"), ""),
    (re.compile(r"\\[bB]igg?[lrm]?(?![A-Za-z])"), ""),
    (re.compile(r"(?<!\\)\\[,;: ]|\\q?quad(?![A-Za-z])|~|\s+"), " "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"(?<![A-Za-z])\\?sqrt ?\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r" {2,}"), " "),
)


def tidy(text: str) -> str:
    """An answer without what changes only its looks: boxes, dollars, spacing, a full stop."""
    text = (find_boxes(text).answer or text).strip()
    if delimited := _DELIMITED.fullmatch(text):
        text = next(g for g in delimited.groups() if g is not None)
    text = text.translate(_SYMBOLS)
    for pattern, replacement in _TIDY:
        text = pattern.sub(replacement, text)
    return text.strip().rstrip(".,").strip()


_DECIMAL = r"(?:\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)"
_NUMBER = re.compile(
    rf"(?P<sign>[-+]?) ?(?:(?P<whole>{_DECIMAL})(?: ?/ ?(?P<over>{_DECIMAL}))?"
    rf"|\\frac ?(?:\{{ ?(?P<top>-?{_DECIMAL}) ?\}} ?\{{ ?(?P<under>{_DECIMAL}) ?\}}"
    r"|(?P<digit>\d) ?(?P<below>\d)))(?P<percent> ?\\?%)?"
)


@dataclass(frozen=True, slots=True)
class Number:
    value: Fraction
    percent: bool  # ``value`` is the figure before the sign
    decimal: bool


def number(text: str) -> Number | None:
    """A tidy integer, decimal, fraction or percentage; thousands may be separated."""
    match = _NUMBER.fullmatch(text) if len(text) <= _NUMBER_LENGTH else None
    if match is None:
        return None
    top = match["whole"] or match["top"] or match["digit"]
    bottom = match["over"] or match["under"] or match["below"] or "1"
    value, divisor = (Fraction(re.sub("[, ]", "", n).rstrip(".")) for n in (top, bottom))
    if divisor == 0:
        return None
    value = (-value if match["sign"] == "-" else value) / divisor
    return Number(value, bool(match["percent"]), "." in text)


def _equal_numbers(x: Number, y: Number) -> bool:
    """28% is 28, as answers to "how many per cent" are given, and 0.28.

    Integers and fractions are equal or not; decimals are compared rounded, but for tiny ones, which
    must agree to a thousandth.
    """
    pairs = [(x.value, y.value)]
    if x.percent != y.percent:
        pairs.append((x.value / 100, y.value) if x.percent else (x.value, y.value / 100))
    rounded = x.decimal or y.decimal
    return any(
        a == b
        or (
            rounded
            and 1000 * abs(a - b) <= max(abs(a), abs(b))
            and round(a, _PLACES) == round(b, _PLACES)
        )
        for a, b in pairs
    )


_TEXT = re.compile(r"\\(?:text[a-z]*|mbox|math(?:rm|bf|it|sf|tt)|operatorname)\s*\{([^{}]*)\}")
_SIZE = re.compile(r"\\(?:left|right)(?:\.|(?![A-Za-z]))")
_LOOSE_SPACE = re.compile(r"(?<![0-9A-Za-z]) | (?![0-9A-Za-z])")
_AFTER_OPERATOR = re.compile(r"(?<=[-+*/=(\[{^]) ")
_WORDS = re.compile(r"[^\W\d_]+(?:[ '’-]+[^\W\d_]+)*")
_CJK = re.compile("[\u4e00-\u9fff]")


def _plain(text: str) -> str:
    """The text without wrappers and idle spaces; words without case."""
    text = _LOOSE_SPACE.sub("", _SIZE.sub("", _TEXT.sub(r"\1", text)))
    return text.casefold() if len(text) > 1 and _WORDS.fullmatch(text) else text


def _is_words(text: str) -> bool:
    """Words stand for themselves: "Dawn" is not the product that "Wand" is too."""
    text = _TEXT.sub(r"\1", text).strip()
    words = text.split() if _WORDS.fullmatch(text) else []
    long = any(len(w) >= 4 for w in words) or bool(_CJK.search(text))
    return long and len(words) < _PROSE_WORDS


def _word_count(text: str) -> int:
    return len(re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", text))


def _is_sentence(answer: str) -> bool:
    """A few words with the answer among them, not only a unit or a condition after it."""
    words = _word_count(answer)
    return words >= 3 or (words >= 1 and answer.count("$") >= 2)


def _readable(text: str) -> bool:
    return _word_count(text) < _PROSE_WORDS and bool(_parsed(text))


def _equal_algebra(left: str, right: str) -> bool:
    from math_verify import verify

    # Intervals and inequalities are compared both ways round, not only one.
    equal: bool = verify(
        list(_parsed(left)),
        list(_parsed(right)),
        allow_set_relation_comp=True,
        timeout_seconds=None,  # it is made of SIGALRM, which works in no thread and stops no C call
    )
    return equal


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Any, ...]:
    """What math-verify reads in a tidy answer; empty where it can't."""
    from math_verify import LatexExtractionConfig, grader, parse, parser

    # It warns that its time limit is off. That is meant: the pool has a better one.
    parser.TIMEOUT_WARNING_SHOWN = grader.TIMEOUT_WARNING_SHOWN = True
    return tuple(
        parse(
            f"${_AFTER_OPERATOR.sub('', text)}$",  # or "- c" is read as "-" and a unit
            [LatexExtractionConfig()],
            fallback_mode="no_fallback",
            parsing_timeout=None,
        )
    )


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
