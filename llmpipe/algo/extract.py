"""The final answer in a response: where it stands, or why there is none.

Read in this order, after the thinking: the last complete ``\\boxed{}`` or ``\\fbox{}``, the last
``<answer>`` tag, the last "the answer is", the last ``####``, what the last code printed (a block
fenced as ``output``), the last number or formula. A box
that is opened and never closed ends the search: what it would have held is unknown.

Every scan is linear in the text: no pattern here can look at a character more than a few times.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Method = Literal["box", "answer_tag", "phrase", "hashes", "output_block", "last_number"]


@dataclass(frozen=True, slots=True)
class Found:
    """An answer and how it was found, or ``text`` None and why not.

    ``closed`` says that a mark closes it (a box, a tag), so that it is whole even where the
    response was cut off later.
    """

    text: str | None
    method: Method | None = None
    why_not: str = ""

    @property
    def closed(self) -> bool:
        return self.method in ("box", "answer_tag")


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a text: how many are ``closed``, whether one is left ``open``, what they say.

    ``last`` is the content of the last closed one that isn't empty; of nested ones the inner is the
    last. ``answer`` is that, or several where nothing but commas, spaces and "and" stands between
    them: "\\boxed{1} and \\boxed{2}" is one answer, "1, 2".
    """

    closed: int
    open: bool
    last: str | None
    answer: str | None


def final_answer(response: str, mode: str = "auto") -> Found:
    """The final answer of a response.

    ``mode`` is "auto" (all marks, in the order above) or "boxed" (boxes only).

    Raises:
        ValueError: another mode.
    """
    if mode not in ("auto", "boxed"):
        raise ValueError(f"extract is auto or boxed, not {mode!r}")
    text = after_thinking(response)
    boxes = find_boxes(text)
    if boxes.answer is not None:
        return Found(boxes.answer, "box")
    if boxes.open:
        return Found(None, why_not="the box is never closed")
    if mode == "auto":
        for method, find in _MARKS:
            answer = find(text)
            if answer:
                return Found(answer, method)
    if not text.strip() and response.strip():
        return Found(None, why_not="nothing after the thinking")
    if boxes.closed:
        return Found(None, why_not="the box is empty")
    return Found(None, why_not="no box" if mode == "boxed" else "no answer, no number, no formula")


def after_thinking(response: str) -> str:
    """The text after the last ``</think>``, without a thought that is begun and never ended."""
    text = response.rpartition("</think>")[2]
    return text.partition("<think>")[0]


# One or two backslashes: some sets carry answers escaped twice. None, or a backspace, where
# "\b" was taken for one; and "\beginboxed" is seen.
_BRACES = re.compile(r"(?:\\{0,2}(?:begin)?boxed|\\{1,2}fbox|\x08oxed)\s*\{|\\.|[{}]", re.DOTALL)


_BETWEEN = re.compile(
    r"(?:[\s,;$]|\\[,;:()\[\] ]|\\quad|\\text\s?\{\s?(?:and|or)\s?\}|\b(?:and|or)\b"
    r"|[A-Za-z](?:_(?:\{\w{1,3}\}|\w))?\s?=)*"
)
_BETWEEN_LENGTH = 40


def find_boxes(text: str) -> Boxes:
    """All ``\\boxed{}`` and ``\\fbox{}`` of a text, braces matched, contents stripped."""
    spans: list[tuple[int, int, int]] = []  # command, content, end of content
    stack: list[tuple[int, int] | None] = []  # None for a brace that is no box's
    first = min((n for n in map(text.find, ("box", "\x08oxed")) if n >= 0), default=-1)
    if first < 0:
        return Boxes(0, False, None, None)
    # Braces before the first box are nobody's. A few characters back, for "\\begin" before it.
    for match in _BRACES.finditer(text, max(0, first - 8)):
        token = match.group()
        if token.endswith("{") and len(token) > 2:
            stack.append(match.span())
        elif token == "{":
            stack.append(None)
        elif token == "}" and stack:
            box = stack.pop()
            if box:
                spans.append((*box, match.start()))
    spans.sort()
    last = _last_boxes(text, spans)
    answer = ", ".join(dict.fromkeys(reversed(last)))
    return Boxes(len(spans), any(stack), last[0] if last else None, answer or None)


