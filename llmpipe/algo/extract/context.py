"""Do the words beside a value leave it as it is, or do they negate, bound or scale it?"""

from __future__ import annotations

from collections.abc import Iterator

from llmpipe.algo.extract import han
from llmpipe.algo.extract import qualifiers as q
from llmpipe.algo.extract.values import DASHES, EQUALS, Clause

_CONTINUES = frozenset(["or", "plus", "minus", "times", "squared", "cubed", "unless"])
_TIMES = frozenset(
    ["", ".", ",", "\n", "in", "per", "a", "each", "every", "that", "as", "more", "to"]
)  # "5 times a week", but not "5 times x"
_PAIRS = frozenset([("at", "least"), ("at", "most"), ("in", "base"), ("of", "half"), ("out", "of")])
_POWERS = q.FRACTIONS | q.FIGURES | {"power", "nth", "minus", "negative"}  # "5 to the fourth"
_COLONS = frozenset(":：")
_OPENING = frozenset("(（[")
_FAR = 8  # words
_NOUNS = 4  # words of "a total height of"
_QUESTIONS = frozenset("?？")


def harmless_before(clause: Clause, first: int) -> bool:
    """Whether what is said before a value neither denies nor changes it."""
    found = clause.tokens
    if first and found[first - 1].kind == "cjk" and han.changes(found[first - 1].text):
        return False
    near = True  # nothing like "is" or "get" stands between
    denied = False  # "the number of those that aren't": what is denied is not the value
    for n in range(first - 1, -1, -1):
        token, word = found[n], found[n].text.lower()
        if _parts(clause, n) or word in q.TURNS:
            break
        if token.kind == "cjk" and han.denies(token.text):
            return False
        if token.kind != "word":
            near = near and token.text not in EQUALS
            continue
        if word in q.CONDITIONS or (near and (word in q.STRONG or _denies(word))):
            return False
        denied = (denied or _denies(word)) and word not in q.COUNTS
        near = near and word not in q.SAID
    return not denied and _governed(clause, first) and _linked(clause, first)


def _linked(clause: Clause, first: int) -> bool:
    """Whether an "is" before a value says what the value is, not something made of it.

    Between the two stand nothing but determiners and adverbs, "a height of", or "sold for".
    """
    between: list[str] = []
    for n in range(first - 1, max(first - _FAR, 0) - 1, -1):
        token, word = clause.tokens[n], clause.tokens[n].text.lower()
        if _parts(clause, n) or token.kind == "cjk" or token.text in EQUALS:
            return True
        if word in q.COPULAS:
            break
        between.insert(0, word if token.kind == "word" or word == "a" else "1")
    else:
        return True
    if between and q.PARTICIPLE.fullmatch(between[0]) and "of" not in between:
        between = between[1:]
    if "of" in between:
        place = between.index("of")
        if place > _NOUNS or "1" in between[:place]:
            return False
        between = between[place + 1 :]
    return all(w in q.LINKS or w in q.DETERMINERS or w.endswith("ly") for w in between)


def _denies(word: str) -> bool:
    return word in q.NEGATIONS or word in q.REFUSALS or word.replace("’", "'").endswith("n't")


def _parts(clause: Clause, at: int) -> bool:
    """Whether a clause begins or ends here."""
    token = clause.tokens[at]
    return token.kind in ("end", "stop", "comma") or (token.text in _COLONS and not clause.math[at])


def _governed(clause: Clause, first: int) -> bool:
    """Whether the word that a value depends on, determiners apart, leaves it as it is."""
    words = _words_before(clause, first)
    word = next(words, "")
    if word == "of":
        word, before = next(words, ""), next(words, "")
        return word not in q.OF and not word.isdigit() and not before.isdigit()
    if word == "to":
        word, before = next(words, ""), next(words, "")
        if word == "up":
            return before in q.SUMS
        return word not in q.TO and not word.isdigit() and before not in ("or", "than")
    if word == "by":
        word = next(words, "")
        return not word.isdigit() and word not in q.BY and q.BY.isdisjoint(words)
    if word == "from":
        return next(words, "") not in q.FROM
    if word == "as":
        return next(words, "") not in ("many", "much", "few", "little", "high", "low", "long")
    if word == "case":
        return clause.tokens[first - 1].text.lower() == word and _is_this(clause, first - 2)
    return word not in q.BEFORE


