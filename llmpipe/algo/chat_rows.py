"""Rows that another tool wrote, as conversations: which column holds what, and what is in it.

The layouts that need no keys, the first that fits:

- messages: a column ``messages``, ``conversations`` or ``conversation`` with a list of turns (or
  JSON of one), each with ``role`` and ``content`` (OpenAI) or ``from`` and ``value`` (ShareGPT).
- Alpaca: ``instruction``, ``input`` (may be empty or missing), ``output``, and in LLaMA-Factory's
  form ``history``, pairs of what was asked and answered before. Dolly says ``context`` and
  ``response``.
- prompt and response: two columns by the usual names, each a text or a list of turns (TRL's
  ``prompt`` and ``completion``).

``system`` and ``tools`` are taken where a row has them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmpipe.algo.cells import other_part, said
from llmpipe.algo.layouts import Row, look_up
from llmpipe.core.protocols import Drop
from llmpipe.core.records import TrainMessage
from llmpipe.core.sources import JsonNumber

_CHATS = ("messages", "conversations", "conversation")
_PROMPTS = ("prompt", "query", "question", "problem", "input")
_RESPONSES = ("response", "completion", "output", "solution", "answer")
_MEDIA = ("image", "images", "video", "videos", "audio", "audios")


@dataclass(frozen=True, kw_only=True)
class ChatKeys:
    """Where a row has its turns: a column, or a way into one with dots.

    Either ``messages``, or ``prompt`` and ``response`` (``context`` is Alpaca's input, which
    follows the prompt; ``history`` its earlier turns).
    """

    layout: str
    messages: str | None = None
    prompt: str | None = None
    context: str | None = None
    response: str | None = None
    history: str | None = None
    system: str | None = None
    tools: str | None = None

    def columns(self, have: Sequence[str]) -> list[str]:
        """The columns to read, of those that there are."""
        keys = [self.messages, self.prompt, self.context, self.response, self.history]
        wanted = [k for k in [*keys, self.system, self.tools, *_MEDIA] if k]
        return list(dict.fromkeys(c for k in wanted for c in (k, k.partition(".")[0]) if c in have))


@dataclass(frozen=True, kw_only=True)
class ChatRow:
    """A row's turns, and its tools as JSON."""

    messages: Sequence[TrainMessage]
    tools: str | None


def find_chat_keys(
    columns: Sequence[str],
    *,
    messages: str | None = None,
    prompt: str | None = None,
    response: str | None = None,
    system: str | None = None,
    tools: str | None = None,
) -> ChatKeys:
    """Where rows with these columns have their turns: as given, or by the layouts above.

    Raises:
        KeyError: a column that isn't there, or "messages" where no layout fits.
    """
    for key in (messages, prompt, response, system, tools):
        if key and not {key, key.partition(".")[0]} & set(columns):
            raise KeyError(key)

    def first(names: Sequence[str]) -> str | None:
        return next((c for c in names if c in columns), None)

    system, tools = system or first(["system"]), tools or first(["tools"])
    chat = messages if messages or prompt or response else first(_CHATS)
    if chat:
        return ChatKeys(layout="messages", messages=chat, system=system, tools=tools)
    answer = response or first(["output", "response"])
    if not prompt and answer and "instruction" in columns:
        return ChatKeys(
            layout="Alpaca",
            prompt="instruction",
            context=first(["input", "context"]),
            response=answer,
            history=first(["history"]),
            system=system,
            tools=tools,
        )
    prompt, response = prompt or first(_PROMPTS), response or first(_RESPONSES)
    if not prompt or not response:
        raise KeyError("messages")
    return ChatKeys(
        layout="prompt and response", prompt=prompt, response=response, system=system, tools=tools
    )


def read_chat(row: Row, keys: ChatKeys) -> ChatRow | Drop:
    """A row as a conversation, or why it is none.

    A turn's reasoning in a field of its own (``reasoning_content``) is put before its content in
    think tags. A turn that its row says has no loss (``train`` or ``loss`` false, ``weight`` 0) has
    none. The reasons: ``no_messages``, ``not_text`` (images and the like), ``bad_tools``, and
    ``tool_calls_unsupported``: calls that are no text in the turn's content are not written into
    it, as every model has its own way of writing them.
    """
    if media := next((c for c in _MEDIA if row.get(c)), None):
        return Drop(reason="not_text", detail=f"column {media}")
    turns = _turns(row, keys)
    if isinstance(turns, Drop):
        return turns
    messages: list[TrainMessage] = []
    for i, turn in enumerate(turns):
        message = _message(turn)
        if isinstance(message, Drop):
            return Drop(reason=message.reason, detail=f"turn {i}{message.detail}")
        messages.append(message)
    system = _cell(row, keys.system)
    if isinstance(system, str) and system.strip() and messages[0]["role"] != "system":
        messages.insert(0, {"role": "system", "content": system, "train": False})
    try:
        tools = _tools(_cell(row, keys.tools))
    except ValueError as e:
        return Drop(reason="bad_tools", detail=str(e))
    text = json.dumps(tools, ensure_ascii=False) if tools else None
    return ChatRow(messages=messages, tools=text)