def _last_boxes(text: str, spans: list[tuple[int, int, int]]) -> list[str]:
    """The contents of the last boxes that make one answer, the last first."""
    contents: list[str] = []
    follower = 0
    for command, content, end in reversed(spans):
        between = text[end + 1 : follower]
        if contents and (
            end >= follower  # it holds the one that follows
            or len(between) > _BETWEEN_LENGTH
            or not _BETWEEN.fullmatch(between)
        ):
            break
        if inside := text[content:end].strip():
            contents.append(inside)
            follower = command
    return contents


def last_tag(text: str) -> str | None:
    """The content of the last complete ``<answer>`` tag; None where there is none."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    return text[start + len("<answer>") : end].strip() if start >= 0 else None


_PHRASE = re.compile(
    r"\banswer(?:\*\*)?\s{0,3}(?:is|=|:|：)(?:\*\*)?\s{0,3}(?::|：)?"
    r"|(?:答案|结果)(?:\*\*)?\s{0,3}(?:应该)?(?:是|为|:|：)(?:\*\*)?\s{0,3}(?::|：)?",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"\n|\.(?=\s|$)|。|；|;\s")


def _phrase(text: str) -> str | None:
    phrase = _last(_PHRASE, text)
    if phrase is None:
        return None
    tail = text[phrase.end() :].lstrip()
    for opening, closing in _MATH:
        if tail.startswith(opening):
            end = tail.find(closing, len(opening))
            if end >= 0:
                return tail[len(opening) : end].strip()
    clause = _CLAUSE_END.split(tail, maxsplit=1)[0].strip(" \t*_`\"'“”,.。，")
    numbers = list(_NUMBER.finditer(clause))
    # "42 apples": one number among words is the answer; "2x" and "x = 2" are not.
    if len(numbers) == 1 and not _FORMULA.search(clause):
        return numbers[0].group()
    return clause


def _hashes(text: str) -> str | None:
    _, mark, tail = text.rpartition("####")
    return tail.strip().partition("\n")[0].strip() if mark else None


def _output_block(text: str) -> str | None:
    """The last line that a program printed, where the response runs code in fenced blocks."""
    _, mark, tail = text.rpartition("```output\n")
    block, end, _ = tail.partition("```")
    return block.strip().rpartition("\n")[2].strip() if mark and end else None


_SIGN = r"(?:(?<![\w)\]}])[-−])?"  # a minus after an operand is an operator
_NUMBER = re.compile(
    rf"(?<![A-Za-z_\d]){_SIGN}"
    r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:/\d+)?(?:\s?\\?%)?"
    rf"|{_SIGN}\\[dtc]?frac\{{[^{{}}]{{1,40}}\}}\{{[^{{}}]{{1,40}}\}}"
)
_FORMULA = re.compile(r"[\\^=+*/_{]|\d[A-Za-z]|[A-Za-z]\(")
_MATH = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def _last_number(text: str) -> str | None:
    """The number or formula that ends last; a formula where the number stands in one."""
    number = _last(_NUMBER, text)
    end, start = max(_last_formula(text, *marks) for marks in _MATH)
    if start >= 0 and (number is None or number.end() <= end):
        return text[start:end].strip()
    return number.group().strip() if number else None


def _last_formula(text: str, opening: str, closing: str) -> tuple[int, int]:
    """(end, start) of the content of the last formula between two marks; (-1, -1) if none."""
    end = text.rfind(closing)
    start = text.rfind(opening, 0, max(end, 0))
    if start < 0 or not text[start + len(opening) : end].strip():
        return -1, -1
    return end, start + len(opening)


_MARKS: tuple[tuple[Method, Callable[[str], str | None]], ...] = (
    ("answer_tag", last_tag),
    ("phrase", _phrase),
    ("hashes", _hashes),
    ("output_block", _output_block),
    ("last_number", _last_number),
)
