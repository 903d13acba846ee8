from __future__ import annotations

import pytest

from llmpipe.algo.conversations import fault, samples, with_loss, with_system
from llmpipe.core.records import Conversation, Message, TrainMessage


def chat(roles: str) -> list[Message]:
    """Turns by the first letters of their roles; each says its number."""
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool", "x": "critic"}
    return [{"role": names[r], "content": str(i)} for i, r in enumerate(roles)]


@pytest.mark.parametrize("roles", ["ua", "sua", "uaua", "uata", "suattaua"])
def test_turns_that_follow_each_other_are_sound(roles: str) -> None:
    assert fault(with_loss(chat(roles))) is None


@pytest.mark.parametrize(
    ("roles", "reason", "detail"),
    [
        ("", "no_assistant", ""),
        ("s", "no_assistant", ""),
        ("u", "no_assistant", ""),
        ("uxa", "unknown_role", "critic"),
        ("usa", "system_not_first", "user system assistant"),
        ("ssua", "system_not_first", "system system user assistant"),
        ("a", "bad_roles", "assistant"),
        ("saua", "bad_roles", "assistant user assistant"),
        ("uua", "bad_roles", "user user assistant"),
        ("uaa", "bad_roles", "user assistant assistant"),
        ("uau", "bad_roles", "user assistant user"),
        ("uta", "bad_roles", "user tool assistant"),
        ("uat", "bad_roles", "user assistant tool"),
        ("uatua", "bad_roles", "user assistant tool user assistant"),
    ],
)
def test_turns_that_do_not_are_named(roles: str, reason: str, detail: str) -> None:
    drop = fault(with_loss(chat(roles)))
    assert drop is not None
    assert (drop.reason, drop.detail) == (reason, detail)


def test_a_long_list_of_roles_is_cut() -> None:
    drop = fault(with_loss(chat("ua" * 50 + "u")))
    assert drop is not None
    assert drop.detail.endswith(" ... (101 in all)")
    assert drop.detail.count("user") == 20


@pytest.mark.parametrize(
    ("place", "content", "reason", "detail"),
    [
        (0, " ", "empty_turn", "turn 0, system"),
        (1, "\n\t", "empty_turn", "turn 1, user"),
        (2, "", "empty_turn", "turn 2, assistant"),
        (2, "half \ud83d", "not_unicode", "turn 2: surrogates not allowed: '\\ud83d'"),
    ],
)
def test_what_is_said_is_looked_at(place: int, content: str, reason: str, detail: str) -> None:
    messages = with_loss(chat("sua"))
    messages[place]["content"] = content
    drop = fault(messages)
    assert drop is not None
    assert (drop.reason, drop.detail) == (reason, detail)


def test_a_turn_without_a_role_is_of_an_unknown_one() -> None:
    messages = with_loss(chat("ua"))
    messages[0]["role"] = ""
    drop = fault(messages)
    assert drop is not None
    assert (drop.reason, drop.detail) == ("unknown_role", "none")


def test_a_conversation_without_loss_teaches_nothing() -> None:
    messages: list[TrainMessage] = [{**m, "train": False} for m in chat("ua")]
    drop = fault(messages)
    assert drop is not None
    assert drop.reason == "nothing_to_learn"


def test_worked_examples_carry_no_loss_and_are_no_answer() -> None:
    messages = with_loss(chat("suaua"), examples=2)
    assert [m["train"] for m in messages] == [False] * 4 + [True]
    drop = fault(with_loss(chat("sua"), examples=2), examples=2)
    assert drop is not None
    assert drop.reason == "no_assistant"


def test_the_system_message_is_put_first_or_replaced() -> None:
    for roles in ("ua", "sua"):
        messages = with_system(with_loss(chat(roles)), "new")
        assert [m["role"] for m in messages] == ["system", "user", "assistant"]
        assert messages[0] == {"role": "system", "content": "new", "train": False}
    assert with_system(with_loss(chat("sua")), None) == with_loss(chat("sua"))


def conversation(roles: str, *, examples: int = 0) -> Conversation:
    return Conversation(
        id="p-0",
        problem_id="p",
        source="s",
        messages=with_loss(chat(roles), examples=examples),
        tools="[]",
    )


def form(made: Conversation) -> tuple[str, str]:
    """Its id, and its turns: capitals carry loss."""
    letters = [m["role"][0].upper() if m["train"] else m["role"][0] for m in made.messages]
    return made.id, "".join(letters)


def test_merged_is_one_sample_with_loss_on_every_turn() -> None:
    assert [form(c) for c in samples(conversation("suaua"), "merged")] == [("p-0", "suAuA")]


def test_last_is_one_sample_with_loss_on_the_last_turn() -> None:
    assert [form(c) for c in samples(conversation("suaua"), "last")] == [("p-0", "suauA")]


def test_split_is_a_sample_for_each_turn_which_ends_it() -> None:
    made = samples(conversation("suauataua"), "split")
    assert [form(c) for c in made] == [
        ("p-0-t0", "suA"),
        ("p-0-t1", "suauA"),
        ("p-0-t2", "suauatA"),
        ("p-0-t3", "suauatauA"),
    ]
    assert {(c.problem_id, c.source, c.tools) for c in made} == {("p", "s", "[]")}
    assert [c.messages[-1]["content"] for c in made] == ["2", "4", "6", "8"]


def test_turns_without_loss_make_no_sample() -> None:
    made = samples(conversation("uauaua", examples=2), "split")
    assert [form(c) for c in made] == [("p-0-t1", "uauA"), ("p-0-t2", "uauauA")]
    untrained = conversation("uaua")
    untrained.messages[-1]["train"] = False
    assert samples(untrained, "last") == []


def test_the_conversation_itself_is_left_alone() -> None:
    whole = conversation("uaua")
    samples(whole, "split")
    samples(whole, "last")
    assert form(whole) == ("p-0", "uAuA")
