"""Each problem once, none of them held out."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from helpers import make_artifact, rejects

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Problem
from llmpipe.core.run import Mode, Result
from llmpipe.stages.dedupe import Config, run


def problem(
    prompt: str, answer: str = "1", solution: str | None = None, source: str = "s"
) -> Problem:
    return Problem.make(
        task="math", source=source, prompt=prompt, answer=answer, solution=solution, level="2",
        pass_rate=0.5,
    )  # fmt: skip


def dedupe(
    tmp_path: Path, *inputs: list[Problem], against: list[list[Problem]] | None = None
) -> Result:
    paths = [
        make_artifact(tmp_path / f"in{i}", rows, record=Problem) for i, rows in enumerate(inputs)
    ]
    held = [
        make_artifact(tmp_path / f"held{i}", r, record=Problem) for i, r in enumerate(against or [])
    ]
    return run(Config(), paths, tmp_path / "out", Mode(), against=held)


def kept(tmp_path: Path) -> list[Problem]:
    return list(Artifact.open(tmp_path / "out", Problem).iter_rows(Problem))


def test_the_first_of_a_problem_s_rows_is_kept_as_it_is(tmp_path: Path) -> None:
    first, other = problem(r"Find $\dfrac12+1$"), problem("Find 1+1")
    result = dedupe(tmp_path, [first, other, problem(r"find \(\frac{1}{2} + 1\)"), first])
    assert kept(tmp_path) == [first, other]
    assert [r[1:] for r in rejects(tmp_path / "out")] == [
        ("duplicate", f"of row 1 of {tmp_path / 'in0'}")
    ] * 2
    assert result.figures["duplicates"] == 2
    assert result.figures["duplicate_share"] == 0.5
    assert Artifact.open(tmp_path / "out").manifest.counts["read"] == 4


def test_a_row_with_a_solution_is_preferred(tmp_path: Path) -> None:
    bare, solved = problem("1 + 1"), problem("1+1", solution="2.", source="book")
    dedupe(tmp_path, [bare, solved, problem("1+ 1", solution="Two.")])
    assert kept(tmp_path) == [solved]
    assert {r[2] for r in rejects(tmp_path / "out")} == {f"of row 2 of {tmp_path / 'in0'}"}


def test_several_inputs_are_read_in_order(tmp_path: Path) -> None:
    one, two, three = problem("1"), problem("2"), problem("3")
    again = problem("2", source="second")
    dedupe(tmp_path, [one, two], [again, three])
    assert kept(tmp_path) == [one, two, three]
    assert rejects(tmp_path / "out") == [(two.id, "duplicate", f"of row 2 of {tmp_path / 'in0'}")]
    inputs = Artifact.open(tmp_path / "out").manifest.inputs
    assert list(inputs) == ["problems 1", "problems 2"]


def test_the_order_of_inputs_decides_which_source_is_kept(tmp_path: Path) -> None:
    one, two = problem("x", source="one"), problem("x", source="two")
    dedupe(tmp_path, [two], [one])
    assert kept(tmp_path) == [two]


def test_a_problem_with_two_answers_is_dropped_whole(tmp_path: Path) -> None:
    rows = [problem("1+1", "2"), problem("2+2", "4"), problem("1 + 1", "3"), problem("1+1", "2")]
    result = dedupe(tmp_path, rows)
    assert kept(tmp_path) == [rows[1]]
    assert rejects(tmp_path / "out") == [
        (rows[0].id, "conflicting_answers", "'2' here, '3' elsewhere"),
        (rows[2].id, "conflicting_answers", "'3' here, '2' elsewhere"),
        (rows[3].id, "conflicting_answers", "'2' here, '3' elsewhere"),
    ]
    assert result.figures["conflicts"] == 3


def test_answers_written_differently_are_no_conflict(tmp_path: Path) -> None:
    result = dedupe(tmp_path, [problem("a", r"\dfrac{1}{2}"), problem("a", r"$\frac12$")])
    assert (result.rows, result.figures["conflicts"]) == (1, 0)


def test_a_maze_turned_round_is_the_same_with_another_answer(tmp_path: Path) -> None:
    def maze(grid: str, answer: str) -> Problem:
        return Problem.make(
            task="maze", source="m", prompt=grid, answer=answer, payload={"maze": grid}
        )

    rows = [maze("S..\n.*.\n..E", "RRDD"), maze("E..\n.*.\n..S", "UULL"), maze("S.\n*E", "RD")]
    result = dedupe(tmp_path, rows)
    assert kept(tmp_path) == [rows[0], rows[2]]
    assert dict(result.dropped) == {"duplicate": 1}


def test_held_out_problems_are_removed_and_named(tmp_path: Path) -> None:
    seen, free = problem(r"Find \[x^{2}\]"), problem("Find $x^3$")
    result = dedupe(tmp_path, [seen, free, seen], against=[[problem("9")], [problem("find x^2")]])
    assert kept(tmp_path) == [free]
    assert rejects(tmp_path / "out") == [(seen.id, "in_held_out", str(tmp_path / "held1"))] * 2
    assert result.figures["contaminated"] == 2
    inputs = Artifact.open(tmp_path / "out").manifest.inputs
    assert list(inputs) == ["problems", "against 1", "against 2"]


def test_nothing_left_asks_for_attention(tmp_path: Path) -> None:
    result = dedupe(tmp_path, [problem("1")], against=[[problem("1")]])
    assert result.exit_code == 3
    assert "in_held_out" in (result.attention or "")


def test_many_shuffled_rows_are_sorted_out(tmp_path: Path) -> None:
    rows = [problem(f"What is {i} + {j}?", str(i + j)) for i in range(60) for j in range(60)]
    spaced = [
        problem(f"what  is ${i}+{j}$?", str(i + j)) for i in range(60) for j in range(0, 60, 2)
    ]
    everything = rows + spaced
    random.Random(0).shuffle(everything)
    result = dedupe(tmp_path, everything[:2000], everything[2000:])
    assert (result.rows, result.dropped) == (3600, {"duplicate": 1800})
    prompts = {p.prompt.replace("$", "").replace(" ", "").lower() for p in kept(tmp_path)}
    assert len(prompts) == 3600


def test_it_is_up_to_date_until_an_input_changes(tmp_path: Path) -> None:
    rows = [problem("1"), problem("2")]
    dedupe(tmp_path, rows)
    assert dedupe(tmp_path, rows).up_to_date
    assert not dedupe(tmp_path, rows, against=[[problem("2")]]).up_to_date
    assert kept(tmp_path) == rows[:1]


def test_what_is_no_artifact_of_problems_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        run(Config(), [tmp_path / "nothing"], tmp_path / "out", Mode())
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="not an llmpipe artifact"):
        run(Config(), [tmp_path / "folder"], tmp_path / "out", Mode())
    odd = make_artifact(tmp_path / "odd", [dataclasses.replace(problem("1"), task="chess")])
    with pytest.raises(UserError, match="no task is called 'chess'"):
        run(Config(), [odd], tmp_path / "out", Mode())
