"""Adapters: what is merged is what the base and the adapter are together."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tiny_model import make_tiny_model, pack_sums

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model
from llmpipe.core.run import Mode
from llmpipe.stages import train

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("trl", reason="trl is not installed")
peft = pytest.importorskip("peft", reason="peft is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def rows(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack_sums(tmp_path_factory.mktemp("rows"), model, 24)


def trained(kind: Any, rows: Path, model: Path, out: Path, **settings: Any) -> Path:
    config = train.plan(
        lora_rank=4,
        lora_kind=kind,
        learning_rate=1e-2,
        max_steps=6,
        gradient_accumulation=2,
        dtype="float32",
        gradient_checkpointing=False,
        **settings,
    )
    return train.run(config, rows, model, out, Mode()).out


@pytest.mark.parametrize("kind", ["lora", "dora", "adalora"])
def test_merged_weights_are_the_base_with_its_adapter(
    kind: str, rows: Path, model: Path, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    def load(folder: Path) -> Any:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    alone = trained(kind, rows, model, tmp_path / "alone", merge=False)
    whole = trained(kind, rows, model, tmp_path / "whole")
    assert find_model(str(whole)) == whole
    assert {f.name for f in whole.glob("adapter*")} == set()
    with pytest.raises(UserError, match="is an adapter, not a whole model"):
        find_model(str(alone))

    ids = torch.tensor([[1, 2, 3, 4, 5, 6]])
    with torch.inference_mode():
        base = load(model)(ids).logits
        together = peft.PeftModel.from_pretrained(load(model), alone).eval()(ids).logits
        merged = load(whole)(ids).logits
    moved = (together - base).abs().max()
    assert moved > 0.02
    assert (merged - together).abs().max() < 0.1 * moved  # merged weights are rounded to bfloat16
    figures = Artifact.open(whole).manifest.figures
    assert figures["loss_last"] < figures["loss_first"]
    total = sum(p.numel() for p in load(model).parameters())
    assert figures["trained_parameters"] < 0.3 * total


def test_only_named_maps_get_an_adapter(rows: Path, model: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    alone = trained("lora", rows, model, tmp_path / "out", merge=False, lora_targets="q_proj")
    names = load_file(alone / "adapter_model.safetensors")
    assert len(names) == 4  # two matrices in each of two layers
    assert all("q_proj" in name for name in names)


@pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed"
)
def test_four_bits_want_their_library(rows: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="bitsandbytes is not installed"):
        trained("qlora", rows, model, tmp_path / "out")
    assert not (tmp_path / "out.partial").exists()
