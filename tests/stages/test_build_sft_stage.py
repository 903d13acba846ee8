from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.records import Conversation, Message, Problem, Rollout
from llmpipe.core.run import Mode, Result
from llmpipe.stages.build_sft import Config, run

SYSTEM = ("system", "Be brief.")
SHOTS = (("user", "1+1?"), ("assistant", "2"), ("user", "2+2?"), ("assistant", "4"))
PROBLEM = Problem.make(
    task="math", source="made", prompt="What is 3+3?", answer="6", solution="3+3=6, so \\boxed{6}."
)


def messages(*turns: tuple[str, str]) -> list[Message]:
    return [{"role": role, "content": content} for role, content in turns]


def built(
    folder: Path,
    *transcripts: Sequence[tuple[str, str]],
    shots: Mapping[str, int] | None = None,
    config: Config | None = None,
) -> Result:
    """Build from rollouts of one problem with these transcripts, into ``folder/out``."""
    problems = make_artifact(folder / "problems", [PROBLEM], stage="prepare")
    rollouts = make_artifact(
        folder / "rollouts",
        [
            Rollout(
                problem_id=PROBLEM.id,
                sample=i,
                seed=i,
                messages=messages(*transcript),
                completion=transcript[-1][1],
                finish_reason="stop",
                prompt_tokens=1,
                completion_tokens=1,
            )
            for i, transcript in enumerate(transcripts)
        ],
        stage="rollout",
        inputs={"problems": problems},
        details={"few_shot_messages": shots} if shots is not None else {},
    )
    return run(config or Config(), rollouts, folder / "out", Mode())


def conversations(folder: Path) -> list[Conversation]:
    return list(Artifact.open(folder / "out").iter_rows(Conversation))


def turns(conversation: Conversation) -> list[tuple[str, str, bool]]:
    return [(m["role"], m["content"], m["train"]) for m in conversation.messages]


def test_a_rollout_becomes_a_conversation_with_loss_on_the_answer(tmp_path: Path) -> None:
    result = built(tmp_path, [SYSTEM, ("user", "3+3?"), ("assistant", "6")])
    (conversation,) = conversations(tmp_path)
    assert conversation.id == f"{PROBLEM.id}-0"
    assert conversation.problem_id == PROBLEM.id
    assert conversation.source == "made"
    assert turns(conversation) == [
        (*SYSTEM, False),
        ("user", "3+3?", False),
        ("assistant", "6", True),
    ]
    assert result.figures["trained_turns"] == 1


def test_every_turn_of_the_answer_is_learnt(tmp_path: Path) -> None:
    result = built(
        tmp_path,
        [("user", "q"), ("assistant", "7"), ("user", "No, again."), ("assistant", "6")],
    )
    (conversation,) = conversations(tmp_path)
    assert [m["train"] for m in conversation.messages] == [False, True, False, True]
    assert result.figures["trained_turns"] == 2


def test_worked_examples_are_left_out(tmp_path: Path) -> None:
    transcript = [SYSTEM, *SHOTS, ("user", "3+3?"), ("assistant", "6")]
    built(tmp_path, transcript, shots={"math": 4, "maze": 2})
    (conversation,) = conversations(tmp_path)
    assert turns(conversation) == [
        (*SYSTEM, False),
        ("user", "3+3?", False),
        ("assistant", "6", True),
    ]


def test_worked_examples_that_are_kept_carry_no_loss(tmp_path: Path) -> None:
    transcript = [SYSTEM, *SHOTS, ("user", "3+3?"), ("assistant", "6")]
    result = built(tmp_path, transcript, shots={"math": 4}, config=Config(keep_few_shot=True))
    (conversation,) = conversations(tmp_path)
    assert [m["content"] for m in conversation.messages] == [content for _, content in transcript]
    assert [m["train"] for m in conversation.messages] == [False] * 6 + [True]
    assert result.figures["trained_turns"] == 1


def test_examples_of_other_tasks_do_not_count(tmp_path: Path) -> None:
    built(tmp_path, [*SHOTS, ("user", "3+3?"), ("assistant", "6")], shots={"maze": 4})
    (conversation,) = conversations(tmp_path)
    assert [m["train"] for m in conversation.messages] == [False, True] * 3


