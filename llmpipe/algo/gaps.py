"""What differs between two wordings, and whether it is but a template's gap filled otherwise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Gram = tuple[str, ...]
"""Some tokens in a row, numbers masked; "" is the beginning or the end of a text."""


@dataclass(frozen=True, slots=True)
class Change:
    """Words of one text that stand for others in a second, with the word before and after."""

    before: str
    words: tuple[str, ...]
    others: tuple[str, ...]
    after: str

    def __str__(self) -> str:
        return f"{' '.join(self.words) or '-'} > {' '.join(self.others) or '-'}"

    @property
    def grams(self) -> tuple[Gram, Gram]:
        """The two places with what stands there, numbers masked."""
        return (
            tuple(map(masked, (self.before, *self.words, self.after))),
            tuple(map(masked, (self.before, *self.others, self.after))),
        )


MASK = "#"


def masked(token: str) -> str:
    """`MASK` for a number, another token as it is."""
    return MASK if token[:1] == " " and token[1:2].isdigit() else token


_SEEN, _RATIO = 3, 0.3
_FILLINGS = 4
_PARTNERS = 0.5


class Gaps:
    """Where a template's names and things stand, which make two problems of one wording.

    A wording that somebody changed is rare beside the one it was made from, or else it mostly comes
    with a partner: the same problem as it was. What fills a gap comes in about equal numbers, and
    there are many fillings or few partners.

    Args:
        changes: those between all pairs of texts that may be the same.
        counts: how many problems have each run of tokens.
        share: of those problems, how much can have its pair among the ``changes``.
    """

    def __init__(
        self, changes: Iterable[Change], counts: Mapping[Gram, float], share: float = 1.0
    ) -> None:
        self._counts = counts
        self._share = share
        self._pairs: Counter[frozenset[Gram]] = Counter()
        self._fillings: dict[tuple[str, str], set[Gram]] = defaultdict(set)
        for change in changes:
            self._pairs[frozenset(change.grams)] += 1
            if self._common(change):
                self._fillings[change.before, change.after].update(change.grams)

    def _common(self, change: Change) -> bool:
        fewer, more = sorted(self._counts.get(gram, 0) for gram in change.grams)
        return fewer >= _SEEN and fewer >= _RATIO * more

    def filled(self, change: Change) -> bool:
        """Whether the two wordings of a place are two fillings of a gap."""
        if not self._common(change):
            return False
        if len(self._fillings[change.before, change.after]) >= _FILLINGS:
            return True
        fewer = min(self._counts[gram] for gram in change.grams)
        return self._pairs[frozenset(change.grams)] < _PARTNERS * fewer * self._share
