"""Loss weights, and what `pack` says of templates that change what is learnt."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import make_artifact, rejects

from llmpipe.algo.chat import Chat, ChatTokenizer, Encoded
from llmpipe.algo.prompts import load_chat_tokenizer
from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode, Result
from llmpipe.stages.pack import Config, run

FORGETFUL = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}\
{% else %}{{ m.content }}{% endif %}<|im_end|>
{% endfor %}"""


def conversation(name: str, *contents: str, untrained: tuple[int, ...] = ()) -> Conversation:
    return Conversation(
        id=name,
        problem_id=None,
        source="made",
        messages=[
            {
                "role": "assistant" if i % 2 else "user",
                "content": content,
                "train": bool(i % 2) and i not in untrained,
            }
            for i, content in enumerate(contents)
        ],
    )


def packed(
    tmp_path: Path, made: list[Conversation], tokenizer: Path, **settings: object
) -> tuple[list[PackedRow], Result]:
    source = make_artifact(tmp_path / "sft", made)
    config = Config(**{"max_length": 256, "loss_weights": True, **settings})  # type: ignore[arg-type]
    result = run(config, [source], tokenizer, tmp_path / "packed", Mode())
    return list(Artifact.open(tmp_path / "packed").iter_rows(PackedRow)), result


def weight_of_runs(rows: list[PackedRow]) -> list[float]:
    """The sum of the weights of each stretch of learnt tokens; they are equal within it."""
    sums = []
    for row in rows:
        labels, weights = np.array(row.labels), np.array(row.loss_weights, np.float32)
        assert len(weights) == len(labels)
        assert not weights[labels == -100].any()
        edges = np.flatnonzero(np.diff(labels != -100, prepend=False, append=False))
        for first, end in edges.reshape(-1, 2):
            assert np.ptp(weights[first:end]) == 0
            sums.append(float(weights[first:end].sum()))
    return sums


def test_every_turn_weighs_as_much_and_every_token_1_on_average(
    tmp_path: Path, smol_model: Path
) -> None:
    made = [conversation(f"c{i}", "Q?", "so " * (1 + i), "And?", "Yes.") for i in range(20)]
    made.append(conversation("part", "Q?", "No loss here.", "And?", "Here.", untrained=(1,)))
    rows, result = packed(tmp_path, made, smol_model, pad_to_multiple_of=8)
    sums = weight_of_runs(rows)
    assert len(sums) == result.figures["trained_turns"] == 41
    each = result.figures["trained_tokens"] / 41
    assert sums == pytest.approx([each] * 41, rel=1e-6)
    assert sum(sums) == pytest.approx(result.figures["trained_tokens"], rel=1e-6)


def test_a_turn_that_is_cut_weighs_as_much_by_what_is_kept_of_it(
    tmp_path: Path, smol_model: Path
) -> None:
    made = [conversation("long", "Q?", "so " * 150), conversation("short", "Q?", "Yes.")]
    rows, result = packed(tmp_path / "a", made, smol_model, max_length=64, overlong="split")
    sums = weight_of_runs(rows)
    each = result.figures["trained_tokens"] / 2
    assert result.figures["trained_turns"] == 2
    assert result.figures["segments"] == len(sums) > 2
    short = [s for s in sums if s == pytest.approx(each, rel=1e-6)]
    assert len(short) == 1
    assert sum(sums) == pytest.approx(2 * each, rel=1e-6)

    rows, result = packed(tmp_path / "b", made, smol_model, max_length=64, overlong="truncate")
    each = result.figures["trained_tokens"] / 2
    assert weight_of_runs(rows) == pytest.approx([each] * 2, rel=1e-6)


def test_tokens_that_are_masked_one_by_one_without_messages_are_one_turn(
    tmp_path: Path, smol_model: Path
) -> None:
    single = Conversation(
        id="single",
        problem_id=None,
        source="made",
        messages=[],
        token_ids=[1, 2, 3, 4, 5, 6],
        loss_mask=[1, 1, 0, 1, 0, 1],
    )
    (row,), result = packed(tmp_path, [single], smol_model)
    assert row.labels == [-100, 2, -100, 4, -100, 6]
    assert row.loss_weights == [0, 1, 0, 1, 0, 1]
    assert result.figures["trained_turns"] == 1


def masked_alternately(made: Conversation, tokenizer: Path) -> Conversation:
    """Of the tokens that are learnt, every other one without loss."""
    (encoded,) = ChatTokenizer(load_chat_tokenizer(tokenizer)).encode(
        [Chat(messages=made.messages)]
    )
    assert isinstance(encoded, Encoded)
    loss = encoded.loss & (np.arange(len(encoded.loss)) % 2 == 0)
    return replace(made, token_ids=encoded.input_ids.tolist(), loss_mask=loss.astype(int).tolist())


def test_turns_whose_single_tokens_are_masked_weigh_as_much_each(
    tmp_path: Path, smol_model: Path
) -> None:
    made = masked_alternately(conversation("c", "Q?", "so " * 40, "And?", "Yes, so."), smol_model)
    (row,), result = packed(tmp_path, [made], smol_model)
    labels, weights = np.array(row.labels), np.array(row.loss_weights)
    learnt = np.flatnonzero(np.array(made.loss_mask))
    assert np.flatnonzero(labels != -100).tolist() == learnt.tolist()
    assert np.flatnonzero(weights).tolist() == learnt.tolist()
    assert result.figures["trained_turns"] == 2
    between = row.input_ids.index(load_chat_tokenizer(smol_model).eos_token_id, int(learnt[0])) + 1
    each = len(learnt) / 2
    assert [weights[:between].sum(), weights[between:].sum()] == pytest.approx([each] * 2)


def test_tokens_of_another_tokenizer_are_not_packed(tmp_path: Path, smol_model: Path) -> None:
    made = masked_alternately(conversation("c", "Q?", "Yes."), smol_model)
    other = replace(made, id="other", token_ids=[5, *list(made.token_ids or ())[1:]])
    (row,), result = packed(tmp_path, [made, other], smol_model)
    assert row.input_ids == made.token_ids
    size = len(row.input_ids)
    detail = f"masked as {size} tokens; this tokenizer makes {size} others"
    assert rejects(tmp_path / "packed") == [("other", "tokens_differ", detail)]
    assert result.figures["conversations"] == 1


def test_turns_that_lose_their_thinking_are_counted_and_told_of(
    tmp_path: Path, smol_model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "forgetful"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(smol_model / name, folder)
    (folder / "chat_template.jinja").write_text(FORGETFUL)
    thoughts = ["a", "<think>hm</think>one", "b", "<think>so</think>two"]
    made = [conversation("both", *thoughts), conversation("one", *thoughts[:2])]
    with caplog.at_level(logging.WARNING, logger="llmpipe"):
        rows, result = packed(tmp_path, made, folder, loss_weights=False)
    assert all(row.loss_weights is None for row in rows)
    assert result.figures["thoughtless_turns"] == result.figures["rewritten_turns"] == 1
    assert result.figures["trained_turns"] == 3
    assert "leaves out the thinking of 1 of 3 trained turns" in caplog.text

    # Split by turn, they keep it.
    caplog.clear()
    split = [conversation("last", *thoughts, untrained=(1,)), conversation("one", *thoughts[:2])]
    _, result = packed(tmp_path / "split", split, folder)
    assert result.figures["thoughtless_turns"] == 0
    assert "thinking" not in caplog.text
