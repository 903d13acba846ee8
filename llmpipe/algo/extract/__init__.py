"""The final answer in a response: where it stands, or why there is none.

Read in this order, after the thinking: the last ``\\boxed{}`` or ``\\fbox{}``, the last
``<answer>`` tag, the last "the answer is" (`prose`), the last ``####``, what the last code printed
(a block fenced as ``output``), the last number or formula (`prose`). A last box that is opened and
never closed ends the search, whatever an earlier box holds: the answer was being written anew, and
what it would have been is unknown.

A number is never cut out of what negates, bounds, scales or continues it: "not 5", "√5", "5
million" and "x > 5" are not 5. Where a sentence can't be cut down safely, there is no answer.

Every scan is linear in the text: no pattern here can look at a character more than a few times,
but for stretches of bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from llmpipe.algo.extract.boxes import Boxes, answer_boxes, find_boxes
from llmpipe.algo.extract.prose import DENIED, last_number, phrase

__all__ = [
    "Boxes",
    "Found",
    "Method",
    "after_thinking",
    "answer_boxes",
    "final_answer",
    "find_boxes",
    "last_tag",
    "sentence_of",
]

Method = Literal["box", "answer_tag", "phrase", "hashes", "output_block", "last_number"]


@dataclass(frozen=True, slots=True)
class Found:
    """An answer and how it was found, or ``text`` None and why not.

    ``closed`` says that a mark closes it (a box, a tag), so that it is whole even where the
    response was cut off later.
    """

    text: str | None
    method: Method | None = None
    why_not: str = ""

    @property
    def closed(self) -> bool:
        return self.method in ("box", "answer_tag")


def final_answer(response: str, mode: str = "auto") -> Found:
    """The final answer of a response.

    ``mode`` is "auto" (all marks, in the order above) or "boxed" (boxes only).

    Raises:
        ValueError: another mode.
    """
    if mode not in ("auto", "boxed"):
        raise ValueError(f"extract is auto or boxed, not {mode!r}")
    text = after_thinking(response)
    boxes = find_boxes(text)
    if boxes.answer is not None:
        return Found(boxes.answer, "box")
    if boxes.open:
        return Found(None, why_not="the last box is never closed")
    if mode == "auto":
        denied = False
        for method, find in _MARKS:
            if denied and method == "last_number":
                return Found(None, why_not=DENIED)
            answer = find(text)
            denied = denied or answer == DENIED
            if answer and answer != DENIED:
                if method in ("phrase", "last_number"):
                    answer = _with_half_of_day(text, answer)
                return Found(answer, method)
    if not text.strip() and response.strip():
        return Found(None, why_not="nothing after the thinking")
    if boxes.closed:
        return Found(None, why_not="the box is empty")
    return Found(None, why_not="no box" if mode == "boxed" else "no answer that stands alone")


_HOUR = re.compile(r"\d{1,2}(?::\d{2}){0,2}")
_HALF_OF_DAY = r"\s*(?:[ap]\.m\.|[ap]m\b)"


def _with_half_of_day(text: str, answer: str) -> str:
    """A time with the am or pm that stands after it: 8:00 alone is another time."""
    if not _HOUR.fullmatch(answer):
        return answer
    after = re.findall(rf"(?<![\d:]){re.escape(answer)}{_HALF_OF_DAY}", text, re.IGNORECASE)
    return after[-1] if after else answer


def sentence_of(response: str, answer: str) -> str:
    """The sentence in which an answer stands last; empty where it doesn't stand as it is."""
    before, found, after = after_thinking(response).rpartition(answer)
    if not found:
        return ""
    return _SENTENCE_ENDS.split(before)[-1] + answer + _SENTENCE_ENDS.split(after, maxsplit=1)[0]


_SENTENCE_ENDS = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_THOUGHT = r"(?:think|thinking|thought|thoughts|reasoning|seed:think)"
_THOUGHT_BEGINS = re.compile(
    rf"<{_THOUGHT}>|\[THINK\]|<\|begin_of_thought\|>|◁think▷", re.IGNORECASE
)
_THOUGHT_ENDS = re.compile(
    rf"</{_THOUGHT}>|\[/THINK\]|<\|end_of_thought\|>|◁/think▷|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)


def after_thinking(response: str) -> str:
    """The text after the last thought, without one that is begun and never ended.

    Thoughts stand in ``<think>`` tags, or in what other models write for them: ``<thinking>``,
    ``<reasoning>``, ``[THINK]``, ``<|begin_of_thought|>``, ``◁think▷``.
    """
    text = response
    if any(mark in text for mark in ("</", "<|", "[/", "◁")):  # most responses have none
        text = _THOUGHT_ENDS.split(text)[-1]
    if any(mark in text for mark in ("<", "[THINK]", "[think]", "◁")):
        text = _THOUGHT_BEGINS.split(text, maxsplit=1)[0]
    return text


def last_tag(text: str) -> str | None:
    """The content of the last complete ``<answer>`` tag; None where there is none."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    return text[start + len("<answer>") : end].strip() if start >= 0 else None


def _hashes(text: str) -> str | None:
    _, mark, tail = text.rpartition("####")
    return tail.strip().partition("\n")[0].strip() if mark else None


def _output_block(text: str) -> str | None:
    """The last line that a program printed, where the response runs code in fenced blocks."""
    _, mark, tail = text.rpartition("```output\n")
    block, end, _ = tail.partition("```")
    return block.strip().rpartition("\n")[2].strip() if mark and end else None


_MARKS: tuple[tuple[Method, Callable[[str], str | None]], ...] = (
    ("answer_tag", last_tag),
    ("phrase", phrase),
    ("hashes", _hashes),
    ("output_block", _output_block),
    ("last_number", last_number),
)
