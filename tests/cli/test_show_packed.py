from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import make_artifact
from rich.console import Console

from llmpipe.cli.packed import PackedText
from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode
from llmpipe.stages.pack import Config, run

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def conversation(name: str, *contents: str) -> Conversation:
    return Conversation(
        id=name,
        problem_id=None,
        source="made",
        messages=[
            {"role": "assistant" if i % 2 else "user", "content": c, "train": bool(i % 2)}
            for i, c in enumerate(contents)
        ],
    )


@pytest.fixture
def packed(smol_model: Path, tmp_path: Path) -> Path:
    """Rows whose tokenizer can be moved away."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"):
        shutil.copy(smol_model / name, folder)
    made = [
        conversation("a", "What is [1]+1?", "It is \x1b[31m2 🦊.", "Sure?", "Yes."),
        *(conversation(f"b{i}", "Count.", "and one more " * 60) for i in range(4)),
    ]
    config = Config(max_length=1200, loss_weights=True)
    source = make_artifact(tmp_path / "sft", made)
    run(config, [source], folder, tmp_path / "packed", Mode())
    return tmp_path / "packed"


def printed(packed: Path, *, whole: bool, terminal: bool) -> str:
    artifact = Artifact.open(packed)
    (row,) = artifact.iter_rows(PackedRow)
    out = Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=80,
        color_system="standard" if terminal else None,
    )
    PackedText(artifact, None).print(0, row, out, whole=whole)
    return out.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_what_is_learnt_stands_in_brackets_where_there_are_no_colours(packed: Path) -> None:
    out = printed(packed, whole=True, terminal=False)
    # Special tokens are there, and the header's line break is outside.
    assert "<|im_start|>user\nWhat is [1]+1?<|im_end|>\n<|im_start|>assistant\n⟦It is" in out
    # What a row says can't command the terminal.
    assert "⟦It is �[31m2 🦊.<|im_end|>⟧\n<|im_start|>user\nSure?" in out
    assert "⟦Yes.<|im_end|>⟧" in out
    assert "of 5: " in out
    assert " learnt, weights " in out
    assert out.count("and one more " * 60) == 4
    assert "\x1b" not in out


def test_what_is_learnt_is_green_on_a_terminal(packed: Path) -> None:
    out = printed(packed, whole=True, terminal=True)
    assert "\x1b[32mYes.\x1b[0m\x1b[1;32m<|im_end|>\x1b[0m" in out
    assert "⟦" not in out


def test_by_default_the_first_conversations_are_shown_and_abridged(packed: Path) -> None:
    out = printed(packed, whole=False, terminal=False)
    assert "and one more " * 60 not in out
    assert "tokens ...]" in out
    assert "[2 more; --row 0 prints all]" in out


def test_a_tokenizer_that_was_moved_is_asked_for(
    llmpipe: Llmpipe, packed: Path, tmp_path: Path
) -> None:
    (tmp_path / "model").rename(tmp_path / "moved")
    done = llmpipe("show", packed)
    assert "which is gone" in done.stderr
    assert "input_ids" in done.stdout
    assert "which is gone" in llmpipe("show", packed, "--row", 0, code=2).stderr
    assert "⟦Yes.<|im_end|>⟧" in llmpipe("show", packed, "--row", 0, "--tokenizer", "moved").stdout


def test_a_row_that_is_not_there(llmpipe: Llmpipe, packed: Path, tmp_path: Path) -> None:
    assert "has 1 rows" in llmpipe("show", packed, "--row", 1, code=2).stderr
    out = llmpipe("show", tmp_path / "sft", "--row", 1).stdout
    assert "b0" in out
    assert "What is" not in out
