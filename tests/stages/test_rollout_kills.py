"""Over fifty kills at random moments: nothing journalled is lost, nothing is there twice."""

from __future__ import annotations

import functools
import os
import random
from pathlib import Path

import pytest
from kills import KilledRollout
from scripted_rollouts import make_problems, rows, sample

from llmpipe.engines._fleet_queue import MOST_DEATHS

SEED = int(os.environ.get("LLMPIPE_TEST_SEED", "7"))  # of the moments; it is in the tests' names

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("seed", [SEED])]


SCRIPTED = ["--engine", "scripted", "--model", "none", "--max-tokens", "64"]


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    return make_problems(tmp_path / "problems", range(20))


def test_the_main_process(problems: Path, tmp_path: Path, seed: int) -> None:
    """At the start, while samples are drawn, with a torn last line, and as the table is written
    and put in place; n grows whenever a run ended, so that there is always something to lose."""
    draw = random.Random(seed)
    run = KilledRollout(problems, tmp_path / "out", *SCRIPTED, "--engine-arg", "delay=0.005")
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

    sample(problems, tmp_path / "whole", n=n)
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
    assert not run.partial.exists()


def test_conversations_of_several_turns(problems: Path, tmp_path: Path, seed: int) -> None:
    """In any wave: no turn is lost, and what comes of them is what an unbroken run makes."""
    draw = random.Random(seed)
    options = ["--max-turns", "3", "-n", "4", "--engine-arg", "delay=0.005"]
    run = KilledRollout(problems, tmp_path / "out", *SCRIPTED, *options)
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

    sample(problems, tmp_path / "whole", n=4, max_turns=3)
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")


# So many a run as can't all meet the same sample and make it an error, as they then should: by
# MOST_DEATHS in engines, by a second judge killed at it (see `llmpipe.core.pool`).
@pytest.mark.parametrize(
    ("kind", "kills", "a_run"),
    [("llmpipe engine", 10, MOST_DEATHS - 1), ("llmpipe.core.worker", 6, 1)],
)
def test_what_the_main_process_started(
    problems: Path, tmp_path: Path, seed: int, kind: str, kills: int, a_run: int
) -> None:
    """Engine processes while they draw, and judges between the waves: the run goes on."""
    draw = random.Random(seed)
    run = KilledRollout(
        problems,
        tmp_path / "out",
        *SCRIPTED,
        *("--gpus", "0,1", "--max-turns", "3", "--engine-arg", "delay=0.005"),
    )
    n = 0
    while kills > 0:
        n += 4
        process = run.start("-n", str(n))
        left = min(kills, a_run)
        while left and run.kill_child(process, kind, draw):
            left -= 1
            kills -= 1
        assert run.wait(process) == 0, run.said()
        run.check()
        assert run.complete(problems, n)

    sample(problems, tmp_path / "whole", n=n, max_turns=3)
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
