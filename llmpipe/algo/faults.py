"""What keeps an answer from being worth training on, rule by rule.

Each rule is a pure function of an `Answer` that returns what it found, or None.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from llmpipe.algo.answers.equal import equal
from llmpipe.algo.answers.figures import equal_numbers
from llmpipe.algo.answers.read import read
from llmpipe.algo.answers.tree import TooLargeError, UnreadableError
from llmpipe.algo.extract import after_thinking, answer_boxes
from llmpipe.algo.loops import loop
from llmpipe.algo.scripts import scripts
from llmpipe.core.protocols import Drop
from llmpipe.core.records import FinishReason

Rule = Callable[["Answer"], str | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, and ``asked``: all that was said to it before."""

    text: str
    asked: Callable[[], str]


def several_boxes(answer: Answer) -> str | None:
    """Boxes after the thinking that give more than one answer.

    The same one twice is one answer, however it is written (1/2 and 0.5), and so are boxes with
    nothing but commas, spaces and "and" between them (`llmpipe.algo.extract.boxes`).
    """
    boxes = dict.fromkeys(answer_boxes(after_thinking(answer.text)))
    seen = [box for box in boxes if _UNSEEN.sub("", box)]
    return _few(" | ", seen) if any(not _same(seen[-1], box) for box in seen[:-1]) else None


def _same(one: str, other: str) -> bool:
    """Whether two boxes hold the same answer, by the grammar of answers alone."""
    left, right = read(one), read(other)
    if left.plain == right.plain:
        return True
    if left.number and right.number:
        return equal_numbers(left.number, right.number)
    try:
        return any(equal(x, y) for x in left.trees for y in right.trees)
    except (TooLargeError, UnreadableError, RecursionError):
        return False


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


def _few(between: str, found: Sequence[str]) -> str:
    """The first of what was found, cut short, and how many there are besides."""
    rest = len(found) - _SHOWN
    shown = between.join(text if len(text) <= 60 else f"{text[:57]}..." for text in found[:_SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown


FAULTS: Mapping[str, Rule] = MappingProxyType(
    {rule.__name__: rule for rule in (several_boxes, loops, other_script)}
)
"""In the order they are asked."""


class Screen:
    """Tells which answers are whole, without fault and new among those to their problem."""

    def __init__(self, rules: Collection[str]) -> None:
        self._rules = {name: rule for name, rule in FAULTS.items() if name in rules}
        self._seen: defaultdict[str, dict[bytes, int]] = defaultdict(dict)

    def __call__(
        self, problem: str, sample: int, finish: FinishReason, answer: Answer
    ) -> Drop | None:
        """Why an answer is left out, or None: not_stopped, a rule's name, or duplicate_text."""
        if finish != "stop":
            return Drop(reason="not_stopped", detail=finish)
        for name, rule in self._rules.items():
            if detail := rule(answer):
                return Drop(reason=name, detail=detail)
        digest = hashlib.blake2b(answer.text.encode(), digest_size=16).digest()
        first = self._seen[problem].setdefault(digest, sample)
        if first == sample:
            return None
        return Drop(reason="duplicate_text", detail=f"the same as sample {first}")

    def forget(self, problem: str) -> None:
        """Let go of what was noted of a problem all of whose answers were seen."""
        self._seen.pop(problem, None)


_SHOWN = 4
_UNSEEN = re.compile(r"\\[hv]?phantom\{[^{}]*\}|[\s$]")
