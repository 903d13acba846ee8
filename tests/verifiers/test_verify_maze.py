from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe import Score, verify_maze
from llmpipe.algo import mazes
from llmpipe.verifiers.maze import read_moves

MAZE = "S.E\n.*.\n..."
CASES = Path(__file__).parents[2].parent / "shared/data/verifier/maze_cases.jsonl"


def test_scores() -> None:
    assert verify_maze(MAZE, r"\boxed{RR}") == Score(
        status="correct", extracted="RR", detail="2 moves, a shortest path", optimal=True
    )
    assert verify_maze(MAZE, r"\boxed{DDRRUU}") == Score(
        status="correct", extracted="DDRRUU", detail="6 moves, the shortest is 2", optimal=False
    )


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("RDR", "move 2 (D) from row 1, column 2 meets a wall"),
        ("URR", "move 1 (U) from row 1, column 1 leaves the maze"),
        ("RRR", "move 3 (R) from row 1, column 3 leaves the maze"),
        ("DD", "ends on row 3, column 1, not on E"),
        ("RRD", "ends on row 2, column 3, not on E"),
        ("RX", "not a path: RX"),
        ("RL" * 60 + "RR", "a run-on: more than 100 moves"),
    ],
)
def test_what_is_wrong_is_said(path: str, detail: str) -> None:
    score = verify_maze(MAZE, f"\\boxed{{{path}}}")
    assert (score.status, score.detail, score.optimal) == ("wrong", detail, None)


def test_a_run_on_is_four_times_the_cells() -> None:
    maze = "S" + "." * 48 + "E"
    back_and_forth = "RL" * 100
    assert verify_maze(maze, f"\\boxed{{{back_and_forth[:150]}{'R' * 49}}}").status == "correct"
    assert verify_maze(maze, f"\\boxed{{{back_and_forth}{'R' * 49}}}").status == "wrong"


@pytest.mark.parametrize(
    ("response", "finish_reason", "status"),
    [
        (r"\boxed{RR", "length", "truncated"),
        (r"\boxed{RR", "stop", "no_answer"),
        ("RR", "length", "truncated"),
        ("The answer is RR", "stop", "no_answer"),
        (r"\boxed{RR} and then", "length", "correct"),
        (r"\boxed{D}, no: \boxed{RR}", "stop", "correct"),
        (r"\boxed{R}, \boxed{R}", "stop", "wrong"),
        (r"<think>\boxed{RR}</think> I don't know", "stop", "no_answer"),
        ("<answer>RR</answer>", "stop", "correct"),
        (r"<answer>\boxed{RR}</answer> \boxed{D}", "stop", "correct"),
        (r"<answer>\boxed{RR</answer>", "stop", "no_answer"),
        (r"\boxed{}", "stop", "no_answer"),
    ],
)
def test_where_the_answer_is_read(response: str, finish_reason: str, status: str) -> None:
    score = verify_maze(MAZE, response, finish_reason=finish_reason)  # type: ignore[arg-type]
    assert score.status == status


def test_boxed_extraction_reads_no_tags() -> None:
    assert verify_maze(MAZE, "<answer>RR</answer>", extract="boxed").status == "no_answer"
    assert verify_maze(MAZE, r"<answer>D</answer>\boxed{RR}", extract="boxed").status == "correct"
    with pytest.raises(ValueError, match="auto or boxed"):
        verify_maze(MAZE, "", extract="all")


@pytest.mark.parametrize(
    "answer",
    [
        "RRD", "rrd", "R, R, D", "R R D", "R-R-D", "R -> R -> D", "R→R→D", "→→↓", '["R","R","D"]',
        "'RRD'", "(R)(R)(D)", "right, right, down", "Right Right DOWN", "右右下", "右、右、下",
        r"\text{RRD}", r"\mathrm{R\,R\,D}", r"\texttt{RRD}", r"R \rightarrow R \rightarrow D",
        r"R \to R \to D", r"\rightarrow\Rightarrow\downarrow", r"\left( R, R, D \right)",
        "Path: RRD", "The shortest path = RRD", "final answer: right right down", "RRD.", "$RRD$",
    ],
)  # fmt: skip
def test_moves_are_read(answer: str) -> None:
    assert read_moves(answer) == "RRD"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "RXD",
        "R2D",
        "->",
        "your path",
        r"\foo RRD",
        "R then D",
        "RRD!",
        "(1,2)",
        "Path:",
        "NESW",
    ],
)
def test_anything_else_is_no_path(answer: str) -> None:
    assert read_moves(answer) is None


@pytest.mark.parametrize("maze", ["S.E\n.\n...", "..E", "S..", "SSE", "S?E", "S*E", ""])
def test_a_bad_maze_is_refused(maze: str) -> None:
    with pytest.raises(ValueError, match="maze"):
        verify_maze(maze, r"\boxed{R}")


@given(st.text(alphabet="UDLRudlr →\\boxed{}<answer>/think.,", max_size=60))
def test_never_raises_on_a_response(response: str) -> None:
    for extract in ("auto", "boxed"):
        score = verify_maze(MAZE, response, extract=extract)
        assert (score.status == "correct") == (score.optimal is not None)


@given(st.integers(0, 10**6))
def test_a_shortest_path_is_right(index: int) -> None:
    maze = mazes.draw(7, 0, index)
    if maze is not None:
        score = verify_maze(str(maze), f"\\boxed{{{mazes.shortest_path(maze)}}}")
        assert (score.status, score.optimal) == ("correct", True)


@pytest.mark.skipif(not CASES.exists(), reason="the labelled maze cases are not here")
def test_labelled_cases() -> None:
    """``expected`` is 1, 0, or None where the maze is to be refused."""
    differing = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        try:
            verdict = int(verify_maze(case["maze"], case["response"]).status == "correct")
        except ValueError:
            verdict = None
        if verdict != case["expected"]:
            differing.append(case["id"])
    assert not differing
