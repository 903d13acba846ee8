"""Tokenise conversations by their model's own chat template, and mark what is learnt.

A conversation is rendered once and tokenised once, so that its ids are those that the model sees
in use. A trained turn's tokens are its words and its end-of-turn token; the header before them and
the line break after them are not learnt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.chat_spans import Chat, Rendered, Renderer
from llmpipe.algo.token_borders import Borders
from llmpipe.core.protocols import Drop

__all__ = ["Chat", "ChatTokenizer", "Encoded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Token ids and, for each, the trained turn that it is learnt in: arrays of shape (tokens,).

    ``turns`` counts the trained turns from 1, and has 0 where there is no loss. ``thoughtless``
    trained turns lost their thinking to the template; ``rewritten`` ones read otherwise here than
    where they end the conversation, so that training on them there is not the same.
    """

    input_ids: NDArray[np.int32]
    turns: NDArray[np.int32]
    thoughtless: int = 0
    rewritten: int = 0

    @property
    def loss(self) -> NDArray[np.bool_]:
        return self.turns > 0


class ChatTokenizer:
    """Tokenises conversations with a fast tokenizer of transformers that has a chat template."""

    def __init__(self, tokenizer: Any) -> None:
        self._renderer = Renderer(tokenizer)
        self._borders = Borders(tokenizer)

    def encode(self, chats: Iterable[Chat]) -> Iterator[Encoded | Drop]:
        """Tokenise conversations one by one, or say of each why it can't be.

        They are taken some hundreds ahead, and so many are held. The reasons are
        ``template_refuses`` (the template raises), ``nothing_asked`` (a trained turn comes first),
        ``template_rewrites_turns`` (the words of a turn are not all there, or changed, its thinking
        apart) and ``no_end_of_turn`` (no special token ends a trained turn, so that nothing would
        teach the model to stop).
        """
        to_tokenise, rendered = tee(map(self._renderer.render, chats))
        texts = ((r.text, r.spans) if isinstance(r, Rendered) else ("", ()) for r in to_tokenise)
        for tokens, r in zip(self._borders.tokenise(texts), rendered, strict=True):
            yield r if isinstance(r, Drop) else _mark(r, *tokens)


def _mark(
    rendered: Rendered,
    input_ids: NDArray[np.int32],
    trained: Sequence[slice],
) -> Encoded:
    turns = np.zeros(len(input_ids), dtype=np.int32)
    for number, tokens in enumerate(trained, start=1):
        turns[tokens] = number
    return Encoded(
        input_ids=input_ids,
        turns=turns,
        thoughtless=rendered.thoughtless,
        rewritten=rendered.rewritten,
    )
