"""Plans for a model's folder, and what keeps one from being made."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import Settings, rollout

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Rollout
from llmpipe.core.run import Mode, Spec, Writer, execute
from llmpipe.stages.plan import GIB, SPARE, Config, run

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}


@pytest.fixture
def llama(tmp_path: Path) -> str:
    """Llama-3.1-8B's config alone."""
    return folder_of(tmp_path / "llama", LLAMA)


def folder_of(folder: Path, config: object) -> str:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def measured(out: Path, *, engine: dict[str, Any], **figures: float) -> Path:
    """Four rollouts of 50 tokens each, with these figures in their manifest."""

    def build(writer: Writer) -> None:
        writer.details["engine"] = engine
        writer.figures |= {"completion_tokens": 200, **figures}
        for sample in range(4):
            writer.read += 1
            writer.add(rollout("p", sample, "x" * 50))

    spec = Spec(stage="rollout", record=Rollout, config=Settings(values={}), inputs={}, out=out)
    execute(spec, build, Mode())
    assert Artifact.open(out).rows == 4
    return out


def test_a_real_model_is_planned_by_its_headers(smol_model: Path) -> None:
    made = run(Config(model=str(smol_model)))
    assert made.shape.parameters == 134_515_008
    assert made.weights == {"BF16": 2 * 134_515_008}
    assert made.notes == ()
    assert [way.training.zero for way in made.trainings] == [0] * 6  # one GPU: nothing to share


def test_what_fits_is_within_the_memory_left(llama: str) -> None:
    made = run(Config(model=llama, gpus=8))
    room = 80 * GIB - SPARE
    assert len(made.trainings) == 24
    for way in made.trainings:
        assert way.fits == (way.memory.total <= room) == (way.most_rows >= 1)
        assert way.fits == (way.most_tokens >= 8192)


def test_as_little_zero_and_checkpointing_as_is_needed_are_suggested(llama: str) -> None:
    def ways(**given: Any) -> dict[str, tuple[int, bool]]:
        made = run(Config(model=llama, **given))
        return {
            way.training.method: (way.training.zero, way.training.checkpointing)
            for way in made.suggested
        }

    assert ways(gpus=8) == {"full": (1, True), "lora": (0, True), "qlora": (0, False)}
    assert ways(gpus=8, context=2048)["full"] == (1, False)
    small = {"gpu_memory": 24, "context": 4096}
    assert ways(**small) == {"qlora": (0, True)}  # the logits take 7 GiB, unless in chunks
    assert ways(**small, loss_chunk=1024) == {"lora": (0, True), "qlora": (0, True)}
    assert ways(gpu_memory=6) == {}


def test_a_model_is_split_where_one_gpu_has_no_room(llama: str) -> None:
    one = run(Config(model=llama, gpus=8))
    assert one.serving is not None
    assert (one.serving.tensor_parallel, one.copies) == (1, 8)
    assert one.max_num_seqs == one.serving.sequences
    for length, gpus, copies in ((4096, 2, 4), (8192, 4, 2)):  # 32 sequences are wanted, or more
        split = run(Config(model=llama, gpus=8, gpu_memory=24, length=length))
        assert split.serving is not None
        assert (split.serving.tensor_parallel, split.copies) == (gpus, copies)
    none = run(Config(model=llama, gpu_memory=16))
    assert (none.serving, none.max_num_seqs, none.copies) == (None, None, 0)
    short = run(Config(model=llama, length=128))
    assert short.max_num_seqs == 1024  # vLLM's own, though there is room for more


def test_hours_by_a_given_rate(llama: str) -> None:
    hours = run(Config(model=llama, problems=1000, n=8, rate=2000, length=900)).hours
    assert hours is not None
    assert (hours.samples, hours.tokens, hours.hours) == (8000, 7_200_000, 1.0)


def test_hours_by_a_measured_rate(llama: str, tmp_path: Path) -> None:
    fleet = measured(tmp_path / "fleet", engine={"devices": [["0"], ["1"]]}, tokens_per_second=100)
    hours = run(Config(model=llama, gpus=8, problems=288, n=100, rollouts=fleet)).hours
    assert hours is not None  # 50 tokens an answer, and four times the GPUs
    assert (hours.tokens, hours.tokens_per_second, hours.hours) == (1_440_000, 400, 1.0)
    one = measured(tmp_path / "one", engine={"tensor_parallel_size": 2}, tokens_per_second=100)
    asked = Config(model=llama, gpus=4, problems=1, n=1, rollouts=one, length=10)
    hours = run(asked).hours
    assert hours is not None
    assert (hours.tokens, hours.tokens_per_second) == (10, 200)


def test_hours_of_nothing_known(llama: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="how fast"):
        run(Config(model=llama, problems=10))
    with pytest.raises(UserError, match="how fast"):
        run(Config(model=llama, problems=10, rate=10))
    silent = measured(tmp_path / "silent", engine={})
    with pytest.raises(UserError, match="does not say how fast"):
        run(Config(model=llama, problems=10, rollouts=silent))


def test_weights_that_are_not_those_of_the_config(smol_model: Path, tmp_path: Path) -> None:
    shutil.copytree(smol_model, tmp_path / "model")
    config = json.loads((smol_model / "config.json").read_text())
    path = tmp_path / "model/config.json"
    path.write_text(json.dumps({**config, "num_hidden_layers": 31}))
    made = run(Config(model=str(tmp_path / "model")))
    assert "134,515,008 numbers, not 138,055,104" in made.notes[0]
    path.write_text(json.dumps({**config, "quantization_config": {"bits": 4}}))
    made = run(Config(model=str(tmp_path / "model")))
    assert "quantised" in made.notes[0]
    assert made.servings[0].weights == 269_030_016  # vLLM loads them as they lie there
    (tmp_path / "model/model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(UserError, match=r"model\.safetensors is damaged"):
        run(Config(model=str(tmp_path / "model")))


def test_what_cannot_be_planned(llama: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'t5' can't be counted"):
        run(Config(model=folder_of(tmp_path / "t5", {"model_type": "t5"})))
    with pytest.raises(UserError, match="is no JSON object"):
        run(Config(model=folder_of(tmp_path / "list", [])))
    with pytest.raises(UserError, match="--gpus is 0"):
        run(Config(model=llama, gpus=0))
    with pytest.raises(UserError, match="--gpu-memory is nan"):
        run(Config(model=llama, gpu_memory=float("nan")))
    with pytest.raises(UserError, match="there is no model"):
        run(Config(model=str(tmp_path / "nothing")))
