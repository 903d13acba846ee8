"""Rows that another tool wrote, as answers to problems; `llmpipe.algo.layouts` has the keys."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmpipe.algo.layouts import Keys, Row, look_up
from llmpipe.core.protocols import Drop
from llmpipe.core.records import FinishReason, Message

_FINISHES = ("finish_reason", "finish_reasons", "stop_reason")
_TOKENS = ("completion_tokens", "num_generated_tokens", "output_tokens")

SIDE_COLUMNS = (*_FINISHES, *_TOKENS)
"""Columns that are taken where a file has them, whatever its layout."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One response of a row; ``tokens`` is 0 where the row doesn't say."""

    text: str
    finish_reason: FinishReason
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A row that can be judged: ``messages`` is the chat up to the response, empty if unknown."""

    messages: Sequence[Message]
    answer: str
    samples: Sequence[Sample]
    filter: str | None

    @property
    def prompt(self) -> str:
        """The problem as it was put: the last thing the user said."""
        users = [m["content"] for m in self.messages if m["role"] == "user"]
        return users[-1] if users else ""


def take(row: Row, keys: Keys) -> Taken | Drop:
    """A row as answers to a problem, or why it can't be judged."""
    answer, fault = gold_text(look_up(row, keys.answer))
    if answer is None:
        return Drop(reason="no_answer", detail=f"{keys.answer}: {fault}")
    texts = response_texts(look_up(row, keys.response))
    if not texts:
        return Drop(reason="no_response", detail=f"{keys.response}: no text")
    messages: list[Message] = []
    if keys.prompts:
        asked = (chat(look_up(row, key)) for key in keys.prompts)
        messages = next((m for m in asked if m), [])
        while messages and messages[-1]["role"] == "assistant":
            messages = messages[:-1]  # the response itself
        if not any(m["role"] == "user" for m in messages):
            return Drop(reason="no_prompt", detail=f"none in {', '.join(keys.prompts)}")
    which = look_up(row, keys.filter) if keys.filter else None
    whole = "".join([answer, *texts, *(m["content"] for m in messages)])
    try:
        whole.encode()
    except UnicodeEncodeError as e:
        bad = whole[e.start : e.end]
        return Drop(reason="not_unicode", detail=f"{e.reason}: {bad!r}")
    return Taken(
        messages=messages,
        answer=answer,
        samples=list(_samples(row, texts)),
        filter=None if which is None else str(which),
    )


def gold_text(value: Any) -> tuple[str | None, str]:
    """The gold answer in a cell, or None and what is wrong with it.

    A list of one is its item, written as JSON or not (Skywork-OR1); of a worked solution that ends
    in ``#### 18`` (GSM8K) it is the 18.
    """
    if isinstance(value, str) and value.startswith('["'):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, list):
        if len(value) != 1:
            return None, f"{len(value)} answers"
        value = value[0]
    text = _text(value)
    if text is None:
        return None, f"no text, but {value!r:.100}"
    text = text.rpartition("####")[2].strip("\r\n")
    return (text, "") if text.strip() else (None, "empty")


def is_grid(gold: str) -> bool:
    """Whether a gold answer is a maze's grid: lines of S, E, . and *."""
    return "\n" in gold.strip() and set(gold) <= set("SE.* \t\r\n")


def response_texts(value: Any) -> list[str] | None:
    """The responses in a cell: a text, a chat's last message, or a list of such, nested or not.

    None where anything else is in it.
    """
    text = _said(value)
    if text is not None:
        return [text]
    if not isinstance(value, list):
        return None
    if value and all(isinstance(m, Mapping) and "role" in m for m in value):
        return response_texts(value[-1])
    texts: list[str] = []
    for item in value:
        inside = response_texts(item)
        if inside is None:
            return None
        texts += inside
    return texts


def chat(value: Any) -> list[Message]:
    """The messages in a prompt's cell: a text is the user's; JSON of messages is read.

    Empty where there are none, or one of them has no text.
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str) and value.startswith('[{"'):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value.strip() else []
    if not isinstance(value, list):
        return []
    messages: list[Message] = []
    for message in value:
        text = _said(message) if isinstance(message, Mapping) else None
        if text is None:
            return []
        messages.append({"role": str(message.get("role", "user")), "content": text})
    return messages


def _said(value: Any) -> str | None:
    """A text, or that of one message or of its parts."""
    if isinstance(value, Mapping):
        value = value.get("content", value.get("text"))
        if isinstance(value, list):
            parts = [_said(part) for part in value]
            return "".join(part for part in parts if part is not None) if any(parts) else None
    return _text(value)


def _text(value: Any) -> str | None:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return None


_CUT = {"length", "max_tokens", "model_length", "max_length", "max_new_tokens"}
_FAILED = {"error", "abort", "content_filter"}


def _samples(row: Row, texts: Sequence[str]) -> Iterator[Sample]:
    finishes = _aligned(row, _FINISHES, len(texts))
    tokens = _aligned(row, _TOKENS, len(texts))
    for text, finish, count in zip(texts, finishes, tokens, strict=True):
        word = str(finish).lower()
        reason: FinishReason = "length" if word in _CUT else "error" if word in _FAILED else "stop"
        digits = str(count)
        yield Sample(
            text=text, finish_reason=reason, tokens=int(digits) if digits.isdecimal() else 0
        )


def _aligned(row: Row, names: Sequence[str], count: int) -> Sequence[Any]:
    """One value for each response, of the first column that has as many."""
    for name in names:
        value = row.get(name)
        if isinstance(value, list) and len(value) == count:
            return value
        if count == 1 and value is not None and not isinstance(value, list):
            return [value]
    return [None] * count
