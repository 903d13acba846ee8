"""TRL's own trainer on what is exported for it: the same tokens learnt, and the same loss."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Conversation, PackedRow
from llmpipe.core.run import Mode
from llmpipe.stages import export, pack

pytestmark = pytest.mark.slow

# SmolLM2's own, with the marks by which TRL finds what the assistant says.
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}\n"
    "{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def conversations() -> list[Conversation]:
    return [
        Conversation(
            id=f"c{i}",
            problem_id=None,
            source="made",
            messages=[
                {"role": "user", "content": f"What is {i} + {i}?", "train": False},
                {"role": "assistant", "content": f"It is {2 * i}." + " So." * i, "train": True},
                {"role": "user", "content": "And one more?", "train": False},
                {"role": "assistant", "content": f"{2 * i + 1}.", "train": True},
            ],
        )
        for i in range(8)
    ]


@pytest.fixture(scope="module")
def model_folder(smol_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model with a template that marks what the assistant says."""
    folder = tmp_path_factory.mktemp("model") / "smol"
    folder.mkdir()
    for file in smol_model.iterdir():
        if file.name != "chat_template.jinja":
            (folder / file.name).symlink_to(file)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def packed(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    source = make_artifact(folder / "sft", conversations())
    pack.run(pack.Config(max_length=256), [source], model_folder, folder / "packed", Mode())
    return folder / "packed"


def own_losses(model_folder: Path, packed: Path) -> list[float]:
    """The summed loss of each packed row, every conversation on its own; and how many tokens."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32).eval()
    total, tokens = 0.0, 0
    for row in Artifact.open(packed).iter_rows(PackedRow):
        start = 0
        for length in row.seq_lengths:
            ids = torch.tensor([row.input_ids[start : start + length]])
            labels = torch.tensor([row.labels[start : start + length]])
            with torch.no_grad():
                logits = model(ids, use_cache=False).logits[0, :-1]
            at = labels[0, 1:] != -100
            chosen = torch.log_softmax(logits, -1).gather(-1, ids[0, 1:, None])[:, 0]
            total -= chosen[at].sum().item()
            tokens += int(at.sum())
            start += length
    return [total / tokens, tokens]


def trained(model_folder: Path, rows: Path, tmp_path: Path, **options: Any) -> tuple[float, Any]:
    """TRL's loss over all rows, and its trainer after two steps on them."""
    import datasets
    from trl import SFTConfig, SFTTrainer

    data = datasets.load_dataset(str(rows), split="train", cache_dir=str(tmp_path / "cache"))
    args = SFTConfig(
        output_dir=str(tmp_path / "sft"),
        max_steps=2,
        per_device_train_batch_size=2,
        per_device_eval_batch_size=64,  # all at once: a mean over tokens, not over batches
        learning_rate=1e-4,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        model_init_kwargs={"dtype": "float32"},
        **options,
    )
    trainer = SFTTrainer(str(model_folder), args=args, train_dataset=data, eval_dataset=data)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    return before, trainer


def test_trl_trains_on_packed_rows_with_our_loss(
    model_folder: Path, packed: Path, tmp_path: Path
) -> None:
    export.run(export.Config(to="trl-packed"), packed, tmp_path / "out", Mode())
    loss, trainer = trained(
        model_folder,
        tmp_path / "out",
        tmp_path,
        padding_free=True,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
    )
    own, _ = own_losses(model_folder, packed)
    assert loss == pytest.approx(own, rel=1e-4)
    assert trainer.state.global_step == 2
    after = trainer.evaluate()["eval_loss"]
    assert after < loss
    assert math.isfinite(after)


def test_trl_trains_on_messages_with_our_loss(
    model_folder: Path, packed: Path, tmp_path: Path
) -> None:
    source = Artifact.open(packed).upstream(Conversation).path
    export.run(export.Config(to="trl"), source, tmp_path / "out", Mode())
    loss, trainer = trained(
        model_folder, tmp_path / "out", tmp_path, assistant_only_loss=True, max_length=256
    )
    own, tokens = own_losses(model_folder, packed)
    learnt = sum(sum(i != -100 for i in row["labels"]) for row in trainer.train_dataset)
    assert learnt == tokens
    assert loss == pytest.approx(own, rel=1e-4)
    assert trainer.state.global_step == 2
