from __future__ import annotations

import json
from typing import Any

import pytest

from llmpipe.algo.chat_rows import ChatRow, find_chat_keys, read_chat
from llmpipe.core.protocols import Drop
from llmpipe.core.sources import JsonNumber

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def read(row: dict[str, Any], **keys: str) -> ChatRow | Drop:
    return read_chat(row, find_chat_keys(list(row), **keys))


def turns(row: dict[str, Any], **keys: str) -> list[tuple[str, str, bool]]:
    made = read(row, **keys)
    assert isinstance(made, ChatRow), made
    return [(m["role"], m["content"], m["train"]) for m in made.messages]


def drop(row: dict[str, Any]) -> tuple[str, str]:
    made = read(row)
    assert isinstance(made, Drop), made
    return made.reason, made.detail


QA = [("user", "q", False), ("assistant", "a", True)]
SQA = [("system", "s", False), *QA]
OPENAI = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"messages": OPENAI}, QA),
        ({"messages": json.dumps(OPENAI)}, QA),
        ({"prompt": "other", "messages": OPENAI}, QA),
        ({"messages": [{"role": "developer", "content": "s"}, *OPENAI]}, SQA),
        ({"system": "s", "messages": OPENAI}, SQA),
        ({"system": "", "messages": OPENAI}, QA),
        ({"system": "other", "messages": [{"role": "system", "content": "s"}, *OPENAI]}, SQA),
        (
            {
                "conversations": [
                    {"from": "system", "value": "s"},
                    {"from": "human", "value": "q"},
                    {"from": "gpt", "value": "a"},
                ]
            },
            SQA,
        ),
        ({"conversation": OPENAI}, QA),
        ({"conversations": {"from": ["human", "gpt"], "value": ["q", "a"]}}, QA),
        ({"instruction": "q", "input": "", "output": "a"}, QA),
        ({"instruction": "q", "output": "a", "system": "s"}, SQA),
        (
            {"instruction": "Add.", "input": "1, 2", "output": "3", "history": [["q", "a"]]},
            [*QA, ("user", "Add.\n\n1, 2", False), ("assistant", "3", True)],
        ),
        ({"instruction": "q", "input": None, "output": "a", "history": None}, QA),
        (
            {"instruction": "q", "context": "c", "response": "a", "category": "x"},
            [("user", "q\n\nc", False), QA[1]],
        ),
        ({"prompt": "q", "response": "a"}, QA),
        ({"prompt": "q", "completion": "a"}, QA),
        ({"query": "q", "response": "a", "system": "s"}, SQA),
        ({"problem": "q", "solution": "a", "answer": "5"}, QA),
        ({"prompt": OPENAI[:1], "completion": OPENAI[1:]}, QA),
        ({"prompt": [{"role": "system", "content": "s"}, OPENAI[0]], "completion": "a"}, SQA),
        ({"prompt": "[1, 2] is a list?", "response": "[yes]"}, None),
        ({"prompt": '[{"a": 1}]', "response": "a"}, None),
        ({"prompt": JsonNumber("1.50"), "response": JsonNumber("2")}, None),
    ],
)
def test_layouts(row: dict[str, Any], wanted: list[tuple[str, str, bool]] | None) -> None:
    if wanted is None:  # two texts that stay as they are
        wanted = [("user", str(row["prompt"]), False), ("assistant", str(row["response"]), True)]
    assert turns(row) == wanted


def test_keys_name_columns_or_ways_into_them() -> None:
    row = {"id": 3, "chat": {"turns": OPENAI}, "hint": "s"}
    assert turns(row, messages="chat.turns", system="hint") == SQA
    assert turns({"messages": [], "q": "q", "a": "a"}, prompt="q", response="a") == QA
    with pytest.raises(KeyError, match="turn"):
        find_chat_keys(["messages"], messages="turn")
    with pytest.raises(KeyError, match="messages"):
        find_chat_keys(["text"])


def test_only_the_columns_that_are_needed_are_read() -> None:
    columns = ["id", "prompt", "response", "system", "tools", "images", "scores"]
    wanted = ["prompt", "response", "system", "tools", "images"]
    assert find_chat_keys(columns).columns(columns) == wanted
    keys = find_chat_keys(["chat", "x"], messages="chat.turns")
    assert keys.columns(["chat", "x"]) == ["chat"]


