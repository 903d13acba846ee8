"""How many answers to each problem were judged, and how many were right."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from llmpipe.core.records import Status


@dataclass(frozen=True, slots=True)
class Count:
    """The samples of one problem. ``judged`` holds the truncated ones, not the errors."""

    judged: int
    correct: int
    truncated: int
    errors: int


class Tally:
    """Counts by problem, 16 bytes each beside its name."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._counts = tuple(array("I") for _ in range(4))

    def add(self, names: Iterable[str], statuses: Iterable[Status]) -> None:
        """Count the verdicts on samples of the problems of these names."""
        judged, correct, truncated, errors = self._counts
        for name, status in zip(names, statuses, strict=True):
            place = self._place.setdefault(name, len(judged))
            if place == len(judged):
                for counts in self._counts:
                    counts.append(0)
            if status == "error":
                errors[place] += 1
            else:
                judged[place] += 1
                correct[place] += status == "correct"
                truncated[place] += status == "truncated"

    def of(self, name: str) -> Count | None:
        """The counts of one problem; None where it has no verdict."""
        place = self._place.get(name)
        return None if place is None else Count(*(counts[place] for counts in self._counts))

    def total(self) -> Count:
        """The counts of all problems together."""
        return Count(*(sum(counts) for counts in self._counts))
