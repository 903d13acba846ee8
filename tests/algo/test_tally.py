from __future__ import annotations

from llmpipe.algo.tally import Count, Tally


def test_counts_by_problem() -> None:
    tally = Tally()
    tally.add(["a", "b", "a", "a"], ["correct", "wrong", "error", "truncated"])
    tally.add(["a", "c"], ["no_answer", "error"])
    assert tally.of("a") == Count(judged=3, correct=1, truncated=1, errors=1)
    assert tally.of("b") == Count(judged=1, correct=0, truncated=0, errors=0)
    assert tally.of("c") == Count(judged=0, correct=0, truncated=0, errors=1)
    assert tally.of("d") is None
    assert tally.total() == Count(judged=4, correct=1, truncated=1, errors=2)
