from __future__ import annotations

from llmpipe.algo.transcripts import split_system, without_examples
from llmpipe.core.records import Message


def chat(*roles: str) -> list[Message]:
    return [{"role": role, "content": f"{i}"} for i, role in enumerate(roles)]


def test_the_system_message_is_apart_from_the_turns() -> None:
    messages = chat("system", "user", "assistant")
    assert split_system(messages) == (messages[:1], messages[1:])
    assert split_system(messages[1:]) == ([], messages[1:])
    assert split_system([]) == ([], [])


def test_worked_examples_stand_between_the_system_message_and_the_problem() -> None:
    messages = chat("system", "user", "assistant", "user", "assistant")
    assert [m["content"] for m in without_examples(messages, 2)] == ["0", "3", "4"]
    assert [m["content"] for m in without_examples(messages[1:], 2)] == ["3", "4"]
    assert without_examples(messages, 0) == messages
