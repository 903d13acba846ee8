"""Conversations of several turns: who replies, when they end, and that no turn is lost."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rejects
from scripted_rollouts import make_problems, rows, sample

from llmpipe import verify_math
from llmpipe.core import plugins
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Conversation, Problem, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.core.seeds import sample_seed
from llmpipe.stages import build_sft, select, verify


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_problems(tmp_path_factory.mktemp("turns") / "problems", range(10))


@pytest.fixture(scope="module")
def whole(problems: Path) -> Path:
    """An unbroken run of three turns."""
    sample(problems, problems.with_name("whole"), max_turns=3)
    return problems.with_name("whole")


def answers(row: Rollout) -> list[str]:
    return [m["content"] for m in row.messages if m["role"] == "assistant"]


def golds(problems: Path) -> dict[str, str]:
    return {p.id: p.answer for p in Artifact.open(problems).iter_rows(Problem)}


def test_a_wrong_answer_is_tried_again_and_a_right_one_ends(problems: Path, whole: Path) -> None:
    gold = golds(problems)
    used = []
    for row in rows(whole):
        said = answers(row)
        assert [m["role"] for m in row.messages] == ["user", "assistant"] * len(said)
        right = [verify_math(gold[row.problem_id], text).status == "correct" for text in said]
        assert not any(right[:-1])
        assert right[-1] or len(said) == 3
        assert row.completion == said[-1]
        turn = len(said) - 1
        assert row.seed == sample_seed(0, row.problem_id, row.sample, turn)
        used.append((len(said), right[-1]))
    assert {turns for turns, _ in used} == {1, 2, 3}

    figures = Artifact.open(whole).manifest.figures
    assert figures["turns"] == {str(t): sum(u == t for u, _ in used) for t in (1, 2, 3)}
    assert figures["correct_after_first_turn"] == sum(r and u == 1 for u, r in used) / 40
    assert figures["correct_after_last_turn"] == sum(r for _, r in used) / 40
    assert figures["turns_not_drawn"] == 0


def test_the_first_answers_are_those_of_a_run_of_one_turn(
    problems: Path, whole: Path, tmp_path: Path
) -> None:
    sample(problems, tmp_path / "one")
    assert [r.completion for r in rows(tmp_path / "one")] == [answers(r)[0] for r in rows(whole)]
    assert "turns" not in Artifact.open(tmp_path / "one").manifest.figures


def test_no_reply_gives_the_gold_answer_away(problems: Path, whole: Path) -> None:
    gold = golds(problems)
    replies = [
        (gold[row.problem_id], message["content"])
        for row in rows(whole)
        for message in row.messages[1:]
        if message["role"] == "user"
    ]
    assert replies
    assert not [r for answer, r in replies if re.search(rf"\b{answer}\b", r)]


def test_an_engine_that_breaks_in_any_wave_costs_no_turn(
    problems: Path, whole: Path, tmp_path: Path
) -> None:
    breaks = 0
    while True:
        try:
            sample(problems, tmp_path / "out", max_turns=3, engine_args={"fail_after": "13"})
            break
        except RuntimeError:
            breaks += 1
    assert breaks > 3  # once in the second wave at least: the first has 40 answers
    assert rows(tmp_path / "out") == rows(whole)


def test_truncated_answers_end_a_conversation(problems: Path, tmp_path: Path) -> None:
    sample(problems, tmp_path / "out", max_turns=3, engine_args={"p_truncated": "1"})
    assert {r.finish_reason for r in rows(tmp_path / "out")} == {"length"}
    assert {len(answers(r)) for r in rows(tmp_path / "out")} == {1}


def test_a_prompt_that_outgrows_the_context_ends_with_the_answer_before(tmp_path: Path) -> None:
    problems = make_problems(tmp_path / "problems", [1, 2])
    args = {"p_correct": "0", "context": "60"}
    result = sample(problems, tmp_path / "out", max_turns=5, max_tokens=40, engine_args=args)
    assert result.exit_code == 0
    outgrown = [row for row in rows(tmp_path / "out") if row.error]
    assert result.figures["turns_not_drawn"] == len(outgrown) > 3  # the rest was cut off
    for row in outgrown:
        assert (row.finish_reason, row.completion) == ("stop", row.messages[-1]["content"])
        assert row.messages[-1]["role"] == "assistant"
        assert re.match(r"answer \d was not drawn: the prompt has \d+ tokens of 60", str(row.error))


def test_an_answer_that_can_t_be_judged_ends_a_conversation_and_says_so(tmp_path: Path) -> None:
    unreadable = Problem.make(task="math", source="t", prompt="?", answer="\\frac{1")
    problems = make_artifact(tmp_path / "problems", [unreadable])
    args = {"p_correct": "0"}
    result = sample(problems, tmp_path / "out", max_turns=3, engine_args=args)
    assert {(len(answers(r)), r.error) for r in rows(tmp_path / "out")} == {
        (1, "answer 1 could not be judged")
    }
    assert result.figures["turns_not_drawn"] == 4


def test_a_larger_n_draws_whole_conversations(problems: Path, whole: Path, tmp_path: Path) -> None:
    sample(problems, tmp_path / "out", n=1, max_turns=3)
    sample(problems, tmp_path / "out", n=4, max_turns=3)
    assert rows(tmp_path / "out") == rows(whole)
    with pytest.raises(UserError, match="max_turns was 3, is now 2"):
        sample(problems, tmp_path / "out", max_turns=2)
    with pytest.raises(UserError, match="max_turns is 0"):
        sample(problems, tmp_path / "out", max_turns=0)


def test_conversations_that_a_smaller_n_leaves_open_are_kept_aside(
    problems: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError):
        sample(problems, out, max_turns=3, engine_args={"fail_after": "25"})
    sample(problems, out, n=2, max_turns=3)
    (aside,) = tmp_path.glob("out.old-*.jsonl")
    assert any(json.loads(line).get("open") for line in aside.read_text().splitlines())
    kept = {(r.problem_id, r.sample): r for r in rows(whole)}
    assert all(kept[r.problem_id, r.sample] == r for r in rows(out))


def test_worked_examples_are_no_turns(problems: Path, tmp_path: Path) -> None:
    shots = tmp_path / "shots.jsonl"
    shots.write_text('{"prompt": "What is 1 + 1?", "response": "\\\\boxed{2}"}\n')
    args = {"p_correct": "0"}
    result = sample(problems, tmp_path / "out", max_turns=2, few_shot=shots, engine_args=args)
    assert result.figures["turns"] == {"2": 40}


def test_mazes_are_told_the_step_that_broke(tmp_path: Path) -> None:
    maze = Problem.make(
        task="maze", source="t", prompt="S.E\n*..", answer="RR", payload={"maze": "S.E\n*.."}
    )
    problems = make_artifact(tmp_path / "problems", [maze])
    sample(problems, tmp_path / "out", max_turns=2, engine_args={"p_correct": "0"})
    reply = rows(tmp_path / "out")[0].messages[2]["content"]
    assert "ends on row 1, column 2, not on E" in reply


def test_what_comes_after_takes_the_last_answer(
    problems: Path, whole: Path, tmp_path: Path
) -> None:
    gold = golds(problems)
    verify.run(verify.Config(), whole, tmp_path / "verdicts", Mode())
    verdicts = list(Artifact.open(tmp_path / "verdicts").iter_rows(Verdict))
    right = [v.status == "correct" for v in verdicts]
    assert right == [
        verify_math(gold[r.problem_id], answers(r)[-1]).status == "correct" for r in rows(whole)
    ]

    select.run(select.Config(), tmp_path / "verdicts", tmp_path / "selected", Mode())
    selected = rows(tmp_path / "selected")
    assert {len(answers(r)) for r in selected} >= {1, 2}
    build_sft.run(build_sft.Config(), tmp_path / "selected", tmp_path / "sft", Mode())
    made = list(Artifact.open(tmp_path / "sft").iter_rows(Conversation))
    assert not rejects(tmp_path / "sft")
    assert [[m["content"] for m in c.messages] for c in made] == [
        [m["content"] for m in r.messages] for r in selected
    ]


def _start(problems: Path, out: Path, *extra: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "llmpipe", "rollout", str(problems), "-o", str(out)]
    command += ["--engine", "scripted", "--model", "none", "-n", "4", "--max-tokens", "64"]
    command += ["--max-turns", "3", *extra]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=out.parent)


def _journal(out: Path) -> list[dict[str, Any]]:
    path = out.with_name(out.name + ".partial") / "journal.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return [json.loads(line) for line in whole.splitlines()[1:]]


def _wait_for_second_turns(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while sum(len(row["messages"]) > 2 for row in _journal(out)) < count:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_kills_and_ctrl_c_lose_no_turn(problems: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = _start(problems, out, "--engine-arg", "delay=0.01")
    _wait_for_second_turns(out, 3, process)
    process.kill()
    process.communicate()
    kept = _journal(out)

    process = _start(problems, out, "--engine-arg", "delay=0.2")
    _wait_for_second_turns(out, sum(len(row["messages"]) > 2 for row in kept) + 2, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"stopped: \d+ of 40 samples, and \d+ conversations that go on, are", said)
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert _journal(out)[: len(kept)] == kept

    sample(problems, out, max_turns=3)
    assert rows(out) == rows(whole)


def test_a_task_without_replies_is_refused(
    problems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(type(plugins.load("tasks", "math")), "reply")
    with pytest.raises(UserError, match="the task math has no reply"):
        sample(problems, tmp_path / "out", max_turns=2)
