from __future__ import annotations

from pathlib import Path

import pytest
from helpers import make_artifact, problem, rejects, rollout, verdicts_of

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Rollout
from llmpipe.core.run import Mode
from llmpipe.stages.select import Config, run


def kept(out: Path) -> list[tuple[str, int]]:
    return [(r.problem_id, r.sample) for r in Artifact.open(out).iter_rows(Rollout)]


def of_rates(*rights: int, n: int = 4) -> list[tuple[Rollout, str]]:
    """Problems p0, p1, ... with so many right ones among n samples."""
    return [
        (rollout(f"p{i}", s, f"text {s}"), "correct" if s < right else "wrong")
        for i, right in enumerate(rights)
        for s in range(n)
    ]


def test_problems_of_a_pass_rate_in_range(tmp_path: Path) -> None:
    rows = [*of_rates(0, 1, 2, 4), (rollout("p1", 4, "", finish_reason="error"), "error")]
    verdicts = verdicts_of(tmp_path, rows)
    out = tmp_path / "out"
    result = run(Config(pass_rate="0.25:1"), verdicts, out, Mode())
    assert kept(out) == [("p2", 0), ("p2", 1)]  # without the ends, as filter has it
    assert ("p1/0", "pass_rate", "1 of 4 correct") in rejects(out)  # an error is no try
    assert result.figures["by_step"] == {
        "right": 3, "pass_rate": 1, "complete": 1, "faultless": 1
    }  # fmt: skip
    assert result.figures["by_pass_rate"] == {
        "0.2-0.3": {"problems": 1, "solved": 1, "kept": 0},
        "0.4-0.5": {"problems": 1, "solved": 1, "kept": 1},
        "0.9-1.0": {"problems": 1, "solved": 1, "kept": 0},
    }
    with pytest.raises(UserError, match="no range"):
        run(Config(pass_rate="half"), verdicts, tmp_path / "bad", Mode())


def test_rarely_solved_problems_come_first_where_answers_are_limited(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, of_rates(4, 1, 0, 3, 2))
    result = run(Config(limit=4), verdicts, tmp_path / "out", Mode())
    assert kept(tmp_path / "out") == [("p1", 0), ("p3", 0), ("p4", 0), ("p4", 1)]
    assert result.dropped == {"wrong": 10, "over_limit": 6}
    assert result.figures["by_step"]["faultless"] == 4
    assert result.figures["by_step"]["limit"] == 3


def test_as_many_problems_of_each_pass_rate(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, of_rates(*[4] * 9, *[2] * 5, 1))

    def kept_problems(seed: int, name: str) -> set[str]:
        result = run(Config(per_bin=2, seed=seed), verdicts, tmp_path / name, Mode())
        by_rate = result.figures["by_pass_rate"]
        assert {rate: count["kept"] for rate, count in by_rate.items()} == {
            "0.2-0.3": 1, "0.4-0.5": 2, "0.9-1.0": 2
        }  # fmt: skip
        return {problem for problem, _ in kept(tmp_path / name)}

    first = kept_problems(0, "a")
    assert kept_problems(0, "b") == first
    assert any(kept_problems(seed, f"seed{seed}") != first for seed in range(1, 4))
    assert {reason for _, reason, _ in rejects(tmp_path / "a")} == {"wrong", "over_per_bin"}


def test_coverage_by_level_and_source(tmp_path: Path) -> None:
    problems = [
        problem("p0", level="easy"),
        problem("p1", level="hard", source="other"),
        problem("p2", level="hard"),
        problem("p3"),
        problem("unasked", level="easy"),
    ]
    verdicts = verdicts_of(tmp_path, of_rates(4, 1, 0, 2), problems=problems)
    result = run(Config(limit=2), verdicts, tmp_path / "out", Mode())
    assert result.figures["by_level"] == {
        "easy": {"problems": 1, "solved": 1, "kept": 0},
        "hard": {"problems": 2, "solved": 1, "kept": 1},
    }
    assert result.figures["by_source"] == {
        "made": {"problems": 3, "solved": 2, "kept": 1},
        "other": {"problems": 1, "solved": 1, "kept": 1},
    }
    other = make_artifact(tmp_path / "other", [problem("p0")])
    with pytest.raises(UserError, match="lacks 3 of the problems"):
        run(Config(), verdicts, tmp_path / "bad", Mode(), problems=other)
