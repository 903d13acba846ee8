"""What a selection costs: which problems still have an answer after each of its steps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from llmpipe.algo.selection import Candidate, bin_name

STEPS = ("right", "pass_rate", "complete", "faultless", "per_bin", "limit")
"""Where a problem may lose its last answer, in this order."""


@dataclass(slots=True)
class Solved:
    """What is known of one problem. ``judged`` holds all its samples but errors.

    ``right`` has the reward of each right sample that is still to be looked at, ``unseen`` is their
    number; ``candidates`` are those worth keeping, ``kept`` has the row of each one that is kept,
    the preferred one first.
    """

    judged: int = 0
    correct: int = 0
    right: dict[int, float] = field(default_factory=dict)
    unseen: int = 0
    candidates: list[Candidate] = field(default_factory=list)
    kept: dict[int, int] = field(default_factory=dict)
    passed: int = -1

    @property
    def rate(self) -> float:
        """The share of right samples; there must be a judged one."""
        return self.correct / self.judged

    @property
    def bin(self) -> str:
        """The tenth of the pass rate; there must be a right sample."""
        return bin_name(self.correct, self.judged)

    def passes(self, step: str) -> None:
        """Note that an answer of it came through this step."""
        self.passed = max(self.passed, STEPS.index(step))


def by_step(problems: Collection[Solved], steps: Iterable[str]) -> dict[str, int]:
    """How many problems had an answer after each of these steps."""
    return {step: sum(p.passed >= STEPS.index(step) for p in problems) for step in steps}


def by_name(named: Iterable[tuple[str | None, Solved]]) -> dict[str, dict[str, int]]:
    """How many problems of each name there are, are solved and kept; those without one left out."""
    counts: dict[str, dict[str, int]] = {}
    for name, problem in named:
        if name is not None:
            count = counts.setdefault(name, dict.fromkeys(("problems", "solved", "kept"), 0))
            count["problems"] += 1
            count["solved"] += problem.correct > 0
            count["kept"] += bool(problem.kept)
    return {name: counts[name] for name in sorted(counts, key=in_order)}


def in_order(name: str) -> list[str | int]:
    """Numbers by their size: "Level 9" before "Level 10"."""
    parts = re.split(r"([0-9]+)", name)  # every second one is a number
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]
