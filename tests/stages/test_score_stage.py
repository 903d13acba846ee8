from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact

from llmpipe.algo.passk import pass_at_k
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem, ProblemScore, Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.stages.score import RESULTS, Config, run

STATUS = {"c": "correct", "w": "wrong", "n": "no_answer", "t": "truncated", "e": "error"}


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


def problem(name: str, level: str | None = None, task: str = "math") -> Problem:
    return Problem.make(task=task, source=f"{task}s", prompt=name, answer="1", level=level)


EASY, HARD, MAZE = problem("easy", "1"), problem("hard", "5"), problem("maze", task="maze")


def judged(folder: Path, samples: Mapping[Problem, str]) -> Path:
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
        config=Judged(),
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
    assert found["by"]["level"]["1"] == {
        "problems": 1,
        "metrics": {
            "pass@1": {"value": 0.5},
            "pass@2": {"value": 5 / 6},
            "pass@4": {"value": 1.0},
            "avg@n": {"value": 0.5},
        },
    }
    assert found["by"]["task"]["math"]["problems"] == 2
    assert found["by"]["task"]["maze"]["metrics"]["pass@4"]["value"] == 0.0
    assert found["by"]["source"].keys() == {"maths", "mazes"}
    assert result.figures["pass@4"] == found["metrics"]["pass@4"]["value"]
    assert (result.figures["problems"], result.figures["n"]) == (3, 4)
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
        n=5,
        correct=1,
        wrong=1,
        no_answer=1,
        truncated=1,
        error=1,
    )
    assert (easy.problem_id, easy.n, easy.correct, easy.error) == (EASY.id, 5, 5, 0)


def test_errors_are_shown_and_stay_out_of_the_estimate(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cwwe", HARD: "cccc"})
    run(Config(k=(1, 3, 4)), verdicts, tmp_path / "eval", Mode())
    found = results(tmp_path / "eval")
    assert (found["n"], found["errors"]) == ({"min": 3, "max": 4}, 1)
    assert found["rates"]["error"] == 1 / 8
    assert found["metrics"]["pass@1"]["value"] == pytest.approx((1 / 3 + 1) / 2, abs=1e-15)
    assert found["metrics"]["pass@3"] == {"value": 1.0}
    assert found["metrics"]["pass@4"] == {"value": None, "too_few": 1}
    # The problem that has its four samples still has its figure.
    assert found["by"]["level"]["5"]["metrics"]["pass@4"] == {"value": 1.0}


def test_problems_with_fewer_samples_leave_the_figure_undefined(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {EASY: "cc", HARD: "cccw"})
    result = run(Config(k=(2, 4)), verdicts, tmp_path / "eval", Mode())
    found = results(tmp_path / "eval")
    assert found["n"] == {"min": 2, "max": 4}
    assert found["metrics"]["pass@4"] == {"value": None, "too_few": 1}
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
    assert settings == {
        "model": "org/name",
        "engine": "vllm",
        "temperature": 0.8,
        "seed": 3,
        "system": "Think.",
        "few_shot": 1,
        "extract": "auto",
    }


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


def test_no_verdicts_end_with_3(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, {})
    result = run(Config(k=(1,)), verdicts, tmp_path / "eval", Mode())
    assert result.exit_code == 3
    assert results(tmp_path / "eval")["metrics"]["pass@1"] == {"value": None}


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
