"""Small artifacts for tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from llmpipe.core.artifact import REJECTS, Artifact
from llmpipe.core.records import Problem, Record, Rewards, Rollout, Verdict
from llmpipe.core.run import Mode, Spec, Writer, execute

needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vLLM can't be installed on this machine"
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The config of a made artifact: whatever a test wants to find in its manifest."""

    values: Mapping[str, Any]


def make_artifact(
    out: Path,
    rows: Sequence[Record],
    *,
    record: type[Record] | None = None,
    stage: str = "made",
    inputs: Mapping[str, Path] | None = None,
    details: Mapping[str, Any] | None = None,
    config: Any = None,
) -> Path:
    """Write rows as the artifact of ``stage``; whatever was at ``out`` is replaced.

    ``record`` is needed only where there are no rows.
    """

    def build(writer: Writer) -> None:
        writer.details |= details or {}
        for row in rows:
            writer.read += 1
            writer.add(row)

    spec = Spec(
        stage=stage,
        record=record or type(rows[0]),
        config=config or Settings(values={}),
        inputs={role: Artifact.open(path) for role, path in (inputs or {}).items()},
        out=out,
    )
    execute(spec, build, Mode(force=True))
    return out


def problem(name: str, **rest: object) -> Problem:
    """A problem whose id is its prompt."""
    given = {"task": "math", "source": "made", "prompt": name, "answer": "1", **rest}
    return Problem(id=name, **given)  # type: ignore[arg-type]


def rollout(problem: str, sample: int, text: str, **rest: Any) -> Rollout:
    """A rollout that answers "q" with this text, as many tokens as characters."""
    return Rollout(
        problem_id=problem,
        sample=sample,
        seed=sample,
        completion=text,
        prompt_tokens=1,
        token_ids=[1, 2],
        logprobs=[-0.5, -0.25],
        **{
            "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": text}],
            "finish_reason": "stop",
            "completion_tokens": len(text),
            **rest,
        },
    )


def verdicts_of(
    folder: Path,
    rows: Iterable[tuple[Rollout, str]],
    rewards: Mapping[tuple[str, int], Rewards] | None = None,
    problems: Sequence[Problem] = (),
    examples: int = 4,
) -> Path:
    """Rollouts with a status each as ``folder/verdicts``, beside them what these were made from.

    ``examples`` is how many messages of a rollout on mathematics are said to be worked examples.
    """
    rows = list(rows)
    asked = {"p": make_artifact(folder / "problems", problems)} if problems else {}
    rollouts = make_artifact(
        folder / "rollouts",
        [row for row, _ in rows],
        stage="rollout",
        details={"few_shot_messages": {"math": examples}},
        inputs=asked,
    )
    judged = [
        Verdict(
            problem_id=row.problem_id,
            sample=row.sample,
            status=status,
            extracted=None,
            detail=f"said to be {status}",
            rewards=(rewards or {}).get((row.problem_id, row.sample), Rewards()),
        )
        for row, status in rows
    ]
    return make_artifact(folder / "verdicts", judged, stage="verify", inputs={"r": rollouts})


def rejects(artifact: Path) -> list[tuple[str, str, str]]:
    """The dropped rows of an artifact: id, reason, detail."""
    file = artifact / REJECTS
    if not file.exists():
        return []
    return [(r["id"], r["reason"], r["detail"]) for r in pq.read_table(file).to_pylist()]


def train_command(packed: Path, model: Path, out: Path, *options: str) -> list[str]:
    """``llmpipe train`` as a process of its own."""
    command = [sys.executable, "-m", "llmpipe", "train", str(packed), "--model", str(model)]
    return [*command, "-o", str(out), "--no-gradient-checkpointing", *options]
