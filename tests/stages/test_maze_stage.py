from __future__ import annotations

from pathlib import Path

import pytest
from helpers import make_artifact

from llmpipe.algo import mazes
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode
from llmpipe.stages.maze import Config, run
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
        grid = problem.prompt.split("\n\n")[1]
        maze, shortest = mazes.solve(grid)
        assert problem.payload == f'{{"maze": {_json(grid)}, "shortest": {shortest}}}'
        assert problem.difficulty == mazes.difficulty(shortest, len(maze.rows))
    assert result.figures["mean_shortest"] == pytest.approx(
        sum(len(p.answer) for p in problems) / 60, abs=0.01
    )


def _json(grid: str) -> str:
    return '"' + grid.replace("\n", "\\n") + '"'


def test_a_solution_tells_the_moves(tmp_path: Path) -> None:
    run(Config(sizes=(5,), count=20, seed=1), tmp_path / "m", Mode())
    words = {"U": "up", "D": "down", "L": "left", "R": "right"}
    for problem in _problems(tmp_path / "m"):
        told = (problem.solution or "").removeprefix("From S go ").split(". That is E.")[0]
        pairs = [run_.split() for run_ in told.split(", ")]
        letters = {word: letter for letter, word in words.items()}
        assert "".join(letters[w] * int(n) for w, n in pairs) == problem.answer


def test_the_same_seed_makes_the_same_and_more_goes_on(tmp_path: Path) -> None:
    run(Config(sizes=(5,), count=10, seed=3), tmp_path / "a", Mode())
    run(Config(sizes=(5,), count=20, seed=3), tmp_path / "b", Mode())
    run(Config(sizes=(5,), count=20, seed=4), tmp_path / "c", Mode())
    a, b, c = (_problems(tmp_path / name) for name in "abc")
    assert a == b[:10]
    assert not {p.id for p in b} & {p.id for p in c}


def test_excluded_mazes_do_not_come_again_turned_or_not(tmp_path: Path) -> None:
    def keys(path: Path) -> set[str]:
        return {
            mazes.canonical_key(mazes.parse(p.prompt.split("\n\n")[1])) for p in _problems(path)
        }

    run(Config(sizes=(3,), count=100, seed=0), tmp_path / "test", Mode())
    run(Config(sizes=(3,), count=79, seed=0), tmp_path / "m", Mode(), exclude=[tmp_path / "test"])
    assert not keys(tmp_path / "test") & keys(tmp_path / "m")
    assert len(keys(tmp_path / "test") | keys(tmp_path / "m")) == 179
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
    ],
)
def test_nonsense_is_refused(config: Config, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        run(config, tmp_path / "m", Mode())
    assert (error.value.hint or "").startswith("llmpipe maze")


def test_excluding_a_maze_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    bad = Problem.make(task="maze", source="t", prompt="p", answer="R", payload={"maze": "S.."})
    other = Problem.make(task="math", source="t", prompt="1+1", answer="2")
    make_artifact(tmp_path / "bad", [other, bad])
    with pytest.raises(UserError, match="0 E") as error:
        run(Config(sizes=(5,), count=1), tmp_path / "m", Mode(), exclude=[tmp_path / "bad"])
    assert error.value.hint == f"llmpipe filter {tmp_path / 'bad'} -o OUT drops such rows"
