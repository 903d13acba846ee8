from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, problem, rejects, rollout, verdicts_of

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Message, Pair, Problem
from llmpipe.core.run import Mode, Result
from llmpipe.stages.build_pairs import Config, run

SHOTS = [("user", "1+1?"), ("assistant", "2"), ("user", "2+2?"), ("assistant", "4")]
Answer = tuple[int, str, str, dict[str, Any]]  # length, text, status, what else is set


def turns(*said: tuple[str, str]) -> list[Message]:
    return [{"role": role, "content": content} for role, content in said]


def answer(length: int, status: str, text: str = "", **rest: Any) -> Answer:
    return length, text or f"{status} in {length}", status, rest


def built(
    folder: Path, answers: Sequence[Answer], config: Config | None = None, out: str = "out"
) -> Result:
    """Pairs of answers to one problem p, sampled with four messages of worked examples."""
    rows = []
    for sample, (length, text, status, rest) in enumerate(answers):
        given = {"messages": turns(*SHOTS, ("user", "q"), ("assistant", text)), **rest}
        rows.append((rollout("p", sample, text, completion_tokens=length, **given), status))
    verdicts = verdicts_of(folder, rows, problems=[problem("p", source="set")])
    return run(config or Config(), verdicts, folder / out, Mode())


def pairs(folder: Path, out: str = "out") -> list[Pair]:
    return list(Artifact.open(folder / out, Pair).iter_rows(Pair))


def test_a_pair_is_in_the_form_that_trainers_take(tmp_path: Path) -> None:
    built(tmp_path, [answer(10, "wrong", "no"), answer(11, "correct", "yes")])
    assert pairs(tmp_path) == [
        Pair(
            id="p-1-0",
            problem_id="p",
            source="set",
            prompt=turns(("user", "q")),
            chosen=turns(("assistant", "yes")),
            rejected=turns(("assistant", "no")),
        )
    ]


def test_the_system_message_stays(tmp_path: Path) -> None:
    system = ("system", "Be brief.")
    said = [turns(system, *SHOTS, ("user", "q"), ("assistant", text)) for text in ("a", "b")]
    built(
        tmp_path,
        [
            answer(9, "correct", "a", messages=said[0]),
            answer(9, "wrong", "b", messages=said[1]),
        ],
    )
    assert [pair.prompt for pair in pairs(tmp_path)] == [turns(system, ("user", "q"))]


def test_answers_of_like_length_go_together(tmp_path: Path) -> None:
    answers = [
        answer(100, "correct"),
        answer(300, "wrong"),
        answer(200, "correct"),
        answer(110, "wrong"),
        answer(210, "wrong"),
        answer(900, "correct"),
    ]
    result = built(tmp_path, answers)
    assert [pair.id for pair in pairs(tmp_path)] == ["p-2-4", "p-0-3"]
    assert rejects(tmp_path / "out") == [
        ("p/1", "no_partner", "length 300"),
        ("p/5", "no_partner", "length 900"),
    ]
    figures = result.figures
    assert (figures["problems"], figures["mixed"], figures["paired"]) == (1, 1, 1)
    assert figures["chosen_tokens_mean"] == 150.0
    assert figures["rejected_tokens_mean"] == 160.0
    assert figures["length_ratio"] == round(math.sqrt(100 / 110 * 200 / 210), 4)

    built(tmp_path, answers, Config(max_length_ratio=5.0, per_problem=2), out="two")
    assert [pair.id for pair in pairs(tmp_path, "two")] == ["p-2-4", "p-0-3"]
    assert {reason for _, reason, _ in rejects(tmp_path / "two")} == {"over_per_problem"}


def test_lengths_are_characters_where_no_tokens_were_counted(tmp_path: Path) -> None:
    answers = [
        answer(0, "correct", "a" * 20),
        answer(30, "wrong", "b" * 50),
        answer(0, "wrong", "c" * 21),
    ]
    result = built(tmp_path, answers)
    assert [pair.id for pair in pairs(tmp_path)] == ["p-0-2"]
    assert result.figures["chosen_characters_mean"] == 20.0
    assert result.figures["rejected_characters_mean"] == 21.0


