"""Rules on the gold answer alone: is it one, and could a rule tell whether another is equal?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmpipe.algo.rules.statement import Statement

_PROSE_WORDS = 6  # what the verifier of answers takes for a sentence
_PROSE_CJK = 15
_SHOWN = 60


def answer_empty(statement: Statement) -> str | None:
    """There is none, or a word that says so."""
    return None if statement.has_answer else statement.answer.strip()


_IMPOSSIBLE = re.compile(
    r"(?:the (?:answer|limit|value|expression|equation|system|integral|function|inverse|series"
    r"|matrix|statement|problem) )?(?:is |does |has |it |there (?:is|are) |are )*"
    r"(?:none(?: of (?:these|the above|them))?|undefined|not defined|not exist|doesn't exist|dne"
    r"|nonexistent|impossible|not possible|no such \w+"
    r"|no(?: (?:real|integer|positive|such|valid|possible|finite|unique))*"
    r" (?:solution|root|value|answer|limit|integer|number|intercept|zero|inverse|triangle|extremum"
    r"|extrema|asymptote)s?(?: exists?)?"
    r"|can(?:not|'t| not) be (?:determined|found|computed|solved)|indeterminate|inconsistent"
    r"|not enough information|insufficient information|unsolvable|not (?:invertible|factorable))"
    r"(?: for .{1,20})?"
    r"|(?:该|此|方程|原方程|不等式|极限)*(?:无解|无实数解|无实数根|没有实数根|不存在|无意义|没有意义|未定义"
    r"|无法确定|不能确定|没有|无)"
)


_EMPTY_SET = frozenset([r"\emptyset", r"\varnothing", "∅", "空集"])
# Where sets are spoken of, the empty one is a value; a set of solutions that is empty is none.
_SETS = re.compile(
    r"(?<!solution )\bsubsets?\b|(?<!solution )\bsets?\b|\bintersection\b|\\(?:cap|cup|setminus)\b"
    r"|[∩∪]|集合|[交并补]集",
    re.IGNORECASE,
)


def answer_impossible(statement: Statement) -> str | None:
    """It says that there is no answer, which a response can put in too many ways to be compared."""
    text = statement.bare_answer
    if text in _EMPTY_SET and not _SETS.search(statement.prompt):
        return text
    return text if len(text) < 80 and _IMPOSSIBLE.fullmatch(text) else None


_FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[a-z]*\*?\}(?:\{[^{}]*\})?")
_TEXT = re.compile(r"\\(?:text[a-z]*|mbox)\s*\{([^{}]*)\}")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}(?:['’][a-z]+)?")
_CJK = re.compile("[\u4e00-\u9fff]")


def answer_prose(statement: Statement) -> str | None:
    """It is a sentence, not a value: six words or more, or fifteen Chinese characters."""
    answer = statement.answer
    words, cjk = _prose(answer)
    if words >= _PROSE_WORDS or cjk >= _PROSE_CJK:
        return _short(answer)
    return None


def _prose(answer: str) -> tuple[int, int]:
    """How many English words and Chinese characters stand outside of the mathematics."""
    plain = _FORMULA.sub(lambda formula: " ".join(_TEXT.findall(formula[0])), answer)
    plain = _ENVIRONMENT.sub(" ", _TEXT.sub(r" \1 ", plain))
    return len(_WORD.findall(plain)), len(_CJK.findall(plain))


def is_value(answer: str) -> bool:
    """Whether an answer is mathematics or a word or two, not a remark."""
    words, cjk = _prose(answer)
    return words <= 2 and cjk <= 6


_COMMA = re.compile(r"([()\[\]{}]|[,，](?=\s)|[;；\n]|\band\b)")


def split_answer(answer: str) -> list[str]:
    """The parts of an answer between commas, semicolons or "and" that are in no brackets."""
    found, depth = [""], 0
    for piece in _COMMA.split(answer.replace("$", "")):
        depth += (piece in ("(", "[", "{")) - (piece in (")", "]", "}"))
        if depth <= 0 and piece in (",", "，", ";", "；", "\n", "and"):
            found.append("")
        else:
            found[-1] += piece
    return [part for part in found if part.strip()]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
