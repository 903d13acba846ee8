from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from helpers import make_artifact

from llmpipe.algo import mazes
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode
from llmpipe.stages.maze import PRESETS, Config, run, run_preset
from llmpipe.tasks import judge


def _problems(path: Path) -> list[Problem]:
    return list(Artifact.open(path, Problem).iter_rows(Problem))


def test_makes_problems_that_stand_alone_and_verify(tmp_path: Path) -> None:
    result = run(Config(sizes=(4, 7), count=30, seed=1), tmp_path / "m", Mode())
    problems = _problems(tmp_path / "m")
    assert result.rows == len(problems) == 60
    assert [p.level for p in problems] == ["4x4"] * 30 + ["7x7"] * 30
    assert len({p.id for p in problems}) == 60
    for problem in problems:
        assert judge("maze", "", problem.payload, problem.solution or "", "stop", "boxed").optimal
        assert problem.solution
        assert problem.solution.endswith(f"\\boxed{{{problem.answer}}}")
        solved = mazes.solve(problem.prompt.split("\n\n")[1])
        assert json.loads(problem.payload) == solved.payload
        assert (problem.answer, problem.difficulty) == (solved.path, solved.difficulty)
    assert result.figures["mean_shortest"] == pytest.approx(
        sum(len(p.answer) for p in problems) / 60, abs=0.01
    )


@pytest.mark.parametrize(
    ("style", "word"),
    [
        ("moves", "From S go"),
        ("coordinates", "which is E."),
        ("search", "Step 0: ("),
        ("spelled", "S start "),
    ],
)
def test_solutions_are_told_in_the_style_asked_for(tmp_path: Path, style: str, word: str) -> None:
    config = Config(sizes=(5,), count=20, seed=1, solution_style=style)
    run(config, tmp_path / "m", Mode())
    problems = _problems(tmp_path / "m")
    assert all(word in (p.solution or "") for p in problems)
    run(Config(sizes=(5,), count=20, seed=1), tmp_path / "plain", Mode())
    assert [p.prompt for p in problems] == [p.prompt for p in _problems(tmp_path / "plain")]


def test_the_payload_says_what_makes_a_maze_hard(tmp_path: Path) -> None:
    run(Config(sizes=(9,), count=50), tmp_path / "m", Mode())
    for problem in _problems(tmp_path / "m"):
        payload = json.loads(problem.payload)
        measures = [payload[k] for k in ("shortest", "turns", "dead_ends", "ways")]
        assert problem.difficulty == mazes.difficulty(*measures)
        assert payload["shortest"] == len(problem.answer) >= 9


def test_the_preset_has_the_sizes_of_the_paper_and_no_maze_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passk = PRESETS["passk"]
    assert (passk["train"].sizes, passk["train"].count) == ((9, 11, 13, 15), 10_000)
    assert (passk["test"].sizes, passk["test"].count) == (tuple(range(7, 22, 2)), 100)
    small = {
        "train": dataclasses.replace(passk["train"], sizes=(3, 5), count=90),
        "test": dataclasses.replace(passk["test"], sizes=(3, 5), count=80),
    }
    monkeypatch.setitem(PRESETS, "passk", small)  # type: ignore[index]
    settings = {"seed": 4, "solution_style": "moves", "exclude": []}
    train, test = run_preset("passk", tmp_path, Mode(), **settings)  # type: ignore[arg-type]
    assert (train.out, train.rows) == (tmp_path / "train", 180)
    assert (test.out, test.rows) == (tmp_path / "test", 160)
    assert not _forms(tmp_path / "train") & _forms(tmp_path / "test")
    again = run_preset("passk", tmp_path, Mode(), **settings)  # type: ignore[arg-type]
    assert all(result.up_to_date for result in again)
    with pytest.raises(UserError) as caught:
        list(run_preset("other", tmp_path, Mode(), **settings))  # type: ignore[arg-type]
    assert caught.value.hint == "--preset passk"


def _forms(path: Path) -> set[str]:
    return {
        mazes.canonical_key(mazes.solve(p.prompt.split("\n\n")[1]).maze) for p in _problems(path)
    }


def test_the_same_seed_makes_the_same_and_more_goes_on(tmp_path: Path) -> None:
    run(Config(sizes=(5,), count=10, seed=3), tmp_path / "a", Mode())
    run(Config(sizes=(5,), count=20, seed=3), tmp_path / "b", Mode())
    run(Config(sizes=(5,), count=20, seed=4), tmp_path / "c", Mode())
    a, b, c = (_problems(tmp_path / name) for name in "abc")
    assert a == b[:10]
    assert not {p.id for p in b} & {p.id for p in c}


def test_excluded_mazes_do_not_come_again_turned_or_not(tmp_path: Path) -> None:
    run(Config(sizes=(3,), count=100, seed=0), tmp_path / "test", Mode())
    run(Config(sizes=(3,), count=79, seed=0), tmp_path / "m", Mode(), exclude=[tmp_path / "test"])
    assert not _forms(tmp_path / "test") & _forms(tmp_path / "m")
    assert len(_forms(tmp_path / "test") | _forms(tmp_path / "m")) == 179
    again = run(
        Config(sizes=(3,), count=79, seed=0), tmp_path / "m", Mode(), exclude=[tmp_path / "test"]
    )
    assert again.up_to_date


def test_a_size_with_too_few_mazes_says_how_many(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="only 179 different mazes of size 3") as error:
        run(Config(sizes=(3,), count=1000, seed=0), tmp_path / "m", Mode())
    assert error.value.hint == "--count 179, or larger sizes"
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "config",
    [
        Config(sizes=(2,), count=1),
        Config(sizes=(100,), count=1),
        Config(sizes=(5,), count=0),
        Config(sizes=(), count=5),
        Config(sizes=(5, 5), count=5),
        Config(sizes=(5,), count=5, solution_style="rhymes"),
    ],
)
def test_nonsense_is_refused(config: Config, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        run(config, tmp_path / "m", Mode())
    assert (error.value.hint or "").startswith(("llmpipe maze", "--solution-style moves or"))


def test_excluding_a_maze_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    bad = Problem.make(task="maze", source="t", prompt="p", answer="R", payload={"maze": "S.."})
    other = Problem.make(task="math", source="t", prompt="1+1", answer="2")
    make_artifact(tmp_path / "bad", [other, bad])
    with pytest.raises(UserError, match="0 E") as error:
        run(Config(sizes=(5,), count=1), tmp_path / "m", Mode(), exclude=[tmp_path / "bad"])
    assert error.value.hint == f"llmpipe filter {tmp_path / 'bad'} -o OUT drops such rows"
