from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact

from llmpipe import tasks
from llmpipe.core.artifact import Artifact, Manifest
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Rewards, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.stages.verify import Config, run

SUM = Problem.make(task="math", source="test", prompt="1+1?", answer="2")
HARD = Problem.make(task="math", source="test", prompt="x?", answer="x+1")
MAZE = Problem.make(
    task="maze", source="test", prompt="go", answer="RR", payload={"maze": "S.E\n..."}
)


def rollout(problem: Problem, sample: int, text: str, finish: str = "stop") -> Rollout:
    return Rollout(
        problem_id=problem.id,
        sample=sample,
        seed=sample,
        messages=[{"role": "user", "content": "q"}, {"role": "assistant", "content": text}],
        completion=text,
        finish_reason=finish,  # type: ignore[arg-type]
        prompt_tokens=1,
        completion_tokens=1,
        error="prompt too long" if finish == "error" else None,
    )


def judged(tmp_path: Path, rollouts: list[Rollout], config: Config | None = None) -> Any:
    make_artifact(tmp_path / "p", [SUM, HARD, MAZE])
    make_artifact(tmp_path / "r", rollouts, record=Rollout, inputs={"problems": tmp_path / "p"})
    return run(config or Config(), tmp_path / "r", tmp_path / "v", Mode())


def verdicts(tmp_path: Path) -> list[Verdict]:
    return list(Artifact.open(tmp_path / "v", Verdict).iter_rows(Verdict))


def test_each_rollout_gets_its_verdict_in_order(tmp_path: Path) -> None:
    result = judged(
        tmp_path,
        [
            rollout(SUM, 0, "", "error"),
            rollout(SUM, 1, r"so \boxed{2}"),
            rollout(SUM, 2, r"so \boxed{3}"),
            rollout(MAZE, 0, r"\boxed{DRRU}"),
            rollout(SUM, 3, "it is 2"),
            rollout(SUM, 4, "it is 2", "length"),
            rollout(SUM, 5, "no idea"),
            rollout(HARD, 0, r"\boxed{1}, no: \boxed{1+x}"),
            rollout(MAZE, 1, r"\boxed{RR}", "length"),
            rollout(HARD, 1, r"<think>\boxed{1}</think> \boxed{x}"),
            rollout(HARD, 2, "", "error"),
        ],
    )
    found = verdicts(tmp_path)
    assert [(v.problem_id, v.sample) for v in found] == [
        *[(SUM.id, 0), (SUM.id, 1), (SUM.id, 2), (MAZE.id, 0), (SUM.id, 3), (SUM.id, 4)],
        *[(SUM.id, 5), (HARD.id, 0), (MAZE.id, 1), (HARD.id, 1), (HARD.id, 2)],
    ]
    assert [(v.status, v.rewards.outcome, v.rewards.format) for v in found] == [
        ("error", None, None),
        ("correct", 1.0, 1.0),
        ("wrong", 0.0, 1.0),
        ("correct", 1.0, 1.0),
        ("correct", 1.0, 0.0),
        ("truncated", 0.0, 0.0),
        ("no_answer", 0.0, 0.0),
        ("correct", 1.0, 0.0),
        ("correct", 1.0, 0.0),
        ("wrong", 0.0, 1.0),
        ("error", None, None),
    ]
    assert found[0].detail == "not sampled: prompt too long"
    assert found[2] == Verdict(
        problem_id=SUM.id,
        sample=2,
        status="wrong",
        extracted="3",
        detail="numbers: 3 against 2",
        rewards=Rewards(outcome=0.0, format=1.0, length=0.0, action=0.0),
        # 2 of 5 are right, and every 4 of them hold a right one
        advantages={"pass1": pytest.approx(-math.sqrt(2 / 3)), "passk": 0.0},  # type: ignore[dict-item]
    )
    assert [v.optimal for v in found if v.problem_id == MAZE.id] == [False, True]
    assert {v.optimal for v in found if v.problem_id != MAZE.id} == {None}
    shares = {s: result.figures[s] for s in ("correct", "wrong", "no_answer", "truncated", "error")}
    assert shares == {
        "correct": round(5 / 11, 4),
        "wrong": round(2 / 11, 4),
        "no_answer": round(1 / 11, 4),
        "truncated": round(1 / 11, 4),
        "error": round(2 / 11, 4),
    }
    assert result.figures["problems"] == 3
    assert result.figures["rollouts_per_second"] > 0
    assert result.exit_code == 3
    assert "2 of 11" in result.attention


