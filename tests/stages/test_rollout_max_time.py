"""A rollout that runs out of time ends in good order, and goes on later."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from scripted_rollouts import make_problems, rows, sample

from llmpipe.core.artifact import Artifact
from llmpipe.core.run import Mode


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return make_problems(tmp_path / "problems", range(10))


def within(seconds: float) -> Mode:
    return Mode(deadline=time.monotonic() + seconds)


@pytest.mark.parametrize("turns", [1, 3])
def test_it_goes_on_until_it_is_whole(
    problems: Path, tmp_path: Path, turns: int, caplog: pytest.LogCaptureFixture
) -> None:
    sample(problems, tmp_path / "whole", max_turns=turns)
    out, runs = tmp_path / "out", []
    slow: dict[str, Any] = {"max_turns": turns, "engine_args": {"delay": "0.03", "window": "4"}}
    with caplog.at_level("INFO", "llmpipe"):
        while not runs or not runs[-1].complete:
            # Longer each time: on a busy machine, a judge alone may take that long to start.
            runs.append(sample(problems, out, within(0.6 + len(runs)), **slow))
            assert runs[-1].exit_code == 0
            if not runs[-1].complete:
                assert not (out / "manifest.json").exists()
                assert runs[-1].rows == 0
    assert len(runs) > 1
    kept = [run.figures["samples"] for run in runs[:-1]]
    assert kept == sorted(kept)
    assert "time is up: " in caplog.text
    assert "the same command goes on from there" in caplog.text
    assert rows(out) == rows(tmp_path / "whole")


def test_an_answer_that_takes_too_long_is_given_up(problems: Path, tmp_path: Path) -> None:
    stuck = sample(problems, tmp_path / "out", within(0.3), engine_args={"delay": "500"})
    assert not stuck.complete
    assert stuck.figures == {"samples": 0, "samples_wanted": 40}
    assert sample(problems, tmp_path / "out").rows == 40


def test_the_artifact_that_grows_stays_until_then(problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sample(problems, out, n=2)
    before = rows(out)
    grown = sample(problems, out, within(0.3), engine_args={"delay": "500"})
    assert not grown.complete
    assert grown.figures["samples"] == 20
    assert Artifact.open(out).rows == len(before)
    assert sample(problems, out).rows == 40


def test_time_that_is_enough_changes_nothing(problems: Path, tmp_path: Path) -> None:
    result = sample(problems, tmp_path / "out", within(600))
    assert result.complete
    sample(problems, tmp_path / "whole")
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
