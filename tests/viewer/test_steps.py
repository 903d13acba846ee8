from __future__ import annotations

from pathlib import Path

from helpers import make_artifact

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import TrainStep
from llmpipe.viewer.library import Library
from llmpipe.viewer.pages import Pages


def test_the_steps_of_a_training_are_listed_and_shown(tmp_path: Path) -> None:
    steps = [
        TrainStep(step=0, epoch=0.0, eval_loss=2.5),
        TrainStep(step=1, epoch=0.5, loss=2.25, learning_rate=1e-5, grad_norm=0.75, tokens=512),
    ]
    made = Artifact.open(make_artifact(tmp_path / "model", steps))
    pages = Pages(Library(tmp_path, lambda: [made]), "")
    listed = pages.rows({"artifact": "model"})
    for value in ("held-out loss", "2.5", "2.25", "512"):
        assert value in listed
    assert "0.75" in pages.row({"artifact": "model", "n": "1"})