def _is_this(clause: Clause, at: int) -> bool:
    return at >= 0 and clause.tokens[at].text.lower() in ("this", "that", "which", "our")


def _words_before(clause: Clause, first: int) -> Iterator[str]:
    """The words before a value from its end, without determiners; a figure is '1'."""
    for n in range(first - 1, -1, -1):
        token = clause.tokens[n]
        if _parts(clause, n) or token.kind == "cjk" or token.text in EQUALS:
            return
        if token.kind in ("number", "formula"):
            yield "1"
        elif token.kind == "word" and (word := token.text.lower()) not in q.DETERMINERS:
            yield word


def harmless_after(clause: Clause, last: int, computed: bool = False) -> bool:
    """Whether what is said after a value neither denies nor changes it.

    After a calculation (``computed``), "= 5 more than x" and "= 5 if x" only say what was computed.
    """
    rest = clause.tokens[last + 1 :]
    if not rest:
        return True
    if rest[0].text in _COLONS or (rest[0].text in DASHES and clause.glued(last + 1)):
        return False
    if rest[0].kind == "cjk" and han.goes_on(rest[0].text):
        return False
    words = [t.text.lower() for t in rest]
    if not _harmless_next(words, computed):
        return False
    subject = words[0] in q.VERBS or _denies(words[0])  # the value itself: "5 is not", not "5 are"
    aside = added = False  # behind a comma; behind an "and"
    for n, (token, word) in enumerate(zip(rest, words, strict=True)):
        if word in _QUESTIONS or word.endswith("吗"):
            return False
        if token.kind == "end" or word in q.UNTIL:
            break
        if token.kind == "comma" or word in DASHES:
            aside = True
            if n + 1 < len(words) and words[n + 1] in _CONTINUES:
                return False
        if aside:
            continue
        if token.kind == "cjk" and han.refutes(token.text):
            return False
        if not (subject or computed) and _is_operand(clause, last, last + 1 + n):
            return False
        if word in q.LATER and not computed and not _than(words, n):
            return False
        if _denies(word) and (subject or word in q.REFUSALS or not q.RIGHT.isdisjoint(words[n:])):
            return False
        if word == "or" or word in q.MAGNITUDES or (n and word in q.MULTIPLES):
            return False
        if word in q.CONDITIONS and not computed:
            return False
        added = added or word == "and"
        if added and (word in q.FRACTIONS or word in q.FIGURES):
            return False
    return True


def _is_operand(clause: Clause, last: int, at: int) -> bool:
    """Whether a value goes on with another one: "5 to the n", "5 in 6", but "5 values of x"."""
    token, before = clause.tokens[at], clause.tokens[at - 1].text.lower()
    if token.kind not in ("number", "name", "formula") or not clause.math[at]:
        return False
    if before == "/" and clause.glued(at):
        return False  # "5 ergs/s"
    counted = clause.tokens[at - 2].text.lower()
    counts = before == "of" and at - 2 > last and counted not in ("percent", "times")
    return token.kind == "number" or not counts


def _than(words: list[str], at: int) -> bool:
    """Whether a comparison with something goes on: "5 apples less than Bob"."""
    return at > 0 and words[at + 1 : at + 2] == ["than"]


def _harmless_next(words: list[str], computed: bool) -> bool:
    """Whether the words right behind a value go on about something else."""
    first, second, third, *_ = [*words, "", "", ""]
    if first in _OPENING:  # "5 (five)", but not "5 (million)"
        return second not in (q.AFTER | q.MULTIPLES) - (q.FIGURES - q.MULTIPLES)
    if first == "times":
        return second in _TIMES
    if first == "to":
        power = second == "the" and third in _POWERS
        return second.isalpha() and len(second) > 1 and second not in q.FIGURES and not power
    if first in q.COMPARISONS:
        return computed or (first == "more" and second != "than")
    if q.CHANGED.fullmatch(first) and not (second.isalpha() and len(second) > 3):
        return False
    return (first, second) not in _PAIRS and first not in q.AFTER
