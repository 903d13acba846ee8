"""Conversations of several attempts, of several problems, and of the set's own solutions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.plugins import load
from llmpipe.core.records import Conversation, Message, Problem, Rollout, Status, Verdict
from llmpipe.core.run import Mode, Result
from llmpipe.stages.build_sft import Config
from llmpipe.stages.build_sft import run as run_stage
from llmpipe.stages.select import Config as Selection
from llmpipe.stages.select import run as run_select

SYSTEM: Message = {"role": "system", "content": "Think."}


def problem(number: int, **columns: Any) -> Problem:
    return Problem.make(
        task="math",
        source="made",
        prompt=f"What is {number}+1?",
        answer=str(number + 1),
        **columns,
    )


class Chain:
    """Problems, rollouts, verdicts and selected rollouts in a folder."""

    def __init__(self, folder: Path, *, shots: int = 0) -> None:
        self.folder = folder
        self._shots = [
            {"role": role, "content": f"example {i}"}
            for i in range(shots // 2)
            for role in ("user", "assistant")
        ]
        self._problems: list[Problem] = []
        self._rollouts: list[Rollout] = []
        self._verdicts: list[Verdict] = []

    def add(self, one: Problem, *answers: tuple[Status, Sequence[str]]) -> None:
        """A problem and its rollouts: the verdict on each, and the turns after the prompt."""
        self._problems.append(one)
        for sample, (status, turns) in enumerate(answers):
            messages = [SYSTEM, *self._shots, {"role": "user", "content": one.prompt}]
            for i, content in enumerate(turns):
                messages.append({"role": "user" if i % 2 else "assistant", "content": content})
            self._rollouts.append(
                Rollout(
                    problem_id=one.id,
                    sample=sample,
                    seed=0,
                    messages=messages,  # type: ignore[arg-type]
                    completion=turns[-1],
                    finish_reason="stop",
                    prompt_tokens=1,
                    completion_tokens=len(turns[-1]),
                )
            )
            self._verdicts.append(
                Verdict(
                    problem_id=one.id,
                    sample=sample,
                    status=status,
                    extracted=turns[-1],
                    detail="",
                )
            )

    def write(self) -> Path:
        """The selected rollouts, with all that they come from."""
        problems = make_artifact(self.folder / "problems", self._problems)
        rollouts = make_artifact(
            self.folder / "rollouts",
            self._rollouts,
            stage="rollout",
            inputs={"problems": problems},
            details={"few_shot_messages": {"math": len(self._shots)}},
        )
        verdicts = make_artifact(
            self.folder / "verdicts",
            self._verdicts,
            stage="verify",
            inputs={"rollouts": rollouts, "problems": problems},
        )
        run_select(Selection(), verdicts, self.folder / "selected", Mode())
        return self.folder / "selected"

    def build(self, **settings: Any) -> Result:
        return run_stage(Config(**settings), self.write(), self.folder / "out", Mode())

    def made(self) -> list[Conversation]:
        return list(Artifact.open(self.folder / "out").iter_rows(Conversation))


def form(conversation: Conversation) -> list[str]:
    """What is said, with a star where it is learnt."""
    return [("*" if m["train"] else "") + m["content"] for m in conversation.messages]


def test_retry_puts_a_wrong_answer_and_its_feedback_first(tmp_path: Path) -> None:
    chain = Chain(tmp_path, shots=2)
    one, never_wrong = problem(1), problem(2)
    chain.add(one, ("correct", ["2"]), ("wrong", ["3"]), ("truncated", ["4"]), ("correct", ["=2"]))
    chain.add(never_wrong, ("correct", ["3"]), ("no_answer", ["?"]))
    result = chain.build(style="retry")
    (verdict,) = (v for v in chain._verdicts if v.status == "wrong")
    said = load("tasks", "math").reply(one, [], verdict)
    assert "3 is not right" in said
    assert [c.id for c in chain.made()] == [f"{one.id}-0-r1", f"{one.id}-3-r1"]
    assert [form(c) for c in chain.made()] == [
        ["Think.", one.prompt, "3", said, "*2"],
        ["Think.", one.prompt, "3", said, "*=2"],
    ]
    assert {c.problem_id for c in chain.made()} == {one.id}
    assert rejects(tmp_path / "out") == [(f"{never_wrong.id}-0", "no_wrong_answer", "")]
    assert (result.figures["retries"], result.figures["trained_turns"]) == (2, 2)


def test_retry_takes_each_wrong_answer_before_one_comes_again(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    answers: list[tuple[Status, list[str]]] = [("wrong", [f"w{i}"]) for i in range(3)]
    answers += [("correct", [f"r{i}"]) for i in range(4)]
    chain.add(problem(1), *answers)
    chain.build(style="retry")
    wrong = [c.messages[2]["content"] for c in chain.made()]
    assert sorted(wrong[:3]) == ["w0", "w1", "w2"]
    assert wrong[3] == wrong[0]
    assert [c.messages[-1]["content"] for c in chain.made()] == ["r0", "r1", "r2", "r3"]


def test_retry_leaves_rollouts_of_several_turns_as_they_are(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    one = problem(1)
    chain.add(one, ("correct", ["3", "No.", "2"]), ("wrong", ["4", "No.", "5"]))
    chain.build(style="retry")
    assert [c.id for c in chain.made()] == [f"{one.id}-0"]
    assert [form(c) for c in chain.made()] == [["Think.", one.prompt, "3", "No.", "*2"]]


def test_without_retry_all_answers_are_learnt_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Chain(tmp_path)
    chain.add(problem(1), ("correct", ["3", "No.", "2"]))
    result = chain.build()
    assert [m["train"] for m in chain.made()[0].messages] == [False, False, True, False, True]
    assert result.figures["several_answers"] == 1
    assert "--style retry" in caplog.text


def test_rollouts_that_were_not_selected_need_their_verdicts(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    one = problem(1)
    chain.add(one, ("correct", ["2"]), ("wrong", ["3"]), ("wrong", ["4"]))
    chain.write()
    config, rollouts, out = Config(style="retry"), tmp_path / "rollouts", tmp_path / "out"
    with pytest.raises(UserError, match="does not say which Verdict rows") as e:
        run_stage(config, rollouts, out, Mode())
    assert "--verdicts DIR" in (e.value.hint or "")
    run_stage(config, rollouts, out, Mode(), verdicts=tmp_path / "verdicts")
    assert len(chain.made()) == 1
    assert [r[:2] for r in rejects(out)] == [
        (f"{one.id}-1", "not_right"),
        (f"{one.id}-2", "not_right"),
    ]


def test_verdicts_on_other_rollouts_are_refused(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    chain.add(problem(1), ("correct", ["2"]), ("wrong", ["3"]))
    selected = chain.write()
    with pytest.raises(UserError, match="are not the verdicts on"):
        run_stage(
            Config(style="retry"),
            selected,
            tmp_path / "out",
            Mode(),
            rollouts=tmp_path / "selected",
        )


def test_verdicts_on_other_problems_are_refused(tmp_path: Path) -> None:
    mine, other = Chain(tmp_path / "mine"), Chain(tmp_path / "other")
    mine.add(problem(1), ("correct", ["2"]))
    other.add(problem(2), ("correct", ["3"]), ("wrong", ["4"]))
    selected, _ = mine.write(), other.write()
    with pytest.raises(UserError, match="the verdicts say nothing of") as e:
        run_stage(
            Config(style="retry"),
            selected,
            tmp_path / "out",
            Mode(),
            verdicts=tmp_path / "other/verdicts",
        )
    assert "--verdicts DIR" in (e.value.hint or "")


def test_that_nothing_was_selected_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Chain(tmp_path)
    chain.add(problem(1), ("correct", ["2"]), ("wrong", ["3"]))
    selected = chain.write()
    with caplog.at_level(logging.WARNING, logger="llmpipe"):
        run_stage(Config(), selected, tmp_path / "a", Mode())
        assert "wrong ones" not in caplog.text
        rows = Artifact.open(tmp_path / "rollouts").iter_rows(Rollout)
        inputs = {"problems": tmp_path / "problems"}
        drawn = make_artifact(tmp_path / "drawn", list(rows), stage="rollout", inputs=inputs)
        result = run_stage(Config(), drawn, tmp_path / "b", Mode())
    assert result.rows == 2
    assert "the wrong ones, too" in caplog.text


def test_unsolved_problems_get_their_own_solutions(tmp_path: Path) -> None:
    chain = Chain(tmp_path, shots=2)
    solved, unsolved, bare = problem(1), problem(2, solution="It is 3."), problem(3)
    chain.add(solved, ("correct", ["2"]), ("wrong", ["1"]))
    chain.add(unsolved, ("wrong", ["7"]), ("truncated", ["8"]))
    chain.add(bare, ("no_answer", ["?"]))
    chain.add(problem(4, solution="Never asked."))
    result = chain.build(fallback="gold", keep_few_shot=True)
    assert [c.id for c in chain.made()] == [f"{solved.id}-0", f"{unsolved.id}-gold"]
    assert form(chain.made()[1]) == [
        *("Think.", "example 0", "example 0"),
        *(unsolved.prompt, "*It is 3."),
    ]
    assert chain.made()[1].problem_id == unsolved.id
    assert rejects(tmp_path / "out") == [(f"{bare.id}-gold", "no_solution", "")]
    assert result.figures["gold"] == 1


def test_solutions_and_retries_go_together(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    one, unsolved = problem(1), problem(2, solution="It is 3.")
    chain.add(one, ("correct", ["2"]), ("wrong", ["1"]))
    chain.add(unsolved, ("wrong", ["7"]))
    chain.build(style="retry", fallback="gold", turns="split")
    assert [c.id for c in chain.made()] == [f"{one.id}-0-r1-t1", f"{unsolved.id}-gold-t0"]


def test_a_chain_of_rising_difficulty(tmp_path: Path) -> None:
    chain = Chain(tmp_path, shots=2)
    hard = {i: (i * 3 % 7) / 7 for i in range(7)}
    problems = [problem(i, difficulty=h) for i, h in hard.items()]
    for i, one in enumerate(problems):
        chain.add(one, ("correct", [f"a{i}"]))
    result = chain.build(style="chain", chain_length=3)
    chained = [c for c in chain.made() if c.problem_id is None]
    (single,) = (c for c in chain.made() if c.problem_id)
    assert len(chained) == 2
    rank = {p.id: p.difficulty for p in problems}
    for one in chained:
        names = [part.rpartition("-")[0] for part in one.id.split("+")]
        assert [rank[n] for n in names] == sorted(rank[n] for n in names)
        prompts = {p.id: p.prompt for p in problems}
        assert [m["content"] for m in one.messages if m["role"] == "user"] == [
            prompts[n] for n in names
        ]
        assert [m["role"] for m in one.messages] == ["system", *["user", "assistant"] * 3]
        assert [m["train"] for m in one.messages] == [False, *[False, True] * 3]
    assert form(single)[0] == "Think."
    assert (result.rows, result.figures["single"], result.figures["trained_turns"]) == (3, 1, 7)
    assert result.figures["ordered_by"] == {"math": "difficulty"}


def test_a_chain_goes_by_measured_pass_rates_where_nothing_else_is_known(tmp_path: Path) -> None:
    chain = Chain(tmp_path)
    easy, hard = problem(1), problem(2)
    chain.add(hard, ("correct", ["3"]), ("wrong", ["4"]), ("wrong", ["5"]))
    chain.add(easy, ("correct", ["2"]), ("wrong", ["4"]))
    result = chain.build(style="chain", chain_length=2, turns="split")
    first, second = chain.made()
    assert first.id == f"{easy.id}-0+{hard.id}-0-t0"
    assert form(first) == ["Think.", easy.prompt, "*2"]
    assert form(second) == ["Think.", easy.prompt, "2", hard.prompt, "*3"]
    assert result.figures["ordered_by"] == {"math": "pass_rate"}


def test_that_no_chain_is_long_enough_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = [problem(i, solution="a", difficulty=i / 3) for i in range(3)]
    source = make_artifact(tmp_path / "problems", made)
    with caplog.at_level(logging.WARNING, logger="llmpipe"):
        run_stage(Config(style="chain", chain_length=3), source, tmp_path / "a", Mode())
        assert "alone" not in caplog.text
        run_stage(Config(style="chain", chain_length=4), source, tmp_path / "b", Mode())
    assert "all 3 are alone" in caplog.text


def test_solutions_are_chained_by_level(tmp_path: Path) -> None:
    levels = {"Level 2": problem(1, solution="a", level="Level 2")}
    levels["Level 1"] = problem(2, solution="b", level="Level 1")
    source = make_artifact(tmp_path / "problems", list(levels.values()))
    run_stage(Config(style="chain", chain_length=2), source, tmp_path / "out", Mode())
    (one,) = Artifact.open(tmp_path / "out").iter_rows(Conversation)
    assert one.id == f"{levels['Level 1'].id}+{levels['Level 2'].id}"
    asked = [m["content"] for m in one.messages if m["role"] == "user"]
    assert all(load("tasks", "math").instruction in text for text in asked)


def test_solutions_follow_the_prompt_that_a_template_makes(tmp_path: Path) -> None:
    one = problem(1, solution="a")
    source = make_artifact(tmp_path / "problems", [one])
    config = Config(prompt_template="Q: {prompt}")
    run_stage(config, source, tmp_path / "out", Mode())
    (made,) = Artifact.open(tmp_path / "out").iter_rows(Conversation)
    assert form(made) == [f"Q: {one.prompt}", "*a"]
    chain = Chain(tmp_path)
    chain.add(one, ("correct", ["2"]))
    with pytest.raises(UserError, match="has the prompts that were sampled"):
        chain.build(prompt_template="Q: {prompt}")


def test_problems_of_unknown_difficulty_make_no_chain(tmp_path: Path) -> None:
    source = make_artifact(tmp_path / "problems", [problem(1, solution="a")])
    with pytest.raises(UserError, match="how hard it is"):
        run_stage(Config(style="chain"), source, tmp_path / "out", Mode())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"style": "double"}, "style is 'double'"),
        ({"fallback": "none"}, "fallback is 'none'"),
        ({"style": "chain", "chain_length": 1}, "chain-length is 1"),
        ({"chain_length": 4}, "--chain-length needs --style chain"),
        ({"style": "chain", "keep_few_shot": True}, "worked examples"),
        ({"mask_mastered": 0.9}, "a probability, an entropy and a tokenizer"),
        ({"style": "retry"}, "holds problems"),
        ({"fallback": "gold"}, "holds problems"),
        ({"keep_few_shot": True}, "holds problems"),
        ({"keys": {"messages": "m"}}, "takes no keys"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    source = make_artifact(tmp_path / "problems", [problem(1, solution="a")])
    with pytest.raises(UserError, match=message):
        run_stage(Config(**settings), source, tmp_path / "out", Mode())


def test_problems_have_no_rollouts_to_point_to(tmp_path: Path) -> None:
    source = make_artifact(tmp_path / "problems", [problem(1, solution="a")])
    with pytest.raises(UserError, match="nothing was sampled"):
        run_stage(Config(), source, tmp_path / "out", Mode(), verdicts=source)
