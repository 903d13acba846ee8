"""The words and the JSON of plan."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]


def test_a_plan_as_a_table_and_as_json(llmpipe: Llmpipe, smol_model: Path) -> None:
    asked = ["plan", smol_model, "--gpus", 2, "--gpu-memory", 24, "--context", 2048]
    said = llmpipe(*asked, COLUMNS="80").stdout
    assert "134,515,008 parameters" in said
    assert "…" not in said  # all of it on 80 columns
    suggested = "--gpus all --tensor-parallel-size 1 --engine-arg max_num_seqs=256"
    assert f"Suggested: {suggested} (2 copies of the model)" in said
    rate = ["--problems", 100, "-n", 36, "--rate", 1000, "--length", 1000]
    found = json.loads(llmpipe(*asked, *rate, "--json").stdout)
    assert found["parameters"] == found["active_parameters"] == 134_515_008
    assert found["kv_bytes_per_token"] == 2 * 30 * 3 * 64 * 2
    assert len(found["training"]) == 24
    for way in found["training"]:
        held = dict(way["bytes"])
        assert held.pop("total") == sum(held.values())
    assert found["suggested_serving"]["copies"] == 2
    assert found["rollouts"]["hours"] == 1


def test_what_is_wrong_is_said_in_a_line(llmpipe: Llmpipe, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/config.json").write_text('{"model_type": "rwkv"}')
    assert "'rwkv' can't be counted" in llmpipe("plan", "odd", code=2).stderr
    assert "llmpipe download no/model" in llmpipe("plan", "no/model", code=2).stderr
    for option in (["--rate", 100], ["--rollouts", "odd"]):
        said = llmpipe("plan", "odd", *option, code=2).stderr
        assert f"{option[0]} is of rollouts, but of how many?" in said
