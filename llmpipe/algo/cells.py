"""What is in a cell that another tool wrote: a gold answer, responses, or a prompt."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from llmpipe.core.records import Message

_TEXT_PARTS = {"text", "input_text", "output_text"}  # OpenAI's chat and responses APIs


@dataclass(frozen=True)
class Response:
    """A response; ``text`` is None where there is none, ``finish`` what it says of its end."""

    text: str | None
    finish: Any = None


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
        return None, "null" if value is None else f"no text, but {value!r:.100}"
    text = text.rpartition("####")[2].strip("\r\n")
    return (text, "") if text.strip() else (None, "empty")


def is_grid(gold: str) -> bool:
    """Whether a gold answer is a maze's grid: lines of S, E, . and *."""
    return "\n" in gold.strip() and set(gold) <= set("SE.* \t\r\n")


def responses(value: Any) -> list[Response] | None:
    """The responses in a cell: a text, a chat's last message, or a list of such, nested or not.

    Messages of the model alone are a response each. In a list, null (or a message without content)
    is a response without text. None where the cell is null, or has anything else in it.
    """
    if isinstance(value, list):
        found = list(_each(value))
        return None if None in found else [response for response in found if response]
    text = said(value)
    return None if text is None else [Response(text, _finish(value))]


def _each(value: Any) -> Iterator[Response | None]:
    """The responses in an item of a list; None for what can't be one."""
    if not isinstance(value, list):
        text = said(value)
        fits = text is not None or value is None or (_is_message(value) and not _content(value))
        yield Response(text, _finish(value)) if fits else None
    elif value and all(map(_kind, value)):
        yield Response(_joined(value))
    elif any(_role(item) not in (None, "assistant") for item in value):
        yield from _each(value[-1])
    else:
        for item in value:
            yield from _each(item)


def chat(value: Any) -> list[Message]:
    """The messages in a prompt's cell: a text or its parts are the user's; JSON is read.

    Of a message's parts those that are text; `other_part` finds the others. Empty where there are
    no messages, or one of them has no text.
    """
    value = unwrapped(value)
    if isinstance(value, list) and value and all(map(_kind, value)):
        value = _joined(value)
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value.strip() else []
    if not isinstance(value, list):
        return []
    messages: list[Message] = []
    for message in value:
        text = said(message) if isinstance(message, Mapping) else None
        if text is None:
            return []
        messages.append({"role": str(message.get("role", "user")), "content": text})
    return messages


def unwrapped(value: Any) -> Any:
    """A prompt's cell without what it is packed in: a list of one text, JSON of messages."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if isinstance(value, str) and value.startswith('[{"'):
        with contextlib.suppress(ValueError):
            return json.loads(value)
    return value


def said(value: Any) -> str | None:
    """A text, or that of one message or of those of its parts that are text."""
    if not isinstance(value, Mapping):
        return _text(value)
    content = _content(value)
    return _joined(content) if isinstance(content, list) else said(content)


def other_part(value: Any) -> str | None:
    """The type of the first part of a message that is no text, such as image_url."""
    if isinstance(value, list):
        return next(filter(None, map(other_part, value)), None)
    if not isinstance(value, Mapping):
        return None
    kind = _kind(value)
    return kind if kind and kind not in _TEXT_PARTS else other_part(_content(value))


def _joined(parts: list[Any]) -> str | None:
    texts = [said(part) for part in parts if _kind(part) in {"", *_TEXT_PARTS}]
    found = [text for text in texts if text is not None]
    return "".join(found) if found else None


_CONTENT = ("content", "text", "message")  # of a message, a part, a choice of OpenAI's API


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and any(key in value for key in _CONTENT)


def _content(value: Mapping[str, Any]) -> Any:
    return next((value[key] for key in _CONTENT if value.get(key) is not None), None)


def _kind(value: Any) -> str:
    """The type of a part of a message; "" where it doesn't say, and for anything else."""
    typed = isinstance(value, Mapping) and "content" not in value and "role" not in value
    return str(value.get("type") or "") if typed else ""


def _role(value: Any) -> Any:
    return value.get("role") if isinstance(value, Mapping) else None


def _finish(value: Any) -> Any:
    return value.get("finish_reason") if isinstance(value, Mapping) else None


def _text(value: Any) -> str | None:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if plain and value == value else None  # NaN is pandas' null
