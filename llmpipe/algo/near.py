r"""Whether two problems say the same in other words: their signs, then the words around them.

A problem's *signs* are its numbers, operators, relations, brackets and variables, in their order,
number words among them. Two problems with other signs are never the same. Of two with the same
signs the words are aligned, and what differs must be nothing that turns the meaning
(`llmpipe.algo.vocabulary`), no exchange of two words that both texts have (who has three and who
has five), and little.
"""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llmpipe.algo.sketch import candidates
from llmpipe.algo.view import View, is_sign, view
from llmpipe.algo.vocabulary import ASKING, FIELDS, NUMBERS, STOP, STRONG, WEAK

Gram = tuple[str, ...]
"""Some tokens in a row, numbers masked; "" is the beginning or the end of a text."""

THRESHOLD = 0.6
"""The share of their words, stop words aside, that two wordings of a problem have in common."""


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


def difference(one: View, other: View, threshold: float = THRESHOLD) -> list[Change] | None:
    """What to change in one wording to get the other; None where they are two problems."""
    if one.signs != other.signs:
        if not _same_but_for_case(one, other):
            return None
        one, other = one.folded(), other.folded()
        if one.signs != other.signs:
            return None
    one, other = _without_idle(one, other)
    words, others = _content(one), _content(other)
    most = max(len(words), len(others))
    allowed = (1 - threshold) * most
    if most > 2 or one.signs.count(" ") > 2:
        allowed = max(allowed, 1)
    if most - len(words & others) > 2 * allowed + _TYPOS:
        return None
    found = _aligned(one.tokens, other.tokens, allowed)
    if found is None and len(other.sentences) > 1:
        found = _aligned(one.tokens, _arranged(one, other), allowed)
    return found


_TYPOS = 6  # words with a slip of the pen: no reason to look no further


def _same_but_for_case(one: View, other: View) -> bool:
    """Whether one of them is in small letters only, and no two symbols of the other become one."""
    if one.key != other.key:
        return False
    cased = [view for view in (one, other) if view.signs != view.signs.lower()]
    symbols = {t for view in cased for t in view.tokens if is_sign(t)}
    return len(cased) == 1 and len({t.casefold() for t in symbols}) == len(symbols)


def _content(view: View) -> set[str]:
    return {t for t in view.tokens if t not in STOP and not is_sign(t)}


def _without_idle(one: View, other: View) -> tuple[View, View]:
    """The two without sentences that one of them has besides: no sign, nothing of the other text.

    Where both have some, they may say the same thing in words of their own.
    """
    idle = _idle(one, _content(other)), _idle(other, _content(one))
    if bool(idle[0]) == bool(idle[1]):
        return one, other
    return tuple(  # type: ignore[return-value]
        View(tuple(s for s in view.sentences if s not in some)) if some else view
        for view, some in zip((one, other), idle, strict=True)
    )


def _idle(view: View, others: set[str]) -> list[tuple[str, ...]]:
    return [
        sentence
        for sentence in view.sentences
        if sentence[0] not in ASKING
        and not any(map(is_sign, sentence))
        and others.isdisjoint(sentence)
        and STRONG.keys().isdisjoint(sentence)
        and any(word not in STOP for word in sentence)
    ]


def _arranged(one: View, other: View) -> list[str]:
    """The other's sentences in the order of those in one that they are most like."""
    left = list(range(len(other.sentences)))
    order: list[int] = []
    for sentence in one.sentences:
        words = set(sentence)
        best = max(left, key=lambda i: _overlap(words, other.sentences[i]), default=None)
        if best is not None and _overlap(words, other.sentences[best]) > 0.3:
            order.append(best)
            left.remove(best)
    return [t for i in [*order, *left] for t in other.sentences[i]]


def _overlap(words: set[str], sentence: Sequence[str]) -> float:
    return len(words & set(sentence)) / max(1, len(words | set(sentence)))


