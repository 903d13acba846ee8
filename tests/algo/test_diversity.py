from __future__ import annotations

import random

import numpy as np
import pytest

from llmpipe.algo.diversity import likeness, sketch, spread

WORDS = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(400)]


def alike(one: str, other: str) -> float:
    return float(likeness(sketch(one), sketch(other)[None])[0])


def test_setting_and_case_say_nothing() -> None:
    one = "**So** we add: $1 + 2 = 3$, and 3 is the answer."
    other = "so we add:\n\\( 1+2 = 3 \\), and 3 is the answer."
    assert alike(one, other) == 1.0
    assert alike(one, "No, 4 - 1 gives what was asked for here.") == 0.0
    assert alike("4", "4") == 1.0
    assert alike("4", "5") == 0.0


@pytest.mark.parametrize("changed", [4, 20, 60])
def test_a_sketch_estimates_the_share_of_runs(changed: int) -> None:
    draw = random.Random(changed)
    other = list(WORDS)
    for place in draw.sample(range(len(WORDS)), changed):
        other[place] = f"v{place}"

    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return set(zip(words, words[1:], words[2:], strict=False))

    a, b = runs(WORDS), runs(other)
    share = len(a & b) / len(a | b)
    assert alike(" ".join(WORDS), " ".join(other)) == pytest.approx(share, abs=0.12)


def rows(*shares: float) -> list[np.ndarray]:
    """Sketches that share so much with the first, each in numbers of its own."""
    base = np.arange(128, dtype=np.uint32)
    made = [base]
    for number, share in enumerate(shares, 1):
        row = base.copy()
        row[round(share * 128) :] += np.uint32(1000 * number)
        made.append(row)
    return made


def test_the_least_like_comes_next() -> None:
    chosen, near = spread(rows(0.9, 0.25, 0.5, 0.0))
    assert chosen == [0, 4, 2, 3]
    assert list(near) == [1]
    assert near[1].other == 0
    assert near[1].likeness == pytest.approx(0.9, abs=0.01)


def test_no_more_than_asked_for() -> None:
    chosen, near = spread(rows(0.9, 0.25, 0.5, 0.0), most=2)
    assert chosen == [0, 4]
    assert list(near) == [1]  # the others are unlike, only too many
    assert spread(rows(1.0), most=1) == ([0], spread(rows(1.0))[1])


def test_near_identical_depends_on_the_threshold() -> None:
    assert spread(rows(0.9), threshold=0.95)[0] == [0, 1]
    assert spread(rows(0.9), threshold=0.85)[0] == [0]
    assert spread(rows(1.0, 1.0), threshold=1.0)[0] == [0]
