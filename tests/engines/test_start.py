"""Which GPUs an engine gets, and what is said of those that it can't get."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from llmpipe.core import gpu
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Sampling
from llmpipe.engines._start import check, start


def _check(gpus: str | None, name: str = "scripted", model: str = "m", **options: str) -> None:
    check(name, model, Sampling(), options, gpus=gpus)


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with GPUs, of which this process may use four."""
    monkeypatch.setattr(gpu, "present", lambda: True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,GPU-5d5ba0d6,MIG-c6d4f1ef")


@pytest.mark.parametrize("gpus", ["0,,1", "0,0", "", "all,0"])
@pytest.mark.usefixtures("four")
def test_a_list_of_gpus_is_read_strictly(gpus: str) -> None:
    with pytest.raises(UserError, match="GPU"):
        _check(gpus)


@pytest.mark.usefixtures("four")
def test_only_gpus_that_are_visible_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpus in (None, "all", "3", "2, GPU-5d5ba0d6", "MIG-c6d4f1ef"):
        _check(gpus)
    with pytest.raises(UserError, match="no GPU 0 is to be seen, only 2,") as caught:
        _check("0,2")
    assert caught.value.hint == "--gpus 2,3,GPU-5d5ba0d6,MIG-c6d4f1ef"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1,2")
    with pytest.raises(UserError, match="hides all GPUs"):
        _check("all")


@pytest.mark.usefixtures("four")
def test_copies_of_the_model_must_fill_the_gpus(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 8192}))
    for size in ("1", "2", "4"):
        _check("all", "vllm", str(tmp_path), tensor_parallel_size=size)
    with pytest.raises(UserError, match=r"spans 3 GPUs, and --gpus all are 4") as caught:
        _check("all", "vllm", str(tmp_path), tensor_parallel_size="3")
    assert caught.value.hint == "--tensor-parallel-size 2"
    with pytest.raises(UserError, match=r"spans 4 GPUs, and --gpus 2,3 are 2"):
        _check("2,3", "vllm", str(tmp_path), tensor_parallel_size="2", pipeline_parallel_size="2")
    with pytest.raises(UserError, match="tensor_parallel_size is 'two'"):
        _check("all", "vllm", str(tmp_path), tensor_parallel_size="two")


def test_models_elsewhere_take_no_gpus_of_this_machine() -> None:
    with pytest.raises(UserError, match="--gpus has no effect on ray"):
        _check("0,1", "ray", engine="scripted")
    with pytest.raises(UserError, match="--gpus has no effect on openai"):
        _check("all", "openai", base_url="http://localhost:8000/v1")


def test_one_group_stays_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert type(start("scripted", "m", Sampling(), {}, gpus=None)).__name__ == "ScriptedEngine"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"
    monkeypatch.setattr(gpu, "present", lambda: False)
    for gpus, visible in (("all", "7"), ("3", "3")):  # no GPU: what is named stands for cores
        engine = start("scripted", "m", Sampling(), {}, gpus=gpus)
        assert type(engine).__name__ == "ScriptedEngine"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == visible