@pytest.mark.parametrize("first", [[], [SYSTEM]])
def test_the_system_message_is_replaced_or_added(
    tmp_path: Path, first: list[tuple[str, str]]
) -> None:
    transcript = [*first, *SHOTS, ("user", "3+3?"), ("assistant", "6")]
    built(tmp_path, transcript, shots={"math": 4}, config=Config(system="Think."))
    (conversation,) = conversations(tmp_path)
    assert turns(conversation) == [
        ("system", "Think.", False),
        ("user", "3+3?", False),
        ("assistant", "6", True),
    ]


def test_bad_conversations_are_rejected_with_a_reason(tmp_path: Path) -> None:
    result = built(
        tmp_path,
        [("user", "q"), ("assistant", " \n")],
        [("user", " "), ("assistant", "a")],
        [("user", "q"), ("user", "q"), ("assistant", "a")],
        [("user", "q"), ("assistant", "a"), ("user", "again?")],
        [("assistant", "a")],
        [("user", "q")],
        [("user", "q"), ("assistant", "a")],
    )
    assert rejects(tmp_path / "out") == [
        (f"{PROBLEM.id}-0", "empty_turn", "turn 1, assistant"),
        (f"{PROBLEM.id}-1", "empty_turn", "turn 0, user"),
        (f"{PROBLEM.id}-2", "bad_roles", "user user assistant"),
        (f"{PROBLEM.id}-3", "bad_roles", "user assistant user"),
        (f"{PROBLEM.id}-4", "bad_roles", "assistant"),
        (f"{PROBLEM.id}-5", "no_assistant", ""),
    ]
    assert result.rows == 1


def test_an_answer_in_the_worked_examples_only_is_none(tmp_path: Path) -> None:
    built(tmp_path, SHOTS, shots={"math": 4}, config=Config(keep_few_shot=True))
    assert rejects(tmp_path / "out") == [(f"{PROBLEM.id}-0", "no_assistant", "")]


def test_problems_with_solutions(tmp_path: Path) -> None:
    unsolved = Problem.make(task="math", source="made", prompt="What is 1+2?", answer="3")
    problems = make_artifact(tmp_path / "problems", [PROBLEM, unsolved], stage="prepare")
    result = run(Config(system="Think."), problems, tmp_path / "out", Mode())
    (conversation,) = conversations(tmp_path)
    asked = f"What is 3+3?\n\n{load('tasks', 'math').instruction}"
    assert turns(conversation) == [
        ("system", "Think.", False),
        ("user", asked, False),
        ("assistant", "3+3=6, so \\boxed{6}.", True),
    ]
    assert (conversation.id, conversation.problem_id) == (PROBLEM.id, PROBLEM.id)
    assert rejects(tmp_path / "out") == [(unsolved.id, "no_solution", "")]
    assert "tasks/math" in Artifact.open(tmp_path / "out").manifest.plugins
    assert result.exit_code == 0


def test_up_to_date_and_refused(tmp_path: Path) -> None:
    problems = make_artifact(tmp_path / "problems", [PROBLEM], stage="prepare")
    run(Config(), problems, tmp_path / "out", Mode())
    assert run(Config(), problems, tmp_path / "out", Mode()).up_to_date
    with pytest.raises(UserError, match="system was null"):
        run(Config(system="x"), problems, tmp_path / "out", Mode())


def test_nothing_left_ends_with_3(tmp_path: Path) -> None:
    result = built(tmp_path, [("user", "q")])
    assert result.exit_code == 3
    assert "no_assistant" in (result.attention or "")


def test_problems_of_other_rollouts_are_refused(tmp_path: Path) -> None:
    built(tmp_path, [("user", "q"), ("assistant", "a")])
    other = make_artifact(
        tmp_path / "other",
        [Problem.make(task="math", source="made", prompt="another", answer="1")],
    )
    with pytest.raises(UserError, match="has no problem"):
        run(Config(), tmp_path / "rollouts", tmp_path / "new", Mode(), problems=other)


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    problems = make_artifact(tmp_path / "problems", [PROBLEM], stage="prepare")
    with pytest.raises(UserError, match="turns is 'both'"):
        run(Config(turns="both"), problems, tmp_path / "out", Mode())


def test_other_rows_are_refused(tmp_path: Path) -> None:
    problems = make_artifact(tmp_path / "problems", [PROBLEM], stage="prepare")
    run(Config(), problems, tmp_path / "out", Mode())
    with pytest.raises(UserError, match="holds Conversation rows"):
        run(Config(), tmp_path / "out", tmp_path / "again", Mode())
