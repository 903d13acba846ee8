"""Options of rollout and eval that say how it goes on: turns, prompts, the time there is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import make_artifact

from llmpipe.core.records import Problem

Llmpipe = Callable[..., subprocess.CompletedProcess[str]]

SCRIPTED = ("--engine", "scripted", "--model", "none", "--max-tokens", 64)
SLOW = (*SCRIPTED, "--engine-arg", "delay=100")


@pytest.fixture(autouse=True)
def problems(tmp_path: Path) -> Path:
    sums = [
        Problem.make(task="math", source="t", prompt=f"{i} + 1?", answer=str(i + 1))
        for i in range(4)
    ]
    return make_artifact(tmp_path / "problems", sums)


def test_time_that_ends_is_no_error_and_the_same_command_goes_on(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    command = ("rollout", "problems", "-o", "r", "-n", 2, "--max-time", "1.5s", "--json")
    first = llmpipe(*command, *SLOW)
    said = json.loads(first.stdout.splitlines()[-1])
    assert (said["complete"], said["rows"], said["samples_wanted"]) == (False, 0, 8)
    assert "time is up: 0 of 8 samples are kept in r.partial; the same command" in first.stderr
    assert not (tmp_path / "r").exists()
    done = llmpipe(*command[:-3], "--max-time", "10m", "--json", *SCRIPTED)
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["complete"], said["rows"]) == (True, 8)


def test_an_eval_judges_nothing_of_rollouts_that_are_not_whole(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    command = ("eval", "problems", "-o", "e", "--k", 2, "-n", 2, "--json")
    said = json.loads(llmpipe(*command, "--max-time", 1, *SLOW).stdout.splitlines()[-1])
    assert (said["complete"], said["out"]) == (False, "e/rollouts")
    assert [p.name for p in (tmp_path / "e").iterdir()] == ["rollouts.partial"]
    said = json.loads(llmpipe(*command, "--max-turns", 2, *SCRIPTED).stdout.splitlines()[-1])
    assert said["complete"]
    results = json.loads((tmp_path / "e/results.json").read_text())
    assert results["settings"]["max_turns"] == 2


def test_a_time_that_is_none_is_refused(llmpipe: Llmpipe) -> None:
    for text in ("soon", "0"):
        said = llmpipe("rollout", "problems", "-o", "r", "--max-time", text, *SCRIPTED, code=2)
        assert f"--max-time {text} is no time" in said.stderr
        assert "Try: --max-time 1h30m" in said.stderr


def test_a_prompt_template_is_a_file_with_a_place_for_the_problem(
    llmpipe: Llmpipe, tmp_path: Path
) -> None:
    command = ("rollout", "problems", "-o", "r", "-n", 1, *SCRIPTED, "--prompt-template", "put.txt")
    assert "can't be read" in llmpipe(*command, code=2).stderr
    (tmp_path / "put.txt").write_text("Solve it.\n")
    refused = llmpipe(*command, code=2).stderr
    assert "the prompt template put.txt has no {prompt}" in refused
    assert "Try: printf" in refused
    (tmp_path / "put.txt").write_text("Solve: {prompt}\n")
    llmpipe(*command)
    assert "Solve: 0 + 1?" in llmpipe("show", "r", "--rows", 1).stdout


def test_a_conversation_is_shown_whole(llmpipe: Llmpipe) -> None:
    wrong = ("--engine-arg", "p_correct=0")
    llmpipe("rollout", "problems", "-o", "r", "-n", 1, "--max-turns", 2, *SCRIPTED, *wrong)
    shown = llmpipe("show", "r", "--rows", 1).stdout
    assert "is not right. Look for the step that went wrong" in shown
    assert shown.count("assistant") == 2
    assert '"max_turns": 2' in shown
