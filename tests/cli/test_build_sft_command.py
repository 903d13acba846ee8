"""The options of build-sft reach the stage; what doesn't fit is one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def test_columns_and_turns_are_chosen(llmpipe: Llmpipe, tmp_path: Path) -> None:
    rows = [{"ask": "q", "reply": "a", "hint": "s", "can": [{"name": "f"}]}, {"ask": "q"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keys = ["--prompt-key", "ask", "--response-key", "reply", "--system-key", "hint"]
    done = llmpipe(
        *("build-sft", "rows.jsonl", "-o", "sft", *keys, "--tools-key", "can"),
        *("--turns", "split", "--json"),
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["rows"], said["dropped"]) == (1, {"no_messages": 1})
    (row,) = pq.read_table(tmp_path / "sft/data").to_pylist()
    assert row["id"] == "rows-1-t0"
    assert [m["content"] for m in row["messages"]] == ["s", "q", "a"]
    assert json.loads(row["tools"]) == [{"name": "f"}]
    for arguments, words in (
        (["--style", "retry"], "not made by llmpipe"),
        (["--mask-mastered", "0.9"], "a probability, an entropy and a tokenizer"),
        (["--tokenizer", "no/such"], "llmpipe download no/such"),
    ):
        failed = llmpipe("build-sft", "rows.jsonl", "-o", "x", *keys, *arguments, code=2)
        assert words in failed.stderr