def _aligned(one: list[str], other: list[str], allowed: float) -> list[Change] | None:
    """The changes from one text to the other, if they are harmless and at most ``allowed``."""
    start, stop = _ends(one, other)
    middle, others = one[start : len(one) - stop], other[start : len(other) - stop]
    matcher = difflib.SequenceMatcher(None, middle, others, autojunk=False)
    here, there = set(one), set(other)
    lost: list[str] = []
    new: list[str] = []
    slips = 0
    changes = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        found = _harmless(middle[i:j], others[k:m], here, there)
        if found is None:
            return None
        lost += found[0]
        new += found[1]
        slips += found[2]
        if any(w not in STOP for w in middle[i:j] + others[k:m]):
            before = one[start + i - 1] if start + i else ""
            after = one[start + j] if start + j < len(one) else ""
            changes.append(Change(before, tuple(middle[i:j]), tuple(others[k:m]), after))
    if max(len(set(lost)), len(set(new))) > allowed or set(lost) & set(new):
        return None
    return changes if slips <= max(_SLIPS, len(one) // _SLIPS) else None


_SLIPS = 4  # so many, or one word in so many: with more, the words are others


def _ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """How many tokens the two share at the start, and how many of the rest at the end."""
    shorter = min(len(one), len(other))
    start = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    rest = shorter - start
    stop = next((i for i in range(rest) if one[-1 - i] != other[-1 - i]), rest)
    return start, stop


def _harmless(
    words: list[str], others: list[str], here: set[str], there: set[str]
) -> tuple[list[str], list[str], int] | None:
    """The content words replaced, those put for them, and the slips; None if they may matter.

    ``here`` and ``there`` are all tokens of the two texts.
    """
    if [w for w in words if is_sign(w)] != [w for w in others if is_sign(w)]:
        return None
    lost, new = _without_shared(words, others)
    if lost and new and slip("".join(lost), "".join(new)):
        pairs = [(lost[0], new[0])] if len(lost) == len(new) == 1 else []
        lost, new = [], []
    else:
        lost, new, pairs = _without_slips(lost, new)
    if any(v in here and w in there for w, v in pairs):
        return None
    if _strong(lost) != _strong(new) or _contrary(lost, new):
        return None
    lost = [w for w in lost if w not in STOP]
    new = [w for w in new if w not in STOP]
    if lost and new and (any(v in here for v in new) or any(w in there for w in lost)):
        return None
    return lost, new, len(pairs)


def _strong(words: Sequence[str]) -> list[int]:
    return sorted(STRONG[w] for w in words if w in STRONG)


def _contrary(lost: Sequence[str], new: Sequence[str]) -> bool:
    """Whether a weak word is exchanged for another class of its field, be that misspelt."""
    for words, others in ((lost, new), (new, lost)):
        for field, number in (WEAK[w] for w in words if w in WEAK):
            for other in others:
                if other in WEAK:
                    if WEAK[other][0] == field and WEAK[other][1] != number:
                        return True
                elif any(
                    WEAK.get(w, (0, number))[1] != number and slip(other, w) for w in FIELDS[field]
                ):
                    return True
    return False


def _without_shared(words: Sequence[str], others: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are not in the other list, signs aside."""
    both = Counter(words) & Counter(others)
    return _less(words, both), _less(others, both)


def _less(words: Sequence[str], counts: Counter[str]) -> list[str]:
    left = Counter(counts)
    kept = []
    for word in words:
        if left[word]:
            left[word] -= 1
        elif not is_sign(word):
            kept.append(word)
    return kept


def _without_slips(
    lost: Sequence[str], new: Sequence[str]
) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    """The words but for pairs of which one is the other with a slip of the pen; and those pairs."""
    rest = list(new)
    kept, pairs = [], []
    for word in lost:
        match = next((v for v in rest if slip(word, v)), None)
        if match is None:
            kept.append(word)
        else:
            rest.remove(match)
            pairs.append((word, match))
    return kept, rest, pairs


_ENDINGS = ("", "s", "es", "d", "ed", "ing", "ly")
_NEGATIONS = ("un", "in", "im", "non", "dis", "ir")


def slip(word: str, other: str) -> bool:
    """Whether one is a misspelling or another ending of the other, and no word with a class.

    One edit (a letter lost, added, changed, or two exchanged) a word, two in long ones.
    """
    if word == other:
        return True
    short, long = sorted((word, other), key=len)
    if len(short) < 3 or len(long) - len(short) > 3 or not short.isalpha():
        return False
    known = [w in STRONG or w in WEAK or w in STOP or w in NUMBERS for w in (word, other)]
    if all(known):
        return False
    if any(long == prefix + short for prefix in _NEGATIONS):
        return False
    shared = _ends(word, other)[0]
    if shared >= 3 and not any(known) and {word[shared:], other[shared:]} <= set(_ENDINGS):
        return True
    limit = 2 if len(short) >= 8 and not any(known) else 1
    if len(long) == 3 and any(known):  # odd and old are both words
        return sorted(word) == sorted(other)
    return within(word, other, limit)


def within(word: str, other: str, limit: int) -> bool:
    """Whether so many edits make one of the other; two neighbours exchanged are one edit."""
    start, stop = _ends(word, other)
    a, b = word[start : len(word) - stop], other[start : len(other) - stop]
    if not a or not b:
        return len(a) + len(b) <= limit
    if limit == 0:
        return False
    if len(a) == 1 and len(b) == 1:
        return True
    if len(a) >= 2 and a[:2] == b[1::-1] and within(a[2:], b[2:], limit - 1):
        return True
    return (
        within(a[1:], b[1:], limit - 1)
        or within(a[1:], b, limit - 1)
        or within(a, b[1:], limit - 1)
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts of a block, by their places in it, that say the same; ``first`` is the earlier."""

    first: int
    second: int
    changes: tuple[Change, ...]


_MOST = 8  # pairs with one text as the later
_SMALL = 24  # texts of a block that are compared each with each


def pairs(forms: Sequence[str], threshold: float) -> list[Pair]:
    """The pairs of texts, given as normal forms, that say the same; the likest first.

    A block of texts is one whose members have the same `View.key`.
    """
    views = [view(form) for form in forms]
    if len(views) <= _SMALL:
        proposed: Iterable[Sequence[int]] = (range(i) for i in range(len(views)))
    else:
        proposed = candidates([_content(v) for v in views])
    found = []
    for second, others in enumerate(proposed):
        alike = []
        for first in others:
            changes = difference(views[first], views[second], threshold)
            if changes is not None:
                alike.append(Pair(first, second, tuple(changes)))
        found += sorted(alike, key=lambda p: (len(p.changes), p.first))[:_MOST]
    return found


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
