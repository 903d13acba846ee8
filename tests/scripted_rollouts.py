"""Rollouts of small sums by the scripted engine, for tests of what a rollout does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from helpers import make_artifact

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem, Rollout
from llmpipe.core.run import Mode, Result
from llmpipe.stages import rollout


def make_problems(out: Path, numbers: Iterable[int]) -> Path:
    """Sums, each with its gold answer."""
    rows = [
        Problem.make(task="math", source="test", prompt=f"What is {i} + 1?", answer=str(i + 1))
        for i in numbers
    ]
    return make_artifact(out, rows)


def sample(problems: Path, out: Path, mode: Mode | None = None, **options: Any) -> Result:
    """Four answers each, unless ``options`` of `llmpipe.stages.rollout.plan` say otherwise."""
    options = {"engine": "scripted", "model": "none", "n": 4, "max_tokens": 64, **options}
    return rollout.run(rollout.plan(**options), problems, out, mode or Mode())


def rows(out: Path) -> list[Rollout]:
    """What an artifact of rollouts holds."""
    return list(Artifact.open(out, Rollout).iter_rows(Rollout))
