"""Training of a tiny model: what it makes, what it refuses, and that it goes on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import make_artifact, problem
from tiny_model import make_tiny_model

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model
from llmpipe.core.records import PackedRow, TrainStep
from llmpipe.core.run import Mode, Result
from llmpipe.stages import rollout
from llmpipe.stages.train import plan, run

pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("peft", reason="peft is not installed")

FAST = {"dtype": "float32", "gradient_checkpointing": False, "learning_rate": 1e-2}


@pytest.fixture(scope="module")
def trained(tiny_model: Path, packed_sums: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = plan(epochs=3, gradient_accumulation=2, eval_share=0.2, **FAST)
    return run(
        config, packed_sums, tiny_model, tmp_path_factory.mktemp("trained") / "out", Mode()
    ).out


def test_a_model_learns_and_is_a_model_folder(
    tiny_model: Path, packed_sums: Path, trained: Path
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    assert find_model(str(trained)) == trained
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (trained / name).read_bytes() == (tiny_model / name).read_bytes()
    before, after = (
        AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
        for folder in (tiny_model, trained)
    )
    assert after.dtype == before.dtype == torch.bfloat16
    assert after.state_dict().keys() == before.state_dict().keys()
    assert not torch.equal(after.lm_head.weight, before.lm_head.weight)

    made = Artifact.open(trained, TrainStep)
    steps = list(made.iter_rows(TrainStep))
    assert [step.step for step in steps] == list(range(len(steps)))
    held_out = [step.eval_loss for step in steps if step.eval_loss is not None]
    assert len(held_out) == 4  # before, and after each epoch
    assert held_out[-1] < 0.7 * held_out[0]
    figures = made.manifest.figures
    assert (figures["eval_loss_first"], figures["eval_loss"]) == (held_out[0], held_out[-1])
    assert figures["loss_last"] < 0.7 * figures["loss_first"]
    sizes = [len(row.input_ids) for row in Artifact.open(packed_sums).iter_rows(PackedRow)]
    assert figures["tokens"] == steps[-1].tokens < 3 * sum(sizes)
    assert figures["changed_weights"] > 0.5  # not the embeddings of tokens that nothing has


def test_updates_that_are_lost_in_rounding_want_attention(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    config = replace(plan(max_steps=1, gradient_accumulation=1, **FAST), learning_rate=1e-12)
    result = run(config, packed_sums, tiny_model, tmp_path / "out", Mode())
    assert (result.exit_code, result.figures["changed_weights"]) == (3, 0)
    assert "the weights are still those of" in (result.attention or "")


def test_the_same_again_is_up_to_date(tiny_model: Path, packed_sums: Path, trained: Path) -> None:
    config = plan(epochs=3, gradient_accumulation=2, eval_share=0.2, **FAST)
    assert run(config, packed_sums, tiny_model, trained, Mode()).up_to_date
    with pytest.raises(UserError, match="made with other settings: seed was 0, is now 1"):
        run(replace(config, seed=1), packed_sums, tiny_model, trained, Mode())


def test_rows_that_do_not_fit_the_model_are_refused(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    config = plan(**FAST)
    short = make_tiny_model(tmp_path / "short", max_position_embeddings=64)
    with pytest.raises(UserError, match=r"packed to 128 tokens, but .* has a context of 64"):
        run(config, packed_sums, short, tmp_path / "out", Mode())
    (short / "chat_template.jinja").write_text("{{ messages }}")
    with pytest.raises(UserError, match=r"another tokenizer than .* has \(chat_template.jinja\)"):
        run(config, packed_sums, short, tmp_path / "out", Mode())
    empty = make_artifact(tmp_path / "empty", [], record=PackedRow)
    with pytest.raises(UserError, match="has nothing to learn"):
        run(config, empty, tiny_model, tmp_path / "out", Mode())
    quantized = make_tiny_model(tmp_path / "quantized")
    settings = json.loads((tiny_model / "config.json").read_text())
    settings["quantization_config"] = {"quant_method": "gptq"}
    (quantized / "config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match="are quantized: they can't be trained"):
        run(config, packed_sums, quantized, tmp_path / "out", Mode())
    with pytest.raises(UserError, match=r"tiny/out is inside .*tiny, which would be another"):
        run(config, packed_sums, tiny_model, tiny_model / "out", Mode())
    with pytest.raises(UserError, match="none is left to train on"):
        run(replace(config, eval_share=0.999), packed_sums, tiny_model, tmp_path / "out", Mode())
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model_type": "no-such"}, "model type `no-such`"),
        ({"num_attention_heads": 3}, r"64\) is not a multiple of the number of .* heads \(3\)"),
        ({"intermediate_size": 96}, r"is \[64, 128\], but by config.json it would be \[64, 96\]"),
        ({"num_hidden_layers": 3}, "it has no weights for model.layers.2.input_layernorm.weight"),
    ],
)
def test_a_model_that_is_not_as_its_config_says_is_refused(
    tiny_model: Path, packed_sums: Path, given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    broken = shutil.copytree(tiny_model, tmp_path / "broken")
    settings = json.loads((broken / "config.json").read_text()) | given
    (broken / "config.json").write_text(json.dumps(settings))
    with pytest.raises(UserError, match=rf"transformers can't load .*{said}"):
        run(plan(**FAST), packed_sums, broken, tmp_path / "out", Mode())
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]


def test_weights_that_the_config_has_no_place_for_are_told_of(
    tiny_model: Path, packed_sums: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shallow = shutil.copytree(tiny_model, tmp_path / "shallow")
    settings = json.loads((shallow / "config.json").read_text()) | {"num_hidden_layers": 1}
    (shallow / "config.json").write_text(json.dumps(settings))
    run(replace(plan(**FAST), max_steps=1), packed_sums, shallow, tmp_path / "out", Mode())
    (told,) = (r.getMessage() for r in caplog.records if "config.json" in r.getMessage())
    assert told.startswith(
        "by config.json the model has no model.layers.1.input_layernorm.weight: 9"
    )


def test_checkpoints_that_have_no_room_are_refused(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    large = shutil.copytree(tiny_model, tmp_path / "large")
    with (large / "more.safetensors").open("wb") as f:
        f.truncate(1 << 43)  # nothing but its length
    with pytest.raises(UserError, match=r"take up to 167 TB, and the disk of .* has") as caught:
        run(plan(**FAST), packed_sums, large, tmp_path / "out", Mode())
    assert "--lora-rank" in (caught.value.hint or "")
    assert not (tmp_path / "out.partial").exists()


def test_rollouts_are_of_this_model_and_no_other(
    tiny_model: Path, packed_sums: Path, trained: Path, tmp_path: Path
) -> None:
    problems = make_artifact(tmp_path / "problems", [problem("1 + 1?")])

    def sample(folder: Path) -> Result:
        config = rollout.plan(
            engine="transformers", model=str(folder), n=2, max_tokens=4, engine_args={}
        )
        return rollout.run(config, problems, tmp_path / "rollouts", Mode())

    assert sample(trained).rows == 2
    assert sample(trained).up_to_date
    config = plan(seed=1, max_steps=1, gradient_accumulation=2, **FAST)
    other = run(config, packed_sums, tiny_model, tmp_path / "other", Mode()).out
    with pytest.raises(UserError, match="made with other settings: model_digest was"):
        sample(other)


def test_a_loss_that_is_no_number_ends_it(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    config = replace(plan(gradient_accumulation=2, **FAST), learning_rate=1e30, max_grad_norm=1e30)
    with pytest.raises(UserError, match="of step 2 is nan: training came apart") as caught:
        run(config, packed_sums, tiny_model, tmp_path / "out", Mode())
    assert "--learning-rate" in (caught.value.hint or "")
    assert not [*tmp_path.iterdir()]


def test_a_model_that_was_broken_before_is_not_put_down_to_training(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    broken = shutil.copytree(tiny_model, tmp_path / "broken")
    weights = load_file(broken / "model.safetensors")
    weights["model.norm.weight"][0] = float("nan")
    save_file(weights, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match="of step 1 is nan, before anything was learnt") as caught:
        run(plan(**FAST), packed_sums, broken, tmp_path / "out", Mode())
    assert "download the model again" in (caught.value.hint or "")


def test_what_runs_out_is_said_in_one_line(
    packed_sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets
    import torch

    from llmpipe.trainers.sft import _one_line

    def copy_rows(rows: Path, folder: Path) -> None:
        full = SimpleNamespace(free=0)
        monkeypatch.setattr("datasets.utils.py_utils.disk_usage", lambda _: full)
        files = list(map(str, Artifact.open(rows).data_files()))
        datasets.Dataset.from_parquet(files, cache_dir=str(folder))

    with pytest.raises(UserError, match="no memory for a step"), _one_line("out"):
        torch.empty(1 << 60)
    for write in (
        lambda: torch.save({"weights": torch.zeros(1 << 16)}, "/dev/full"),
        lambda: Path("/dev/full").write_bytes(bytes(1 << 16)),
        lambda: copy_rows(packed_sums, tmp_path),
    ):
        with pytest.raises(UserError, match="no space left"), _one_line("out"):
            write()


def test_numbers_out_of_range_are_refused() -> None:
    for given, said in (
        ({"epochs": 0}, "epochs is 0, but must be over 0"),
        ({"eval_share": 1.0}, "eval-share is 1.0, but must be at least 0 and below 1"),
        ({"max_steps": 0}, "max-steps is 0, but must be at least 1"),
        ({"learning_rate": float("nan")}, "learning-rate is nan"),
        ({"lora_rank": 0}, "lora-rank is 0"),
        ({"lora_rank": 4, "lora_alpha": float("nan")}, "lora-alpha is nan"),
        ({"seed": -1}, "seed is -1, but must be at least 0 and below"),
        ({"seed": 2**32}, "seed is 4294967296, but must be at least 0 and below"),
        ({"lora_alpha": 8}, "settings of an adapter are given, but no rank"),
        ({"merge": False}, "settings of an adapter are given, but no rank"),
    ):
        with pytest.raises(UserError, match=said):
            plan(**given)


def test_defaults_are_the_fields_own() -> None:
    assert plan().learning_rate == 1e-5
    adapter = plan(lora_rank=16)
    assert (adapter.learning_rate, adapter.lora.alpha) == (1e-4, 32)
