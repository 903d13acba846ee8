from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, Rollout, Verdict, problem_id
from llmpipe.core.run import Mode
from llmpipe.stages.filter import RULES, Config, run


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
    checks = Config(drop=("malformed", "answer_empty", "answer_unverifiable"))
    result = run(checks, tmp_path / "p", tmp_path / "f", Mode())
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
    with pytest.raises(UserError, match="no rule is called 'prof'") as error:
        run(Config(drop=("prof",)), tmp_path / "p", tmp_path / "h", Mode())
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


def test_the_rules_on_a_problem_are_on_by_default_for_math_only(tmp_path: Path) -> None:
    maze = "Prove it: which of these? (A) R (B) U (C) L"
    problems = [
        problem("Prove that 2 is even.", "proof"),
        problem("Half of 18?\nA. 8\nB. 9\nC. 10", "B"),
        problem("Half of 18?\nA) 8\nB) 9\nC) 10", "9"),
        problem("In the figure, find $x$."),
        problem("Find $x$. Also find $y$.", "1, 2"),
        problem("Explain why 7 is prime.", "It has no divisors but itself and 1."),
        problem("Find the real roots.", "no solution"),
        problem("Who is right?", "Neither of the two players is ever right."),
        problem("What is half of this?", r"\frac{1}{"),
        problem("x" * 8001),
        problem(maze, "RR", task="maze", payload={"maze": "S.E"}),
    ]
    make_artifact(tmp_path / "p", problems)
    run(Config(), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == [maze]
    assert [reason for reason, _ in reasons(tmp_path / "f", problems).values()] == [
        *["proof", "multiple_choice", "multiple_choice_value", "needs_figure", "multi_question"],
        *["open_ended", "answer_impossible", "answer_prose", "prompt_too_long"],
        "answer_unparsable",
    ]
    rest = tuple(set(RULES) - {"answer_unparsable"})
    run(Config(drop=rest), tmp_path / "p", tmp_path / "g", Mode())
    assert reasons(tmp_path / "g", problems)["What is half of this?"][0] == "answer_unverifiable"


def test_rules_can_be_left_out(tmp_path: Path) -> None:
    problems = [problem("Prove that 2 is even.", "1"), problem("In the figure, find $x$.")]
    make_artifact(tmp_path / "p", problems)
    run(Config(keep=("proof",)), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == ["Prove that 2 is even."]
    with pytest.raises(UserError, match="no rule is called 'poof'") as error:
        run(Config(keep=("poof",)), tmp_path / "p", tmp_path / "h", Mode())
    assert (error.value.hint or "").startswith("--keep takes: malformed")


def test_options_are_cut_off_where_such_problems_are_kept(tmp_path: Path) -> None:
    listed = problem("How much is half of 18?\n(A) 8\n(B) 9\n(C) 10", "9", payload={"n": 1})
    letter = problem("How much is half of 16?\n(A) 8\n(B) 9\n(C) 10", "A")
    unread = problem("What is half of it?\n(A) 8\n(B) \\frac{1}{\n(C) 10", r"\frac{1}{")
    alone = problem("(A) 8 (B) 9 (C) 10", "9")
    make_artifact(tmp_path / "p", [listed, letter, unread, alone])
    run(Config(keep=("multiple_choice_value",)), tmp_path / "p", tmp_path / "f", Mode())
    (cut,) = Artifact.open(tmp_path / "f", Problem).iter_rows(Problem)
    assert cut.prompt == "How much is half of 18?"
    assert cut.id == problem_id("math", cut.prompt)
    assert json.loads(cut.payload) == {"n": 1, "uncut_id": listed.id}
    why = {row: (reason, detail) for row, reason, detail in rejects(tmp_path / "f")}
    assert {row: reason for row, (reason, _) in why.items()} == {
        letter.id: "multiple_choice",
        unread.id: "answer_unparsable",
        alone.id: "multiple_choice_value",
    }
    assert why[alone.id][1] == "nothing is left without the options"


def test_an_answer_that_its_verifier_reads_is_parsable(tmp_path: Path) -> None:
    answers = [
        r"\{x\mid -2<x<2\}",
        r"\{x\in\mathbb{R}: x>2\}",
        r"x\equiv3\pmod 7",
        r"\langle1,2,3\rangle",
        r"\frac{\pi}{4}+k\pi, k\in\mathbb Z",
    ]
    problems = [problem(f"What is {i}?", answer) for i, answer in enumerate(answers)]
    make_artifact(tmp_path / "p", [*problems, problem("What?", r"\frac{1}{")])
    run(Config(), tmp_path / "p", tmp_path / "f", Mode())
    assert kept(tmp_path / "f") == [p.prompt for p in problems]
    assert [reason for _, reason, _ in rejects(tmp_path / "f")] == ["answer_unparsable"]


def test_the_manifest_shows_a_few_rows_for_each_reason(tmp_path: Path) -> None:
    problems = [problem(f"Prove that {i} is\neven.{' Really.' * 40}", "") for i in range(5)]
    make_artifact(tmp_path / "p", [*problems, problem("1 + 1?", "2")])
    run(Config(), tmp_path / "p", tmp_path / "f", Mode())
    samples = Artifact.open(tmp_path / "f").manifest.details["samples"]
    assert [row["id"] for row in samples["proof"]] == [p.id for p in problems[:3]]
    assert samples["proof"][0]["prompt"].startswith("Prove that 0 is even. Really.")
    assert len(samples["proof"][0]["prompt"]) == 160
    assert samples["proof"][0]["detail"].startswith("prove that 0 is even.")


def judged(folder: Path, problems: list[Problem], n: int, statuses: dict[str, str]) -> Path:
    """Verdicts on a rollout of ``n``: c correct, w wrong, t truncated, e error, by prompt."""
    names = {"c": "correct", "w": "wrong", "t": "truncated", "e": "error"}
    ids = {p.prompt: p.id for p in problems}
    pairs = [(ids[p], i, names[s]) for p, text in statuses.items() for i, s in enumerate(text)]
    rows = [
        Rollout(
            problem_id=name,
            sample=sample,
            seed=sample,
            messages=[],
            completion="",
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
        )
        for name, sample, _ in pairs
    ]
    make_artifact(folder / "r", rows, record=Rollout, stage="rollout", config=Asked(n=n))
    verdicts = [
        Verdict(problem_id=name, sample=sample, status=status, extracted=None, detail="")
        for name, sample, status in pairs
    ]
    inputs = {"rollouts": folder / "r"}
    return make_artifact(folder / "v", verdicts, record=Verdict, stage="verify", inputs=inputs)


@dataclass(frozen=True, kw_only=True)
class Asked:
    n: int


STATUSES = {
    "always": "cccc",
    "never": "wwtt",
    "half": "cwcw",
    "quarter": "cttt",
    "lost one": "ccwe",
    "too short": "cw",
}


def rated(folder: Path) -> list[Problem]:
    problems = [problem(p) for p in STATUSES] + [problem("unasked"), problem("known")]
    problems[2] = problem("half", difficulty=3.5)
    make_artifact(folder / "p", problems)
    judged(folder, problems, 4, STATUSES | {"known": "ccct"})
    return problems


def rates(wanted: str, **rest: Any) -> Config:
    """Pass rates alone: no answer is checked, which takes a while."""
    return Config(pass_rate=wanted, drop=("malformed",), **rest)


def test_pass_rates_are_measured_and_bounded(tmp_path: Path) -> None:
    problems = rated(tmp_path)
    v = tmp_path / "v"
    result = run(rates("0:1"), tmp_path / "p", tmp_path / "f", Mode(), verdicts=v)
    rows = {p.prompt: p for p in Artifact.open(tmp_path / "f", Problem).iter_rows(Problem)}
    assert {p: (r.pass_rate, r.difficulty) for p, r in rows.items()} == {
        "half": (0.5, 3.5),
        "quarter": (0.25, 0.75),
        "known": (0.75, 0.25),
    }
    assert reasons(tmp_path / "f", problems) == {
        "always": ("pass_rate", "4 of 4 correct"),
        "never": ("pass_rate", "0 of 4 correct"),
        "lost one": ("too_few_samples", "3 of 4 judged, 1 with status error"),
        "too short": ("too_few_samples", "2 of 4 judged"),
        "unasked": ("no_verdicts", ""),
    }
    # 25 samples were judged, 6 of them cut off.
    assert result.figures["truncated_share"] == round(6 / 25, 4)
    assert result.figures["verdict_errors"] == 1


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ("0.25:0.75", ["half"]),
        ("0.25:", ["half", "known"]),
        (":0.5", ["quarter"]),
        ("0.2:0.5", ["quarter"]),
    ],
)
def test_the_ends_of_a_pass_rate_are_not_kept(tmp_path: Path, wanted: str, left: list[str]) -> None:
    rated(tmp_path)
    config = rates(wanted)
    run(config, tmp_path / "p", tmp_path / "f", Mode(), verdicts=tmp_path / "v")
    assert kept(tmp_path / "f") == left


