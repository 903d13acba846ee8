"""The options of pack, as a user gives them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from helpers import make_artifact

from llmpipe.core.records import Conversation

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def test_long_conversations_ranks_and_shards(
    llmpipe: Llmpipe, tmp_path: Path, smol_model: Path
) -> None:
    rows = [
        Conversation(
            id=f"c{i}",
            problem_id=None,
            source="made",
            messages=[],
            token_ids=[1] * 20,
            loss_mask=[0] * 5 + [1] * 15,
        )
        for i in range(3)
    ]
    make_artifact(tmp_path / "sft", rows)
    options = ["--tokenizer", smol_model, "--max-length", 16, "--overlong", "split"]
    options += ["--pad-to-multiple-of", 4, "--sequence-parallel", 8, "--shard-rows", 2]
    said = json.loads(llmpipe("pack", "sft", "-o", "packed", *options, "--json").stdout)
    assert (said["rows"], said["segments"], said["cut"], said["rank_slices"]) == (4, 6, 3, 32)
    assert (said["tokens"], said["padding_tokens"]) == (60, 4)
    files = sorted(file.name for file in (tmp_path / "packed/data").iterdir())
    assert files == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    refused = llmpipe("pack", "sft", "-o", "odd", *options, "--max-length", 15, code=2).stderr
    assert "--max-length 8" in refused
