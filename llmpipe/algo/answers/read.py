"""An answer's text, read once: as a number, as words, as a choice, as trees."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from llmpipe.algo.answers.clean import clean
from llmpipe.algo.answers.clock import date
from llmpipe.algo.answers.figures import Number, number
from llmpipe.algo.answers.lexer import without_thousands
from llmpipe.algo.answers.numerals import spelled
from llmpipe.algo.answers.parser import parse
from llmpipe.algo.answers.prose import Bound, bounds, named
from llmpipe.algo.answers.tree import Node, TooLargeError, UnreadableError, num
from llmpipe.algo.answers.words import (
    as_prose,
    choice,
    has_verb,
    is_all_reals,
    is_sentence,
    unwrapped,
    without_condition,
    words,
)
from llmpipe.algo.extract import final_answer

LONGEST = 2000
"""Characters of an answer that is looked into; longer ones are compared as text."""

_TOO_LONG = f"an answer of more than {LONGEST} characters"
_PAGE = 20_000  # characters; not even a sentence is looked for in more
_LOOSE_SPACE = re.compile(r"(?<![0-9A-Za-z]) | (?![0-9A-Za-z])")
_MORE_CHOICES = re.compile(r"\([A-J]\)|^(?:,|;|&|/|and\b|or\b)")
_CASE = re.compile(r"\b(?:for|if|when|where)\b(?!\s*(?:\}\s*)?(?:all|any|every|some|each)\b)")
_IF = re.compile(r"\b(?:if|when)\b")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` is clean; ``plain`` is what must be the same for two texts to be the same.

    ``trees`` has the readings (a comma may part thousands or a list), none where the grammar has
    none. ``free`` says that a variable in it may have any name; ``too_large`` why it isn't looked
    into.
    """

    text: str
    plain: str
    number: Number | None = None
    words: str | None = None
    choice: tuple[str, str] | None = None
    trees: tuple[Node, ...] = ()
    free: bool = False
    too_large: str = ""


@lru_cache(maxsize=4096)
def read(text: str) -> Answer:
    """The answer in a text: the text itself, or what a sentence says it is."""
    if len(text) > _PAGE:
        return Answer(text, text, too_large=_TOO_LONG)
    short = clean(text)
    if figure := number(short):
        return Answer(short, short, figure, trees=(_figure(figure),))
    if restated := _restated(unwrapped(short)):
        return restated
    if _IF.search(short) and (by_cases := _cases(short)):
        return Answer(short, _plain(short), trees=by_cases)
    if is_sentence(short):
        inner = _said(text)
        if inner and not is_sentence(inner):
            return read(inner)
        found = words(short)
        return Answer(short, found or _plain(short), words=found)
    if len(short) > LONGEST:
        return Answer(short, short, too_large=_TOO_LONG)
    if is_all_reals(short):
        return Answer(short, short, trees=(Node("set", value="R"),))
    found, letter = words(short), choice(short)
    if found is not None:
        return Answer(short, found, words=found, choice=letter)
    if letter and _MORE_CHOICES.search(letter[1]):
        letter = None  # "(A) and (C)" is a list
    bare, free = (short, False) if _is_by_cases(short) else without_condition(short)
    try:
        trees = _trees(bare)
    except TooLargeError as e:
        return Answer(short, _plain(short), too_large=str(e))
    inner = _said(text) if not trees and _is_prose(bare, text) else None
    # `clean` may write a "$" out as dollars: what is shorter than that may be all of the text.
    if inner and len(inner) < min(len(short), len(text)):
        return read(inner)
    return Answer(short, _plain(short), number(bare), None, letter, trees, free)


def _cases(text: str) -> tuple[Node, ...]:
    """The readings of "5 if n is even, 3 if n is odd", which is no sentence."""
    try:
        found = _trees(text) if len(text) <= LONGEST else ()
    except TooLargeError:
        return ()
    return tuple(t for t in found if all(n.op == "given" for n in _items(t)))


def _items(node: Node) -> tuple[Node, ...]:
    return node.args if node.op == "seq" else (node,)


def _is_by_cases(text: str) -> bool:
    """Several conditions make several answers: none of them can be left out."""
    return len(_CASE.findall(text)) > 1


def _restated(text: str) -> Answer | None:
    """A date, a bound in words, "a loss of 5", a number in words; None for other texts."""
    if day := date(text):
        return Answer(text, day, words=day)
    if found := bounds(text):
        return _bounded(text, found)
    if inner := named(text):
        return replace(read(inner), text=text, plain=_plain(text), number=None)
    figures = spelled(text)
    return read(figures) if figures else None


def _bounded(text: str, found: tuple[Bound, ...]) -> Answer:
    """ "At least 5" as an inequality of any variable; whether ends belong to it is left open in
    "between 3 and 5"."""
    name = next((bound.name for bound in found if bound.name), None)
    formulas = [f"{name or 'x'} {b.sign} {spelled(b.value) or b.value}" for b in found]
    closed = [f.replace(">", ">=").replace("<", "<=") for f in formulas]
    readings = [formulas, closed] if text.casefold().startswith("between") else [formulas]
    try:
        trees = tuple(tree for r in readings for tree in _trees(" and ".join(r)))
    except TooLargeError as e:
        return Answer(text, _plain(text), too_large=str(e))
    if not trees:
        return Answer(text, text.casefold(), words=text.casefold())
    return Answer(" and ".join(formulas), _plain(text), trees=trees, free=name is None)


def _said(text: str) -> str | None:
    """What a sentence says the answer is: marked as one, or its only number.

    Of several numbers the last is the answer where the words make a sentence, or where it stands on
    a line of its own; "40 of these, 10 of those" is no answer of 10.
    """
    found = final_answer(as_prose(text))
    several = len(re.findall(r"\d+", text)) > 1
    if found.text is None or found.method != "last_number":
        return found.text
    if "\\begin" in text and "\\begin" not in found.text:
        return None
    if several and "\n" not in text and not has_verb(text):
        return None
    return found.text


def _is_prose(bare: str, text: str) -> bool:
    """Words with an answer among them, where the grammar found none."""
    found = 0 if bare.startswith(("(", "[", "{")) else len(_WORD.findall(bare))
    return found > 1 or (found == 1 and ("$" in text or "\\(" in text or "\\[" in text))


def _figure(figure: Number) -> Node:
    value = num(figure.value, figure.places)
    return Node("pct", (value,)) if figure.percent else value


def _trees(text: str) -> tuple[Node, ...]:
    readings: list[Callable[[], Node]] = [lambda: parse(text)]
    if without_thousands(text) != text:
        readings.append(lambda: parse(text, thousands=False))
    found = []
    for reading in readings:
        try:
            found.append(reading())
        except UnreadableError:
            continue
    return tuple(found)


def _plain(text: str) -> str:
    return _LOOSE_SPACE.sub("", unwrapped(text))
