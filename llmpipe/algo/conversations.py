"""Transcripts to SFT conversations: what can be trained on, and which turns carry loss.

One set of rules for all sources, whether sampled here or written elsewhere.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from llmpipe.algo.transcripts import split_system
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Conversation, Message, TrainMessage

T = TypeVar("T")

TURNS = ("merged", "split", "last")

# What may follow what; a conversation begins after "" and ends with the assistant.
_NEXT = {
    "": {"user"},
    "user": {"assistant"},
    "assistant": {"user", "tool"},
    "tool": {"tool", "assistant"},
}
_SHOWN = 40  # roles of a bad conversation that its reject names


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Values in lists of ``size``, the last one shorter."""
    rest = iter(values)
    while batch := list(itertools.islice(rest, size)):
        yield batch


def with_system(messages: Sequence[TrainMessage], system: str | None) -> list[TrainMessage]:
    """The messages with another system message; as they are where none is given."""
    if not system:
        return list(messages)
    first: TrainMessage = {"role": "system", "content": system, "train": False}
    return [first, *split_system(messages)[1]]


def with_loss(messages: Sequence[Message], *, examples: int = 0) -> list[TrainMessage]:
    """Loss on the assistant's turns, but for the first ``examples`` messages after the system's."""
    first = examples + len(split_system(messages)[0])
    return [
        {
            "role": m["role"],
            "content": m["content"],
            "train": i >= first and m["role"] == "assistant",
        }
        for i, m in enumerate(messages)
    ]


def fault(messages: Sequence[TrainMessage], *, examples: int = 0) -> Drop | None:
    """What keeps a conversation from being trained on, the first that is found.

    ``unknown_role``; ``no_assistant`` (none after the worked examples); ``nothing_to_learn`` (its
    turns are there, and none of them carries loss); ``system_not_first``; ``bad_roles`` (two turns
    of the same side in a row, the assistant first, a tool's turn that follows the user, or an end
    that is not the assistant's); ``empty_turn`` (white space is nothing); ``not_unicode``.
    """
    roles = [m["role"] for m in messages]
    unknown = next((r for r in roles if r not in {*_NEXT, "system"} or not r), None)
    if unknown is not None:
        return Drop(reason="unknown_role", detail=f"{unknown or 'none':.100}")
    turns = roles[1:] if roles[:1] == ["system"] else roles
    if "assistant" not in turns[examples:]:
        return Drop(reason="no_assistant")
    if "system" in turns:
        return Drop(reason="system_not_first", detail=_listed(roles))
    pairs = zip(["", *turns], turns, strict=False)
    if turns[-1] != "assistant" or any(role not in _NEXT[before] for before, role in pairs):
        return Drop(reason="bad_roles", detail=_listed(turns))
    for i, message in enumerate(messages):
        if not message["content"].strip():
            return Drop(reason="empty_turn", detail=f"turn {i}, {message['role']}")
    if not any(m["train"] for m in messages):
        return Drop(reason="nothing_to_learn", detail="no turn carries loss")
    return _not_unicode(messages)


def samples(conversation: Conversation, turns: str) -> list[Conversation]:
    """The training samples of a conversation; ``turns`` is one of `TURNS`.

    merged: one, with loss on every turn that carries it. last: one, with loss on the last turn, if
    that carries any. split: one for each turn with loss, which ends with it and has loss on nothing
    else; ``-tTURN`` is added to the id, the assistant's turns counted from 0.
    """
    if turns == "merged":
        return [conversation]
    places = [i for i, m in enumerate(conversation.messages) if m["role"] == "assistant"]
    if turns == "last":
        places = places[-1:]
    made = []
    for number, place in enumerate(places):
        if conversation.messages[place]["train"]:
            messages: list[TrainMessage] = [
                {**m, "train": i == place} for i, m in enumerate(conversation.messages[: place + 1])
            ]
            name = conversation.id if turns == "last" else f"{conversation.id}-t{number}"
            made.append(dataclasses.replace(conversation, id=name, messages=messages))
    return made


def _listed(roles: Sequence[str]) -> str:
    more = f" ... ({len(roles)} in all)" if len(roles) > _SHOWN else ""
    return " ".join(roles[:_SHOWN]) + more


def _not_unicode(messages: Sequence[Message]) -> Drop | None:
    for i, message in enumerate(messages):
        try:
            message["content"].encode()
        except UnicodeEncodeError as e:
            bad = message["content"][e.start : e.end]
            return Drop(reason="not_unicode", detail=f"turn {i}: {e.reason}: {bad!r}")
    return None
