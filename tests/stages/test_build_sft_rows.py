"""Conversations of rows that another tool wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Conversation
from llmpipe.core.run import Mode, Result
from llmpipe.stages.build_sft import Config, run

USER = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}
TOOL = {"name": "add", "parameters": {"properties": {"a": {"minimum": 0}}}}


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def build(source: Path, **settings: Any) -> Result:
    return run(Config(**settings), source, source.parent / "out", Mode())


def made(folder: Path) -> list[Conversation]:
    return list(Artifact.open(folder / "out").iter_rows(Conversation))


def form(conversation: Conversation) -> str:
    """Its turns' first letters; capitals carry loss."""
    return "".join(
        m["role"][0].upper() if m["train"] else m["role"][0] for m in conversation.messages
    )


def test_rows_become_conversations_or_rejects(tmp_path: Path) -> None:
    source = lines(
        tmp_path / "chats.v2.jsonl",
        {"messages": [USER, ANSWER, USER, ANSWER], "tools": [TOOL]},
        {"messages": [USER, USER, ANSWER]},
        {"messages": None},
        {"messages": [USER, ANSWER], "tools": None},
    )
    result = build(source)
    first, second = made(tmp_path)
    assert (first.id, first.problem_id, first.source) == ("chats-1", None, "chats")
    assert (form(first), form(second)) == ("uAuA", "uA")
    assert json.loads(first.tools or "") == [TOOL]
    assert (second.id, second.tools) == ("chats-4", None)
    assert rejects(tmp_path / "out") == [
        ("chats-2", "bad_roles", "user user assistant"),
        ("chats-3", "no_messages", "messages: no text or list of turns"),
    ]
    assert result.figures["trained_turns"] == 3
    manifest = Artifact.open(tmp_path / "out").manifest
    assert manifest.counts["read"] == 4
    assert manifest.details["layout"] == "messages"


def test_a_table_of_structs_with_tools(tmp_path: Path) -> None:
    """A column of structs has all rows' keys in each row, as null."""
    rows = [
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "b"}]},
    ]
    rows[0]["tools"] = [{"name": "f", "parameters": {"x": 1}}]  # type: ignore[list-item]
    rows[1]["tools"] = [{"name": "g", "strict": True}]  # type: ignore[list-item]
    folder = tmp_path / "set"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet")
    build(folder)
    assert [json.loads(c.tools or "") for c in made(tmp_path)] == [
        [{"name": "f", "parameters": {"x": 1}}],
        [{"name": "g", "strict": True}],
    ]
    assert [c.id for c in made(tmp_path)] == ["set-1", "set-2"]


def test_turns_are_split(tmp_path: Path) -> None:
    source = lines(tmp_path / "c.jsonl", {"messages": [USER, ANSWER, USER, ANSWER]})
    build(source, turns="split", system="Brief.")
    assert [(c.id, form(c)) for c in made(tmp_path)] == [("c-1-t0", "suA"), ("c-1-t1", "suauA")]


def test_a_last_turn_without_loss_is_a_reject(tmp_path: Path) -> None:
    row = {"messages": [USER, ANSWER, USER, {**ANSWER, "weight": 0}]}
    build(lines(tmp_path / "c.jsonl", row, {"messages": [USER, ANSWER]}), turns="last")
    assert [c.id for c in made(tmp_path)] == ["c-2"]
    assert rejects(tmp_path / "out")[0][:2] == ("c-1", "nothing_to_learn")


def test_columns_are_named(tmp_path: Path) -> None:
    source = lines(tmp_path / "c.jsonl", {"ask": "q", "reply": "a", "why": "s"})
    keys = {"prompt": "ask", "response": "reply", "system": "why"}
    build(source, keys=keys)
    assert [m["content"] for m in made(tmp_path)[0].messages] == ["s", "q", "a"]
    assert build(source, keys=keys).up_to_date
    with pytest.raises(UserError, match="made with other settings: keys was"):
        build(source, keys={"prompt": "ask", "response": "reply"})


def test_columns_that_are_not_there_are_said(tmp_path: Path) -> None:
    source = lines(tmp_path / "c.jsonl", {"text": "q a"})
    with pytest.raises(UserError, match=r"no columns with turns; it has text"):
        build(source)
    with pytest.raises(UserError, match="no column chat"):
        build(source, keys={"messages": "chat"})
    with pytest.raises(UserError, match="in one column or in two"):
        build(source, keys={"messages": "text", "response": "text"})
    (tmp_path / "none.json").write_text("[]")
    with pytest.raises(UserError, match="has no rows"):
        build(tmp_path / "none.json")


@pytest.mark.parametrize("settings", [{"style": "retry"}, {"style": "chain"}, {"fallback": "gold"}])
def test_what_takes_problems_is_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    source = lines(tmp_path / "c.jsonl", {"messages": [USER, ANSWER]})
    with pytest.raises(UserError, match="not made by llmpipe"):
        build(source, **settings)
    with pytest.raises(UserError, match="nothing was sampled of it"):
        run(Config(), source, tmp_path / "out", Mode(), problems=tmp_path)
