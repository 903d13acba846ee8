"""Tokenise conversations by their model's own chat template, and mark what is learnt.

A conversation is rendered once and tokenised once, so that its ids are those that the model sees
in use. A trained turn's tokens are its words and its end-of-turn token; the header before them and
the line break after them are not learnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

    def encode(self, chats: Sequence[Chat]) -> list[Encoded | Drop]:
        """Tokenise conversations, or say of each why it can't be.

        The reasons are ``template_refuses`` (the template raises), ``nothing_asked`` (a trained
        turn comes first), ``template_rewrites_turns`` (the words of a turn are not all there, or
        changed, its thinking apart) and ``no_end_of_turn`` (no special token ends a trained turn,
        so that nothing would teach the model to stop).
        """
        rendered = [self._renderer.render(chat) for chat in chats]
        whole = [r for r in rendered if isinstance(r, Rendered)]
        tokens = self._borders.tokenise([r.text for r in whole], [r.spans for r in whole])
        return [r if isinstance(r, Drop) else _mark(r, *next(tokens)) for r in rendered]


def _mark(
    rendered: Rendered,
    input_ids: NDArray[np.int32],
    trained: Sequence[slice | NDArray[np.bool_]],
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
