"""Where the assistant's words lie in a conversation that a chat template has rendered.

Templates rewrite what they are given: they trim, leave out the thinking of earlier turns (Qwen3),
put the system's words elsewhere (DeepSeek-R1's distillations). So the words are not searched for.
The template is shown the same conversation with a mark in the place of each stretch of words, which
gives its outline: the template's own text, and where the words go. The real rendering must be that
outline with the words put in, to the last character, and then their places are known. An outline
depends on the roles and on where the ``<think>`` tags are, so a data set has few of them, and a
conversation costs one rendering.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from llmpipe.core.protocols import Drop
from llmpipe.core.records import Message, TrainMessage

_TAG = re.compile(r"(</?think>)")
# Private-use characters, which no template trims or asks about.
_MARK = re.compile("\ue000([0-9]+)\ue001")
_OUTLINES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What is to be tokenised. ``tools`` are JSON schemas, for templates that show them."""

    messages: Sequence[TrainMessage]
    tools: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A conversation as text.

    ``spans`` has a pair of characters (from, to) a trained turn: its words and its end-of-turn
    token. ``thoughtless`` trained turns lost some of their words to the template, ``rewritten``
    ones read otherwise here than where they end the conversation.
    """

    text: str
    spans: Sequence[tuple[int, int]]
    thoughtless: int
    rewritten: int


class _Turn(NamedTuple):
    """A message taken apart: ``None`` stands for words, a string for itself (a tag, a blank)."""

    role: str
    parts: tuple[str | None, ...]
    train: bool


@dataclass(frozen=True, slots=True)
class _Skeleton:
    """A rendering cut at the marks: ``literals[i]``, the words numbered ``order[i]``, and so on."""

    literals: tuple[str, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A trained turn in a skeleton: from its words at place ``first`` to those at place ``last``.

    ``lead`` characters of the literal before are its words too (an opening tag); its end-of-turn
    token lies within ``tail`` characters of the literal after.
    """

    first: int
    last: int
    lead: int
    tail: int


@dataclass(frozen=True, slots=True)
class _Outline:
    skeleton: _Skeleton
    places: tuple[_Place, ...]
    thoughtless: int
    rewritten: int


