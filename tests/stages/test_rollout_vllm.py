"""kill -9 while real vLLM samples: nothing journalled is lost, nothing is there twice."""

from __future__ import annotations

import functools
import random
from pathlib import Path

import pytest
from helpers import make_artifact, needs_vllm
from kills import KilledRollout

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem, Rollout

pytestmark = [pytest.mark.slow, needs_vllm]

N = 8
OPTIONS = ["--engine", "vllm", "--engine-arg", "max_num_seqs=8", "-n", str(N), "--max-tokens", "48"]


def test_killed_again_and_again_it_goes_on(tmp_path: Path, smol_model: Path) -> None:
    rows = [
        Problem.make(task="math", source="t", prompt=f"What is {i} + 2?", answer=str(i + 2))
        for i in range(6)
    ]
    problems = make_artifact(tmp_path / "problems", rows)
    run = KilledRollout(problems, tmp_path / "out", "--model", str(smol_model), *OPTIONS)
    moments = [
        (run.partial.exists, random.Random(7).uniform(0, 5)),  # as the engine starts
        (functools.partial(run.has, lines=8), 0.0),
        (functools.partial(run.has, lines=20), 0.0),
        (functools.partial(run.has, lines=36), 0.0),
    ]
    for moment, delay in moments:
        assert run.kill(run.start(), moment, delay)
        run.check()
        assert not (run.out / "manifest.json").exists()
    kept = len(run.known)
    run.finish()

    assert run.said().count(f"{6 * N - kept} of {6 * N} samples to draw") == 1
    found = list(Artifact.open(run.out, Rollout).iter_rows(Rollout))
    wanted = [(p.id, s) for p in rows for s in range(N)]
    assert [(r.problem_id, r.sample) for r in found] == wanted
    assert {r.finish_reason for r in found} <= {"stop", "length"}
    assert all(r.completion_tokens > 0 for r in found)
