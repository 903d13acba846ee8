"""The boxes of a text: ``\\boxed{}`` and ``\\fbox{}``, braces matched."""

from __future__ import annotations

import re
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
    spans: list[tuple[int, int, int]] = []  # command, content, end of content
    stack: list[tuple[int, int] | None] = []  # None for a brace that is no box's
    first = min((n for n in map(text.find, ("box", "\x08oxed")) if n >= 0), default=-1)
    if first < 0:
        return Boxes(0, False, False, None, None)
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
    opened = [box[0] for box in stack if box]
    cut_off = bool(opened) and (not spans or opened[-1] > spans[-1][0])
    last = _last_boxes(text, spans)
    answer = None if cut_off else ", ".join(dict.fromkeys(reversed(last)))
    return Boxes(len(spans), any(stack), cut_off, last[0] if last else None, answer or None)


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
