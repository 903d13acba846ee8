from __future__ import annotations

import math

import numpy as np
import pytest

from llmpipe.algo.actions import ActionRates, action_rates
from llmpipe.algo.rewards import lengths_in_groups, outcome, well_formed
from llmpipe.algo.samples import Samples


def test_an_error_has_no_outcome() -> None:
    assert [outcome(s) for s in ("correct", "wrong", "no_answer", "truncated", "error")] == [
        *[1.0, 0.0, 0.0, 0.0, None]
    ]


@pytest.mark.parametrize(
    ("response", "asks", "reward"),
    [
        (r"so \boxed{2}", False, 1.0),
        (r"so \fbox{2}", False, 1.0),
        ("so 2", False, 0.0),
        (r"\boxed{1}, no: \boxed{2}", False, 0.0),
        (r"so \boxed{2", False, 0.0),
        (r"<think>\boxed{1}</think> so \boxed{2}", False, 1.0),
        (r"\boxed{1}</think> so \boxed{2}", False, 1.0),  # the template opened it
        (r"<think>a</think>\boxed{1}<think>b</think>\boxed{2}", False, 0.0),
        (r"</think><think> \boxed{2}", False, 0.0),
        (r"so \boxed{2} <think>hm", False, 0.0),
        (r"so \boxed{2}", True, 0.0),
        (r"<think>a</think> so \boxed{2}", True, 1.0),
        (r"a</think> so \boxed{2}", True, 1.0),
        (r"<think>a so \boxed{2}", True, 0.0),
    ],
)
def test_format(response: str, asks: bool, reward: float) -> None:
    assert well_formed(response, asks_thinking=asks) == reward


def test_a_response_that_was_cut_off_has_no_form() -> None:
    assert well_formed(r"so \boxed{2}", finish_reason="length") == 0.0


def test_length_counts_within_the_group_and_among_the_ended() -> None:
    groups = np.array([0, 1, 0, 0, 1, 0, 2, 3])
    lengths = np.array([10, 5, 30, 20, 5, 90, 7, 8])
    ended = np.array([1, 1, 1, 1, 1, 0, 1, 0], bool)
    assert lengths_in_groups(groups, lengths, ended).tolist() == [
        *[0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0]
    ]
    assert lengths_in_groups(groups[:0], lengths[:0], ended[:0]).tolist() == []


def test_actions_are_shares_of_sentences() -> None:
    text = "Let x = 2. Wait, is that right? Let me check this. Alternatively, use y. So it is 2."
    assert action_rates(text) == ActionRates(
        verification=0.2, reflection=0.2, backtracking=0.2, any=0.6
    )


def test_chinese_actions_count() -> None:
    assert action_rates("设 x=2。等等，不对，重新开始。验证一下：2+2=4。") == ActionRates(
        verification=0.25, reflection=0.25, backtracking=0.25, any=0.5
    )


def test_words_are_whole_and_case_does_not_matter() -> None:
    assert action_rates("The waiter awaits. It waits.") == ActionRates()
    assert action_rates("WAIT. No.").reflection == 0.5
    assert action_rates("That’s wrong. Yes.").backtracking == 0.5


def test_a_sentence_that_repeats_counts_once() -> None:
    assert action_rates("It is 2. " + "Wait. " * 1000).any == 0.5
    assert action_rates("") == ActionRates()


def test_one_sentence_may_do_several_things() -> None:
    assert action_rates("wait, let me check") == ActionRates(1.0, 1.0, 0.0, 1.0)


def samples() -> Samples:
    made = Samples()
    made.add("p", "correct", "stop", tokens=10, characters=50)
    made.add("q", "wrong", "stop", tokens=0, characters=40)
    made.add("p", "error", "error", tokens=0, characters=0)
    made.add("q", "wrong", "stop", tokens=9, characters=20)
    made.add("p", "wrong", "stop", tokens=30, characters=55)
    made.add("p", "truncated", "length", tokens=99, characters=500)
    made.add("q", "error", "stop", tokens=7, characters=30)
    return made


def test_lengths_are_tokens_or_characters_but_not_both_in_a_group() -> None:
    expected = [0.0, 1.0, math.nan, 0.0, 1.0, 0.0, 0.5]
    assert samples().length_rewards().tolist() == pytest.approx(expected, nan_ok=True)


def test_errors_are_left_out_of_their_group() -> None:
    found = samples().advantages(1).tolist()
    right, wrong = math.sqrt(2), -math.sqrt(0.5)
    expected = [right, 0.0, math.nan, 0.0, wrong, wrong, math.nan]
    assert found == pytest.approx(expected, nan_ok=True)
    assert np.isnan(samples().advantages(3)).tolist() == [
        *[False, True, True, True, False, False, True]
    ]


def test_no_samples() -> None:
    assert Samples().length_rewards().tolist() == []
    assert Samples().advantages(4).tolist() == []
