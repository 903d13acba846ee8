"""What is kept of each sample until all are judged, and what it is worth in its group then."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.advantages import group_advantages
from llmpipe.algo.rewards import lengths_in_groups
from llmpipe.core.records import FinishReason, Status

_Floats = NDArray[np.float64]


class Samples:
    """A few numbers a sample, in the order in which they are added; 16 bytes in all."""

    def __init__(self) -> None:
        self._groups: dict[str, int] = {}
        self._group = array("i")
        self._tokens = array("i")
        self._characters = array("i")
        self._right = array("b")
        self._judged = array("b")
        self._ended = array("b")
        self._sampled = array("b")

    def add(
        self, problem: str, status: Status, finish: FinishReason, *, tokens: int, characters: int
    ) -> None:
        """A sample of a problem; ``tokens`` is 0 where nobody counted them."""
        self._group.append(self._groups.setdefault(problem, len(self._groups)))
        self._tokens.append(tokens)
        self._characters.append(characters)
        self._right.append(status == "correct")
        self._judged.append(status != "error")
        self._ended.append(finish == "stop")
        self._sampled.append(finish != "error")

    def length_rewards(self) -> _Floats:
        """`llmpipe.algo.rewards.lengths_in_groups` of each sample; NaN for what was not sampled.

        In tokens, or in characters for all of a group where one has text and no token.
        """
        group, tokens, characters = map(np.asarray, (self._group, self._tokens, self._characters))
        uncounted = np.zeros(len(self._groups), bool)
        uncounted[group[(tokens == 0) & (characters > 0)]] = True
        lengths = np.where(uncounted[group], characters, tokens)
        rewards = lengths_in_groups(group, lengths, _flags(self._ended))
        rewards[~_flags(self._sampled)] = np.nan
        return rewards

    def advantages(self, k: int) -> _Floats:
        """`llmpipe.algo.advantages.group_advantages` of each sample; NaN where it has none."""
        return group_advantages(
            np.asarray(self._group), _flags(self._right), _flags(self._judged), k
        )

    def problems(self, among: NDArray[np.bool_]) -> int:
        """How many problems the samples that are ``among`` these answer."""
        return len(np.unique(np.asarray(self._group)[among]))


def _flags(values: array[int]) -> NDArray[np.bool_]:
    return np.asarray(values).astype(bool)
