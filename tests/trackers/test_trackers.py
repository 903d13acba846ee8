"""Each tracker with its real library, on this machine: what was logged is read back."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load, names

_RUN = """
import sys
from llmpipe.core.plugins import load
tracker = load("trackers", sys.argv[1])(
    project="llmpipe", name="a-run", job="rollout", config={"temperature": 0.7, "model": "org/m"}
)
tracker.log({"progress/done": 3.0, "rollout/pass_at_1": 0.25}, step=1)
tracker.log({"progress/done": 5.0}, step=2)
tracker.close()
"""


def _track(name: str, folder: Path, **environment: str) -> None:
    """Log a run in a process of its own: these libraries start threads and keep global state."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed here")
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("WANDB", "SWANLAB"))}
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, name],
        cwd=folder,
        env={**keep, **home, **environment},
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr + done.stdout


def test_the_room_has_four() -> None:
    assert names("trackers") == ["swanlab", "tensorboard", "trackio", "wandb"]


def test_swanlab_locally(tmp_path: Path) -> None:
    if importlib.util.find_spec("swanboard") is None:
        pytest.skip("SwanLab's dashboard is not installed here")

    _track("swanlab", tmp_path)

    with sqlite3.connect(tmp_path / "swanlog" / "runs.swanlab") as db:
        assert db.execute("select name from experiment").fetchall() == [("a-run",)]
        tags = {row[0] for row in db.execute("select name from tag")}
    assert {"progress/done", "rollout/pass_at_1"} <= tags
    text = "".join(p.read_text() for p in (tmp_path / "swanlog").rglob("config.yaml"))
    assert "org/m" in text


def test_swanlab_offline(tmp_path: Path) -> None:
    _track("swanlab", tmp_path, SWANLAB_MODE="offline")

    [record] = (tmp_path / "swanlog").rglob("*.swanlab")
    assert b"rollout/pass_at_1" in record.read_bytes()


def test_wandb_without_a_key_is_kept_for_later(tmp_path: Path) -> None:
    _track("wandb", tmp_path)

    [record] = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    assert b"rollout/pass_at_1" in record.read_bytes()


def test_trackio(tmp_path: Path) -> None:
    _track("trackio", tmp_path, TRACKIO_DIR=str(tmp_path / "trackio"))

    with sqlite3.connect(tmp_path / "trackio" / "llmpipe.db") as db:
        rows = db.execute("select step, metrics from metrics order by step").fetchall()
    assert [(step, json.loads(metrics)) for step, metrics in rows] == [
        (1, {"progress/done": 3.0, "rollout/pass_at_1": 0.25}),
        (2, {"progress/done": 5.0}),
    ]


def test_tensorboard(tmp_path: Path) -> None:
    _track("tensorboard", tmp_path)

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    [folder] = (tmp_path / "tensorboard" / "llmpipe" / "rollout").iterdir()
    assert folder.name.startswith("a-run-")
    assert json.loads((folder / "config.json").read_text()) == {
        "temperature": 0.7,
        "model": "org/m",
    }
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    events.Reload()
    assert [e.step for e in events.Tensors("progress/done")] == [1, 2]
    assert [e.tensor_proto.float_val[0] for e in events.Tensors("rollout/pass_at_1")] == [0.25]


def test_one_that_does_not_exist() -> None:
    with pytest.raises(UserError, match="no tracker is called 'swanlap'") as caught:
        load("trackers", "swanlap")

    assert "swanlab" in (caught.value.hint or "")
