"""Rules on problems that offer answers to choose from."""

from __future__ import annotations

import re

from llmpipe.algo.rules.labels import named_label
from llmpipe.algo.rules.options import Options, cut_options, letter_of
from llmpipe.algo.rules.statement import Statement, asks


def multiple_choice(statement: Statement) -> str | None:
    """The gold is a letter, or the question can't be answered without its options."""
    options = statement.options
    if options is None:
        return named_label(statement.prompt, statement.answer) or _lone_letter(statement)
    if letter := letter_of(statement.answer, options.letters or "ABCDEFGHJK"):
        return f"{_shown(options)}, the answer is {letter}"
    if not statement.has_answer:
        return f"{_shown(options)}, and no answer"
    if not options.letters or options.asked_about(statement.prompt):
        return f"{_shown(options)}, and the question is about them"
    return None


def multiple_choice_value(statement: Statement) -> str | None:
    """Options are listed, but the gold is a value and the question stands without them."""
    options = statement.options
    if options is None or multiple_choice(statement):
        return None
    return f"{_shown(options)}, the answer is a value"


_LEFT_OPEN = re.compile(
    r"(?:[:：=]|\b(?:is|are|was|were|be|equals?|by|to|of|in|at|for|than|has|have|approximately"
    r"|about)|[是为有等于得])[\s$\\_.]*(?:$|\n)|[(（]\s*[)）]|=",
    re.IGNORECASE,
)


def without_options(statement: Statement) -> str | None:
    """The prompt without its options; None if what is left asks nothing: no question, no gap."""
    if statement.options is None:
        return statement.prompt
    rest = cut_options(statement.prompt, statement.options)
    return rest if asks(Statement(rest, "").words) or _LEFT_OPEN.search(rest) else None


def _shown(options: Options) -> str:
    letters = options.letters
    return f"options {letters[0]} to {letters[-1]}" if letters else "a list of options"


_LETTER = re.compile(r"\W*(?:\\(?:text[a-z]*|mathrm|mathbf|mbox)\{)?\W*([A-E])\W*")
_LETTERS_COUNT = re.compile(r"\b(?:hexadecimal|base|letter|grade|note|digit|vitamin|blood)\b")


def _lone_letter(statement: Statement) -> str | None:
    """A letter for an answer, where the prompt has nothing of that name."""
    match = _LETTER.fullmatch(statement.answer) if len(statement.answer) < 30 else None
    if match is None or _LETTERS_COUNT.search(statement.words):
        return None
    letter = match[1]
    article = "(?! [a-z]{2,})" if letter == "A" else ""
    if re.search(rf"(?<![A-Za-z\\])[A-Z]*{letter}(?:[A-Z]+|(?![a-z]){article})", statement.prompt):
        return None
    return f"the answer is {letter}, and the options are missing"
