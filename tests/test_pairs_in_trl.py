"""A step of the real `trl.DPOTrainer` on pairs as they stand on disk."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest
from helpers import problem, rollout, verdicts_of

from llmpipe.core.run import Mode
from llmpipe.stages.build_pairs import Config, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="trl is not installed"),
]


def test_a_step_of_dpo(smol_model: Path, tmp_path: Path) -> None:
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer

    rows = [
        (rollout(f"p{i}", sample, f"It is {i + sample}."), "wrong" if sample else "correct")
        for i in range(2)
        for sample in range(2)
    ]
    verdicts = verdicts_of(tmp_path, rows, problems=[problem("p0"), problem("p1")], examples=0)
    run(Config(), verdicts, tmp_path / "pairs", Mode())

    trainer = DPOTrainer(
        model=str(smol_model),
        args=DPOConfig(
            output_dir=str(tmp_path / "trained"),
            max_steps=1,
            per_device_train_batch_size=2,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
        ),
        train_dataset=load_dataset(str(tmp_path / "pairs"), split="train"),
    )
    said = [
        trainer.processing_class.decode(trainer.train_dataset[i][f"{kind}_ids"])
        for i in range(2)
        for kind in ("chosen", "rejected")
    ]
    assert [text.replace("<|im_end|>", "").strip() for text in said] == [
        "It is 0.", "It is 1.", "It is 1.", "It is 2."
    ]  # fmt: skip
    trainer.train()
    [loss] = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert loss == pytest.approx(math.log(2), abs=1e-3)  # the model is its own reference yet
    assert trainer.state.global_step == 1
