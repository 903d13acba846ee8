"""What else was answered to a problem: wrong attempts for `retry`, prompts of unsolved problems.

Only row numbers are held; the texts are read for some rows at a time.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.records import Message, Score
from llmpipe.core.row_groups import RowGroups

_SCORE = ["status", "extracted", "detail", "optimal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A wrong answer: its number, its transcript, and what the verifier said of it."""

    sample: int
    messages: Sequence[Message]
    score: Score


class Attempts:
    """The verdicts on all rollouts of a set of problems.

    Raises:
        UserError: the verdicts are not on these rollouts.
    """

    def __init__(self, verdicts: Artifact, rollouts: Artifact, *, seed: int = 0) -> None:
        self._verdicts = RowGroups([verdicts])
        self._rollouts = RowGroups([rollouts])
        self._wrong: dict[str, list[tuple[int, int]]] = {}  # row and sample
        self._first: dict[str, int] = {}  # a problem's first row
        self._right: dict[str, set[int]] = {}
        self._judged: Counter[str] = Counter()
        if verdicts.rows != rollouts.rows:
            _refuse(verdicts, rollouts)
        # A verdict a rollout, in the rollouts' order.
        pairs = zip(_rows(verdicts, ["status"]), _rows(rollouts, []), strict=True)
        for row, ((problem, sample, status), rollout) in enumerate(pairs):
            if rollout != (problem, sample):
                _refuse(verdicts, rollouts)
            self._first.setdefault(problem, row)
            self._judged[problem] += status != "error"
            if status == "correct":
                self._right.setdefault(problem, set()).add(sample)
            elif status == "wrong":
                self._wrong.setdefault(problem, []).append((row, sample))
        for problem, found in self._wrong.items():
            self._wrong[problem] = sorted(found, key=functools.partial(_rank, seed, problem))

    @property
    def unsolved(self) -> dict[str, int]:
        """The problems that were answered, never rightly; with the row of their first rollout."""
        return {name: row for name, row in self._first.items() if name not in self._right}

    def pass_rate(self, problem: str) -> float | None:
        """The share of a problem's answers that are right; None where none was judged."""
        count = self._judged[problem]
        return len(self._right.get(problem, ())) / count if count else None

    def knows(self, problem: str) -> bool:
        """Whether any answer to a problem was judged."""
        return problem in self._first

    def is_right(self, problem: str, sample: int) -> bool:
        """Whether an answer was judged correct."""
        return sample in self._right.get(problem, ())

    def wrong(self, wanted: Sequence[tuple[str, int]]) -> list[Attempt | None]:
        """For each (problem, number) a wrong answer, None where there is none.

        Numbers go round: they say which of a problem's wrong answers, in a seeded order.
        """
        rows = [
            found[number % len(found)] if (found := self._wrong.get(problem)) else None
            for problem, number in wanted
        ]
        needed = [at[0] for at in rows if at]
        if not needed:
            return [None] * len(rows)
        transcripts = self._rollouts.take(needed, ["messages"])
        scores = self._verdicts.take(needed, _SCORE)
        return [
            at
            and Attempt(
                sample=at[1],
                messages=transcripts[at[0]]["messages"],
                score=Score(**scores[at[0]]),
            )
            for at in rows
        ]

    def transcripts(self, rows: Sequence[int]) -> list[Sequence[Message]]:
        """The messages of some rows of the rollouts, at least one."""
        found: list[Sequence[Message]] = self._rollouts.take(rows, ["messages"]).column(
            "messages", rows
        )
        return found


def _rows(artifact: Artifact, more: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for batch in artifact.batches(["problem_id", "sample", *more]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _refuse(verdicts: Artifact, rollouts: Artifact) -> None:
    raise UserError(
        f"{verdicts.path} are not the verdicts on {rollouts.path}",
        "give those that belong together: --verdicts DIR --rollouts DIR",
    )


def _rank(seed: int, problem: str, at: tuple[int, int]) -> bytes:
    key = f"{seed}\0{problem}\0{at[1]}".encode()
    return hashlib.blake2b(key, digest_size=8).digest()
