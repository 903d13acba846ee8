"""kill -9 while real vLLM samples: nothing journalled is lost, nothing is there twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, needs_vllm

from llmpipe.core.artifact import Artifact
from llmpipe.core.records import Problem, Rollout

pytestmark = [pytest.mark.slow, needs_vllm]


def start(problems: Path, out: Path, model: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "llmpipe", "rollout", problems, "-o", out, "--model", model]
    command += [
        "-n",
        "8",
        "--max-tokens",
        "48",
        "--engine",
        "vllm",
        "--engine-arg",
        "max_num_seqs=8",
    ]
    return subprocess.Popen([str(c) for c in command], stderr=subprocess.PIPE, text=True)


def journal(out: Path) -> list[dict[str, Any]]:
    path = out.with_name(out.name + ".partial") / "journal.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return [json.loads(line) for line in whole.splitlines()[1:]]


def test_killed_in_the_middle_it_goes_on(tmp_path: Path, smol_model: Path) -> None:
    rows = [
        Problem.make(task="math", source="t", prompt=f"What is {i} + 2?", answer=str(i + 2))
        for i in range(6)
    ]
    problems, out = make_artifact(tmp_path / "problems", rows), tmp_path / "out"
    process = start(problems, out, smol_model)
    deadline = time.monotonic() + 300
    while len(journal(out)) < 10:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    kept = journal(out)
    assert 10 <= len(kept) < 48
    assert not (out / "manifest.json").exists()

    again = start(problems, out, smol_model)
    _, said = again.communicate(timeout=600)
    assert again.returncode == 0, said
    assert f"{48 - len(kept)} of 48 samples to draw" in said
    found = {(r.problem_id, r.sample): r for r in Artifact.open(out, Rollout).iter_rows(Rollout)}
    assert len(found) == Artifact.open(out).rows == 48
    for row in kept:
        assert found[row["problem_id"], row["sample"]] == Rollout.from_row(row)
    assert {r.finish_reason for r in found.values()} <= {"stop", "length"}
    assert all(r.completion_tokens > 0 for r in found.values())