def test_boxed_extraction_reads_boxes_only(tmp_path: Path) -> None:
    rollouts = [rollout(SUM, 0, "it is 2"), rollout(SUM, 1, r"\boxed{2}")]
    result = judged(tmp_path, rollouts, Config(extract="boxed"))
    assert [v.status for v in verdicts(tmp_path)] == ["no_answer", "correct"]
    assert result.exit_code == 0


def test_a_hung_rollout_is_an_error_and_the_others_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "CPU_SECONDS", 1.0)
    rollouts = [rollout(HARD, i, r"\boxed{x+1}") for i in range(150)]
    rollouts[70] = rollout(HARD, 70, r"\boxed{\int_0^1 e^{-x^2}\sin(x^3)dx}")
    result = judged(tmp_path, rollouts)
    found = verdicts(tmp_path)
    assert [v.sample for v in found] == list(range(150))
    assert [v.status for v in found if v.sample != 70] == ["correct"] * 149
    assert found[70].status == "error"
    assert found[70].rewards == Rewards(outcome=None, format=1.0, length=0.0, action=0.0)
    assert found[70].advantages is None
    assert found[71].advantages == {"pass1": 0.0, "passk": 0.0}
    assert found[70].detail.startswith(("timeout: over 1 s of CPU time", "memory"))
    assert result.exit_code == 0  # 1 of 150 is under the threshold


def test_a_rerun_is_up_to_date_and_versions_are_recorded(tmp_path: Path) -> None:
    rollouts = [rollout(SUM, 0, r"\boxed{2}")]
    assert not judged(tmp_path, rollouts).up_to_date
    assert run(Config(), tmp_path / "r", tmp_path / "v", Mode()).up_to_date
    manifest = Manifest.read(tmp_path / "v")
    assert {"math-verify", "sympy", "latex2sympy2_extended"} <= manifest.versions.keys()
    assert {"tasks/math", "verifiers/math", "tasks/maze"} <= manifest.plugins.keys()
    with pytest.raises(UserError, match="extract was"):
        run(Config(extract="boxed"), tmp_path / "r", tmp_path / "v", Mode())


def test_problems_can_be_named_when_folders_were_moved(tmp_path: Path) -> None:
    make_artifact(tmp_path / "p", [SUM])
    rollouts = [rollout(SUM, 0, r"\boxed{2}")]
    make_artifact(tmp_path / "r", rollouts, inputs={"problems": tmp_path / "p"})
    (tmp_path / "p").rename(tmp_path / "moved")
    with pytest.raises(UserError, match="gone"):
        run(Config(), tmp_path / "r", tmp_path / "v", Mode())
    run(Config(), tmp_path / "r", tmp_path / "v", Mode(), problems=tmp_path / "moved")
    assert verdicts(tmp_path)[0].status == "correct"


def test_a_rollout_of_no_known_problem_is_refused(tmp_path: Path) -> None:
    make_artifact(tmp_path / "p", [HARD])
    make_artifact(tmp_path / "r", [rollout(HARD, 0, "1"), rollout(SUM, 0, "2")])
    with pytest.raises(UserError, match=f"answers problem {SUM.id}") as error:
        run(Config(), tmp_path / "r", tmp_path / "v", Mode(), problems=tmp_path / "p")
    assert "--problems" in (error.value.hint or "")
    assert not (tmp_path / "v").exists()


def test_no_rollouts_wants_attention(tmp_path: Path) -> None:
    result = judged(tmp_path, [])
    assert (result.rows, result.exit_code) == (0, 3)


def test_another_extraction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown"):
        judged(tmp_path, [], Config(extract="all"))  # type: ignore[arg-type]


def said(problem: Problem, sample: int, text: str, tokens: int, prompt: str = "q") -> Rollout:
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": text}]
    made = rollout(problem, sample, text)
    return dataclasses.replace(made, messages=messages, completion_tokens=tokens)  # type: ignore[arg-type]


