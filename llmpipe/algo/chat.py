"""Tokenise conversations by their model's own chat template, and mark what is learnt.

A conversation is rendered once and tokenised once, so that its ids are those that the model sees
in use. Where the assistant's words lie is found by rendering the turns before them: each such text
must be the beginning of the whole. A trained turn's tokens are its words and its end-of-turn token;
the header before them and the line break after them are not learnt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmpipe.core.protocols import Drop
from llmpipe.core.records import Message, TrainMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What is to be tokenised. ``tools`` are JSON schemas, for templates that show them."""

    messages: Sequence[TrainMessage]
    tools: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Token ids and, for each, whether it carries loss: two arrays of shape (tokens,)."""

    input_ids: NDArray[np.int32]
    loss: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Turn:
    """A trained turn in the rendered text, in characters.

    Its words begin at ``start`` and end at ``words_end``; its end-of-turn token follows before
    ``end``, where the next turn begins.
    """

    start: int
    words_end: int
    end: int


def encode(tokenizer: Any, chats: Sequence[Chat]) -> list[Encoded | Drop]:
    """Tokenise conversations, or say of each why it can't be.

    Args:
        tokenizer: a fast tokenizer of transformers with a chat template.

    The reasons are ``template_refuses`` (the template raises), ``nothing_asked`` (a trained turn
    comes first), ``template_rewrites_turns`` (a turn reads otherwise in the whole than when the
    model wrote it) and ``no_end_of_turn`` (no special token ends a trained turn, so that nothing
    would teach the model to stop). What a template adds between header and words (an empty block
    of thought) is learnt: in use it is the model that writes it.
    """
    rendered = [_render(tokenizer, chat) for chat in chats]
    texts = [r[0] for r in rendered if not isinstance(r, Drop)]
    if not texts:
        return [r for r in rendered if isinstance(r, Drop)]
    special = [i for i, token in tokenizer.added_tokens_decoder.items() if token.special]
    # A text from a chat template has its special tokens already. Long ones are the caller's affair.
    tokens = tokenizer(
        texts,
        add_special_tokens=False,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    encodings = zip(tokens["input_ids"], tokens["offset_mapping"], strict=True)
    return [r if isinstance(r, Drop) else _mark(r[1], *next(encodings), special) for r in rendered]


def _render(tokenizer: Any, chat: Chat) -> tuple[str, list[Turn]] | Drop:
    """The whole conversation as text, and where its trained turns lie."""
    from jinja2 import TemplateError

    messages: list[Message] = [{"role": m["role"], "content": m["content"]} for m in chat.messages]

    def render(count: int, *, header: bool = False) -> str:
        text: str = tokenizer.apply_chat_template(
            messages[:count], tools=chat.tools, tokenize=False, add_generation_prompt=header
        )
        return text

    turns: list[Turn] = []
    try:
        whole = render(len(messages))
        for i, message in enumerate(chat.messages):
            if not message["train"]:
                continue
            if i == 0:
                return Drop(reason="nothing_asked", detail="the first turn is the assistant's")
            before = render(i, header=True)
            through = render(i + 1) if i + 1 < len(messages) else whole
            if not (whole.startswith(before) and whole.startswith(through)):
                return Drop(
                    reason="template_rewrites_turns",
                    detail=f"turn {i} does not follow the same text in the whole conversation",
                )
            words = message["content"].strip()  # some templates strip it
            found = whole.find(words, len(before), len(through))
            if found < 0:
                return Drop(
                    reason="template_rewrites_turns", detail=f"the words of turn {i} are changed"
                )
            turns.append(Turn(len(before), found + len(words), len(through)))
    except TemplateError as e:
        return Drop(reason="template_refuses", detail=str(e))
    return whole, turns


def _mark(
    turns: Iterable[Turn],
    input_ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    special: Sequence[int],
) -> Encoded | Drop:
    ids = np.array(input_ids, dtype=np.int32)
    flat = np.fromiter(chain.from_iterable(offsets), dtype=np.int64, count=2 * len(offsets))
    starts, ends = flat[0::2], flat[1::2]
    is_special = np.isin(ids, special)
    loss = np.zeros(len(ids), dtype=np.bool_)
    for turn in turns:
        stops = np.flatnonzero(is_special & (starts >= turn.words_end) & (ends <= turn.end))
        if not len(stops):
            return Drop(
                reason="no_end_of_turn",
                detail="no special token of the tokenizer follows the assistant's words",
            )
        # A token that holds a piece of the header too (a line break of both) is none of the words;
        # one of no width at the start is white space of the header, as some tokenizers count it.
        loss |= (starts >= turn.start) & (ends > turn.start) & (ends <= ends[stops[0]])
    return Encoded(input_ids=ids, loss=loss)