def test_how_many_samples_are_enough_can_be_said(tmp_path: Path) -> None:
    rated(tmp_path)
    config = rates("0:1", min_samples=2)
    run(config, tmp_path / "p", tmp_path / "f", Mode(), verdicts=tmp_path / "v")
    rows = {p.prompt: p.pass_rate for p in Artifact.open(tmp_path / "f").iter_rows(Problem)}
    assert rows["too short"] == 0.5
    assert rows["lost one"] == 2 / 3


def test_a_measured_difficulty_can_be_asked_for(tmp_path: Path) -> None:
    rated(tmp_path)
    config = rates("0:1", difficulty="0.5:1")
    run(config, tmp_path / "p", tmp_path / "f", Mode(), verdicts=tmp_path / "v")
    assert kept(tmp_path / "f") == ["quarter"]


def test_other_verdicts_make_it_again(tmp_path: Path) -> None:
    problems = rated(tmp_path)
    config, out, v = rates("0:1"), tmp_path / "f", tmp_path / "v"
    run(config, tmp_path / "p", out, Mode(), verdicts=v)
    assert run(config, tmp_path / "p", out, Mode(), verdicts=v).up_to_date
    judged(tmp_path, problems, 4, {"always": "cccw"})
    run(config, tmp_path / "p", out, Mode(), verdicts=v)
    assert kept(out) == ["always"]


