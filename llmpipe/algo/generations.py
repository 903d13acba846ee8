"""Rows that another tool wrote, as answers to problems; `llmpipe.algo.layouts` has the keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llmpipe.algo.cells import Response, chat, gold_text, other_part, responses, unwrapped
from llmpipe.algo.layouts import Keys, Row, look_up
from llmpipe.algo.rows import text
from llmpipe.core.protocols import Drop
from llmpipe.core.records import FinishReason, Message

_FINISHES = ("finish_reason", "finish_reasons", "stop_reason")
_TOKENS = ("completion_tokens", "num_generated_tokens", "output_tokens")

SIDE_COLUMNS = (*_FINISHES, *_TOKENS, "level", "subject")
"""Columns that are taken where a file has them, whatever its layout."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One response of a row; ``tokens`` is 0 where the row doesn't say.

    With finish reason error, ``error`` says what failed.
    """

    text: str
    finish_reason: FinishReason
    tokens: int
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A row that can be judged: ``messages`` is the chat up to the response, empty if unknown.

    ``level`` and ``subject`` are the problem's, where the row has them.
    """

    messages: Sequence[Message]
    answer: str
    samples: Sequence[Sample]
    filter: str | None
    level: str | None = None
    subject: str | None = None

    @property
    def prompt(self) -> str:
        """The problem as it was put: the last thing the user said."""
        users = [m["content"] for m in self.messages if m["role"] == "user"]
        return users[-1] if users else ""


def take(row: Row, keys: Keys) -> Taken | Drop:
    """A row as answers to a problem, or why it can't be judged.

    A null among its responses is a sample that failed: what was asked for counts, and the others
    stand.
    """
    answer, fault = gold_text(look_up(row, keys.answer))
    if answer is None:
        return Drop(reason="no_answer", detail=f"{keys.answer}: {fault}")
    said = look_up(row, keys.response)
    if part := other_part(said):
        return Drop(reason="not_text", detail=f"{keys.response}: a part of type {part}")
    found = responses(said)
    if not found:
        return Drop(reason="no_response", detail=f"{keys.response}: no text")
    messages = _asked(row, keys)
    if isinstance(messages, Drop):
        return messages
    which = look_up(row, keys.filter) if keys.filter else None
    kind = [text(row.get(name)) for name in ("level", "subject")]
    texts = [response.text or "" for response in found]
    whole = "".join(
        [answer, *texts, *(each or "" for each in kind), *(m["content"] for m in messages)]
    )
    try:
        whole.encode()
    except UnicodeEncodeError as e:
        bad = whole[e.start : e.end]
        return Drop(reason="not_unicode", detail=f"{e.reason}: {bad!r}")
    return Taken(
        messages=messages,
        answer=answer,
        samples=list(_samples(row, found)),
        filter=None if which is None else str(which),
        level=kind[0],
        subject=kind[1],
    )


def _asked(row: Row, keys: Keys) -> Sequence[Message] | Drop:
    """The chat up to the response, of the first column that has one."""
    for key in keys.prompts:
        cell = unwrapped(look_up(row, key))
        messages = chat(cell)
        if part := other_part(cell):
            return Drop(reason="not_text", detail=f"{key}: a part of type {part}")
        if messages:
            break
    else:
        messages = []
    while messages and messages[-1]["role"] == "assistant":
        messages = messages[:-1]  # the response itself
    if keys.prompts and not any(m["role"] == "user" for m in messages):
        return Drop(reason="no_prompt", detail=f"none in {', '.join(keys.prompts)}")
    return messages


_CUT = {"length", "max_tokens", "model_length", "max_length", "max_new_tokens"}
_FAILED = {"error", "abort", "content_filter"}


def _samples(row: Row, found: Sequence[Response]) -> Iterator[Sample]:
    finishes = _aligned(row, _FINISHES, len(found))
    tokens = _aligned(row, _TOKENS, len(found))
    for response, finish, count in zip(found, finishes, tokens, strict=True):
        word = str(response.finish or finish).lower()
        reason: FinishReason = "length" if word in _CUT else "error" if word in _FAILED else "stop"
        digits = str(count)
        counted = int(digits) if digits.isdecimal() else 0
        if response.text is None:
            yield Sample(text="", finish_reason="error", tokens=counted, error="no text")
            continue
        error = f"the file says {word}" if reason == "error" else None
        yield Sample(text=response.text, finish_reason=reason, tokens=counted, error=error)


def _aligned(row: Row, names: Sequence[str], count: int) -> Sequence[Any]:
    """One value for each response, of the first column that has as many."""
    for name in names:
        value = row.get(name)
        if isinstance(value, list) and len(value) == count:
            return value
        if count == 1 and value is not None and not isinstance(value, list):
            return [value]
    return [None] * count
