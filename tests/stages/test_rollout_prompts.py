"""How a problem is put: the prompt template, for examples and problems alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_rollouts import make_problems, rows, sample

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.prompt_files import read_few_shot
from llmpipe.core.records import Conversation, Problem
from llmpipe.core.run import Mode
from llmpipe.stages import build_sft
from llmpipe.tasks import ask, opening

INSTRUCTION = load("tasks", "math").instruction


def test_the_words_of_problem_and_task_stand_in_their_places_and_no_brace_is_lost() -> None:
    template = "{instruction}\n\\frac{1}{2} {other} {{\n{prompt}"
    asked = ask("math", "What is \\frac{a}{b} {instruction}?", template)

    assert asked == (
        f"{INSTRUCTION}\n\\frac{{1}}{{2}} {{other}} {{{{\nWhat is \\frac{{a}}{{b}} {{instruction}}?"
    )
    assert ask("math", "1 + 1?") == f"1 + 1?\n\n{INSTRUCTION}"
    assert ask("math", "1 + 1?", "Solve: {prompt}") == "Solve: 1 + 1?"


def test_worked_examples_are_put_the_same_way() -> None:
    problem = Problem.make(task="math", source="t", prompt="2 + 2?", answer="4")
    shots = [{"prompt": "1 + 1?", "response": "2"}, {"task": "maze", "prompt": "x", "response": ""}]

    said = opening(problem, few_shot=shots, template="Q: {prompt}")

    assert [m["content"] for m in said] == ["Q: 1 + 1?", "2", "Q: 2 + 2?"]


def test_a_template_is_a_setting_and_training_data_has_what_the_model_saw(tmp_path: Path) -> None:
    problems, file = make_problems(tmp_path / "problems", [1]), tmp_path / "put.txt"
    file.write_text("Question: {prompt}\n{instruction}\n")
    asked = f"Question: What is 1 + 1?\n{INSTRUCTION}"
    sample(problems, tmp_path / "out", prompt_template=file, engine_args={"p_correct": "1"})

    assert rows(tmp_path / "out")[0].messages[0]["content"] == asked
    manifest = Artifact.open(tmp_path / "out").manifest
    assert manifest.config["prompt_template"] == "Question: {prompt}\n{instruction}"

    build_sft.run(build_sft.Config(), tmp_path / "out", tmp_path / "sft", Mode())
    (first, *_) = Artifact.open(tmp_path / "sft").iter_rows(Conversation)
    assert first.messages[0]["content"] == asked

    file.write_text("{prompt}")
    with pytest.raises(UserError, match="prompt_template was"):
        sample(problems, tmp_path / "out", prompt_template=file, engine_args={"p_correct": "1"})


def test_a_template_without_a_place_for_the_problem_is_refused(tmp_path: Path) -> None:
    problems, file = make_problems(tmp_path / "problems", [1]), tmp_path / "put.txt"
    for text, message in (("{problem}", r"has no \{prompt\}"), (None, "can't be read")):
        if text:
            file.write_text(text)
        else:
            file.unlink()
        with pytest.raises(UserError, match=message) as refused:
            sample(problems, tmp_path / "out", prompt_template=file)
        assert "{prompt}" in str(refused.value.hint)
    assert not list(tmp_path.glob("out*"))


def test_worked_examples_that_no_prompt_can_hold_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "shots.jsonl"
    for raw, message in (
        (b"\xff\xfe", "can't be read"),
        (rb'{"prompt": "\ud800", "response": "2"}', "shots.jsonl:1 is no worked example"),
        (b'{"prompt": "1", "response": "2"}\n{"prompt": "1"}', ":2 is no worked example"),
    ):
        file.write_bytes(raw)
        with pytest.raises(UserError, match=message):
            list(read_few_shot(file))
    with pytest.raises(UserError, match="can't be read"):
        list(read_few_shot(tmp_path))


def test_a_worked_example_may_hold_any_line_break_but_json_lines_own(tmp_path: Path) -> None:
    file = tmp_path / "shots.jsonl"
    file.write_text('{"prompt": "a\u2028b", "response": "c\x85d"}\r\n\n', encoding="utf-8")

    assert list(read_few_shot(file)) == [{"prompt": "a\u2028b", "response": "c\x85d"}]
