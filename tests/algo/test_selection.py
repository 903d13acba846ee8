from __future__ import annotations

import pytest

from llmpipe.algo.selection import Candidate, bin_name, choose, lengths, ranked, weigh


def candidate(sample: int, tokens: int, characters: int, reward: float = 0.0) -> Candidate:
    return Candidate(sample=sample, tokens=tokens, characters=characters, reward=reward)


THREE = [candidate(0, 9, 30), candidate(1, 5, 40, 2.0), candidate(2, 7, 20, 2.0)]


@pytest.mark.parametrize(
    ("prefer", "order"),
    [("shortest", [1, 2, 0]), ("longest", [0, 2, 1]), ("reward", [1, 2, 0])],
)
def test_what_is_preferred_comes_first(prefer: str, order: list[int]) -> None:
    assert [c.sample for c in ranked("p", THREE, prefer, 0)] == order


def test_lengths_are_characters_where_one_has_no_count_of_tokens() -> None:
    assert lengths(THREE) == {0: 9, 1: 5, 2: 7}
    assert lengths([*THREE, candidate(3, 0, 25)]) == {0: 30, 1: 40, 2: 20, 3: 25}
    assert lengths([candidate(0, 0, 0), candidate(1, 5, 9)]) == {0: 0, 1: 5}
    uncounted = [candidate(0, 0, 30), candidate(1, 0, 10)]
    assert [c.sample for c in ranked("p", uncounted, "shortest", 0)] == [1, 0]


def test_rewards_are_summed_by_their_weights() -> None:
    rewards = {"outcome": 1.0, "format": 0.5, "length": 0.25, "action": None}
    assert weigh(rewards, None) == 1.75
    assert weigh(rewards, {"format": 2.0, "length": -1.0}) == 0.75
    assert weigh(rewards, {"action": 1.0}) is None  # not computed is not 0
    assert weigh({"outcome": None}, None) is None


def test_who_is_left_out_and_why() -> None:
    kept, drops = choose(ranked("p", THREE, "shortest", 0), 2, None)
    assert [c.sample for c in kept] == [1, 2]
    assert {sample: drop.reason for sample, drop in drops.items()} == {0: "over_per_problem"}
    assert choose(THREE, None, None) == (THREE, {})


@pytest.mark.parametrize(
    ("correct", "judged", "name"),
    [
        (1, 10, "0.0-0.1"),
        (1, 8, "0.1-0.2"),
        (4, 8, "0.4-0.5"),
        (3, 10, "0.2-0.3"),  # 0.1 * 3 is more than 0.3, in floating point
        (8, 8, "0.9-1.0"),
        (1, 1000, "0.0-0.1"),
    ],
)
def test_tenths_of_the_pass_rate(correct: int, judged: int, name: str) -> None:
    assert bin_name(correct, judged) == name
