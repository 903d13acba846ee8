from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Conversation, PackedRow, Rollout
from llmpipe.core.run import Mode
from llmpipe.stages.pack import Config, run


@pytest.fixture(scope="module")
def tokenizer_folder(smol_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer's files alone, with a stand-in for weights."""
    folder = tmp_path_factory.mktemp("tokenizer")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"):
        shutil.copy(smol_model / name, folder)
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture(scope="module")
def tokenizer(smol_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smol_model)


def conversation(name: str, *contents: str, train: bool = True) -> Conversation:
    return Conversation(
        id=name,
        problem_id=None,
        source="made",
        messages=[
            {
                "role": "assistant" if i % 2 else "user",
                "content": content,
                "train": train and bool(i % 2),
            }
            for i, content in enumerate(contents)
        ],
    )


def some(count: int) -> list[Conversation]:
    """Conversations of many lengths, each with two turns of its own words."""
    return [
        conversation(
            f"c{i}",
            f"Question {i}?",
            f"Answer {i}: " + "so " * (i * 7 % 60),
            f"And then {i}?",
            f"Then {i} again.",
        )
        for i in range(count)
    ]


def rows_of(out: Path) -> list[PackedRow]:
    return list(Artifact.open(out).iter_rows(PackedRow))


def segments(rows: Sequence[PackedRow]) -> list[tuple[list[int], list[int], list[int]]]:
    """Each conversation's input ids, labels and positions."""
    cut = []
    for row in rows:
        ends = np.cumsum(row.seq_lengths).tolist()
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            cut.append(
                (
                    list(row.input_ids[start:end]),
                    list(row.labels[start:end]),
                    list(row.position_ids[start:end]),
                )
            )
    return cut


def test_every_conversation_is_packed_once_whole_and_masked(
    tmp_path: Path, tokenizer_folder: Path, tokenizer: Any
) -> None:
    made = some(600)  # more than one batch
    source = make_artifact(tmp_path / "sft", made)
    out = tmp_path / "packed"
    result = run(Config(max_length=512), [source], tokenizer_folder, out, Mode())
    rows = rows_of(out)

    wanted = {
        tuple(tokenizer.apply_chat_template(c.messages, tokenize=True, return_dict=False)): "".join(
            f"{m['content']}<|im_end|>" for m in c.messages if m["train"]
        )
        for c in made
    }
    got = segments(rows)
    assert len(got) == len(made)
    for ids, labels, positions in got:
        learnt = [token for token in labels if token != -100]
        assert tokenizer.decode(learnt) == wanted.pop(tuple(ids))
        assert [token for token, label in zip(ids, labels, strict=True) if label != -100] == learnt
        assert labels[0] == -100
        assert positions == list(range(len(ids)))
    assert not wanted

    for row in rows:
        assert sum(row.seq_lengths) == len(row.input_ids) <= 512
        assert len(row.labels) == len(row.position_ids) == len(row.input_ids)
        assert row.loss_weights is None
    tokens = sum(len(row.input_ids) for row in rows)
    assert result.rows == len(rows)
    assert result.figures["conversations"] == 600
    assert result.figures["tokens"] == tokens
    assert result.figures["trained_tokens"] == sum(
        label != -100 for row in rows for label in row.labels
    )
    assert result.figures["utilisation"] == round(tokens / (512 * len(rows)), 6) > 0.95
    assert result.figures["max_length"] == 512


def test_the_columns_are_plain_int32_lists(tmp_path: Path, tokenizer_folder: Path) -> None:
    source = make_artifact(tmp_path / "sft", some(3))
    out = tmp_path / "packed"
    run(Config(max_length=512), [source], tokenizer_folder, out, Mode())
    schema = pq.read_table(out / "data").schema
    for name in ("input_ids", "labels", "position_ids", "seq_lengths"):
        assert schema.field(name).type.value_type == pa.int32()


def test_several_sources_share_rows_and_the_seed_shuffles_them(
    tmp_path: Path, tokenizer_folder: Path
) -> None:
    sources = [
        make_artifact(tmp_path / "a", some(80)),
        make_artifact(tmp_path / "b", [conversation("b", "From where?", "From the second.")]),
    ]

    def packed(name: str, seed: int) -> list[PackedRow]:
        config = Config(max_length=256, seed=seed)
        result = run(config, sources, tokenizer_folder, tmp_path / name, Mode())
        assert result.figures["conversations"] == 81
        return rows_of(tmp_path / name)

    first = packed("one", 0)
    assert packed("two", 0) == first
    other = packed("three", 1)
    assert other != first
    assert sorted(list(r.input_ids) for r in other) == sorted(list(r.input_ids) for r in first)


def test_what_cannot_be_packed_is_rejected_and_nothing_is_cut(
    tmp_path: Path, tokenizer_folder: Path
) -> None:
    source = make_artifact(
        tmp_path / "sft",
        [
            conversation("long", "q", "word " * 300),
            conversation("silent", "q", "a", train=False),
            conversation("good", "q", "a"),
        ],
    )
    out = tmp_path / "packed"
    result = run(Config(max_length=128), [source], tokenizer_folder, out, Mode())
    (long, silent) = rejects(out)
    assert long[:2] == ("long", "too_long")
    assert int(long[2].removesuffix(" tokens")) > 300
    assert silent[:2] == ("silent", "nothing_to_learn")
    assert result.rows == 1


def test_a_limit_of_exactly_the_length_is_kept(tmp_path: Path, tokenizer_folder: Path) -> None:
    source = make_artifact(tmp_path / "sft", [conversation("good", "q", "a")])
    result = run(Config(max_length=512), [source], tokenizer_folder, tmp_path / "a", Mode())
    length = result.figures["tokens"]
    exact = run(Config(max_length=length), [source], tokenizer_folder, tmp_path / "b", Mode())
    assert (exact.rows, exact.figures["utilisation"]) == (1, 1.0)
    short = run(Config(max_length=length - 1), [source], tokenizer_folder, tmp_path / "c", Mode())
    assert (short.rows, short.exit_code) == (0, 3)
    assert "too_long" in (short.attention or "")


def test_tokens_masked_one_by_one_stand_as_they_are(tmp_path: Path, tokenizer_folder: Path) -> None:
    masked = Conversation(
        id="m",
        problem_id=None,
        source="made",
        messages=[],
        token_ids=[5, 6, 7, 8],
        loss_mask=[1, 0, 1, 1],
    )
    source = make_artifact(tmp_path / "sft", [conversation("a", "q", "a"), masked])
    run(Config(max_length=512), [source], tokenizer_folder, tmp_path / "packed", Mode())
    assert ([5, 6, 7, 8], [-100, -100, 7, 8], [0, 1, 2, 3]) in segments(
        rows_of(tmp_path / "packed")
    )


def test_a_template_that_refuses_is_a_reject(tmp_path: Path, tokenizer_folder: Path) -> None:
    picky = shutil.copytree(tokenizer_folder, tmp_path / "picky")
    (picky / "chat_template.jinja").write_text("{{ raise_exception('not this') }}")
    source = make_artifact(tmp_path / "sft", [conversation("a", "q", "a")])
    result = run(Config(max_length=512), [source], picky, tmp_path / "packed", Mode())
    assert rejects(tmp_path / "packed") == [("a", "template_refuses", "not this")]
    assert result.exit_code == 3


def test_only_the_tokenizers_own_files_count(tmp_path: Path, tokenizer_folder: Path) -> None:
    folder = shutil.copytree(tokenizer_folder, tmp_path / "model")
    source = make_artifact(tmp_path / "sft", some(5))
    out = tmp_path / "packed"
    run(Config(max_length=512), [source], folder, out, Mode())
    assert not (tmp_path / "packed.partial").exists()

    (folder / "model.safetensors").write_bytes(b"trained further")
    assert run(Config(max_length=512), [source], folder, out, Mode()).up_to_date

    settings = folder / "tokenizer_config.json"
    changed = json.loads(settings.read_text()) | {"added": True}
    settings.write_text(json.dumps(changed))
    assert not run(Config(max_length=512), [source], folder, out, Mode()).up_to_date
    with pytest.raises(UserError, match="max_length was 512, is now 256"):
        run(Config(max_length=256), [source], folder, out, Mode())


def test_a_folder_without_a_tokenizer_or_a_template_is_refused(
    tmp_path: Path, tokenizer_folder: Path
) -> None:
    source = make_artifact(tmp_path / "sft", some(1))

    def refused(folder: Path, match: str) -> None:
        with pytest.raises(UserError, match=match) as caught:
            run(Config(max_length=512), [source], folder, tmp_path / "packed", Mode())
        assert caught.value.hint
        assert not (tmp_path / "packed").exists()

    refused(tmp_path / "nothing", "there is no tokenizer folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "has no tokenizer files")
    base = shutil.copytree(tokenizer_folder, tmp_path / "base")
    (base / "chat_template.jinja").unlink()
    refused(base, "has no chat template")
    damaged = shutil.copytree(tokenizer_folder, tmp_path / "damaged")
    (damaged / "tokenizer.json").write_text("{")
    refused(damaged, "tokenizer")


def test_other_rows_are_refused(tmp_path: Path, tokenizer_folder: Path) -> None:
    source = make_artifact(tmp_path / "rollouts", [], record=Rollout)
    with pytest.raises(UserError, match="holds Rollout rows"):
        run(Config(max_length=512), [source], tokenizer_folder, tmp_path / "packed", Mode())


def test_conversations_that_come_again_are_packed_again_and_said(
    tokenizer_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = make_artifact(tmp_path / "a", some(5))
    more = make_artifact(tmp_path / "b", some(3))
    with caplog.at_level("WARNING", "llmpipe"):
        result = run(
            Config(max_length=512), [source, more], tokenizer_folder, tmp_path / "out", Mode()
        )
    assert result.figures["conversations"] == 8
    assert "3 conversations come again" in caplog.text
