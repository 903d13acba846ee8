from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rollout

from llmpipe.algo.passk import pass_at_k
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, ProblemScore, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.stages.score import RESULTS, Config, run

STATUS = {"c": "correct", "w": "wrong", "n": "no_answer", "t": "truncated", "e": "error"}

NOTHING = dict.fromkeys(("value", "low", "high", "low_here", "high_here"))


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """As much of a rollout's config as a score shows."""

    model: str = "org/name"
    engine: str = "vllm"
    temperature: float = 0.8
    seed: int = 3
    n: int = 4
    limit: int | None = None
    system: str | None = "Think."
    few_shot: tuple[Mapping[str, str], ...] = ({"prompt": "1+1?", "response": "2"},)


@dataclass(frozen=True, kw_only=True)
class Judged:
    extract: str = "auto"
    engine: str = "local"


def problem(name: str, level: str | None = None, task: str = "math") -> Problem:
    return Problem.make(task=task, source=f"{task}s", prompt=name, answer="1", level=level)


EASY, HARD, MAZE = problem("easy", "1"), problem("hard", "5"), problem("maze", task="maze")


def judged(folder: Path, samples: Mapping[Problem, str], extract: str = "auto") -> Path:
    """Verdicts by problem, one letter a sample: c, w, n, t or e."""
    problems = make_artifact(folder / "problems", [EASY, HARD, MAZE], stage="prepare")
    rollouts = make_artifact(
        folder / "rollouts",
        [],
        record=Rollout,
        stage="rollout",
        inputs={"problems": problems},
        config=Sampled(),
    )
    return make_artifact(
        folder / "verdicts",
        [
            Verdict(problem_id=p.id, sample=i, status=STATUS[letter], extracted=None, detail="")
            for p, letters in samples.items()
            for i, letter in enumerate(letters)
        ],
        record=Verdict,
        stage="verify",
        inputs={"rollouts": rollouts},
        config=Judged(extract=extract),
    )


def results(out: Path) -> dict[str, Any]:
    return json.loads((out / RESULTS).read_text())


def test_metrics_rates_and_groups(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "ccwn", HARD: "wwct", MAZE: "wwww"})
    out = tmp_path / "eval"
    result = run(Config(k=(1, 2, 4)), verdicts, out, Mode())
    found = results(out)

    assert (found["problems"], found["n"]) == (3, 4)
    assert found["metrics"]["pass@1"]["value"] == pytest.approx(0.25, abs=1e-15)
    assert found["metrics"]["avg@n"]["value"] == pytest.approx(0.25, abs=1e-15)
    # 1 - C(2,2)/C(4,2), 1 - C(3,2)/C(4,2), 0
    assert found["metrics"]["pass@2"]["value"] == pytest.approx((5 / 6 + 1 / 2) / 3, abs=1e-15)
    assert found["metrics"]["pass@4"]["value"] == pytest.approx(2 / 3, abs=1e-15)
    assert found["rates"] == {"truncated": 1 / 12, "no_answer": 1 / 12, "error": 0.0}

    assert found["by"]["level"].keys() == {"1", "5"}
    easy = found["by"]["level"]["1"]
    assert (easy["problems"], easy["n"]) == (1, 4)
    assert easy["rates"] == {"truncated": 0.0, "no_answer": 1 / 4, "error": 0.0}
    assert {name: metric["value"] for name, metric in easy["metrics"].items()} == {
        "pass@1": 0.5,
        "pass@2": 5 / 6,
        "pass@4": 1.0,
        "avg@n": 0.5,
        "pass^2": 1 / 6,
        "pass^4": 0.0,
        "coverage": 1.0,
        # One of the two right ones has to be among them: the wrong answers have no text here.
        "maj@2": 5 / 6,
        "maj@4": 1.0,
    }
    assert found["by"].keys() == {"level", "subject", "source", "task", "size"}
    assert found["by"]["task"]["math"]["problems"] == 2
    assert found["by"]["task"]["maze"]["metrics"]["pass@4"]["value"] == 0.0
    assert found["by"]["source"].keys() == {"maths", "mazes"}
    assert result.figures["pass@4"] == found["metrics"]["pass@4"]["value"]
    assert (result.figures["problems"], result.figures["n"]) == (3, 4)
    assert [m["value"] for m in found["curves"]["pass@k"]] == [
        pytest.approx(sum(pass_at_k(4, c, k) or 0 for c in (2, 1, 0)) / 3) for k in (1, 2, 3, 4)
    ]
    for metric in found["metrics"].values():
        assert 0 <= metric["low"] <= metric["value"] <= metric["high"] <= 1
        assert metric["low"] < metric["high"]
        assert 0 <= metric["low_here"] < metric["high_here"] <= 1
    assert RESULTS in Artifact.open(out).manifest.files


