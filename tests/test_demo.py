"""The demo, smaller: the whole chain with a real model, twice, then with one flag changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest
from helpers import needs_vllm

from llmpipe.cli.show import find

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, needs_vllm]


def demo(out: Path, engine: str, **sizes: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", str(ROOT / "pipelines/demo.sh")],
        env={
            **os.environ,
            "BIN": str(Path(sys.executable).parent),
            "OUT": str(out),
            "ENGINE": engine,
            "PROBLEMS": "16",
            "HELD_OUT": "4",
            "MAZES": "2",
            "COLUMNS": "160",
            **sizes,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def manifests(out: Path) -> dict[str, int]:
    return {
        a.path.relative_to(out).as_posix(): (a.path / "manifest.json").stat().st_mtime_ns
        for a in find(out)
    }


def test_the_demo(tmp_path: Path, smol_model: Path) -> None:
    out = tmp_path / "demo"
    first = demo(out, "vllm")
    made = manifests(out)
    table = first.stdout
    for row in ("math/clean", "math/rollouts", "math/eval-boxed", "maze/eval-last-number"):
        assert row in table
    assert "pass@8" in table
    assert "Look next" in table

    # Every artifact with rows is a data set as it stands.
    for artifact in find(out):
        if artifact.rows:
            cache = str(tmp_path / "cache")
            rows = datasets.load_dataset(str(artifact.path), cache_dir=cache, split="train")
            assert rows.num_rows == artifact.rows, artifact.path
    engine = json.loads((out / "math/rollouts/manifest.json").read_text())["details"]["engine"]
    assert engine["engine"] == "vllm"

    again = demo(out, "vllm")
    assert manifests(out) == made
    assert "samples to draw" not in again.stderr
    # pass@1 by the last number counts at least what the box counts.
    boxed, last = (
        json.loads((out / f"math/eval-{how}/results.json").read_text())["metrics"]["pass@1"][
            "value"
        ]
        for how in ("boxed", "last-number")
    )
    assert 0 <= boxed <= last <= 1

    demo(out, "vllm", KEEP="1")
    changed = {name for name, time in manifests(out).items() if time != made.get(name)}
    depends = {"math/selected", "math/sft", "maze/selected", "maze/sft", "packed"}
    assert changed
    assert changed <= depends
