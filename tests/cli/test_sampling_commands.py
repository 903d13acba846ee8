"""Options of rollout and eval that say how it goes on: turns, prompts, the time there is."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import make_artifact

from llmpipe.cli.options import engine_args, json_object, pairs, values
from llmpipe.core.errors import UserError
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


def test_an_option_without_effect_is_refused() -> None:
    assert pairs(["a-b=1", "c=x=y", "a_b=1"], "--engine-arg") == {"a_b": "1", "c": "x=y"}
    with pytest.raises(UserError, match="a_b is given twice: 1 and 2"):
        pairs(["a-b=1", "a_b=2"], "--engine-arg")
    with pytest.raises(UserError, match="tensor_parallel_size is given twice: 4 and 2"):
        engine_args(2, None, ["tensor_parallel_size=4"])
    for size in (0, -1):
        with pytest.raises(UserError, match="must be at least 1"):
            engine_args(size, None, None)
    assert engine_args(2, "http://h/v1", ["x=1"]) == {
        "x": "1",
        "tensor_parallel_size": "2",
        "base_url": "http://h/v1",
    }


def test_half_a_character_is_refused_before_a_file_is_to_hold_it() -> None:
    with pytest.raises(UserError, match="half a character"):
        values([r'stop=["\ud800"]'], "--sampling-arg")
    with pytest.raises(UserError, match="no JSON object"):
        json_object(r'{"a": "\ud800"}', "--chat-template-kwargs")
    assert json_object(r'{"a": "\ud83d\ude00"}', "--x") == {"a": "\U0001f600"}


def test_more_samples_than_can_be_numbered_are_refused_at_once(llmpipe: Llmpipe) -> None:
    said = llmpipe("rollout", "problems", "-o", "r", *SCRIPTED, "-n", 10**20, code=2)
    assert f"n is {10**20}, but must be at least 1 and at most 16777216" in said.stderr


def test_options_that_come_too_late_are_named(llmpipe: Llmpipe) -> None:
    llmpipe("rollout", "problems", "-o", "r", "-n", 2, *SCRIPTED)
    late = llmpipe("eval", "r", "-o", "e", "--k", 1, "-n", 4, "--temperature", 0, "--logprobs")
    assert "r was sampled already: sampling options have no effect" in late.stderr
    assert "(--n, --temperature, --logprobs)" in late.stderr
    told = ("--k", 2, "--problems", "problems")
    assert "no effect" not in llmpipe("eval", "r", "-o", "e", *told).stderr
