from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmpipe.algo.intervals import BetaBinomial
from llmpipe.algo.majority import Ballot, majority_at_k, variance, within
from llmpipe.algo.metrics import measure_majority


def by_every_set(ballot: Ballot, k: int) -> Fraction:
    """The right answers' part of the wins, over all sets of k samples."""
    votes: list[tuple[bool, int] | None] = [
        (right, number)
        for right, classes in ((True, ballot.right), (False, ballot.wrong))
        for number, count in enumerate(classes)
        for _ in range(count)
    ]
    votes += [None] * (ballot.n - len(votes))
    won, sets = Fraction(0), 0
    for chosen in itertools.combinations(votes, k):
        sets += 1
        counts = Counter(vote for vote in chosen if vote)
        best = [v for v, count in counts.items() if count == max(counts.values())]
        if best:
            won += Fraction(sum(right for right, _ in best), len(best))
    return won / sets


@st.composite
def ballots(draw: st.DrawFn) -> Ballot:
    right = draw(st.lists(st.integers(1, 4), max_size=2))
    wrong = draw(st.lists(st.integers(1, 3), max_size=3))
    silent = draw(st.integers(0, 2))
    n = sum(right) + sum(wrong) + silent
    return Ballot(max(n, 1), tuple(right), tuple(wrong))


@settings(max_examples=60, deadline=None)
@given(ballots(), st.data())
def test_equals_all_sets_of_k_counted_one_by_one(ballot: Ballot, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, min(ballot.n, 6)))
    found = majority_at_k(ballot, k)
    assert abs(Fraction(found) - by_every_set(ballot, k)) <= Fraction(1, 10**15)


@pytest.mark.parametrize(
    ("ballot", "k", "value"),
    [
        (Ballot(4, (2,), (2,)), 4, 0.5),  # a tie is split
        (Ballot(5, (2,), (2, 1)), 5, 0.5),
        (Ballot(3, (1,), (1, 1)), 3, 1 / 3),
        (Ballot(8, (3,), (2, 1)), 8, 1.0),  # more than any other is enough, two said nothing
        (Ballot(8, (), (1,)), 8, 0.0),
        (Ballot(8, (), ()), 8, 0.0),  # nobody votes
        (Ballot(8, (1,), ()), 2, 0.25),  # 7 of 28 pairs have the one that votes
        (Ballot(4, (2, 2), ()), 4, 1.0),  # both ways through a maze are right
        (Ballot(4, (2,), (1, 1)), 1, 0.5),  # of one sample it is its share
    ],
)
def test_values_worked_out_by_hand(ballot: Ballot, k: int, value: float) -> None:
    assert majority_at_k(ballot, k) == pytest.approx(value, abs=1e-15)


def test_what_cannot_be_is_refused() -> None:
    assert majority_at_k(Ballot(7, (7,), ()), 8) is None
    assert measure_majority(8, [Ballot(8, (8,), ()), Ballot(7, (7,), ())])["too_few"] == 1
    with pytest.raises(ValueError, match="3 votes of 2"):
        majority_at_k(Ballot(2, (2,), (1,)), 1)


def test_many_classes_take_no_time_worth_a_word() -> None:
    ballot = Ballot(64, (9,), (8, 7, 6, 5, 4, 3, 3, 2, 2, *[1] * 12))
    found = [majority_at_k(ballot, k) for k in (8, 16, 32, 63, 64)]
    assert found == sorted(found)  # the right answer leads, so more votes make it surer
    assert found[-1] == 1.0


def test_of_one_vote_the_variances_are_those_of_a_share() -> None:
    """majority@1 is the share of right samples, whose variance has a closed form."""
    model, n, right = BetaBinomial(2.0, 3.0), 6, np.array([0, 2, 5, 6] * 20)
    some = [Ballot(n, (int(c),) if c else (), (int(n - c),) if n > c else ()) for c in right]
    found = within(some, model, 1)
    a, b = 2 + right, 3 + n - right
    exact = a * b / ((a + b) * (a + b + 1)) / n
    assert found.mean() == pytest.approx(exact.mean(), rel=0.1)
    assert [found[i::4].mean() for i in range(4)] == pytest.approx(exact[:4], abs=0.008)
    assert variance(some, model, 1) == pytest.approx(2 * 3 / (25 * 6) + (2 * 3 / 30) / n, rel=0.1)


def test_the_intervals_hold_the_truth() -> None:
    """20 problems of 8 samples: a right answer and two wrong ones, the truths by long runs."""
    rng = np.random.default_rng(5)
    problems, n, k, runs = 20, 8, 4, 60

    def ballot(p: float, w: float) -> Ballot:
        right, one, other = rng.multinomial(n, [p, (1 - p) * w, (1 - p) * (1 - w)])
        wrong = tuple(int(v) for v in (one, other) if v)
        return Ballot(n, (int(right),) if right else (), wrong)

    def value(ballots: list[Ballot]) -> float:
        return float(np.mean([majority_at_k(each, k) for each in ballots]))

    def ask(count: int) -> list[tuple[float, float]]:
        return list(zip(rng.beta(1, 1, count), rng.beta(2, 2, count), strict=True))

    kind = value([ballot(*asked) for asked in ask(20_000)])
    held_new = held_here = 0
    for _ in range(runs):
        asked = ask(problems)
        found = measure_majority(k, [ballot(*each) for each in asked])
        here = np.mean([value([ballot(*each) for each in asked]) for _ in range(60)])
        held_new += found["low"] <= kind <= found["high"]
        held_here += found["low_here"] <= here <= found["high_here"]
    assert held_new / runs > 0.86
    assert held_here / runs > 0.86
