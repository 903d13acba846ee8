from __future__ import annotations

from llmpipe.algo.coverage import STEPS, Solved, by_name, by_step


def test_a_step_passed_is_all_before_it_passed() -> None:
    problems = [Solved(), Solved(), Solved(judged=2, correct=1)]
    problems[1].passes("right")
    problems[2].passes("faultless")
    problems[2].passes("complete")  # another answer, which was dropped later
    assert by_step(problems, STEPS) == {
        "right": 2, "pass_rate": 1, "complete": 1, "faultless": 1, "per_bin": 0, "limit": 0
    }  # fmt: skip
    assert by_step(problems, ["right"]) == {"right": 2}


def test_kinds_are_told_in_the_order_of_their_numbers() -> None:
    names = ["Level 10", "Level 9", None, "9x9", "11x11", "easy"]
    counts = by_name((name, Solved(judged=1, correct=1, kept={0: 0})) for name in names)
    assert list(counts) == ["9x9", "11x11", "Level 9", "Level 10", "easy"]
    assert counts["easy"] == {"problems": 1, "solved": 1, "kept": 1}
