from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode
from llmpipe.stages.filter import Config, run


def problem(prompt: str, answer: str = "1", task: str = "math", **rest: Any) -> Problem:
    return Problem.make(task=task, source="test", prompt=prompt, answer=answer, **rest)


def kept(path: Path) -> list[str]:
    return [p.prompt for p in Artifact.open(path, Problem).iter_rows(Problem)]


def reasons(path: Path, problems: list[Problem]) -> dict[str, tuple[str, str]]:
    prompts = {p.id: p.prompt for p in problems}
    return {prompts[row]: (reason, detail) for row, reason, detail in rejects(path)}


def test_keeps_what_can_be_checked(tmp_path: Path) -> None:
    problems = [
        problem("a", "1/2"),
        problem("b", "  "),
        problem("c", "The statement is true for every positive number."),
        problem("d", r"$x^2 + \frac{1}{x}$"),
        problem("e", "RR", task="maze", payload={"maze": "S.E"}),
        problem("f", "RR", task="maze", payload={"maze": "S*E"}),
        problem("g", "RU", task="maze", payload={"maze": "S.E"}),
        problem(" ", "3"),
        problem("h", r"\frac{1}{"),
    ]
    make_artifact(tmp_path / "p", problems)
    result = run(Config(), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == ["a", "d", "e"]
    why = reasons(tmp_path / "f", problems)
    assert why["b"] == ("answer_empty", "")
    assert why["c"][0] == why["g"][0] == why["h"][0] == "answer_unverifiable"
    assert why["c"][1].startswith("error: the gold answer can't be read: The statement")
    assert why["f"] == ("malformed", "the maze has no path from S to E")
    assert why["g"][1] == "wrong: move 2 (U) from row 1, column 2 leaves the maze"
    assert why["h"][1].startswith(("no_answer", "error"))
    assert why[" "] == ("malformed", "the prompt is empty")
    assert result.dropped == {"answer_unverifiable": 3, "malformed": 2, "answer_empty": 1}
    assert result.figures["kept_share"] == round(3 / 9, 4)
    assert result.exit_code == 0


def test_rules_can_be_chosen(tmp_path: Path) -> None:
    make_artifact(tmp_path / "p", [problem("a", ""), problem(" ", "1"), problem("c", "{")])
    run(Config(drop=("answer_empty",)), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == [" ", "c"]
    run(Config(drop=()), tmp_path / "p", tmp_path / "g", Mode())
    assert kept(tmp_path / "g") == ["a", " ", "c"]
    with pytest.raises(UserError, match="no rule is called 'proof'") as error:
        run(Config(drop=("proof",)), tmp_path / "p", tmp_path / "h", Mode())
    assert "answer_empty" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        ("1,2", ["Level 1", "Level 2"]),
        ("2:4", ["Level 2", "Level 3", "4"]),
        ("3:", ["Level 3", "4", "9x9"]),
        (":1", ["Level 1"]),
        ("hard, 9", ["9x9", "Hard"]),
        ("level 1", ["Level 1"]),
    ],
)
def test_levels(tmp_path: Path, levels: str, wanted: list[str]) -> None:
    texts = ["Level 1", "Level 2", "Level 3", "4", "9x9", "Hard"]
    problems = [problem(t, level=t) for t in texts] + [problem("none")]
    make_artifact(tmp_path / "p", problems)
    run(Config(levels=levels), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == wanted
    why = reasons(tmp_path / "f", problems)
    assert why["none"] == ("no_level", "")
    if "Hard" not in wanted:
        assert why["Hard"] == ("no_level" if ":" in levels else "level", "Hard")


@pytest.mark.parametrize(
    ("difficulty", "wanted"),
    [("0.2:0.8", ["0.2", "0.5", "0.8"]), ("0.5:", ["0.5", "0.8", "0.9"]), (":0.2", ["0.2"])],
)
def test_difficulty(tmp_path: Path, difficulty: str, wanted: list[str]) -> None:
    problems = [problem(str(d), difficulty=d) for d in (0.2, 0.5, 0.8, 0.9)] + [problem("none")]
    make_artifact(tmp_path / "p", problems)
    run(Config(difficulty=difficulty), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == wanted
    why = reasons(tmp_path / "f", problems)
    assert why.pop("none") == ("no_difficulty", "")
    assert all(reason == ("difficulty", prompt) for prompt, reason in why.items())


@pytest.mark.parametrize(
    ("config", "example"),
    [
        (Config(difficulty="0.5"), "--difficulty 0.2:0.8"),
        (Config(difficulty=":"), "--difficulty 0.2:0.8"),
        (Config(difficulty="0.8:0.2"), "--difficulty 0.2:0.8"),
        (Config(difficulty="low:high"), "--difficulty 0.2:0.8"),
        (Config(difficulty="nan:1"), "--difficulty 0.2:0.8"),
        (Config(levels="a:b"), "--level 2:4"),
        (Config(levels=","), "--level 1,2 or --level 2:4"),
    ],
)
def test_a_range_that_is_none_is_refused(config: Config, example: str, tmp_path: Path) -> None:
    make_artifact(tmp_path / "p", [problem("a")])
    with pytest.raises(UserError) as error:
        run(config, tmp_path / "p", tmp_path / "f", Mode())
    assert error.value.hint == example


def test_an_empty_result_wants_attention(tmp_path: Path) -> None:
    make_artifact(tmp_path / "p", [problem("a", level="1"), problem("b", level="2")])
    result = run(Config(levels="7"), tmp_path / "p", tmp_path / "f", Mode())
    assert result.exit_code == 3
    assert "level" in (result.attention or "")
    assert run(Config(levels="7"), tmp_path / "p", tmp_path / "f", Mode()).exit_code == 3


def test_order_is_kept_and_a_rerun_is_up_to_date(tmp_path: Path) -> None:
    problems = [problem(str(i), str(i) if i % 3 else "") for i in range(3000)]
    make_artifact(tmp_path / "p", problems)
    first = run(Config(), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == [str(i) for i in range(3000) if i % 3]
    assert not first.up_to_date
    assert run(Config(), tmp_path / "p", tmp_path / "f", Mode()).up_to_date
    make_artifact(tmp_path / "p", problems[:5])
    assert run(Config(), tmp_path / "p", tmp_path / "f", Mode()).rows == 3


def test_an_unknown_task_is_refused(tmp_path: Path) -> None:
    make_artifact(tmp_path / "p", [problem("a", task="chess")])
    with pytest.raises(UserError, match="chess"):
        run(Config(), tmp_path / "p", tmp_path / "f", Mode())
