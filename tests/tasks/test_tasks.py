from __future__ import annotations

import json
from typing import Any

import pytest

from llmpipe.core import plugins
from llmpipe.core.records import Problem, Score
from llmpipe.tasks import judge


def _maze(payload: Any) -> Problem:
    problem = Problem.make(task="maze", source="t", prompt="a maze", answer="RR")
    return Problem(**{**problem.as_row(), "payload": payload})


def _grid(grid: str) -> Problem:
    return _maze(json.dumps({"maze": grid}))


def _math(prompt: str) -> Problem:
    return Problem.make(task="math", source="t", prompt=prompt, answer="2")


@pytest.mark.parametrize("name", ["math", "maze"])
def test_a_task_is_found_by_its_name_and_says_where_the_answer_goes(name: str) -> None:
    task = plugins.load("tasks", name)
    assert task.name == name
    assert "\\boxed{" in task.instruction


def test_judge_calls_the_tasks_rule() -> None:
    assert judge("math", "1/2", "{}", r"\boxed{0.5}", "stop", "auto").status == "correct"
    assert judge("math", "1/2", "{}", "0.5", "length", "auto").status == "truncated"
    assert judge("math", "1/2", "{}", "0.5", "stop", "boxed").status == "no_answer"
    payload = json.dumps({"maze": "S.E\n..."})
    assert judge("maze", "RR", payload, r"\boxed{DRRU}", "stop", "auto") == Score(
        status="correct", extracted="DRRU", detail="4 moves, the shortest is 2", optimal=False
    )


def test_math_problems_are_the_same_however_they_are_spaced() -> None:
    task = plugins.load("tasks", "math")
    form = task.normal_form(_math("What is $1 + 1$?"))
    assert form == task.normal_form(_math("What  is 1+1?"))
    assert form != task.normal_form(_math("What is 1 + 2?"))


def test_mazes_are_the_same_turned_and_mirrored() -> None:
    task = plugins.load("tasks", "maze")
    form = task.normal_form(_grid("S.E\n.*."))
    assert form == task.normal_form(_grid("E.S\n.*."))
    assert form == task.normal_form(_grid("S.\n.*\nE."))
    assert form != task.normal_form(_grid("S.E\n..."))
    assert task.normal_form(_grid("S..")) == "a maze"


def test_malformed() -> None:
    math, maze = plugins.load("tasks", "math"), plugins.load("tasks", "maze")
    assert math.malformed(_math("1+1?")) is None
    assert math.malformed(_math(" \n")) == "the prompt is empty"
    assert maze.malformed(_grid("S.E")) is None
    assert maze.malformed(_grid("S*E")) == "the maze has no path from S to E"
    assert maze.malformed(_grid("S.E\n.")) == "the rows of the maze have different lengths"
    for payload in ("{}", "[]", '{"maze": 3}'):
        assert maze.malformed(_maze(payload)) == "the payload has no maze"
    assert maze.malformed(_maze("no json")) is not None


def _reply(task: str, problem: Problem, response: str, finish: str = "stop") -> str | None:
    score = judge(task, problem.answer, problem.payload, response, finish, "auto")  # type: ignore[arg-type]
    messages = [
        {"role": "user", "content": problem.prompt},
        {"role": "assistant", "content": response},
    ]
    reply: str | None = plugins.load("tasks", task).reply(problem, messages, score)
    return reply


def test_math_replies_name_the_answer_that_was_read_and_never_the_gold_one() -> None:
    problem = Problem.make(task="math", source="t", prompt="2 + 39?", answer="41")
    wrong = _reply("math", problem, r"So \boxed{42}.")
    assert wrong is not None
    assert wrong.startswith("42 is not right.")
    for response in (r"\boxed{42}", "No.", r"\boxed{\text{red " + "and red " * 20 + "}}"):
        reply = _reply("math", problem, response)
        assert reply is not None
        assert "41" not in reply
        assert len(reply) < 200
    assert "\\boxed{}" in (_reply("math", problem, "I don't know.") or "")


def test_maze_replies_name_the_step_that_broke_and_no_path() -> None:
    maze = _grid("S.E\n*..")
    wall = _reply("maze", maze, r"\boxed{DRR}")
    assert wall is not None
    assert "move 1 (D) from row 1, column 1 meets a wall" in wall
    assert "R" not in wall.replace("Rows", "")
    assert "no box" in (_reply("maze", maze, "RR") or "")


@pytest.mark.parametrize("task", ["math", "maze"])
def test_right_truncated_and_undecided_answers_get_no_reply(task: str) -> None:
    problem = _grid("S.E") if task == "maze" else _math("1 + 1?")
    assert _reply(task, problem, f"\\boxed{{{problem.answer}}}") is None
    assert _reply(task, problem, "So we", finish="length") is None
    error = Score(status="error", extracted=None, detail="")
    assert plugins.load("tasks", task).reply(problem, [], error) is None
