"""Fifty kills at random moments: nothing journalled is lost, nothing is there twice."""

from __future__ import annotations

import functools
import os
import random
from pathlib import Path

import pytest
from helpers import make_artifact
from kills import KilledRollout

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem, Rollout
from llmpipe.core.run import Mode
from llmpipe.stages import rollout

SEED = int(os.environ.get("LLMPIPE_TEST_SEED", "7"))  # of the moments; it is in the tests' names

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("seed", [SEED])]


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    made = [
        Problem.make(task="math", source="t", prompt=f"What is {i} + 1?", answer=str(i + 1))
        for i in range(20)
    ]
    return make_artifact(tmp_path / "problems", made)


def rows(out: Path) -> list[Rollout]:
    return list(Artifact.open(out, Rollout).iter_rows(Rollout))


def test_the_main_process(problems: Path, tmp_path: Path, seed: int) -> None:
    """At the start, while samples are drawn, with a torn last line, and as the table is written
    and put in place; n grows whenever a run ended, so that there is always something to lose."""
    draw = random.Random(seed)
    options = ["--engine", "scripted", "--model", "none", "--engine-arg", "delay=0.005"]
    run = KilledRollout(problems, tmp_path / "out", *options)
    moments = ["start"] * 6 + ["drawing"] * 12 + ["torn"] * 4
    moments += ["new/data/shard-00000.tmp", "new/data/train-00000-of-00001.parquet"] * 3
    moments += ["new/manifest.json"] * 6
    draw.shuffle(moments)
    n = 4
    while moments:
        moment = moments[-1]
        process = run.start("-n", str(n))
        if moment == "start":
            killed = run.kill(process, lambda: True, delay=draw.uniform(0, 1.5))
        elif moment.startswith("new"):
            made = run.partial / moment
            killed = run.kill(process, made.exists, delay=draw.uniform(0, 0.02))
        else:
            drawn = functools.partial(run.has, lines=run.lines() + draw.randrange(1, 12))
            killed = run.kill(process, drawn, delay=draw.uniform(0, 0.02))
        run.check()
        if killed:
            moments.pop()
            if moment == "torn":
                run.tear(draw.random())
        if run.complete(problems, n):
            n += 1
    run.finish("-n", str(n))

    config = rollout.plan(engine="scripted", model="none", n=n)
    rollout.run(config, problems, tmp_path / "whole", Mode())
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
    assert not run.partial.exists()


def test_conversations_of_several_turns(problems: Path, tmp_path: Path, seed: int) -> None:
    """In any wave: no turn is lost, and what comes of them is what an unbroken run makes."""
    draw = random.Random(seed)
    options = ["--engine", "scripted", "--model", "none", "--max-turns", "3", "-n", "4"]
    options += ["--engine-arg", "delay=0.005"]
    run = KilledRollout(problems, tmp_path / "out", *options)
    kills = 0
    while kills < 8:
        drawn = functools.partial(run.has, lines=run.lines() + draw.randrange(5, 25))
        if run.kill(run.start(), drawn, delay=draw.uniform(0, 0.02)):
            kills += 1
            if kills % 3 == 0:
                run.tear(draw.random())
        else:  # a few lines were left
            break
        run.check()
    assert kills > 4
    assert any(len(row["messages"]) > 2 for row in run.known.values())
    run.finish()

    config = rollout.plan(engine="scripted", model="none", n=4, max_turns=3)
    rollout.run(config, problems, tmp_path / "whole", Mode())
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
