"""An answer's text, read once: as a number, as words, as a choice, as trees."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from llmpipe.algo.answers.clean import clean
from llmpipe.algo.answers.figures import Number, number
from llmpipe.algo.answers.lexer import has_thousands
from llmpipe.algo.answers.parser import parse
from llmpipe.algo.answers.tree import Node, UnreadableError, num
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

_PAGE = 20_000  # characters; not even a sentence is looked for in more
_LOOSE_SPACE = re.compile(r"(?<![0-9A-Za-z]) | (?![0-9A-Za-z])")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")


@dataclass(frozen=True, slots=True)
class Answer:
    """``text`` is clean; ``plain`` is what must be the same for two texts to be the same.

    ``trees`` has the readings (a comma may part thousands or a list), none where the grammar has
    none. ``free`` says that a variable in it may have any name.
    """

    text: str
    plain: str
    number: Number | None = None
    words: str | None = None
    choice: tuple[str, str] | None = None
    trees: tuple[Node, ...] = ()
    free: bool = False


@lru_cache(maxsize=4096)
def read(text: str) -> Answer:
    """The answer in a text: the text itself, or what a sentence says it is.

    Raises:
        TooLargeError: it is nested too deeply, or too long.
    """
    if len(text) > _PAGE:
        return Answer(text, text)
    short = clean(text)
    if figure := number(short):
        return Answer(short, short, figure, trees=(_figure(figure),))
    if is_sentence(short):
        inner = _said(text)
        if inner and not is_sentence(inner):
            return read(inner)
        found = words(short)
        return Answer(short, found or _plain(short), words=found)
    if len(short) > LONGEST:
        return Answer(short, short)
    if is_all_reals(short):
        return Answer(short, short, trees=(Node("set", value="R"),))
    found, letter = words(short), choice(short)
    if found is not None:
        return Answer(short, found, words=found, choice=letter)
    bare, free = without_condition(short)
    trees = _trees(bare)
    if not trees and _is_prose(bare, text) and (inner := _said(text)) and len(inner) < len(short):
        return read(inner)
    return Answer(short, _plain(short), number(bare), None, letter, trees, free)


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
    if has_thousands(text):
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
