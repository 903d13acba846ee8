"""What the grammar of `llmpipe.algo.answers` doesn't have (sums, integrals, limits): math-verify.

It is given LaTeX only, so that its parser of expressions, which evaluates what it reads, is never
reached; and no more than a line of it. Nothing here has a time limit: the worker has.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from llmpipe.algo.answers.tree import TooLargeError
from llmpipe.algo.answers.words import is_sentence

_LONGEST = 400
_TOWER = re.compile(r"\^\s*\{?\s*\d+\s*\^|\^\s*\{?\s*\d{5}|\d{5}\s*\}?\)?\s*!|!\s*\)?\s*!")
_NOT_ITS = re.compile(
    r"(?<![\\A-Za-z])(?:of|to|by|if|for|when|otherwise|else)(?![A-Za-z])|\\[lc]?dots(?![A-Za-z])|\.\.\."
    r"|(?<![\\A-Za-z])[A-Za-z](?:'+|\^\{?\\prime\}?)?\s?\(-?\d+\)|(?<!\.)\\overline"
    r"|'s(?![A-Za-z])"
)
_LOGIC = re.compile(
    r"\\(?:land|lor|wedge|vee|neg|lnot|to|(?:left)?(?:right|Right)arrow|implies|iff)(?![A-Za-z])"
)
_AFTER_OPERATOR = re.compile(r"(?<=[-+*/=(\[{^]) ")


def readable(text: str) -> bool:
    """Whether math-verify can read a clean answer of a line.

    Raises:
        TooLargeError: it would be asked to compute a huge number.
    """
    return bool(_parsed(text))


def equal(left: str, right: str) -> bool:
    """Whether math-verify finds two clean answers equal, asked both ways round: it isn't symmetric.

    Raises:
        TooLargeError: as in `readable`.
    """
    from math_verify import verify

    x, y = list(_parsed(left)), list(_parsed(right))
    # Its own time limit is made of SIGALRM, which works in no thread and stops no C call.
    return any(
        bool(verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=None))
        for gold, answer in ((x, y), (y, x))
    )


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Any, ...]:
    # It takes words for products of letters, and values of functions for products too.
    if len(text) > _LONGEST or is_sentence(text) or _NOT_ITS.search(text):
        return ()
    if "\\lim" not in text and _LOGIC.search(text):
        return ()
    if _TOWER.search(text):
        raise TooLargeError("a number of too many digits")
    from math_verify import LatexExtractionConfig, grader, parse, parser

    # It warns that its time limit is off. That is meant: the pool has a better one.
    parser.TIMEOUT_WARNING_SHOWN = grader.TIMEOUT_WARNING_SHOWN = True
    return tuple(
        parse(
            f"${_AFTER_OPERATOR.sub('', text)}$",  # or "- c" is read as "-" and a unit
            [LatexExtractionConfig()],
            fallback_mode="no_fallback",
            parsing_timeout=None,
        )
    )