def test_only_complete_and_new_answers_that_were_read_are_paired(tmp_path: Path) -> None:
    answers = [
        answer(10, "correct"),
        answer(10, "correct", "cut", finish_reason="length"),
        answer(10, "correct", r"\boxed{1}. No, \boxed{2}."),
        answer(10, "wrong", "no"),
        answer(10, "wrong", "no"),
        answer(10, "wrong", "cut short", finish_reason="length"),
        answer(10, "wrong", r"\boxed{3}. No, \boxed{4}."),  # a fault to be unlearnt
        answer(10, "no_answer", "hm"),
        answer(10, "truncated", "and then", finish_reason="length"),
        answer(0, "error", "", finish_reason="error"),
        answer(10, "correct", "out of the blue", messages=turns(("assistant", "out of the blue"))),
    ]
    built(tmp_path, answers)
    assert [pair.id for pair in pairs(tmp_path)] == ["p-0-3"]
    assert [(name, reason) for name, reason, _ in rejects(tmp_path / "out")] == [
        ("p/7", "no_answer"),
        ("p/8", "truncated"),
        ("p/9", "error"),
        ("p/1", "not_stopped"),
        ("p/2", "several_boxes"),
        ("p/4", "duplicate_text"),
        ("p/5", "not_stopped"),
        ("p/10", "no_prompt"),
        ("p/6", "no_partner"),
    ]
    built(tmp_path, answers, Config(keep=("several_boxes",)), out="keep")
    assert [pair.id for pair in pairs(tmp_path, "keep")] == ["p-0-3", "p-2-6"]
    config = Config(rejected=("no_answer",))
    built(tmp_path, answers, config, out="form")
    assert [pair.id for pair in pairs(tmp_path, "form")] == ["p-0-7"]


def test_problems_with_answers_of_one_kind_make_no_pair(tmp_path: Path) -> None:
    rows = [
        (rollout("p", 0, "a"), "correct"),
        (rollout("p", 1, "b"), "no_answer"),
        (rollout("q", 0, "a"), "wrong"),
    ]
    verdicts = verdicts_of(tmp_path, rows, problems=[problem("p"), problem("q")], examples=0)
    result = run(Config(), verdicts, tmp_path / "out", Mode())
    assert result.exit_code == 3
    assert result.dropped == {"no_answer": 1, "no_wrong": 1, "no_right": 1}


def test_of_several_turns_the_last_is_paired_where_all_before_is_the_same(tmp_path: Path) -> None:
    def after(first: str, last: str) -> list[Message]:
        asked = (*SHOTS, ("user", "q"), ("assistant", first), ("user", "look again"))
        return turns(*asked, ("assistant", last))

    answers = [
        answer(10, "correct", "yes", messages=after("hm", "yes")),
        answer(10, "wrong", "no", messages=after("what", "no")),
        answer(10, "wrong", "never", messages=after("hm", "never")),
        answer(10, "wrong", "wrong at once"),
    ]
    built(tmp_path, answers)
    [pair] = pairs(tmp_path)
    assert pair.id == "p-0-2"
    assert pair.prompt == turns(("user", "q"), ("assistant", "hm"), ("user", "look again"))
    assert [name for name, _, _ in rejects(tmp_path / "out")] == ["p/1", "p/3"]


def test_problems_may_lie_anywhere_among_the_rollouts(tmp_path: Path) -> None:
    order = [("p", 0), ("q", 0), ("r", 0), ("q", 1), ("p", 1), ("r", 1)]
    rows = [
        (rollout(name, sample, f"{name}{sample}"), "wrong" if sample else "correct")
        for name, sample in order
    ]
    verdicts = verdicts_of(tmp_path, rows, problems=[problem(name) for name in "pqr"], examples=0)
    run(Config(), verdicts, tmp_path / "out", Mode())
    assert [(p.id, p.chosen[0]["content"], p.rejected[0]["content"]) for p in pairs(tmp_path)] == [
        ("q-0-1", "q0", "q1"),
        ("p-0-1", "p0", "p1"),
        ("r-0-1", "r0", "r1"),
    ]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    rows = [(rollout("p", 0, "a"), "correct"), (rollout("p", 1, "b"), "wrong")]
    verdicts = verdicts_of(tmp_path, rows)
    with pytest.raises(UserError, match="Problem rows"):
        run(Config(), verdicts, tmp_path / "out", Mode())
    others = make_artifact(tmp_path / "others", [problem("q")], record=Problem)
    with pytest.raises(UserError, match="lacks 1 of the problems"):
        run(Config(), verdicts, tmp_path / "out", Mode(), problems=others)
    fewer = make_artifact(tmp_path / "fewer", [rows[0][0]])
    problems = make_artifact(tmp_path / "problems", [problem("p")])
    with pytest.raises(UserError, match="lacks 1 of the rollouts"):
        run(Config(), verdicts, tmp_path / "out", Mode(), rollouts=fewer, problems=problems)


@pytest.mark.parametrize(
    "config",
    [
        Config(per_problem=0),
        Config(max_length_ratio=0.9),
        Config(max_length_ratio=math.inf),
        Config(rejected=()),
        Config(rejected=("truncated",)),
        Config(drop=("loop",)),
    ],
)
def test_settings_out_of_range_are_refused(tmp_path: Path, config: Config) -> None:
    with pytest.raises(UserError):
        built(tmp_path, [answer(10, "correct"), answer(10, "wrong")], config)
