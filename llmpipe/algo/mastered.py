"""Dynamic masking of well-mastered positive tokens, as in UloRL (arXiv 2507.19766).

A token of a right answer is well mastered where the model gave it a probability of at least a
threshold, such as 0.99. Training on these makes the entropy of a model collapse, so they get no
loss while its mean over tokens is under a target; else they are learnt as all others.

The entropy is estimated by the mean of -log p over the sampled tokens, in nats. In expectation that
is the entropy where answers were sampled at temperature 1 and top-p 1; at a lower temperature or
top-p, which prefer likely tokens, it is less. vLLM's log-probabilities are the model's own, before
temperature and top-p, unless its ``logprobs_mode`` says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from llmpipe.algo.chat import Chat, ChatTokenizer, Encoded
from llmpipe.core.artifact import Artifact
from llmpipe.core.errors import UserError
from llmpipe.core.protocols import Drop
from llmpipe.core.records import Conversation

_ABOVE_ONE = 1e-3  # of a log-probability: more than rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """How a conversation's last turn was sampled: after how many tokens, which ones, and the
    natural logarithm of each one's probability."""

    prompt_tokens: int
    token_ids: Sequence[int]
    logprobs: Sequence[float]

    def mastered(self, threshold: float) -> NDArray[np.bool_]:
        """Which tokens had a probability of at least ``threshold``."""
        return np.asarray(self.logprobs, np.float64) >= math.log(threshold)


def mean_entropy(rollouts: Artifact) -> float:
    """The estimated entropy of the rollouts, in nats a token.

    Raises:
        UserError: none of them has log-probabilities, or these are something else.
    """
    total, tokens = 0.0, 0
    for batch in rollouts.batches(["logprobs"]):
        values = batch.column(0).flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        if len(values) and values.max() > _ABOVE_ONE:
            raise UserError(
                f"{rollouts.path} has logprobs over 0, which are no log-probabilities",
                "sample with --engine-arg logprobs_mode=raw_logprobs",
            )
        total -= float(values.sum())
        tokens += len(values)
    if not tokens:
        raise UserError(
            f"{rollouts.path} has no log-probabilities of its tokens",
            "llmpipe rollout PROBLEMS -o OUT --model M --logprobs keeps them",
        )
    return total / tokens


def mask_mastered(
    tokenizer: ChatTokenizer,
    conversations: Sequence[tuple[Conversation, Sampled]],
    threshold: float,
) -> list[Conversation | Drop]:
    """Conversations with their tokens, the well-mastered ones of the last turn without loss.

    The tokens are those that are trained on where nothing is masked. A conversation can't be masked
    whose tokens are not those that were sampled: ``prompt_differs`` (another number of tokens
    before the answer), ``tokens_differ`` (the answer's text is tokenised otherwise). One that is
    ``all_mastered`` has nothing left to learn; the other reasons are `ChatTokenizer.encode`'s.
    ``threshold`` is the least probability of a well-mastered token.
    """
    encoded = tokenizer.encode([Chat(messages=c.messages) for c, _ in conversations])
    return [
        tokens if isinstance(tokens, Drop) else _masked(conversation, tokens, how, threshold)
        for (conversation, how), tokens in zip(conversations, encoded, strict=True)
    ]


def _masked(
    conversation: Conversation, tokens: Encoded, how: Sampled, threshold: float
) -> Conversation | Drop:
    last = np.flatnonzero(tokens.turns == tokens.turns.max())
    start, answer = int(last[0]), tokens.input_ids[last]
    if start != how.prompt_tokens:
        return Drop(
            reason="prompt_differs",
            detail=f"{start} tokens before the answer, {how.prompt_tokens} when it was sampled",
        )
    ids, count = np.asarray(how.token_ids, np.int32), len(how.token_ids)
    # Where sampling ended by a stop string, the end-of-turn token comes from the template alone.
    same = count in (len(answer), len(answer) - 1) and np.array_equal(answer[:count], ids)
    if not same or count != len(how.logprobs):
        shared = min(len(answer), count)
        first = next(iter(np.flatnonzero(answer[:shared] != ids[:shared])), shared)
        return Drop(reason="tokens_differ", detail=f"from token {first} of the answer")
    loss = tokens.loss.copy()
    loss[last[:count]] &= ~how.mastered(threshold)
    if not loss.any():
        return Drop(reason="all_mastered", detail=f"{len(answer)} tokens")
    return replace(
        conversation,
        token_ids=tokens.input_ids.tolist(),
        loss_mask=loss.astype(np.int8).tolist(),
    )