def test_one_row_a_problem(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {HARD: "cwnte", EASY: "ccccc"})
    run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode())
    hard, easy = Artifact.open(tmp_path / "eval").iter_rows(ProblemScore)
    assert hard == ProblemScore(
        problem_id=HARD.id,
        task="math",
        source="maths",
        level="5",
        subject=None,
        n=5,
        correct=1,
        wrong=1,
        no_answer=1,
        truncated=1,
        error=1,
        answers=[{"answer": "", "correct": True, "samples": [0]}],
    )
    assert (easy.problem_id, easy.n, easy.correct, easy.error) == (EASY.id, 5, 5, 0)


def test_errors_are_shown_and_stay_out_of_the_estimate(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cwwe", HARD: "cccc"})
    run(Config(k=(1, 3, 4)), verdicts, tmp_path / "eval", Mode())
    found = results(tmp_path / "eval")
    assert (found["n"], found["errors"]) == ({"min": 3, "max": 4}, 1)
    assert found["rates"]["error"] == 1 / 8
    assert found["metrics"]["pass@1"]["value"] == pytest.approx((1 / 3 + 1) / 2, abs=1e-15)
    assert found["metrics"]["pass@3"]["value"] == 1.0
    assert found["metrics"]["pass@4"] == {**NOTHING, "too_few": 1}
    assert "maj@4" in found["metrics"]
    assert found["metrics"]["coverage"]["value"] == 1.0
    # The problem that has its four samples still has its figure.
    assert found["by"]["level"]["5"]["metrics"]["pass@4"]["value"] == 1.0


def test_problems_with_fewer_samples_leave_the_figure_undefined(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cc", HARD: "cccw"})
    result = run(Config(k=(2, 4)), verdicts, tmp_path / "eval", Mode())
    found = results(tmp_path / "eval")
    assert found["n"] == {"min": 2, "max": 4}
    assert found["metrics"]["pass@4"] == {**NOTHING, "too_few": 1}
    assert [m["value"] is None for m in found["curves"]["pass@k"]] == [False, False, True, True]
    assert found["metrics"]["pass@2"]["value"] == (1 + (pass_at_k(4, 3, 2) or 0)) / 2
    assert result.figures["pass@4"] is None


def test_a_k_that_no_problem_has_samples_for_is_refused(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cc", HARD: "ccc"})
    with pytest.raises(UserError, match="pass@8 needs 8 samples a problem, but there are 3") as e:
        run(Config(k=(1, 8)), verdicts, tmp_path / "eval", Mode())
    assert "-n 8" in (e.value.hint or "")
    assert not (tmp_path / "eval").exists()


@pytest.mark.parametrize("k", [(), (0, 1)])
def test_a_k_below_1_is_refused(tmp_path: Path, k: tuple[int, ...]) -> None:
    verdicts = judged(tmp_path, {EASY: "c"})
    with pytest.raises(UserError, match="k must be 1 or more"):
        run(Config(k=k), verdicts, tmp_path / "eval", Mode())


def test_settings_say_how_samples_were_drawn_and_judged(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cccc"})
    run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode())
    settings = results(tmp_path / "eval")["settings"]
    assert "llmpipe" in settings.pop("versions")
    assert settings.pop("problem_set") == Artifact.open(tmp_path / "problems").digest
    assert len(settings.pop("few_shot_digest")) == 16
    assert settings.pop("rules") == {}  # what was made here has no verifier's source
    assert settings == {
        "model": "org/name",
        "engine": "vllm",
        "temperature": 0.8,
        "seed": 3,
        "system": "Think.",
        "few_shot": 1,
        "extract": "auto",
        "judged_by": "local",
    }
    # The same verdicts, read in another way: no other figures, but other settings.
    judged(tmp_path, {EASY: "cccc"}, extract="boxed")
    assert not run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode()).up_to_date
    assert results(tmp_path / "eval")["settings"]["extract"] == "boxed"
    assert run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode()).up_to_date


def test_up_to_date_refused_and_made_again(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cw"})
    out = tmp_path / "eval"
    run(Config(k=(1, 2)), verdicts, out, Mode())
    assert run(Config(k=(1, 2)), verdicts, out, Mode()).up_to_date
    with pytest.raises(UserError, match=r"k was \[1, 2\], is now \[1\]"):
        run(Config(k=(1,)), verdicts, out, Mode())
    judged(tmp_path, {EASY: "cc"})
    assert not run(Config(k=(1, 2)), verdicts, out, Mode()).up_to_date
    assert results(out)["metrics"]["pass@1"]["value"] == 1.0


def voted(folder: Path, asked: Problem, answers: list[tuple[str, str | None]], **rest: Any) -> Path:
    """Verdicts on one problem, each a letter and the answer that was read."""
    sampled = [rollout(asked.id, i, "x" * (i + 1), **rest) for i, _ in enumerate(answers)]
    inputs = {"problems": make_artifact(folder / "problems", [asked])}
    rollouts = make_artifact(folder / "rollouts", sampled, inputs=inputs, config=Sampled())
    rows = [
        Verdict(problem_id=asked.id, sample=i, status=STATUS[letter], extracted=text, detail="")
        for i, (letter, text) in enumerate(answers)
    ]
    return make_artifact(folder / "verdicts", rows, inputs={"rollouts": rollouts})


def test_a_majority_is_sought_among_equal_answers(tmp_path: Path) -> None:
    """1/2, \\frac12 and 0.5 are one answer; who has none or is cut off doesn't vote."""
    said = [
        *(("w", text) for text in ("1/2", r"\frac12", "x + 1", "0.5", "1 + x", "007", "7")),
        *(("c", text) for text in ("1", "1.0", r"\frac{3}{3}")),
        ("n", None),
        ("t", None),
    ]
    run(Config(k=(1, 12)), voted(tmp_path, EASY, said), tmp_path / "eval", Mode())
    (score,) = Artifact.open(tmp_path / "eval").iter_rows(ProblemScore)
    assert score.answers == [
        {"answer": "1/2", "correct": False, "samples": [0, 1, 3]},
        {"answer": "1", "correct": True, "samples": [7, 8, 9]},
        {"answer": "x + 1", "correct": False, "samples": [2, 4]},
        {"answer": "007", "correct": False, "samples": [5, 6]},
    ]
    metrics = results(tmp_path / "eval")["metrics"]
    assert metrics["maj@12"]["value"] == 0.5  # three votes each: the tie is split
    assert "maj@1" not in metrics  # that is pass@1


def test_each_way_through_a_maze_is_an_answer_of_its_own(tmp_path: Path) -> None:
    said = [("c", "RD"), ("c", "DR"), ("w", "RR"), ("w", "RR")]
    run(Config(k=(1,)), voted(tmp_path, MAZE, said), tmp_path / "eval", Mode())
    (score,) = Artifact.open(tmp_path / "eval").iter_rows(ProblemScore)
    assert [len(each["samples"]) for each in score.answers] == [2, 1, 1]
    assert results(tmp_path / "eval")["metrics"]["maj@4"]["value"] == 0.0


@pytest.mark.parametrize("counted", [True, False])
def test_lengths_of_right_and_wrong_answers(tmp_path: Path, counted: bool) -> None:
    said = [("c", "1"), ("w", "2"), ("c", "1"), ("c", "1"), ("t", None), ("e", None)]
    rest = {} if counted else {"completion_tokens": 0}
    run(Config(k=(1,)), voted(tmp_path, EASY, said, **rest), tmp_path / "eval", Mode())
    assert results(tmp_path / "eval")["lengths"] == {
        "unit": "tokens" if counted else "characters",
        "correct": {"samples": 3, "mean": 2.7, "p10": 1, "p50": 3, "p90": 4, "p99": 4},
        "wrong": {"samples": 1, "mean": 2.0, "p10": 2, "p50": 2, "p90": 2, "p99": 2},
        "no_answer": {"samples": 0},
        "truncated": {"samples": 1, "mean": 5.0, "p10": 5, "p50": 5, "p90": 5, "p99": 5},
    }


def test_groups_are_in_the_order_of_their_numbers_and_sizes_among_them(tmp_path: Path) -> None:
    sizes = [problem(level, level, "maze") for level in ("11x11", "9x9")]
    some = [*sizes, problem("rows", "Level 10"), problem("words", "Level 9")]
    asked = {"problems": make_artifact(tmp_path / "problems", some)}
    rollouts = make_artifact(tmp_path / "rollouts", [], record=Rollout, inputs=asked)
    rows = [
        Verdict(problem_id=p.id, sample=0, status="wrong", extracted=None, detail="") for p in some
    ]
    verdicts = make_artifact(tmp_path / "verdicts", rows, inputs={"rollouts": rollouts})
    run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode())
    by = results(tmp_path / "eval")["by"]
    assert list(by["size"]) == ["9x9", "11x11"]
    assert list(by["level"]) == ["9x9", "11x11", "Level 9", "Level 10"]


def test_no_verdicts_end_with_3(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {})
    result = run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode())
    assert result.exit_code == 3
    assert results(tmp_path / "eval")["metrics"]["pass@1"] == NOTHING


def test_problems_of_other_verdicts_are_refused(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "c", HARD: "c"})
    other = make_artifact(tmp_path / "other", [EASY])
    with pytest.raises(UserError, match="lacks 1 of the problems"):
        run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode(), problems=other)


def test_verdicts_within_the_eval_folder_stay_there(tmp_path: Path) -> None:
    """`eval` keeps its rollouts and verdicts inside its output."""
    (tmp_path / "eval").mkdir()
    judged(tmp_path / "eval", {EASY: "c"})
    out = tmp_path / "eval"
    for force in (False, True):
        run(Config(k=(1,)), out / "verdicts", out, Mode(force=force))
        assert results(out)["metrics"]["pass@1"]["value"] == 1.0
        assert Artifact.open(out / "verdicts").upstream(Problem).rows == 3