def test_verdicts_that_do_not_say_what_was_asked_for_are_refused(tmp_path: Path) -> None:
    problems = rated(tmp_path)
    verdict = Verdict(
        problem_id=problems[0].id, sample=0, status="correct", extracted=None, detail=""
    )
    make_artifact(tmp_path / "lone", [verdict])
    config = rates("0:1")
    with pytest.raises(UserError, match="does not say which Rollout rows") as error:
        run(config, tmp_path / "p", tmp_path / "f", Mode(), verdicts=tmp_path / "lone")
    assert "--min-samples N" in (error.value.hint or "")
    run(
        rates("0:1", min_samples=1),
        tmp_path / "p",
        tmp_path / "f",
        Mode(),
        verdicts=tmp_path / "lone",
    )


@pytest.mark.parametrize(
    ("config", "verdicts", "message"),
    [
        (Config(pass_rate="0.1:0.9"), None, "--pass-rate needs --verdicts"),
        (Config(), "v", "--verdicts needs --pass-rate"),
        (Config(pass_rate="0.5:0.5"), "v", "no pass rate is between"),
        (Config(pass_rate="1:2"), "v", "no pass rate is between"),
        (Config(pass_rate="0:2"), "v", "must be within 0 and 1"),
        (Config(pass_rate="-1:1"), "v", "must be within 0 and 1"),
        (Config(pass_rate="-0.5:"), "v", "must be within 0 and 1"),
        (Config(drop=("proof",), keep=("proof",)), None, "both --drop and --keep name proof"),
        (Config(pass_rate="half"), "v", "is no range A:B"),
        (Config(min_samples=3), None, "goes with --pass-rate"),
        (Config(pass_rate="0:1", min_samples=0), "v", "must be at least 1"),
        (Config(max_prompt_tokens=9), None, "--max-prompt-tokens needs --tokenizer"),
    ],
)
def test_options_that_go_together_are_asked_for(
    tmp_path: Path, config: Config, verdicts: str | None, message: str
) -> None:
    rated(tmp_path)
    folder = tmp_path / verdicts if verdicts else None
    with pytest.raises(UserError, match=message) as error:
        run(config, tmp_path / "p", tmp_path / "f", Mode(), verdicts=folder)
    assert (error.value.hint or "").startswith("--")


def test_prompts_can_be_bounded_in_tokens(tmp_path: Path, smol_model: Path) -> None:
    prompts = ["What is 1 + 1?", "What is " + "1 + " * 40 + "1?", "x" * 9000]
    make_artifact(tmp_path / "p", [problem(p) for p in prompts])
    config = Config(max_prompt_tokens=20)
    run(config, tmp_path / "p", tmp_path / "f", Mode(), tokenizer=smol_model)
    assert kept(tmp_path / "f") == prompts[:1]
    assert {r[1] for r in rejects(tmp_path / "f")} == {"prompt_too_long"}
    assert all(r[2].endswith(" tokens") for r in rejects(tmp_path / "f"))
