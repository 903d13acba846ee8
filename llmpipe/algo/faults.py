"""What keeps a right answer from being worth training on, rule by rule.

Each rule is a pure function of an `Answer` that returns what it found, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from llmpipe.algo.extract import after_thinking, answer_boxes
from llmpipe.algo.loops import loop
from llmpipe.algo.scripts import scripts

Rule = Callable[["Answer"], str | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, and ``asked``: all that was said to it before."""

    text: str
    asked: Callable[[], str]


def several_boxes(answer: Answer) -> str | None:
    """Boxes after the thinking that give more than one answer.

    The same one twice is one answer, and so are boxes with nothing but commas, spaces and "and"
    between them (`llmpipe.algo.extract.boxes`). Boxes are compared as texts, spacing and LaTeX's
    sizes aside: 1/2 and 0.5 are two.
    """
    found = {_plain(box): box for box in answer_boxes(after_thinking(answer.text))}
    found.pop("", None)
    return _few(" | ", found.values()) if len(found) > 1 else None


def loops(answer: Answer) -> str | None:
    """A text that goes round in circles, its thinking included (`llmpipe.algo.loops`)."""
    return loop(answer.text)


def other_script(answer: Answer) -> str | None:
    """A letter of a script that nothing before the answer uses, such as Chinese in English.

    Latin and Greek letters and mathematical alphabets are at home in all (`llmpipe.algo.scripts`).
    """
    used = scripts(answer.text)
    strange = used.keys() - scripts(answer.asked()).keys() if used else ()
    return _few(", ", [f"{name} {used[name]}" for name in sorted(strange)]) or None


def _few(between: str, found: Collection[str]) -> str:
    """The first of what was found, and how many there are besides."""
    rest = len(found) - _SHOWN
    shown = between.join(list(found)[:_SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown


FAULTS: Mapping[str, Rule] = MappingProxyType(
    {rule.__name__: rule for rule in (several_boxes, loops, other_script)}
)
"""In the order they are asked."""

_SHOWN = 4
_UNSEEN = re.compile(
    r"\\(?:left|right|displaystyle|[bB]igg?[lr]?)(?![A-Za-z])|\\[hv]?phantom\{[^{}]*\}"
    r"|\\[,;:! ]|[\s$]"
)


def _plain(box: str) -> str:
    text = _UNSEEN.sub("", box).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    return text.rstrip(".")
