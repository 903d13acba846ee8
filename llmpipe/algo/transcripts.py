"""The parts of a transcript: system message, worked examples, and what came of the problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from llmpipe.core.records import Message

M = TypeVar("M", bound=Message)


def split_system(messages: Sequence[M]) -> tuple[Sequence[M], Sequence[M]]:
    """The system message, where there is one first, and the turns."""
    count = 1 if messages and messages[0]["role"] == "system" else 0
    return messages[:count], messages[count:]


def without_examples(messages: Sequence[M], count: int) -> list[M]:
    """A transcript without its worked examples, the ``count`` messages after the system's.

    How many there are stands in the details of the rollouts' manifest, by task, as
    ``few_shot_messages``.
    """
    system, turns = split_system(messages)
    return [*system, *turns[count:]]


def asked(messages: Iterable[Message]) -> str:
    """All that was said to the model: the messages that are not its own."""
    return "\n".join(m["content"] for m in messages if m["role"] != "assistant")


def answers(messages: Iterable[Message]) -> int:
    """How many turns are the model's own."""
    return sum(m["role"] == "assistant" for m in messages)
