"""The loss and the gradients of a step are those of the conversations one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode
from llmpipe.stages import pack
from llmpipe.trainers._job import Job, Settings

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("peft", reason="peft is not installed")

pytestmark = pytest.mark.slow

TALKS = [
    ["What is 1+1?", "It is 2.", "And 2+2?", "Four, of course.", "And 3+3?", "6"],
    ["Name a colour.", "Red", "Why?", "It is the first that I thought of, no more."],
    ["Say something.", "Something."],
    ["And again?", "No, once is enough, and more than enough.", "Please.", "No."],
]


@pytest.fixture(scope="module")
def rows(smol_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two packed rows of several conversations each, with loss weights."""
    folder = tmp_path_factory.mktemp("rows")
    made = [
        Conversation(
            id=f"c{n}",
            problem_id=None,
            source="made",
            messages=[
                {"role": "assistant" if i % 2 else "user", "content": text, "train": bool(i % 2)}
                for i, text in enumerate(talk)
            ],
        )
        for n, talk in enumerate(TALKS)
    ]
    source = make_artifact(folder / "sft", made)
    config = pack.Config(max_length=144, loss_weights=True)
    out = pack.run(config, [source], smol_model, folder / "packed", Mode()).out
    assert [len(row.seq_lengths) > 1 for row in segments_of(out)] == [True, True]
    return out


def segments_of(packed: Path) -> list[PackedRow]:
    return list(Artifact.open(packed).iter_rows(PackedRow))


def step(model: Path, rows: Path, folder: Path, *, weighted: bool) -> tuple[float, dict[str, Any]]:
    """The loss and the gradients of a train batch of one row at a time, accumulated over both."""
    from llmpipe.trainers.sft import prepare

    settings = Settings(
        learning_rate=1e-5,
        dtype="float32",
        gradient_accumulation=2,
        gradient_checkpointing=False,
        max_steps=1,
    )
    job = Job(
        settings=settings,
        model=str(model),
        base_name="smol",
        rows=[str(file) for file in Artifact.open(rows).data_files()],
        held_out=[],
        weighted=weighted,
        folder=str(folder),
    )
    trainer, _ = prepare(job, begins=True)
    batches, count = trainer.get_batch_samples(iter(trainer.get_train_dataloader()), 2, "cpu")
    assert len(batches) == 2
    trainer.current_gradient_accumulation_steps = 2
    losses = [trainer.training_step(trainer.model, batch, count) for batch in batches]
    return float(sum(losses)), gradients(trainer.model)


def gradients(model: Any) -> dict[str, Any]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.fixture(scope="module")
def alone(smol_model: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(smol_model, dtype=torch.float32)


def targets(model: Any, packed: Path) -> Iterator[tuple[Any, Any]]:
    """For each conversation, given alone, its losses and its weights a trained token."""
    for row in segments_of(packed):
        start = 0
        for length in row.seq_lengths:
            ids, labels, weights = (
                torch.tensor(column[start : start + length])
                for column in (row.input_ids, row.labels, row.loss_weights)
            )
            logits = model(ids[None], use_cache=False).logits[0, :-1]
            losses = -logits.log_softmax(-1).gather(-1, ids[1:, None])[:, 0]
            trained = labels[1:] != -100
            yield losses[trained], weights[1:][trained]
            start += length


@pytest.mark.parametrize("weighted", [False, True])
def test_a_packed_step_is_that_of_conversations_alone(
    alone: Any, smol_model: Path, rows: Path, tmp_path: Path, weighted: bool
) -> None:
    alone.zero_grad()
    losses, weights = (torch.cat(each) for each in zip(*targets(alone, rows), strict=True))
    if not weighted:
        weights = torch.ones_like(weights)
    expected = (losses * weights).sum() / weights.sum()
    expected.backward()
    expected = float(expected.detach())
    wanted = gradients(alone)

    loss, found = step(smol_model, rows, tmp_path, weighted=weighted)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        off = (found[name] - gradient).norm() / gradient.norm()
        assert off < 1e-3, name


def test_only_what_is_trained_is_scored(
    smol_model: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl.trainer import utils

    scored = []

    original = utils._ChunkedLogProbFunction

    class Watched(original):  # type: ignore[misc, valid-type]
        @staticmethod
        def forward(context: Any, hidden: Any, *rest: Any) -> Any:
            scored.append(len(hidden))
            return original.forward(context, hidden, *rest)

    monkeypatch.setattr(utils, "_ChunkedLogProbFunction", Watched)
    step(smol_model, rows, tmp_path, weighted=False)
    trained = [sum(label != -100 for label in row.labels[1:]) for row in segments_of(rows)]
    assert sorted(scored) == sorted(trained)
