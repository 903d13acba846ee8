"""The maze set of Pass@k Training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from layouts import VERL, convert, lay_out, prepared, reasons, verl

from llmpipe.algo.mazes import solve
from llmpipe.core.protocols import Drop

GRID = "S..\n**.\nE.."
OTHER = "S.E\n***\n..."
WALLED = "S*E\n.*.\n.*."


def prompt(grid: str) -> str:
    return f"Here is a maze.\n\n{grid}\n\nUse U, D, L, R. Put the moves in \\boxed{{}}."


def test_a_row_keeps_its_own_prompt_and_is_solved(tmp_path: Path) -> None:
    rows = [verl(prompt(GRID), GRID), verl(prompt(WALLED), WALLED), verl("No maze.", GRID)]
    lay_out(
        tmp_path,
        "RUC-AIBOX/Passk_Training_Maze",
        {
            "data/train-00000-of-00001.parquet": rows,
            "data/test-00000-of-00001.parquet": [verl(prompt(OTHER), OTHER)],
        },
        VERL,
    )
    problems, dropped = prepared(tmp_path, "passk-maze")
    (problem,) = problems
    assert (problem.task, problem.source, problem.prompt) == ("maze", "passk-maze", prompt(GRID))
    assert (problem.answer, problem.level) == ("RRDDLL", "3x3")
    solved = solve(GRID)
    assert problem.difficulty == solved.difficulty
    assert json.loads(problem.payload) == solved.payload
    assert solved.payload["shortest"] == 6
    assert reasons(dropped) == [("row 2", "malformed"), ("row 3", "maze_not_in_prompt")]
    tested, _ = prepared(tmp_path, "passk-maze", split="test")
    assert [p.answer for p in tested] == ["RR"]


@pytest.mark.parametrize("truth", [f"\n{GRID}\n", GRID.replace("\n", "\r\n")])
def test_the_scored_maze_is_chosen_among_several(truth: str) -> None:
    made = convert("passk-maze", verl(f"For example\n{OTHER}\nNow this:\n```\n{GRID}\n```", truth))
    assert json.loads(made.payload)["maze"] == GRID


@pytest.mark.parametrize("truth", ["RRDDLL", None, ""])
def test_without_a_scored_maze_the_prompt_must_have_one(truth: str | None) -> None:
    assert convert("passk-maze", verl(prompt(GRID), truth)).answer == "RRDDLL"
    several = convert("passk-maze", verl(f"{GRID}\nor\n{OTHER}", truth))
    assert (type(several), several.reason) == (Drop, "several_mazes")
    none = convert("passk-maze", verl("S stands for start.\nSE\nS.\n..\n", truth))
    assert (type(none), none.reason) == (Drop, "no_maze")


@pytest.mark.parametrize(
    ("truth", "why"),
    [
        ("S.E\n.#.\n...", "'#' in it"),
        ("S.E\n.\n...", "different lengths"),
        ("S.S\n..E", "2 S"),
        ("S..", "0 E"),
        ("S*E", "no path"),
    ],
)
def test_a_scored_maze_that_is_none_is_refused_and_no_part_of_it_is_taken(
    truth: str, why: str
) -> None:
    made = convert("passk-maze", verl(prompt(truth), truth))
    assert type(made) is Drop
    assert made.reason == "malformed"
    assert why in made.detail
