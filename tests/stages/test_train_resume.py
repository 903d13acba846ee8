"""A training that is stopped or killed ends with the weights of one that isn't."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import train_command

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.paths import find_model
from llmpipe.core.records import TrainStep
from llmpipe.core.run import Mode
from llmpipe.stages import train

pytest.importorskip("trl", reason="trl is not installed")
pytest.importorskip("peft", reason="peft is not installed")

CONFIG = train.plan(
    epochs=2,
    gradient_accumulation=2,
    save_every=2,
    learning_rate=1e-2,
    dtype="float32",
    gradient_checkpointing=False,
    eval_share=0.1,
)
OPTIONS = {
    "epochs": "2",
    "gradient-accumulation": "2",
    "save-every": "2",
    "learning-rate": "1e-2",
    "dtype": "float32",
    "eval-share": "0.1",
}


@pytest.fixture(scope="module")
def unbroken(tiny_model: Path, packed_sums: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train.run(
        CONFIG, packed_sums, tiny_model, tmp_path_factory.mktemp("unbroken") / "out", Mode()
    ).out


def same(one: Path, other: Path) -> bool:
    """The same weights, and the same figures at each step."""

    def log(folder: Path) -> list[Any]:
        rows = Artifact.open(folder, TrainStep).iter_rows(TrainStep)
        return [replace(row, seconds=0.0) for row in rows]

    name = "model.safetensors"
    assert log(one) == log(other)
    return (one / name).read_bytes() == (other / name).read_bytes()


def interrupting(step: int) -> Mode:
    """Ctrl-C as the given step is reported."""

    def progress(done: int, total: int | None, **_: Any) -> None:
        if done == step:
            os.kill(os.getpid(), signal.SIGINT)

    return Mode(progress=progress)


def test_stopped_by_ctrl_c_it_keeps_the_step_and_goes_on(
    tiny_model: Path, packed_sums: Path, unbroken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train.run(CONFIG, packed_sums, tiny_model, out, interrupting(3))
    checkpoints = tmp_path / "out.partial/training/checkpoints"
    assert {path.name for path in checkpoints.iterdir()} == {"checkpoint-2", "checkpoint-3"}
    assert "stopped: 3 of" in (tmp_path / "out.partial/run.log").read_text()

    with pytest.raises(UserError, match=r"the model at .*out is unfinished"):
        find_model(str(out))
    with pytest.raises(UserError, match="begun with other settings: seed was 0, is now 1"):
        train.run(replace(CONFIG, seed=1), packed_sums, tiny_model, out, Mode())

    train.run(
        replace(CONFIG, save_every=5), packed_sums, tiny_model, out, Mode()
    )  # this may change
    assert same(out, unbroken)
    assert not (tmp_path / "out.partial").exists()


def test_killed_it_goes_on_from_the_last_whole_checkpoint(
    tiny_model: Path, packed_sums: Path, unbroken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    checkpoints = tmp_path / "out.partial/training/checkpoints"
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", value)]
    command = train_command(packed_sums, tiny_model, out, *options)
    with subprocess.Popen(command) as process:
        while not [*checkpoints.glob("*/whole")]:
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
    assert not out.exists()
    whole = [path.parent.name for path in checkpoints.glob("*/whole")]
    last = max(int(name.removeprefix("checkpoint-")) for name in whole)
    torn = checkpoints / "checkpoint-99"
    shutil.copytree(checkpoints / f"checkpoint-{last}", torn)
    (torn / "whole").unlink()
    train.run(CONFIG, packed_sums, tiny_model, out, Mode())
    assert same(out, unbroken)
    assert f"going on from step {last} of" in (out / "run.log").read_text()


def test_killed_after_the_last_step_it_only_writes(
    tiny_model: Path,
    packed_sums: Path,
    unbroken: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    with monkeypatch.context() as m:
        m.setattr(train, "_write", full)
        with pytest.raises(UserError, match=r"can't write .*out: No space left on device"):
            train.run(CONFIG, packed_sums, tiny_model, out, Mode())
    train.run(CONFIG, packed_sums, tiny_model, out, Mode())
    assert same(out, unbroken)


def test_forced_it_keeps_what_was_begun_aside(
    tiny_model: Path, packed_sums: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        train.run(CONFIG, packed_sums, tiny_model, out, interrupting(1))
    other = replace(CONFIG, max_steps=2)
    with pytest.raises(KeyboardInterrupt):
        train.run(other, packed_sums, tiny_model, out, replace(interrupting(1), force=True))
    (kept,) = tmp_path.glob("out.old-*")
    assert (kept / "checkpoints/checkpoint-1/whole").exists()
    train.run(other, packed_sums, tiny_model, out, Mode(force=True))  # goes on with what it began
    assert "going on from step 1 of 2" in (out / "run.log").read_text()
    assert len([*tmp_path.glob("out.old-*")]) == 1
