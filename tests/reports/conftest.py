"""Evals of mazes and sums, made by the stages' own code from verdicts as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rollout

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem, Rollout, Verdict
from llmpipe.core.run import Mode, Spec, Writer, execute
from llmpipe.stages import score

STATUS = {"c": "correct", "w": "wrong", "n": "no_answer", "t": "truncated", "e": "error"}

Evaluate = Callable[..., Path]


@dataclass(frozen=True, kw_only=True)
class Sampled:
    model: str
    engine: str = "vllm"
    temperature: float = 0.8
    n: int = 4


@dataclass(frozen=True, kw_only=True)
class Judged:
    extract: str = "auto"


def problem(prompt: str, level: str, subject: str = "sums") -> Problem:
    return Problem.make(
        task="math", source="made/set", prompt=prompt, answer="1", level=level, subject=subject
    )


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """An eval of problems by level; one letter a sample: c, w, n, t or e."""

    def make(
        name: str,
        samples: Mapping[str, str],
        *,
        model: str = "org/Model",
        subject: str = "sums",
        command: tuple[str, ...] = (),
        k: tuple[int, ...] = (1, 2),
        temperature: float = 0.8,
    ) -> Path:
        asked = {level: problem(f"of {level}", level, subject) for level in samples}
        problems = make_artifact(tmp_path / f"{name}-problems", list(asked.values()), stage="maze")
        rows = [
            (asked[level].id, sample, letter)
            for level, letters in samples.items()
            for sample, letter in enumerate(letters)
        ]
        rollouts = make_artifact(
            tmp_path / f"{name}-rollouts",
            [rollout(p, s, "x" * (10 + s)) for p, s, _ in rows],
            record=Rollout,
            stage="rollout",
            inputs={"problems": problems},
            config=Sampled(model=model, temperature=temperature),
        )
        verdicts = _judged(tmp_path / f"{name}-verdicts", rows, rollouts)
        mode = Mode(command=command)
        score.run(score.Config(k=k), verdicts, tmp_path / name, mode)
        return tmp_path / name

    return make


def _judged(out: Path, rows: list[tuple[str, int, str]], rollouts: Path) -> Path:
    def build(writer: Writer) -> None:
        for problem_id, sample, letter in rows:
            writer.add(
                Verdict(
                    problem_id=problem_id,
                    sample=sample,
                    status=STATUS[letter],  # type: ignore[arg-type]
                    extracted=None,
                    detail="",
                )
            )

    inputs: dict[str, Any] = {"rollouts": Artifact.open(rollouts)}
    spec = Spec(stage="verify", record=Verdict, config=Judged(), inputs=inputs, out=out)
    execute(spec, build, Mode())
    return out