def test_parts_that_are_text_are_joined_and_images_are_refused() -> None:
    parts = [{"type": "text", "text": "q"}, {"type": "text", "text": "!"}]
    row = {"messages": [{"role": "user", "content": parts}, OPENAI[1]]}
    assert turns(row) == [("user", "q!", False), QA[1]]
    parts.append({"type": "image_url", "image_url": "x"})
    assert drop(row) == ("not_text", "turn 0: a part of type image_url")
    assert drop({"messages": OPENAI, "images": ["x.png"]}) == ("not_text", "column images")
    assert turns({"messages": OPENAI, "images": []}) == QA


def test_reasoning_of_its_own_goes_before_the_answer() -> None:
    row = {"messages": [OPENAI[0], {**OPENAI[1], "reasoning_content": "hm\n"}]}
    assert turns(row)[1] == ("assistant", "<think>\nhm\n</think>\n\na", True)


@pytest.mark.parametrize(
    ("mark", "learnt"),
    [
        ({"train": False}, False),
        ({"loss": False}, False),
        ({"weight": JsonNumber("0")}, False),
        ({"weight": 0.0}, False),
        ({"weight": JsonNumber("1")}, True),
        ({"train": True}, True),
        ({"loss": None}, True),
    ],
)
def test_a_turn_s_own_mark_says_whether_it_is_learnt(mark: dict[str, Any], learnt: bool) -> None:
    row = {"messages": [*OPENAI, OPENAI[0], {**OPENAI[1], **mark}]}
    assert [m[2] for m in turns(row)] == [False, True, False, learnt]


def test_tool_turns_are_kept_and_calls_are_counted_out() -> None:
    said = [*OPENAI, {"role": "tool", "content": "3"}, OPENAI[1]]
    assert [m[0] for m in turns({"messages": said})] == ["user", "assistant", "tool", "assistant"]
    calls = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "add"}}]}
    assert drop({"messages": [OPENAI[0], calls]}) == (
        "tool_calls_unsupported",
        "turn 1, assistant",
    )
    call = {"from": "function_call", "value": "{}"}
    assert drop({"conversations": [{"from": "human", "value": "q"}, call]})[0] == (
        "tool_calls_unsupported"
    )
    # A table's column has the key in every row, empty where there are no calls.
    assert turns({"messages": [{**m, "tool_calls": None} for m in OPENAI]}) == QA


@pytest.mark.parametrize(
    "cell",
    [[TOOL], TOOL, json.dumps([TOOL]), json.dumps(TOOL), [json.dumps(TOOL)], [{**TOOL, "x": None}]],
)
def test_tools_are_kept_as_json(cell: Any) -> None:
    made = read({"messages": OPENAI, "tools": cell})
    assert isinstance(made, ChatRow)
    assert json.loads(made.tools or "") == [TOOL]


def test_numbers_in_tools_are_numbers() -> None:
    limit = {"name": "f", "least": JsonNumber("0"), "step": JsonNumber("0.5"), "as": ["1"]}
    made = read({"messages": OPENAI, "tools": [limit]})
    assert isinstance(made, ChatRow)
    assert json.loads(made.tools or "") == [{"name": "f", "least": 0, "step": 0.5, "as": ["1"]}]


def test_no_tools_are_none() -> None:
    for cell in (None, [], "", "[]"):
        made = read({"messages": OPENAI, "tools": cell})
        assert isinstance(made, ChatRow)
        assert made.tools is None
    assert drop({"messages": OPENAI, "tools": "add(a, b)"})[0] == "bad_tools"
    assert drop({"messages": OPENAI, "tools": ["1"]}) == ("bad_tools", "a tool that is no object")


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "Hello."}, "messages"),
        ({"messages": [["user", "q"]]}, "messages"),
        ({"prompt": " ", "response": "a"}, "prompt"),
        ({"prompt": "q", "response": None}, "response"),
        ({"prompt": "q", "response": ["a", "b"]}, "response"),
        ({"prompt": "q", "response": float("nan")}, "response"),
    ],
)
def test_rows_without_turns(row: dict[str, Any], key: str) -> None:
    assert drop(row) == ("no_messages", f"{key}: no text or list of turns")
