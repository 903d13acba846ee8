"""What becomes of long conversations, how rows are padded, and how they lie in files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from helpers import make_artifact, rejects

from llmpipe.algo import packing
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode, Result
from llmpipe.stages.pack import Config, run


def masked(name: str, ids: Sequence[int], learnt: Sequence[int]) -> Conversation:
    """A conversation of these tokens; those at the places ``learnt`` carry loss."""
    return Conversation(
        id=name,
        problem_id=None,
        source="made",
        messages=[],
        token_ids=list(ids),
        loss_mask=[int(i in learnt) for i in range(len(ids))],
    )


LONG = masked("long", range(100, 125), [3, 9, 10, 24])
SHORT = masked("short", range(200, 204), [2, 3])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make_artifact(tmp_path / "sft", [LONG, SHORT])


def packed(source: Path, model: Path, out: Path, **config: Any) -> tuple[Result, list[PackedRow]]:
    result = run(Config(**{"max_length": 10, **config}), [source], model, out, Mode())
    return result, list(Artifact.open(out).iter_rows(PackedRow))


def segments(rows: Sequence[PackedRow]) -> list[tuple[list[int], list[int]]]:
    """Ids and learnt ids of each segment, in order."""
    found = []
    for row in rows:
        end = 0
        for size in row.seq_lengths:
            begin, end = end, end + size
            labels = row.labels[begin:end]
            assert labels[0] == -100
            assert list(row.position_ids[begin:end]) == list(range(size))
            found.append((list(row.input_ids[begin:end]), [n for n in labels if n != -100]))
    return sorted(found)


def test_a_long_conversation_is_dropped_by_default(
    tmp_path: Path, source: Path, smol_model: Path
) -> None:
    result, rows = packed(source, smol_model, tmp_path / "out")
    assert rejects(tmp_path / "out") == [("long", "too_long", "25 tokens")]
    assert segments(rows) == [([200, 201, 202, 203], [202, 203])]
    figures = result.figures
    assert (figures["conversations"], figures["segments"], figures["cut"]) == (1, 1, 0)
    assert (figures["tokens"], figures["tokens_lost"], figures["trained_tokens"]) == (4, 25, 2)


def test_or_cut_at_its_end(tmp_path: Path, source: Path, smol_model: Path) -> None:
    result, rows = packed(source, smol_model, tmp_path / "out", overlong="truncate")
    assert segments(rows) == [
        (list(range(100, 110)), [103, 109]),
        ([200, 201, 202, 203], [202, 203]),
    ]
    figures = result.figures
    assert (figures["conversations"], figures["segments"], figures["cut"]) == (2, 2, 1)
    assert (figures["tokens"], figures["tokens_lost"], figures["trained_tokens"]) == (14, 15, 4)


def test_or_split_into_pieces_each_a_segment_of_its_own(
    tmp_path: Path, source: Path, smol_model: Path
) -> None:
    """The second piece begins with its only learnt token, which nothing comes before."""
    result, rows = packed(source, smol_model, tmp_path / "out", overlong="split")
    assert segments(rows) == [
        (list(range(100, 110)), [103, 109]),
        (list(range(120, 125)), [124]),
        ([200, 201, 202, 203], [202, 203]),
    ]
    figures = result.figures
    assert (figures["conversations"], figures["segments"], figures["cut"]) == (2, 3, 1)
    assert (figures["tokens"], figures["tokens_lost"], figures["trained_tokens"]) == (19, 10, 5)


@pytest.mark.parametrize(("overlong", "rows"), [("truncate", 1), ("split", 2)])
def test_what_has_nothing_left_to_learn_is_rejected_by_its_own_reason(
    tmp_path: Path, smol_model: Path, overlong: str, rows: int
) -> None:
    late = masked("late", range(100, 118), [14])
    source = make_artifact(tmp_path / "sft", [late, SHORT, masked("never", range(20), [])])
    result, made = packed(source, smol_model, tmp_path / "out", overlong=overlong)
    found = {name: (reason, detail) for name, reason, detail in rejects(tmp_path / "out")}
    assert found.pop("never") == ("nothing_to_learn", "20 tokens")
    assert len(made) == rows
    if overlong == "split":
        assert not found
        assert (list(range(110, 118)), [114]) in segments(made)
    else:
        assert found == {
            "late": ("answer_cut_off", "18 tokens; what is learnt comes after the first 10")
        }
        assert result.figures["tokens_lost"] == 18


def test_padding_fills_rows_up_and_is_no_segment_of_its_own(
    tmp_path: Path, smol_model: Path
) -> None:
    from transformers import AutoTokenizer

    pad = AutoTokenizer.from_pretrained(smol_model).pad_token_id
    source = make_artifact(
        tmp_path / "sft", [masked(f"c{n}", range(100 * n, 101 * n), [n - 1]) for n in range(2, 12)]
    )
    result, rows = packed(source, smol_model, tmp_path / "out", max_length=24, pad_to_multiple_of=4)
    tokens = sum(range(2, 12))
    for row in rows:
        assert len(row.input_ids) % 4 == 0
        assert len(row.input_ids) == sum(row.seq_lengths) == len(row.labels) <= 24
        begins = [at for at, position in enumerate(row.position_ids) if position == 0]
        assert len(begins) == len(row.seq_lengths)
        whole = sum(row.input_ids[at] // 100 for at in begins)
        assert list(row.input_ids[whole:]) == [pad] * (len(row.input_ids) - whole)
    assert sum(len(row.seq_lengths) for row in rows) == 10
    assert result.figures["padding_tokens"] == sum(len(r.input_ids) for r in rows) - tokens > 0
    assert result.figures["trained_tokens"] == 10
    assert result.figures["utilisation"] == round(tokens / (24 * len(rows)), 6)


def test_sequence_parallel_pads_so_that_each_rank_gets_as_much(
    tmp_path: Path, source: Path, smol_model: Path
) -> None:
    result, rows = packed(
        source,
        smol_model,
        tmp_path / "out",
        max_length=36,
        pad_to_multiple_of=4,
        sequence_parallel=6,
    )
    assert [len(row.input_ids) for row in rows] == [36]  # 29 tokens, to a multiple of 12
    assert result.figures["rank_slices"] == 6
    assert result.figures["padding_tokens"] == 7
    alone, _ = packed(source, smol_model, tmp_path / "alone", max_length=36)
    assert alone.figures["rank_slices"] == alone.figures["padding_tokens"] == 0


def test_files_get_the_rows_asked_for_and_the_same_ones(tmp_path: Path, smol_model: Path) -> None:
    source = make_artifact(
        tmp_path / "sft", [masked(f"c{n}", range(n, n + 9), [8]) for n in range(10)]
    )
    _, plain = packed(source, smol_model, tmp_path / "one")
    _, rows = packed(source, smol_model, tmp_path / "many", shard_rows=4)
    files = sorted((tmp_path / "many" / "data").iterdir())
    assert [file.name for file in files] == [f"train-{i:05d}-of-00003.parquet" for i in range(3)]
    assert [pq.read_metadata(file).num_rows for file in files] == [4, 4, 2]
    assert rows == plain


def test_rows_are_the_same_with_numba_as_without(
    tmp_path: Path, smol_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba", reason="numba is not installed")
    source = make_artifact(
        tmp_path / "sft", [masked(f"c{n}", range(n, n + 2 + n % 60), [1]) for n in range(300)]
    )
    _, by_python = packed(source, smol_model, tmp_path / "one", max_length=64)
    monkeypatch.setattr(packing, "_BY_HAND", 0)
    _, by_numba = packed(source, smol_model, tmp_path / "two", max_length=64)
    assert by_numba == by_python


def test_the_figures_say_how_near_the_rows_are_to_the_fewest(
    tmp_path: Path, smol_model: Path
) -> None:
    source = make_artifact(
        tmp_path / "sft", [masked(f"c{n}", range(n), [1]) for n in (6, 6, 6, 4, 4, 2, 2)]
    )
    result, rows = packed(source, smol_model, tmp_path / "out")
    figures = result.figures
    assert len(rows) == figures["fewest_rows"] == 3
    assert figures["excess_rows"] == 0
    assert figures["utilisation"] == 1.0
    assert (figures["segments_per_row"], figures["most_segments"]) == (2.33, 3)


def test_settings_that_cannot_be_are_refused(
    tmp_path: Path, source: Path, smol_model: Path
) -> None:
    def refused(match: str, hint: str, **config: Any) -> None:
        with pytest.raises(UserError, match=match) as caught:
            packed(source, smol_model, tmp_path / "out", **config)
        assert caught.value.hint == hint

    multiple = "rows of 10 tokens can't be padded to a multiple of"
    refused(f"{multiple} 4", "--max-length 8", pad_to_multiple_of=4)
    refused(f"{multiple} 12", "--max-length 12", pad_to_multiple_of=4, sequence_parallel=6)
    refused("shard-rows is 0", "--shard-rows 1, or leave it out", shard_rows=0)
    refused(
        "sequence-parallel is -1", "--sequence-parallel 1, or leave it out", sequence_parallel=-1
    )
    refused("max-length is 1", "--max-length 4096", max_length=1)


def test_without_a_pad_token_the_end_of_text_pads_and_without_either_nothing(
    tmp_path: Path, source: Path, smol_model: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(smol_model / name, folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    tokens = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    ids = {token["content"]: token["id"] for token in tokens}
    del settings["pad_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    _, (row,) = packed(source, folder, tmp_path / "out", max_length=8, pad_to_multiple_of=8)
    assert list(row.input_ids[4:]) == [ids[settings["eos_token"]]] * 4
    del settings["eos_token"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="neither a pad token nor an end of text"):
        packed(source, folder, tmp_path / "none", max_length=8, pad_to_multiple_of=8)
    packed(source, folder, tmp_path / "none", max_length=8)
