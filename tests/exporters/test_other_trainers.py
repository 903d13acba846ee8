"""LLaMA-Factory's and verl's own data set code, in an environment of its own, on our exports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact

from llmpipe.core.records import Conversation, Pair, Problem
from llmpipe.core.run import Mode
from llmpipe.stages.export import Config, run

PYTHON = Path(sys.prefix) / "trainers" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="needs what pipelines/trainers.sh installs"),
]


def chat(name: str, *trained: bool) -> Conversation:
    messages: list[Any] = [{"role": "system", "content": "Be brief.", "train": False}]
    for i, train in enumerate(trained):
        messages.append({"role": "user", "content": f"Question {name}{i}?", "train": False})
        messages.append({"role": "assistant", "content": f"It is {i}.", "train": train})
    return Conversation(id=name, problem_id=None, source="made", messages=messages)


def read(tmp_path: Path, model: Path, to: str, *rows: Any, **options: Any) -> list[Any]:
    """What the trainer made of the rows exported for it."""
    source = make_artifact(tmp_path / "rows", rows)
    run(Config(to=to), source, tmp_path / "out", Mode())
    script = Path(__file__).with_name("in_trainers.py")
    command = [PYTHON, script, to, tmp_path / "out", model, tmp_path / "cache", json.dumps(options)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made: list[Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return made


def test_llama_factory_learns_every_turn(smol_model: Path, tmp_path: Path) -> None:
    [[text, learnt]] = read(tmp_path, smol_model, "llama-factory", chat("a", True, True))
    assert learnt == "It is 0.<|im_end|>\nIt is 1.<|im_end|>\n"
    assert "Be brief." in text
    assert "Question a1?" in text


def test_llama_factory_learns_the_last_turn_as_the_readme_says(
    smol_model: Path, tmp_path: Path
) -> None:
    row = chat("a", False, True)
    [[_, learnt]] = read(tmp_path, smol_model, "llama-factory", row, mask_history=True)
    assert learnt == "It is 1.<|im_end|>\n"
    assert "--mask_history" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


def test_llama_factory_prefers_the_chosen_answer(smol_model: Path, tmp_path: Path) -> None:
    pair = Pair(
        id="p",
        problem_id="q",
        source="set",
        prompt=[{"role": "user", "content": "1+1?"}],
        chosen=[{"role": "assistant", "content": "Two."}],
        rejected=[{"role": "assistant", "content": "Three."}],
    )
    [answers] = read(tmp_path, smol_model, "llama-factory", pair, stage="rm")
    assert [answer.removesuffix("\n") for answer in answers] == [
        "Two.<|im_end|>",
        "Three.<|im_end|>",
    ]


def test_verl_learns_every_turn(smol_model: Path, tmp_path: Path) -> None:
    [[text, learnt]] = read(tmp_path, smol_model, "verl-sft", chat("a", True, True))
    assert learnt == "It is 0.<|im_end|>\nIt is 1.<|im_end|>\n"
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n")


def test_verl_takes_prompts_with_their_truth(smol_model: Path, tmp_path: Path) -> None:
    problem = Problem.make(task="math", source="set", prompt="1+1?", answer="2")
    [row] = read(tmp_path, smol_model, "verl", problem)
    assert row["reward_model"] == {"style": "rule", "ground_truth": "2"}
    assert row["raw_prompt"][0]["content"].startswith("1+1?")
    assert row["extra_info"]["id"] == problem.id
