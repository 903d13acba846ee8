"""Training by two processes: as one does, resumable, and gone with their parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from helpers import train_command

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import TrainStep
from llmpipe.core.run import Mode
from llmpipe.stages import train
from llmpipe.trainers._accelerate import read
from llmpipe.trainers._job import Job, read_job

pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("peft", reason="peft is not installed")

TWO = "distributed_type: MULTI_GPU\nuse_cpu: true\nnum_machines: 1\nnum_processes: 2\n"
SHARDED = """\
distributed_type: FSDP
num_machines: 1
num_processes: 2
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: SHARDED_STATE_DICT
"""
SHIPPED = Path(__file__).parents[2] / "pipelines/accelerate"
FAST: dict[str, Any] = {
    "epochs": 2,
    "save_every": 2,
    "learning_rate": 1e-2,
    "dtype": "float32",
    "gradient_checkpointing": False,
}


def config(folder: Path, text: str) -> Path:
    file = folder / f"{len([*folder.glob('*.yaml')])}.yaml"
    file.write_text(text)
    return file


def at_step(step: int, do: Any) -> Mode:
    def progress(done: int, total: int | None, **figures: Any) -> None:
        if done == step and "loss" in figures:
            do()

    return Mode(progress=progress)


def ranks(parent: int) -> list[int]:
    """The training processes that a process has started, by way of others."""
    psutil = pytest.importorskip("psutil", reason="psutil is not installed")
    started = psutil.Process(parent).children(recursive=True)
    return [p.pid for p in started if p.cmdline()[:1] == ["llmpipe train 1"]]


@pytest.mark.slow
def test_two_with_half_the_weights_each_train_as_one(
    tiny_model: Path, packed_sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).with_name("fsdp_on_cpu")), prepend=":")

    given = {**FAST, "eval_share": 0.2}
    one = train.run(
        train.plan(gradient_accumulation=4, **given),
        packed_sums,
        tiny_model,
        tmp_path / "one",
        Mode(),
    ).out
    settings = train.plan(
        gradient_accumulation=2, accelerate_config=config(tmp_path, SHARDED), **given
    )
    assert settings.processes == 2
    out = tmp_path / "two"
    pressed = at_step(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        train.run(settings, packed_sums, tiny_model, out, pressed)
    begun = tmp_path / "two.partial/training/checkpoints"
    # A step may end while Ctrl-C is on its way to the processes.
    stopped = max(int(path.name.removeprefix("checkpoint-")) for path in begun.iterdir())
    assert 3 <= stopped < 6
    assert (begun / f"checkpoint-{stopped}/whole").exists()
    shards = [*begun.glob(f"checkpoint-{stopped}/pytorch_model_fsdp_0/*.distcp")]
    assert len(shards) == 2

    whole = replace(settings, accelerate_config=str(config(tmp_path, TWO)))
    with pytest.raises(UserError, match="checkpoints were FSDP 2 SHARDED_STATE_DICT, are now who"):
        train.run(whole, packed_sums, tiny_model, out, Mode())
    train.run(settings, packed_sums, tiny_model, out, Mode())
    assert f"going on from step {stopped} of 6" in (out / "run.log").read_text()

    weights = [load_file(folder / "model.safetensors") for folder in (one, out, tiny_model)]
    expected, made, before = weights
    assert made.keys() == expected.keys()
    for name, value in expected.items():
        moved = (value.float() - before[name].float()).abs().max()
        assert (made[name].float() - value.float()).abs().max() <= 0.02 * moved, name
    figures = [Artifact.open(folder, TrainStep).manifest.figures for folder in (one, out)]
    for name in ("steps", "train_batch", "tokens", "trained_parameters"):
        assert figures[0][name] == figures[1][name], name
    for name in ("eval_loss", "loss_first", "loss_last"):
        assert figures[1][name] == pytest.approx(figures[0][name], rel=1e-5), name
    assert train.run(
        whole, packed_sums, tiny_model, out, Mode()
    ).up_to_date  # how they share is no matter


@pytest.mark.slow
def test_one_that_is_killed_ends_it_in_one_line(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    settings = train.plan(accelerate_config=config(tmp_path, TWO), **FAST, gradient_accumulation=1)

    def kill() -> None:
        (second,) = ranks(os.getpid())
        os.kill(second, signal.SIGKILL)

    with pytest.raises(UserError, match=r"process was killed by signal 9 \(SIGKILL\)") as e:
        train.run(settings, packed_sums, tiny_model, tmp_path / "out", at_step(3, kill))
    assert "smaller --micro-batch-size" in str(e.value.hint)
    assert ranks(os.getpid()) == []


@pytest.mark.slow
def test_they_end_with_their_parent(tiny_model: Path, packed_sums: Path, tmp_path: Path) -> None:
    options = ["--accelerate-config", str(config(tmp_path, TWO)), "--dtype", "float32"]
    command = train_command(packed_sums, tiny_model, tmp_path / "out", "--epochs", "500", *options)
    with subprocess.Popen(command, cwd=tmp_path) as parent:
        for _ in waited(60):
            assert parent.poll() is None
            if left := ranks(parent.pid):
                break
        parent.kill()
    for _ in waited(10):
        if not any(Path(f"/proc/{pid}/cmdline").exists() for pid in left):
            break


def waited(seconds: float) -> Iterator[None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(0.02)
    pytest.fail("waited in vain")


def test_what_a_config_says(tmp_path: Path) -> None:
    assert asdict(read(config(tmp_path, TWO))) == {
        "processes": 2,
        "kind": "MULTI_GPU",
        "layout": "whole",
    }
    assert read(config(tmp_path, SHARDED)).layout == "FSDP 2 SHARDED_STATE_DICT"
    two = config(tmp_path, "distributed_type: MULTI_GPU\ngpu_ids: 0,3\n")
    assert read(two).processes == 2
    one = config(tmp_path, json.dumps({"distributed_type": "NO"}))
    assert read(one).processes == 1


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_configs_are_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
    assert read(file).processes == 4
    assert load_config_from_file(str(file)).distributed_type.value == read(file).kind


def test_what_cannot_be_trained_with_is_refused(
    tiny_model: Path, packed_sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, said in (
        ("a: [", "is no YAML"),
        ("a: 1", "no config of Accelerate"),
        ("distributed_type: TPU", "asks for distributed_type: TPU"),
        (TWO.replace("machines: 1", "machines: 2"), "asks for several machines"),
        (TWO + "mixed_precision: fp16", "a mixed_precision that --dtype hasn't"),
        (SHARDED + "use_cpu: true", "asks for FSDP on the CPU"),
        (
            "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}",
            "no whole model would be written",
        ),
    ):
        with pytest.raises(UserError, match=said):
            read(config(tmp_path, text))
    with pytest.raises(UserError, match="No such file"):
        train.plan(accelerate_config=tmp_path / "none.yaml")
    unknown = train.plan(accelerate_config=config(tmp_path, TWO + "gpus: 2"))
    with pytest.raises(UserError, match=r"accelerate refuses .* unknown keys"):
        train.run(unknown, packed_sums, tiny_model, tmp_path / "out", Mode())
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UserError, match="llmpipe train starts them itself"):
        train.run(train.plan(), packed_sums, tiny_model, tmp_path / "out", Mode())


def test_a_job_is_read_as_it_was_written(tmp_path: Path) -> None:
    job = Job(
        settings=train.plan(lora_rank=4, lora_targets="q_proj", seed=3),
        model="m",
        base_name="b",
        rows=["r"],
        held_out=[1],
        weighted=True,
        folder="f",
    )
    (tmp_path / "job.json").write_text(json.dumps(asdict(job)))
    assert asdict(read_job(tmp_path / "job.json")) == json.loads(json.dumps(asdict(job)))