def _turns(row: Row, keys: ChatKeys) -> list[Any] | Drop:
    if keys.messages:
        return _listed(_cell(row, keys.messages), "") or _nothing(keys.messages)
    asked = _listed(_cell(row, keys.prompt), "user")
    if not asked:
        return _nothing(keys.prompt)
    more = _text(_cell(row, keys.context))
    if more:
        asked[-1] = {"role": "user", "content": f"{asked[-1]['content']}\n\n{more}"}
    answered = _listed(_cell(row, keys.response), "assistant")
    if not answered:
        return _nothing(keys.response)
    return [*_history(_cell(row, keys.history)), *asked, *answered]


def _cell(row: Row, key: str | None) -> Any:
    return look_up(row, key) if key else None


def _nothing(key: str | None) -> Drop:
    return Drop(reason="no_messages", detail=f"{key}: no text or list of turns")


def _text(value: Any) -> str | None:
    text = None if isinstance(value, Mapping | list) else said(value)
    return text if text and text.strip() else None


def _listed(value: Any, role: str) -> list[Any]:
    """The turns in a cell: a list of them, JSON of one, one alone, or with ``role`` a text's."""
    if isinstance(value, str) and value.lstrip().startswith("[") and value.rstrip().endswith("]"):
        with contextlib.suppress(ValueError):
            read = json.loads(value)
            chat = [isinstance(m, dict) and bool({"role", "from"} & m.keys()) for m in read]
            value = read if chat and all(chat) else value
    if isinstance(value, Mapping):
        columns = value and all(isinstance(v, list) for v in value.values())
        # A Sequence of older `datasets` is stored as one list for each key.
        turns = zip(*value.values(), strict=False) if columns else ()
        value = [dict(zip(value, turn, strict=True)) for turn in turns] if columns else [value]
    if isinstance(value, list):
        if role and len(value) == 1 and isinstance(value[0], str):
            return _listed(value[0], role)
        return value if all(isinstance(m, Mapping) for m in value) else []
    text = _text(value) if role else None
    return [{"role": role, "content": text}] if text else []


def _history(pairs: Any) -> Iterator[dict[str, Any]]:
    for pair in pairs if isinstance(pairs, list) else ():
        for role, content in zip(("user", "assistant"), pair, strict=False):
            yield {"role": role, "content": content}


_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "developer": "system",
    "observation": "tool",
    "function": "tool",
    "function_response": "tool",
    "ipython": "tool",
}
_CALLS = ("tool_calls", "function_call")
_REASONING = ("reasoning_content", "reasoning", "thinking")


def _message(turn: Mapping[str, Any]) -> TrainMessage | Drop:
    """A turn; what is wrong with it goes on after "turn N" in the detail."""
    name = str(turn.get("role") or turn.get("from") or "").strip().lower()
    if name == "function_call" or any(turn.get(key) for key in _CALLS):
        return Drop(reason="tool_calls_unsupported", detail=f", {name}")
    content = turn.get("content") if turn.get("content") is not None else turn.get("value")
    if part := other_part({"content": content}):
        return Drop(reason="not_text", detail=f": a part of type {part}")
    text = said({"content": content}) or ""
    role = _ROLES.get(name, name)
    thought = next((turn[key] for key in _REASONING if turn.get(key)), None)
    if role == "assistant" and isinstance(thought, str) and thought.strip():
        text = f"<think>\n{thought.strip()}\n</think>\n\n{text}" if text.strip() else ""
    learnt = not any(_is_off(turn.get(key)) for key in ("train", "loss", "weight"))
    return {"role": role, "content": text, "train": role == "assistant" and learnt}


def _is_off(value: Any) -> bool:
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value) == 0
        return value.strip().lower() == "false"
    return value is not None and not value


def _tools(value: Any) -> list[Any]:
    """The tools in a cell: a list of schemas, each one or all of them JSON, or one alone.

    Raises:
        ValueError: there is something else.
    """
    if isinstance(value, str):
        if not value.strip():
            return []
        value = json.loads(value)
    if isinstance(value, Mapping):
        value = [value]
    if value is not None and not isinstance(value, list):
        raise ValueError(f"no list of tools, but {value!r:.100}")
    tools = [json.loads(t) if isinstance(t, str) else _plain(t) for t in value or ()]
    if not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("a tool that is no object")
    return tools


def _plain(value: Any) -> Any:
    """A value out of a table as it was in JSON: numbers are numbers, and there are no keys that
    only other rows have (columns of structs fill these with null)."""
    if isinstance(value, JsonNumber):
        return json.loads(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    return [_plain(v) for v in value] if isinstance(value, list) else value
