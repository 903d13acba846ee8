from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmpipe import Score, verify_maze
from llmpipe.algo import maze_kernels
from llmpipe.algo.maze_drawing import Seen, draw
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
        (r"\boxed{RRDD}. Wait, \boxed{DD", "length", "truncated"),
        (r"\boxed{RRDD}. Wait, \boxed{DD", "stop", "no_answer"),
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


def test_a_shortest_path_is_right() -> None:
    for solved in draw(7, 100, 0, Seen(maze_kernels), maze_kernels):
        score = verify_maze(str(solved.maze), f"\\boxed{{{solved.path}}}")
        assert (score.status, score.optimal) == ("correct", True)


@pytest.mark.parametrize(
    ("response", "right"),
    [
        (r"\boxed{RR}", True),
        (r"\boxed{rR, }", True),
        (r"\boxed{RXXR}", True),  # other letters are passed over
        (r"\boxed{RR", True),  # no box need be closed
        ("<think> maybe RR", True),  # nor be there
        (r"<think>\boxed{RR}</think> I don't know", True),  # thinking counts
        ("the answer: RR", False),  # the R of "answer" is a move
        (r"\boxed{R \rightarrow R}", False),  # so are those of "rightarrow"
        (r"\boxed{RR} so boxed", False),  # the word counts as a box
        ("boxed RR$ and LL", True),
        (r"<answer>LL</answer><answer>\boxed{RR}</answer> \boxed{D}", True),
        (r"</answer>\boxed{RR}<answer>", False),
        (r"\boxed{\boxed{RR}}", True),
        (r"\boxed{RRD}", False),
        (r"\boxed{URR}", False),
        (r"\boxed{}", False),
        (r"\boxed{" + "RL" * 5000 + "RR}", True),
    ],
)
def test_passk_rules_read_as_the_paper_s_verifier(response: str, right: bool) -> None:
    score = verify_maze(MAZE, response, rules="passk")
    assert score.status == ("correct" if right else "wrong")
    assert score.optimal is None


def test_passk_rules_refuse_what_that_verifier_fails_on() -> None:
    with pytest.raises(ValueError, match="no S"):
        verify_maze("..E", r"\boxed{R}", rules="passk")
    with pytest.raises(ValueError, match="different lengths"):
        verify_maze("S..\n.\n..E", r"\boxed{RD}", rules="passk")
    with pytest.raises(ValueError, match="strict or passk"):
        verify_maze(MAZE, "", rules="loose")


@pytest.mark.skipif(not CASES.exists(), reason="the labelled maze cases are not here")
def test_labelled_cases() -> None:
    """``expected`` is 1, 0, or None where the maze is to be refused; ``passk_verdict`` likewise."""
    differing = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        for rules, column in (("strict", "expected"), ("passk", "passk_verdict")):
            expected = case[column] if case[column] in (0, 1) else None
            verdict: int | None
            try:
                score = verify_maze(case["maze"], case["response"], rules=rules)
                verdict = int(score.status == "correct")
            except ValueError:
                verdict = None
            if verdict != expected:
                differing.append((case["id"], rules))
    assert not differing
