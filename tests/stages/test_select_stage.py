from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Rollout, Verdict
from llmpipe.core.run import Mode
from llmpipe.stages.select import Config, run


def rollout(problem: str, sample: int, text: str, **rest: Any) -> Rollout:
    return Rollout(
        problem_id=problem,
        sample=sample,
        seed=sample,
        messages=[{"role": "user", "content": "q"}, {"role": "assistant", "content": text}],
        completion=text,
        prompt_tokens=1,
        token_ids=[1, 2],
        logprobs=[-0.5, -0.25],
        **{"finish_reason": "stop", "completion_tokens": len(text), **rest},
    )


def verdicts_of(folder: Path, rows: Iterable[tuple[Rollout, str]]) -> Path:
    rows = list(rows)
    rollouts = make_artifact(
        folder / "rollouts",
        [row for row, _ in rows],
        stage="rollout",
        details={"few_shot_messages": {"math": 4}},
    )
    judged = [
        Verdict(
            problem_id=row.problem_id,
            sample=row.sample,
            status=status,
            extracted=None,
            detail=f"said to be {status}",
        )
        for row, status in rows
    ]
    return make_artifact(folder / "verdicts", judged, stage="verify", inputs={"r": rollouts})


def kept(out: Path) -> list[tuple[str, int]]:
    return [(r.problem_id, r.sample) for r in Artifact.open(out).iter_rows(Rollout)]


def test_keeps_right_complete_distinct_answers_and_says_why_not_the_others(tmp_path: Path) -> None:
    verdicts = verdicts_of(
        tmp_path,
        [
            (rollout("p", 0, "one"), "correct"),
            (rollout("p", 1, "two"), "wrong"),
            (rollout("p", 2, "one"), "correct"),
            (rollout("p", 3, "cut", finish_reason="length"), "correct"),
            (rollout("q", 0, "one"), "correct"),
            (rollout("q", 1, ""), "no_answer"),
            (rollout("r", 0, "far", finish_reason="length"), "truncated"),
            (rollout("r", 1, "", finish_reason="error"), "error"),
        ],
    )
    result = run(Config(), verdicts, tmp_path / "out", Mode())

    assert kept(tmp_path / "out") == [("p", 0), ("q", 0)]
    assert rejects(tmp_path / "out") == [
        ("p/1", "wrong", "said to be wrong"),
        ("q/1", "no_answer", "said to be no_answer"),
        ("r/0", "truncated", "said to be truncated"),
        ("r/1", "error", "said to be error"),
        ("p/2", "duplicate_text", "the same as sample 0"),
        ("p/3", "not_stopped", "length"),
    ]
    assert result.figures["problems"] == 3
    assert result.figures["solved"] == 2
    assert result.figures["coverage"] == 0.6667
    assert result.figures["mean_pass_rate"] == 0.4167  # (3/4 + 1/2 + 0/1) / 3: an error is no try
    assert result.figures["never_solved"] == 1
    assert result.figures["always_solved"] == 0


def test_kept_rows_are_unchanged(tmp_path: Path) -> None:
    row = rollout("p", 0, "one")
    verdicts = verdicts_of(tmp_path, [(row, "correct")])
    result = run(Config(), verdicts, tmp_path / "out", Mode())
    artifact = Artifact.open(tmp_path / "out")
    assert list(artifact.iter_rows(Rollout)) == [row]
    assert artifact.manifest.details["few_shot_messages"] == {"math": 4}
    assert result.figures["always_solved"] == 1


@pytest.mark.parametrize(
    ("prefer", "samples"), [("shortest", [1, 2]), ("longest", [0, 3]), ("random", None)]
)
def test_at_most_so_many_a_problem_in_their_order(
    tmp_path: Path, prefer: str, samples: list[int] | None
) -> None:
    texts = ["aaa", "b", "cc", "dddd"]
    verdicts = verdicts_of(
        tmp_path, [(rollout("p", i, text), "correct") for i, text in enumerate(texts)]
    )
    out = tmp_path / "out"
    result = run(Config(per_problem=2, prefer=prefer), verdicts, out, Mode())
    got = [sample for _, sample in kept(out)]
    assert got == sorted(got)
    assert len(got) == 2
    assert samples is None or got == samples
    assert result.dropped == {"over_per_problem": 2}


def test_random_depends_on_the_seed_alone(tmp_path: Path) -> None:
    rows = [(rollout(f"p{i}", s, f"text {s}"), "correct") for i in range(20) for s in range(8)]
    verdicts = verdicts_of(tmp_path, rows)

    def chosen(seed: int, name: str) -> list[tuple[str, int]]:
        config = Config(per_problem=1, prefer="random", seed=seed)
        run(config, verdicts, tmp_path / name, Mode())
        return kept(tmp_path / name)

    first = chosen(0, "a")
    assert chosen(0, "b") == first
    assert chosen(1, "c") != first
    assert len({sample for _, sample in first}) > 3


def test_up_to_date_refused_and_made_again(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "correct")])
    out = tmp_path / "out"
    assert not run(Config(), verdicts, out, Mode()).up_to_date
    assert run(Config(), verdicts, out, Mode()).up_to_date
    with pytest.raises(UserError, match="per_problem was null, is now 1"):
        run(Config(per_problem=1), verdicts, out, Mode())


def test_nothing_right_ends_with_3(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "wrong")])
    result = run(Config(), verdicts, tmp_path / "out", Mode())
    assert result.exit_code == 3
    assert "wrong" in (result.attention or "")
    assert result.figures["never_solved"] == 1


def test_rollouts_of_other_verdicts_are_refused(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "correct")])
    other = make_artifact(tmp_path / "other", [rollout("p", 1, "one")])
    with pytest.raises(UserError, match="lacks 1 of the rollouts") as caught:
        run(Config(), verdicts, tmp_path / "out", Mode(), rollouts=other)
    assert "--rollouts" in (caught.value.hint or "")
    assert not (tmp_path / "out").exists()


def test_moved_rollouts_can_be_named(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "correct")])
    moved = (tmp_path / "rollouts").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="gone"):
        run(Config(), verdicts, tmp_path / "out", Mode())
    run(Config(), verdicts, tmp_path / "out", Mode(), rollouts=moved)
    assert kept(tmp_path / "out") == [("p", 0)]


@pytest.mark.parametrize("config", [Config(per_problem=0), Config(prefer="best")])
def test_settings_out_of_range_are_refused(tmp_path: Path, config: Config) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "correct")])
    with pytest.raises(UserError):
        run(config, verdicts, tmp_path / "out", Mode())