def test_rewards_and_advantages_count_within_a_problem_whatever_the_order(tmp_path: Path) -> None:
    rollouts = [
        said(SUM, 0, r"\boxed{2}", 10),
        said(HARD, 0, r"\boxed{x}", 7),
        said(SUM, 1, r"Wait. It is \boxed{3}", 30),
        said(SUM, 2, r"\boxed{4}", 15),
        said(HARD, 1, r"\boxed{x+2}", 9),
        rollout(SUM, 3, "", "error"),
    ]
    result = judged(tmp_path, rollouts, Config(adv_k=2))
    found = verdicts(tmp_path)
    assert [(v.problem_id, v.sample) for v in found] == [(r.problem_id, r.sample) for r in rollouts]
    assert [v.rewards.length for v in found] == [0.0, 0.0, 1.0, 0.25, 1.0, None]
    assert [v.rewards.action for v in found] == [0.0, 0.0, 0.5, 0.0, 0.0, None]
    assert found[5].advantages is None
    assert [v.advantages["pass1"] for v in found[:5]] == pytest.approx(  # type: ignore[index]
        [math.sqrt(2), 0.0, -math.sqrt(0.5), -math.sqrt(0.5), 0.0]
    )
    # Of the pairs of three responses, two hold the right one: R 2/3, s sqrt(2)/3; a wrong one is in
    # two pairs, one of them with the right one.
    assert [v.advantages["passk"] for v in found[:5]] == pytest.approx(  # type: ignore[index]
        [math.sqrt(0.5), 0.0, -math.sqrt(1 / 8), -math.sqrt(1 / 8), 0.0]
    )
    assert result.rows == 6
    assert not (tmp_path / "v.partial").exists()


def test_groups_smaller_than_k_have_no_advantage_for_it(tmp_path: Path) -> None:
    pair = [rollout(SUM, 0, r"\boxed{2}"), rollout(SUM, 1, r"\boxed{3}")]
    five = [rollout(HARD, i, "", "error" if i == 4 else "stop") for i in range(5)]
    result = judged(tmp_path, [*pair, *five])
    assert [v.advantages for v in verdicts(tmp_path)[:2]] == [
        {"pass1": 1.0, "passk": None},
        {"pass1": -1.0, "passk": None},
    ]
    assert result.figures["under_adv_k"] == 1
    (tmp_path / "again").mkdir()
    again = judged(tmp_path / "again", [*pair, *five], Config(adv_k=5))
    assert again.figures["under_adv_k"] == 2


def test_thinking_has_to_be_tagged_where_the_prompt_asks_for_it(tmp_path: Path) -> None:
    asked = "Think inside <think> </think>, then answer."
    example = [{"role": "assistant", "content": "<think>1</think> 1"}]
    rollouts = [
        said(SUM, 0, r"\boxed{2}", 1),
        said(SUM, 1, r"\boxed{2}", 1, asked),
        said(SUM, 2, r"<think>1+1</think> \boxed{2}", 1, asked),
        said(SUM, 3, r"1+1</think> \boxed{2}", 1, asked),
        dataclasses.replace(said(SUM, 4, r"\boxed{2}", 1), messages=example),  # type: ignore[arg-type]
    ]
    judged(tmp_path, rollouts)
    assert [v.rewards.format for v in verdicts(tmp_path)] == [1.0, 0.0, 1.0, 1.0, 1.0]


def test_more_rollouts_than_a_batch_keep_their_order_and_their_worth(tmp_path: Path) -> None:
    rollouts = [
        said(p, i, rf"\boxed{{{2 if i % 2 else 3}}}", i + 1)
        for i in range(1500)
        for p in (SUM, HARD)
    ]
    judged(tmp_path, rollouts)
    found = verdicts(tmp_path)
    assert [(v.problem_id, v.sample) for v in found] == [(r.problem_id, r.sample) for r in rollouts]
    ours = [v for v in found if v.problem_id == SUM.id]
    assert [v.advantages["pass1"] for v in ours] == [-1.0, 1.0] * 750  # type: ignore[index]
    assert [v.rewards.length for v in ours] == pytest.approx([i / 1499 for i in range(1500)])


def test_k_must_be_at_least_1(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--adv-k is 0"):
        judged(tmp_path, [], Config(adv_k=0))


def test_what_a_killed_run_left_is_no_part_of_the_next(tmp_path: Path) -> None:
    left = tmp_path / "v.partial/judged"
    left.mkdir(parents=True)
    (left / "shard-00000.tmp").write_bytes(b"half a file")
    judged(tmp_path, [rollout(SUM, 0, r"\boxed{2}")])
    assert [v.status for v in verdicts(tmp_path)] == ["correct"]
    assert not (tmp_path / "v.partial").exists()
