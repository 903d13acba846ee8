r"""Whether two problems say the same in other words: their signs, then the words around them.

A problem's *signs* are its numbers, operators, relations, brackets and variables, in their order,
number words among them. Two problems with other signs are never the same. Of two with the same
signs the words are aligned, and what differs must be nothing that turns the meaning
(`llmpipe.algo.vocabulary`), no exchange of two words that both texts have (who has three and who
has five), and little.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llmpipe.algo.gaps import Change
from llmpipe.algo.normal import normal_form
from llmpipe.algo.sketch import candidates
from llmpipe.algo.slips import shared_ends, slip
from llmpipe.algo.view import View, is_sign, view
from llmpipe.algo.vocabulary import ASKING, FIELDS, STOP, STRONG, TERMS, WEAK

THRESHOLD = 0.6
"""The share of their words, stop words aside, that two wordings of a problem have in common."""


def difference(one: View, other: View, threshold: float = THRESHOLD) -> list[Change] | None:
    """What to change in one wording to get the other; None where they are two problems."""
    if one.signs != other.signs:
        if not _same_but_for_case(one, other):
            return None
        one, other = one.folded(), other.folded()
        if one.signs != other.signs:
            return None
    one, other = _without_idle(one, other)
    words, others = one.content, other.content
    most = max(len(words), len(others))
    allowed = (1 - threshold) * most
    if most > 2 or one.signs.count(" ") > 2:
        allowed = max(allowed, 1)
    if most - len(words & others) > 2 * allowed + _TYPOS:
        return None
    found = _aligned(one.tokens, other.tokens, allowed)
    if found is None and len(other.sentences) > 1:
        found = _aligned(one.tokens, _arranged(one, other), allowed)
    if found is None or _in_common(one, other) >= (_COMMON if found else 1):
        return found
    return found if one.tokens and one.tokens == other.tokens else None


_COMMON = 4  # numbers, signs and content words that two wordings must share


def _in_common(one: View, other: View) -> int:
    there = Counter(t for t in other.tokens if _says(t))
    return (Counter(t for t in one.tokens if _says(t)) & there).total()


def _says(token: str) -> bool:
    return token not in STOP and any(map(str.isalnum, token))


def comparable(seen: View) -> bool:
    """Whether a text has content, and is short and varied enough to be aligned with others.

    The work of an alignment grows with the number of places where two texts have the same token,
    which for two texts is at most the larger of what each has with itself.
    """
    counts = Counter(seen.tokens)
    return (
        counts.total() <= _TOKENS
        and len(seen.sentences) <= _SENTENCES
        and sum(n * n for n in counts.values()) <= _PLACES
    )


_TOKENS, _SENTENCES, _PLACES = 1200, 100, 30_000


_TYPOS = 6  # words with a slip of the pen: no reason to look no further


def _same_but_for_case(one: View, other: View) -> bool:
    """Whether one of them is in small letters only, and no two symbols of the other become one."""
    if one.key != other.key:
        return False
    cased = [view for view in (one, other) if view.signs != view.signs.lower()]
    symbols = {t for view in cased for t in view.tokens if is_sign(t)}
    if any(t.startswith(" \\") and t != t.casefold() for t in symbols):  # \Pi is no \pi
        return False
    return len(cased) == 1 and len({t.casefold() for t in symbols}) == len(symbols)


def _without_idle(one: View, other: View) -> tuple[View, View]:
    """The two without sentences that one of them has besides: no sign, nothing of the other text.

    Where both have some, they may say the same thing in words of their own.
    """
    idle = _idle(one, other.content), _idle(other, one.content)
    if bool(idle[0]) == bool(idle[1]):
        return one, other
    return tuple(  # type: ignore[return-value]
        View(tuple(s for s in view.sentences if s not in some)) if some else view
        for view, some in zip((one, other), idle, strict=True)
    )


def _idle(view: View, others: frozenset[str]) -> list[tuple[str, ...]]:
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
    start, stop = shared_ends(one, other)
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
        if found[0] and found[1] and _is_asked(one, other, start + i, start + k):
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


def _is_asked(one: Sequence[str], other: Sequence[str], i: int, k: int) -> bool:
    """Whether a word that is exchanged is what the question is about: how much is spent, saved.

    A thing that a text speaks of elsewhere too has another name throughout.
    """
    return any(
        text.count(word) == 1 and _follows_a_question(text, place)
        for text, place in ((one, i), (other, k))
        for word in itertools.islice((t for t in text[place:] if t not in STOP), 1)
    )


def _follows_a_question(tokens: Sequence[str], place: int) -> bool:
    things = 0
    for token in reversed(tokens[max(0, place - _REACH) : place]):
        if token in _QUESTIONS:
            return True
        things += token not in STOP
        if things > 1 or is_sign(token):
            return False
    return False


_REACH = 6  # words between "how" and what it asks for
_QUESTIONS = frozenset(
    ["how", "what", "which", "who", "find", "determine", "compute", "calculate", "求", "少", "多少"]
)
_SLIPS = 4  # so many, or one word in so many: with more, the words are others


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
        for field, number in (pair for w in words if w in WEAK for pair in WEAK[w].items()):
            for other in others:
                if other in WEAK:
                    if WEAK[other].get(field, number) != number:
                        return True
                elif any(
                    WEAK.get(w, {}).get(field, number) != number and slip(other, w)
                    for w in FIELDS[field]
                ):
                    return True
    return bool(lost and new) and not (_explained(lost, new) and _explained(new, lost))


def _explained(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether for each term of mathematics one of its class stands among the others."""
    return all(
        any(not TERMS[word].isdisjoint(TERMS.get(other, ())) for other in others)
        for word in words
        if word in TERMS
    )


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


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts of a block, by their places in it, that say the same; ``first`` is the earlier."""

    first: int
    second: int
    changes: tuple[Change, ...]


_MOST = 8  # pairs with one text as the later
_SMALL = 24  # texts of a block that are compared each with each
_LARGE, _FEW = 2000, 6  # in a block of more, a text is compared with so few


def objects(text: str) -> frozenset[str]:
    """The words that a text quotes or has in capitals: things it speaks of, not its own words."""
    found = {
        word
        for parts in _QUOTED.findall(text)
        for quoted in parts
        for word in _WORD.findall(quoted)
    }
    capitals = _CAPITALS.findall(text)
    if 2 * len(capitals) < len(_WORD.findall(text)):  # or it is all in capitals
        found.update(capitals)
    return frozenset(map(str.casefold, found))


_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff]+|[\u3040-\u30ff\u3400-\u9fff]")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_QUOTED = re.compile(
    r"""["“‘`《「]([^"”’'`》」]{1,60})["”’'`》」]|(?<![^\W_])'([^']{1,60})'(?![^\W_])"""
)


def pairs(texts: Sequence[str], threshold: float) -> tuple[list[Pair], int]:
    """The pairs of texts that say the same, the likest first; how many were not looked at.

    A block of texts is one whose members have the same `View.key`.
    """
    views = [view(normal_form(text)) for text in texts]
    named = [objects(text) for text in texts]
    most = _SMALL if len(views) <= _LARGE else _FEW
    left = 0
    if len(views) <= _SMALL:
        proposed: Iterable[Sequence[int]] = (range(i) for i in range(len(views)))
    else:
        proposed = candidates([v.content for v in views])
    found = []
    for second, others in enumerate(proposed):
        alike: list[Pair] = []
        for place, first in enumerate(others):
            if (len(views) > _SMALL and len(alike) == _MOST) or place >= most:
                left += len(others) - place
                break
            changes = difference(views[first], views[second], threshold)
            if changes is not None and not _renamed(changes, named[first], named[second]):
                alike.append(Pair(first, second, tuple(changes)))
        found += sorted(alike, key=lambda p: (len(p.changes), p.first))[:_MOST]
    return found, left


def _renamed(changes: Iterable[Change], one: frozenset[str], other: frozenset[str]) -> bool:
    return any(
        not one.isdisjoint(change.words) or not other.isdisjoint(change.others)
        for change in changes
    )
