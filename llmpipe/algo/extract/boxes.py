"""The boxes of a text: ``\\boxed{}`` and ``\\fbox{}``, braces matched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# One or two backslashes: some sets carry answers escaped twice. None, or a backspace, where
# "\b" was taken for one; and "\beginboxed" is seen.
_BRACES = re.compile(r"(?:\\{0,2}(?:begin)?boxed|\\{1,2}fbox|\x08oxed)\s*\{|\\.|[{}]", re.DOTALL)
_BETWEEN = re.compile(
    r"(?:[\s,;$]|\\[,;:()\[\] ]|\\quad|\\text\s?\{\s?(?:and|or)\s?\}|\b(?:and|or)\b"
    r"|[A-Za-z](?:_(?:\{\w{1,3}\}|\w))?\s?=)*"
)
_BETWEEN_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a text: how many are ``closed``, whether one is left ``open``, what they say.

    ``cut_off`` says that the last one to be opened is never closed: then there is no ``answer``,
    whatever the earlier ones hold. ``last`` is the content of the last closed one that isn't empty;
    of nested ones the inner is the last. ``answer`` is that, or several where nothing but commas,
    spaces and "and" stands between them: "\\boxed{1} and \\boxed{2}" is one answer, "1, 2".
    """

    closed: int
    open: bool
    cut_off: bool
    last: str | None
    answer: str | None


def find_boxes(text: str) -> Boxes:
    """All ``\\boxed{}`` and ``\\fbox{}`` of a text, braces matched, contents stripped."""
    spans, stack = _spans(text)
    opened = [box[0] for box in stack if box]
    cut_off = bool(opened) and (not spans or opened[-1] > spans[-1][0])
    last = next(_answers(text, spans), [])
    answer = None if cut_off else _in_order(last)
    return Boxes(len(spans), any(stack), cut_off, last[0] if last else None, answer or None)


def answer_boxes(text: str) -> list[str]:
    """The answers in the closed boxes of a text, in order, none empty.

    Boxes that make one answer, as for `Boxes.answer`, are one; so is a box within another.
    """
    spans, _ = _spans(text)
    return [_in_order(contents) for contents in _answers(text, spans)][::-1]


_Span = tuple[int, int, int]  # command, content, end of content


def _spans(text: str) -> tuple[list[_Span], list[tuple[int, int] | None]]:
    """The closed boxes of a text, sorted, and what is left open: None for a brace of no box."""
    spans: list[_Span] = []
    stack: list[tuple[int, int] | None] = []  # None for a brace that is no box's
    first = min((n for n in map(text.find, ("box", "\x08oxed")) if n >= 0), default=-1)
    if first < 0:
        return spans, stack
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
    return spans, stack


def _answers(text: str, spans: list[_Span]) -> Iterator[list[str]]:
    """The contents of the boxes that make one answer, the last first, and so for each answer.

    A box that holds another is passed over: the inner one says it.
    """
    contents: list[str] = []
    follower: int | None = None
    for command, content, end in reversed(spans):
        holds = follower is not None and end >= follower
        if contents and (holds or not _joined(text[end + 1 : follower])):
            yield contents
            contents = []
        if holds:
            follower = command
        elif inside := text[content:end].strip():
            contents.append(inside)
            follower = command
    if contents:
        yield contents


def _joined(between: str) -> bool:
    return len(between) <= _BETWEEN_LENGTH and bool(_BETWEEN.fullmatch(between))


def _in_order(contents: list[str]) -> str:
    return ", ".join(dict.fromkeys(reversed(contents)))
