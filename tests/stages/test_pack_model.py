"""What packed rows are to a real model: their parts don't mix, and merged turns are split ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import make_artifact

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode, Result
from llmpipe.stages.pack import Config, check, run

torch = pytest.importorskip("torch", reason="torch is not installed")

TALKS = {
    "sums": ["What is 1+1?", "It is 2.", "And 2+2?", "Four, of course.", "And 3+3?", "6"],
    "colours": ["Name a colour.", "Red", "Why?", "It is the first that I thought of, no more."],
    "one": ["Say something.", "Something."],
}
UNTRAINED = {("colours", 1)}  # the answers that carry no loss


def conversation(name: str, turns: int, trained: set[int]) -> Conversation:
    return Conversation(
        id=f"{name}-{turns}",
        problem_id=None,
        source="made",
        messages=[
            {"role": "assistant" if i % 2 else "user", "content": text, "train": i in trained}
            for i, text in enumerate(TALKS[name][:turns])
        ],
    )


def answers(name: str) -> list[int]:
    return [i for i in range(1, len(TALKS[name]), 2) if (name, i) not in UNTRAINED]


def packed(tmp_path: Path, made: list[Conversation], model: Path, weights: bool) -> Result:
    source = make_artifact(tmp_path / "sft", made)
    config = Config(max_length=256, loss_weights=weights)
    return run(config, [source], model, tmp_path / "packed", Mode())


@pytest.fixture(scope="module")
def merged(smol_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A conversation a row of data, with loss on each of its answers."""
    made = [conversation(name, len(talk), {*answers(name)}) for name, talk in TALKS.items()]
    return packed(tmp_path_factory.mktemp("merged"), made, smol_model, weights=True)


@pytest.fixture(scope="module")
def split(smol_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A row of data an answer, with what was said before it."""
    made = [conversation(name, i + 1, {i}) for name in TALKS for i in answers(name)]
    return packed(tmp_path_factory.mktemp("split"), made, smol_model, weights=False)


@pytest.fixture(scope="module")
def model(smol_model: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(smol_model, dtype=torch.float32).eval()


def targets(model: Any, result: Result) -> Iterator[list[tuple[bytes, float, float]]]:
    """For each segment its targets: all tokens through the target, its loss, and its weight."""
    for row in Artifact.open(result.out).iter_rows(PackedRow):
        with torch.inference_mode():
            logits = model(
                input_ids=torch.tensor([row.input_ids]),
                position_ids=torch.tensor([row.position_ids]),
                use_cache=False,
            ).logits[0]
        logprobs = logits.log_softmax(-1)
        ids, start = np.array(row.input_ids), 0
        for length in row.seq_lengths:
            yield [
                (
                    ids[start : i + 1].tobytes(),
                    -float(logprobs[i - 1, row.labels[i]]),
                    row.loss_weights[i] if row.loss_weights else 1.0,
                )
                for i in range(start, start + length)
                if row.labels[i] != -100
            ]
            start += length


def test_merged_turns_train_the_targets_of_split_ones_with_their_loss(
    model: Any, merged: Result, split: Result
) -> None:
    one = [target for segment in targets(model, merged) for target in segment]
    samples = [*targets(model, split)]
    other = {text: loss for sample in samples for text, loss, _ in sample}

    # The same tokens after the same text, with the same log-probability.
    assert {text for text, _, _ in one} == other.keys()
    assert len(one) == len(other) == split.figures["trained_tokens"]
    for text, loss, _ in one:
        assert loss == pytest.approx(other[text], abs=1e-4)
    assert merged.figures["tokens"] < 0.75 * split.figures["tokens"]

    # A trainer that takes the mean of all tokens has the same loss without weights, and one that
    # takes the mean of samples' means has it with them; the two are not the same.
    mean_of_tokens = np.mean([*other.values()])
    mean_of_samples = np.mean([np.mean([loss for _, loss, _ in sample]) for sample in samples])
    losses, weights = np.array([(loss, weight) for _, loss, weight in one]).T
    assert losses.mean() == pytest.approx(mean_of_tokens, abs=1e-4)
    assert (losses * weights).sum() / weights.sum() == pytest.approx(mean_of_samples, abs=1e-4)
    assert abs(mean_of_samples - mean_of_tokens) > 0.01


def test_the_check_finds_the_parts_of_a_row_apart(merged: Result, smol_model: Path) -> None:
    result = check(merged, smol_model)
    assert result.exit_code == 0
    found = result.figures["check"]
    assert found["agree"]
    assert found["logit_difference"] < 0.001
    assert found["logit_difference_mixed"] > 1
    assert found["loss_packed"] == pytest.approx(found["loss_alone"], abs=1e-4)
    assert found["segments"] == 3


def test_the_check_finds_parts_that_mix(merged: Result, smol_model: Path, tmp_path: Path) -> None:
    rows = [
        replace(row, position_ids=[*range(len(row.input_ids))])
        for row in Artifact.open(merged.out).iter_rows(PackedRow)
    ]
    mixed = replace(merged, out=make_artifact(tmp_path / "mixed", rows))
    result = check(mixed, smol_model)
    assert result.exit_code == 3
    assert "see each other" in (result.attention or "")
    assert result.figures["check"]["logit_difference"] > 1


def test_without_weights_there_is_nothing_to_check_with(
    merged: Result, smol_model: Path, tmp_path: Path
) -> None:
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(smol_model / name, tmp_path)
    with pytest.raises(UserError, match="no weights to check the rows with") as caught:
        check(merged, tmp_path)
    assert "--check" in caught.value.hint


def test_rows_of_one_conversation_need_no_check(smol_model: Path, tmp_path: Path) -> None:
    made = [conversation("one", 2, {1})]
    result = packed(tmp_path, made, smol_model, weights=False)
    assert check(result, smol_model) == result
