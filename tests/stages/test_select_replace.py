from __future__ import annotations

from pathlib import Path

import pytest
from helpers import problem, rejects, rollout, verdicts_of

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Rewards
from llmpipe.core.run import Mode
from llmpipe.stages.select import Config, run


def test_the_best_answer_takes_the_place_of_the_solution(tmp_path: Path) -> None:
    problems = [
        problem("unasked", solution="old"),
        problem("p1", solution="old"),
        problem("p0", solution="old", level="easy", payload='{"a": 1}'),
        problem("p2"),
        problem("p3"),
    ]
    example = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}] * 2
    first = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "no"}]
    again = [{"role": "user", "content": "look again"}, {"role": "assistant", "content": "yes"}]
    rows = [
        (rollout("p0", 0, "long but fine"), "correct"),
        (rollout("p0", 1, "well formed", messages=[*example, *first]), "correct"),
        (rollout("p0", 2, "b"), "correct"),
        (rollout("p0", 3, "yes", messages=[*example, *first, *again]), "correct"),
        (rollout("p1", 0, "no"), "wrong"),
        (rollout("p2", 0, "no"), "wrong"),
        (rollout("p3", 0, "the only one"), "correct"),
    ]
    rewards = {
        (row.problem_id, row.sample): Rewards(outcome=1, format=float(row.sample in (1, 3)))
        for row, status in rows
    }
    verdicts = verdicts_of(tmp_path, rows, rewards, problems)
    out = tmp_path / "out"
    result = run(Config(prefer="reward", replace=True), verdicts, out, Mode())

    made = {row.id: row for row in Artifact.open(out, Problem).iter_rows(Problem)}
    assert {name: row.solution for name, row in made.items()} == {
        "unasked": "old", "p1": "old", "p0": "well formed", "p2": None, "p3": "the only one"
    }  # fmt: skip
    assert list(made) == [row.id for row in problems]
    assert made["p0"] == problem("p0", solution="well formed", level="easy", payload='{"a": 1}')
    figures = result.figures
    assert (figures["replaced"], figures["kept_old"], figures["without"]) == (2, 2, 1)
    assert ("p0/3", "several_turns", "") in rejects(out)
    assert result.dropped == {"wrong": 2, "several_turns": 1, "over_per_problem": 2}
    assert result.exit_code == 0


def test_old_solutions_can_go(tmp_path: Path) -> None:
    problems = [problem("p0", solution="old"), problem("p1", solution="old")]
    rows = [(rollout("p0", 0, "new"), "correct"), (rollout("p1", 0, "no"), "wrong")]
    verdicts = verdicts_of(tmp_path, rows, problems=problems)
    config = Config(prefer="shortest", replace=True, keep_old=False)
    result = run(config, verdicts, tmp_path / "out", Mode())
    made = Artifact.open(tmp_path / "out").iter_rows(Problem)
    assert [row.solution for row in made] == ["new", None]
    assert (result.figures["kept_old"], result.figures["without"]) == (0, 1)
    with pytest.raises(UserError, match="solutions of problems"):
        run(Config(keep_old=False), verdicts, tmp_path / "other", Mode())


def test_nothing_replaced_wants_a_look(tmp_path: Path) -> None:
    verdicts = verdicts_of(
        tmp_path, [(rollout("p", 0, "one"), "wrong")], problems=[problem("p", solution="old")]
    )
    result = run(Config(prefer="reward", replace=True), verdicts, tmp_path / "out", Mode())
    assert result.exit_code == 3
    assert "replaced no solution" in (result.attention or "")
    assert [row.solution for row in Artifact.open(tmp_path / "out").iter_rows(Problem)] == ["old"]
