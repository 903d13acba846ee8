"""Rewards of one response, and of one among the others to the same problem.

STILL-3 (Chen et al. 2025, "An Empirical Study on Eliciting and Improving R1-like Reasoning Models",
arXiv:2503.04548) trains on the outcome, and tries rewards for format, for length and for reasoning
actions. Its outcome is taken as it is. The exact formulas of the others could not be confirmed from
its text or its code: those here, and in `llmpipe.algo.actions`, are llmpipe's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.extract import after_thinking, find_boxes
from llmpipe.core.records import FinishReason, Status

THINK = "<think>"
_THOUGHT = "</think>"


def outcome(status: Status) -> float | None:
    """1 for correct, 0 for wrong, no_answer and truncated; None for error, which is not wrong.

    Source: the rule-based outcome reward of STILL-3 (arXiv:2503.04548), and of DeepSeek-R1
    (arXiv:2501.12948) before it.
    """
    return None if status == "error" else float(status == "correct")


def well_formed(
    response: str, *, finish_reason: FinishReason = "stop", asks_thinking: bool = False
) -> float:
    """1 if the response has the form that was asked for, else 0.

    It ended by itself, has exactly one box after its thinking, which is closed, and its thinking is
    tagged in full: one ``</think>``, after the ``<think>`` if there is one (a chat template may
    have written that, as DeepSeek-R1's does). Tags are needed if the prompt asks for them
    (``asks_thinking``: it says ``<think>``), and have to be right wherever there are any.

    Source: the rules are llmpipe's own; a box after closed think tags is the form that STILL-3
    (arXiv:2503.04548) and DeepSeek-R1 (arXiv:2501.12948) ask for.
    """
    boxes = find_boxes(after_thinking(response))
    opened, closed = response.count(THINK), response.count(_THOUGHT)
    tagged = closed == 1 and (opened == 0 or (opened == 1 and _opens_first(response)))
    thinks = asks_thinking or opened or closed
    answered = boxes.closed == 1 and not boxes.open
    return float(finish_reason == "stop" and answered and (tagged or not thinks))


def _opens_first(response: str) -> bool:
    return response.index(THINK) < response.index(_THOUGHT)


def lengths_in_groups(
    groups: NDArray[np.integer[Any]],
    lengths: NDArray[np.integer[Any]],
    ended: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """(length - shortest) / (longest - shortest), over the responses to the same problem.

    From 0 for the shortest to 1 for the longest of those that ``ended`` by themselves; one that was
    cut off gets 0 and sets no mark, or running on would pay. All 0 where no two lengths differ.
    Right and wrong responses are treated alike: the outcome is another reward.

    Source: llmpipe's own. It pays for length, as the length reward of STILL-3 (arXiv:2503.04548)
    does, which found such a reward to be hacked: watch it, rather than train on it alone. (The
    length reward of Kimi k1.5, arXiv:2501.12599, has the same fraction and pays for brevity.)

    Args:
        groups: the number of each response's problem, from 0.
        lengths: in tokens or characters, the same unit within a group.
        ended: whether the response ended by itself.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    shortest = np.full(count, np.inf)
    longest = np.full(count, -np.inf)
    np.minimum.at(shortest, groups[ended], lengths[ended])
    np.maximum.at(longest, groups[ended], lengths[ended])
    spread = (longest - shortest)[groups]
    pays = ended & (spread > 0)
    rewards = np.zeros(len(groups))
    rewards[pays] = (lengths[pays] - shortest[groups[pays]]) / spread[pays]
    return rewards
