"""Adapters: what is merged is what was trained, and a run that is stopped goes on with it."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model
from llmpipe.core.records import PackedRow
from llmpipe.core.run import Mode
from llmpipe.stages import train
from llmpipe.trainers._model import load_for_training

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("trl", reason="trl is not installed")
peft = pytest.importorskip("peft", reason="peft is not installed")


def settings(kind: Any, **rest: Any) -> train.Settings:
    return train.plan(
        lora_rank=4,
        lora_kind=kind,
        learning_rate=2e-2,
        max_steps=8,
        gradient_accumulation=2,
        save_every=100,
        dtype="float32",
        gradient_checkpointing=False,
        **rest,
    )


def load(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def mean_loss(model: Any, rows: list[PackedRow]) -> float:
    """The mean loss of the trained tokens of ``rows``."""
    total, count = 0.0, 0
    for row in rows:
        ids, labels, positions = (
            torch.tensor([column]) for column in (row.input_ids, row.labels, row.position_ids)
        )
        with torch.inference_mode():
            logits = model(ids, position_ids=positions, use_cache=False).logits[0, :-1]
        trained = labels[0, 1:] != -100
        losses = -logits.log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
        total += float(losses[trained].sum())
        count += int(trained.sum())
    return total / count


@pytest.mark.parametrize("kind", ["lora", "dora", "adalora"])
def test_what_is_written_is_what_was_trained(
    kind: str, packed_sums: Path, tiny_model: Path, tmp_path: Path
) -> None:
    config = settings(kind, eval_share=0.3)
    whole = train.run(config, packed_sums, tiny_model, tmp_path / "whole", Mode()).out
    alone = train.run(
        settings(kind, eval_share=0.3, merge=False),
        packed_sums,
        tiny_model,
        tmp_path / "alone",
        Mode(),
    ).out
    figures = Artifact.open(whole).manifest.figures
    assert figures["eval_loss"] < figures["eval_loss_first"] - 0.1
    assert figures["trained_parameters"] < 0.3 * sum(
        p.numel() for p in load(tiny_model).parameters()
    )

    source = Artifact.open(packed_sums)
    held_out = train._job(config, source, tiny_model, tmp_path).held_out
    seen = [row for i, row in enumerate(source.iter_rows(PackedRow)) if i in held_out]
    together = peft.PeftModel.from_pretrained(load(tiny_model), alone).eval()
    assert mean_loss(together, seen) == pytest.approx(figures["eval_loss"], abs=1e-4)
    merged = mean_loss(load(whole), seen)  # its weights are rounded to bfloat16
    assert merged == pytest.approx(figures["eval_loss"], abs=0.02)

    assert find_model(str(whole)) == whole
    with pytest.raises(UserError, match="is an adapter, not a whole model"):
        find_model(str(alone))


@pytest.mark.parametrize("kind", ["lora", "adalora"])
def test_stopped_it_ends_with_the_same_adapter(
    kind: str, packed_sums: Path, tiny_model: Path, tmp_path: Path
) -> None:
    def progress(done: int, total: int | None, **_: Any) -> None:
        if done == 4:
            os.kill(os.getpid(), signal.SIGINT)

    config = settings(kind, merge=False, lora_dropout=0.1)
    unbroken = train.run(config, packed_sums, tiny_model, tmp_path / "unbroken", Mode()).out
    with pytest.raises(KeyboardInterrupt):
        train.run(config, packed_sums, tiny_model, tmp_path / "out", Mode(progress=progress))
    out = train.run(config, packed_sums, tiny_model, tmp_path / "out", Mode()).out
    assert "going on from step 4 of 8" in (out / "run.log").read_text()
    name = "adapter_model.safetensors"
    assert (out / name).read_bytes() == (unbroken / name).read_bytes()


def test_only_named_maps_get_an_adapter(
    packed_sums: Path, tiny_model: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    config = settings("lora", merge=False, lora_targets="q_proj")
    config = replace(config, dtype="bfloat16", gradient_checkpointing=True)
    alone = train.run(config, packed_sums, tiny_model, tmp_path / "out", Mode()).out
    names = load_file(alone / "adapter_model.safetensors")
    assert len(names) == 4  # two matrices in each of two layers
    assert all("q_proj" in name for name in names)


@pytest.mark.filterwarnings("error:.*autograd kernel was not registered")
def test_four_bits(packed_sums: Path, tiny_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    from transformers import AutoModelForCausalLM

    config = settings("qlora", eval_share=0.3)
    whole = train.run(config, packed_sums, tiny_model, tmp_path / "whole", Mode()).out
    figures = Artifact.open(whole).manifest.figures
    assert figures["eval_loss"] < figures["eval_loss_first"] - 0.1

    source = Artifact.open(packed_sums)
    held_out = train._job(config, source, tiny_model, tmp_path).held_out
    seen = [row for i, row in enumerate(source.iter_rows(PackedRow)) if i in held_out]
    # The loss before is that of the model in four bits, and another than the model's own.
    job = train._job(config, source, tiny_model, tmp_path)
    quantized, _ = load_for_training(job)
    assert mean_loss(quantized, seen) == pytest.approx(figures["eval_loss_first"], abs=1e-4)
    assert abs(mean_loss(load(tiny_model), seen) - figures["eval_loss_first"]) > 5e-4
    # What is written is the sum with the weights as they came.
    merged = AutoModelForCausalLM.from_pretrained(whole)
    assert not getattr(merged.config, "quantization_config", None)
    assert mean_loss(load(whole), seen) == pytest.approx(figures["eval_loss"], abs=0.1)


def test_four_bits_want_their_library(
    packed_sums: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmpipe.trainers.sft._installed", lambda name: name != "bitsandbytes")
    with pytest.raises(UserError, match="bitsandbytes is not installed"):
        train.run(settings("qlora"), packed_sums, tiny_model, tmp_path / "out", Mode())
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize("wrong", ["q", "embed_tokens", "lm_head"])
def test_targets_that_get_no_adapter_are_refused(
    wrong: str, tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    config = settings("lora", lora_targets=f"q_proj,{wrong}")
    with pytest.raises(UserError, match=f"^{wrong} is no linear map of the model") as caught:
        train.run(config, packed_sums, tiny_model, tmp_path / "out", Mode())
    known = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"
    assert caught.value.hint == f"--lora-targets {known}"
    assert not [*tmp_path.iterdir()]