class Renderer:
    """Renders conversations with a tokenizer's chat template, and finds their trained turns.

    The words of a turn begin with the first of them that the template keeps, and what it puts
    before them is header: an empty block of thought, too, unless the words have one themselves.
    (Where a model is told not to think, the prompt ends with that block.)
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        special = {t.content for t in tokenizer.added_tokens_decoder.values() if t.special} - {""}
        longest_first = sorted(special, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._outline = functools.lru_cache(_OUTLINES)(self._outline_once)
        self._skeleton = functools.lru_cache(_OUTLINES)(self._skeleton_once)

    def render(self, chat: Chat) -> Rendered | Drop:
        """The text and the spans, or why there are none (as `ChatTokenizer.encode` says)."""
        from jinja2 import TemplateError

        messages = chat.messages
        if not messages or messages[0]["train"]:
            return Drop(reason="nothing_asked", detail="the first turn is the assistant's")
        tools = json.dumps(chat.tools) if chat.tools else None
        try:
            text = self._apply(
                [{"role": m["role"], "content": m["content"]} for m in messages], chat.tools
            )
        except TemplateError as e:
            return Drop(reason="template_refuses", detail=str(e))
        turns, words = _take_apart(messages)
        with_marks = self._fit(self._outline(turns, tools), text, words)
        if isinstance(with_marks, Rendered):
            return with_marks
        # The template asks what the others say (Qwen3: is it a tool's answer that a user gives?).
        # An outline of this conversation alone then, in which they say it.
        turns, words = _take_apart(messages, others=False)
        return self._fit(self._outline_once(turns, tools), text, words)

    def _fit(
        self, outline: _Outline | Drop, text: str, words: Sequence[tuple[int, str]]
    ) -> Rendered | Drop:
        if isinstance(outline, Drop):
            return outline
        found = _locate(text, outline.skeleton, [w for _, w in words])
        if isinstance(found, int):
            turn = next((words[n][0] for n in outline.skeleton.order[found:]), len(words))
            return Drop(
                reason="template_rewrites_turns", detail=f"the words of turn {turn} are changed"
            )
        return Rendered(
            text=text,
            spans=[(found[p.first][0] - p.lead, found[p.last][1] + p.tail) for p in outline.places],
            thoughtless=outline.thoughtless,
            rewritten=outline.rewritten,
        )

    def _apply(self, messages: Sequence[Message], tools: Any) -> str:
        text: str = self._tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        return text

    def _skeleton_once(self, turns: tuple[_Turn, ...], tools: str | None) -> _Skeleton:
        numbers = itertools.count()
        messages: list[Message] = [
            {
                "role": t.role,
                "content": "".join(
                    f"\ue000{next(numbers)}\ue001" if part is None else part for part in t.parts
                ),
            }
            for t in turns
        ]
        pieces = _MARK.split(self._apply(messages, json.loads(tools) if tools else None))
        return _Skeleton(tuple(pieces[0::2]), tuple(map(int, pieces[1::2])))

    def _outline_once(self, turns: tuple[_Turn, ...], tools: str | None) -> _Outline | Drop:
        from jinja2 import TemplateError

        try:
            whole = self._skeleton(turns, tools)
            places: list[_Place] = []
            thoughtless = rewritten = 0
            for i, turn in enumerate(turns):
                if not turn.train:
                    continue
                through = self._skeleton(turns[: i + 1], tools)
                place = self._place(turns, i, whole, through)
                if isinstance(place, Drop):
                    return place
                places.append(place)
                thoughtless += place.last - place.first + 1 < turn.parts.count(None)
                # The first of `through`'s literals, up to its last, which is the end of the turn.
                rewritten += (through.literals[:-1], through.order) != (
                    whole.literals[: place.last + 1],
                    whole.order[: place.last + 1],
                )
        except TemplateError as e:
            return Drop(reason="template_refuses", detail=str(e))
        return _Outline(whole, tuple(places), thoughtless, rewritten)

    def _place(
        self, turns: Sequence[_Turn], i: int, whole: _Skeleton, through: _Skeleton
    ) -> _Place | Drop:
        number = sum(t.parts.count(None) for t in turns[:i])
        mine = range(number, number + turns[i].parts.count(None))
        at = [place for place, n in enumerate(whole.order) if n in mine]
        kept = [whole.order[place] for place in at]
        # Words may be left out at the front only: what was thought, but not what was answered.
        if not kept or kept != list(mine)[-len(kept) :] or at != list(range(at[0], at[-1] + 1)):
            return Drop(reason="template_rewrites_turns", detail=f"turn {i} is not all there")
        after = _common(whole.literals[at[-1] + 1], through.literals[-1])
        stop = self._special.search(after) if through.order[-1:] == (mine[-1],) else None
        if stop is None:
            return Drop(
                reason="no_end_of_turn",
                detail="no special token of the tokenizer follows the assistant's words",
            )
        lead = _lead(turns[i].parts, len(mine) - len(kept), whole.literals[at[0]])
        return _Place(at[0], at[-1], lead, stop.end())


def _take_apart(
    messages: Sequence[TrainMessage], others: bool = True
) -> tuple[tuple[_Turn, ...], list[tuple[int, str]]]:
    """Turns, and their words in order, each with its turn's number.

    Without ``others``, what they say is no words, but stays as it is: only the assistant has words.
    """
    turns: list[_Turn] = []
    words: list[tuple[int, str]] = []
    for i, message in enumerate(messages):
        role, content = message["role"], message["content"]
        # Blanks stay as they are; an answer is a stretch of words even where it is empty.
        if role != "assistant":
            says = [content] if others and content and not content.isspace() else []
            shape: tuple[str | None, ...] = (None,) if says else (content,)
        elif "think>" not in content:
            says, shape = [content], (None,)
        else:
            *front, last = _TAG.split(content)
            marked = [n % 2 == 0 and bool(part.strip()) for n, part in enumerate(front)]
            says = [*itertools.compress(front, marked), last]
            pairs = zip(front, marked, strict=True)
            shape = (*(None if mark else part for part, mark in pairs if part), None)
        words += [(i, said) for said in says]
        turns.append(_Turn(role, shape, message["train"]))
    return tuple(turns), words


def _locate(text: str, skeleton: _Skeleton, words: Sequence[str]) -> list[tuple[int, int]] | int:
    """The characters (from, to) of the words at each place of ``skeleton`` that ``text`` is.

    Where it is not, the first place that doesn't fit.
    """
    literals = skeleton.literals
    if not text.startswith(literals[0]):
        return 0
    at = len(literals[0])
    found: list[tuple[int, int]] = []
    for n, literal in zip(skeleton.order, literals[1:], strict=True):
        for form in _forms(words[n]):
            end = at + len(form)
            if text.startswith(form, at) and text.startswith(literal, end):
                break
        else:
            return len(found)
        found.append((at, end))
        at = end + len(literal)
    return found if at == len(text) else len(found)


def _forms(words: str) -> Iterator[str]:
    """What templates make of words: most leave them, some trim them, or their line breaks."""
    yield words
    for chars in (None, "\n"):
        yield words.strip(chars)
        yield words.lstrip(chars)
        yield words.rstrip(chars)


def _common(a: str, b: str) -> str:
    """What both begin with."""
    pairs = zip(a, b, strict=False)
    return a[: sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))]


def _lead(parts: Sequence[str | None], cut: int, literal: str) -> int:
    """How many characters at the end of ``literal`` are a turn's own tags, its first ``cut`` words
    being left out.

    The tags must be there as the turn has them. A closing tag whose thought was left out is the
    template's: it puts an empty block in the place of what it leaves out.
    """
    words = [n for n, part in enumerate(parts) if part is None]
    start = tentative = len(literal)
    for part in reversed(parts[: words[cut]]):
        if part is None:
            return len(literal) - start
        if not part.strip():
            continue
        before = literal[:tentative].rstrip()
        if not before.endswith(part):
            return len(literal) - start
        tentative = len(before) - len(part)
        if part == "<think>":
            start = tentative
    return len(literal) - tentative
