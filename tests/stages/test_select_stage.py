from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers import make_artifact, rejects, rollout, verdicts_of

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Rewards, Rollout
from llmpipe.core.run import Mode
from llmpipe.stages.select import Config, run


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


def test_the_shortest_is_told_by_characters_where_no_tokens_were_counted(tmp_path: Path) -> None:
    texts = ["aaaa", "b", "ccc"]
    rows = [(rollout("p", i, text, completion_tokens=0), "correct") for i, text in enumerate(texts)]
    run(Config(per_problem=1), verdicts_of(tmp_path, rows), tmp_path / "out", Mode())
    assert kept(tmp_path / "out") == [("p", 1)]


REWARDS = {
    ("p", 0): Rewards(outcome=1, format=1, length=0, action=0),
    ("p", 1): Rewards(outcome=1, format=0, length=1, action=0.5),
    ("p", 2): Rewards(outcome=1, format=1, length=0.5, action=0),
}


@pytest.mark.parametrize(
    ("weights", "sample"),
    [(None, 2), ({"format": 1.0}, 2), ({"length": 1.0}, 1), ({"format": 1.0, "length": -1.0}, 0)],
)
def test_the_best_rewarded_is_kept(
    tmp_path: Path, weights: Mapping[str, float] | None, sample: int
) -> None:
    """The sums are 2, 2.5 and 2.5; the shorter one decides between equals."""
    rows = [(rollout("p", i, text), "correct") for i, text in enumerate(["aaa", "bbb", "cc"])]
    verdicts = verdicts_of(tmp_path, rows, REWARDS)
    config = Config(per_problem=1, prefer="reward", reward_weights=weights)
    run(config, verdicts, tmp_path / "out", Mode())
    assert kept(tmp_path / "out") == [("p", sample)]


def test_a_reward_that_was_not_computed_is_no_zero(tmp_path: Path) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "correct")])
    with pytest.raises(UserError, match="no rewards for p/0"):
        run(Config(prefer="reward"), verdicts, tmp_path / "out", Mode())


def test_near_identical_solutions_are_not_both_kept(tmp_path: Path) -> None:
    words = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
    other = [f"other{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(201)]
    texts = [
        " ".join([*words[:100], "indeed", *words[100:]]),  # the second one, but for a word
        " ".join(words),
        " ".join(other),
        " ".join(other[:150] + words),
    ]
    verdicts = verdicts_of(
        tmp_path, [(rollout("p", i, text), "correct") for i, text in enumerate(texts)]
    )
    run(Config(prefer="diverse"), verdicts, tmp_path / "all", Mode())
    assert kept(tmp_path / "all") == [("p", 1), ("p", 2), ("p", 3)]
    [(name, reason, detail)] = rejects(tmp_path / "all")
    assert (name, reason) == ("p/0", "near_identical")
    assert detail.endswith("% like sample 1")

    result = run(Config(prefer="diverse", per_problem=2), verdicts, tmp_path / "two", Mode())
    assert kept(tmp_path / "two") == [("p", 1), ("p", 2)]
    assert result.dropped == {"near_identical": 1, "over_per_problem": 1}


SEVERAL = r"\boxed{1}. No, it is \boxed{2}."
LOOP = "Wait, let me look at the digits of this number once more. " * 6


def test_faulty_answers_are_dropped_by_rules_that_can_be_chosen(tmp_path: Path) -> None:
    texts = [SEVERAL, LOOP, "so 则 2", "fine"]
    verdicts = verdicts_of(
        tmp_path, [(rollout("p", i, text), "correct") for i, text in enumerate(texts)]
    )
    run(Config(), verdicts, tmp_path / "all", Mode())
    assert kept(tmp_path / "all") == [("p", 3)]
    assert [(name, reason) for name, reason, _ in rejects(tmp_path / "all")] == [
        ("p/0", "several_boxes"),
        ("p/1", "loops"),
        ("p/2", "other_script"),
    ]
    run(Config(keep=("loops",)), verdicts, tmp_path / "keep", Mode())
    assert kept(tmp_path / "keep") == [("p", 1), ("p", 3)]
    run(Config(drop=("loops",)), verdicts, tmp_path / "drop", Mode())
    assert kept(tmp_path / "drop") == [("p", 0), ("p", 2), ("p", 3)]
    with pytest.raises(UserError, match="no rule is called 'loop'"):
        run(Config(drop=("loop",)), verdicts, tmp_path / "out", Mode())


def test_a_script_may_be_that_of_any_message_before_the_answer(tmp_path: Path) -> None:
    chinese = [
        {"role": "system", "content": "用中文回答。"},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
    ]
    rows = [(rollout("p", 0, "是 4", messages=chinese), "correct")]
    run(Config(), verdicts_of(tmp_path, rows), tmp_path / "out", Mode())
    assert kept(tmp_path / "out") == [("p", 0)]


@pytest.mark.parametrize(
    "config",
    [
        Config(per_problem=0),
        Config(prefer="best"),
        Config(limit=0),
        Config(per_bin=0),
        Config(prefer="diverse", threshold=0),
        Config(threshold=0.5),
        Config(reward_weights={"format": 1}),
        Config(prefer="reward", reward_weights={"style": 1}),
        Config(prefer="reward", reward_weights={"format": "much"}),  # type: ignore[dict-item]
        Config(replace=True, per_problem=2),
        Config(replace=True),  # there are no problems
    ],
)
def test_settings_out_of_range_are_refused(tmp_path: Path, config: Config) -> None:
    verdicts = verdicts_of(tmp_path, [(rollout("p", 0, "one"), "correct")])
    with pytest.raises(UserError):
        run(config, verdicts, tmp_path / "out", Mode())
