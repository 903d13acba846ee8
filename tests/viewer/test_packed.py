from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

from helpers import make_artifact

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Conversation
from llmpipe.core.run import Mode
from llmpipe.stages.pack import Config, run
from llmpipe.viewer.library import Library
from llmpipe.viewer.pages import Pages


def test_a_sample_that_is_masked_by_token_is_shown_by_token(
    tmp_path: Path,
) -> None:
    turns = [
        {"role": "user", "content": "Hi", "train": False},
        {"role": "assistant", "content": "Hello", "train": True},
    ]
    row = Conversation(
        id="c",
        problem_id=None,
        source="made",
        messages=turns,  # type: ignore[arg-type]
        token_ids=[11, 12, 13, 14],
        loss_mask=[0, 1, 0, 1],
    )
    made = Artifact.open(make_artifact(tmp_path / "sft", [row]))
    page = Pages(Library(tmp_path, lambda: [made]), "").row({"artifact": "sft", "n": "0"})
    assert re.findall(r'<span class="learnt">(.*?) </span>', page) == ["12", "14"]
    assert "2 of 4 with loss" in page
    assert "Numbers only" in page


def test_learnt_tokens_and_segments_are_told_apart(smol_model: Path, tmp_path: Path) -> None:
    names = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json")
    for folder in ("model", "kept"):
        (tmp_path / folder).mkdir()
        for name in names:
            shutil.copy(smol_model / name, tmp_path / folder)
    rows = [
        Conversation(
            id=name,
            problem_id=None,
            source="made",
            messages=[
                {"role": "user", "content": "Say it.", "train": False},
                {"role": "assistant", "content": f"<b>{name}</b> 🦊", "train": True},
            ],
        )
        for name in ("one", "two")
    ]
    source = make_artifact(tmp_path / "sft", rows)
    run(Config(max_length=200), [source], tmp_path / "model", tmp_path / "packed", Mode())
    library = Library(tmp_path, lambda: [Artifact.open(tmp_path / "packed")])
    query = {"artifact": "packed", "n": "0"}

    def learnt(page: str) -> list[str]:
        found = re.findall(r'<span class="learnt">(.*?)</span>', page, re.DOTALL)
        return [unescape(re.sub("</?b>", "", text)) for text in found[1:]]  # after the legend

    page = Pages(library, "").row(query)
    assert page.count('class="turn segment"') == 2
    assert learnt(page) == [f"<b>{name}</b> 🦊<|im_end|>" for name in ("one", "two")]
    assert "<b>&lt;|im_start|&gt;</b>user\nSay it." in page

    (tmp_path / "model").rename(tmp_path / "moved")
    artifact = tmp_path / "packed"
    artifact.rename(tmp_path / "again")  # another place: the tokenizer is not remembered
    library = Library(tmp_path, lambda: [Artifact.open(tmp_path / "again")])
    query["artifact"] = "again"
    assert "Numbers only" in Pages(library, "").row(query)
    given = Pages(library, "", str(tmp_path / "kept")).row(query)
    assert learnt(given) == learnt(page)
