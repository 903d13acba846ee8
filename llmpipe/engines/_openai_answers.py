"""What a chat completion says, as an answer of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmpipe.core.records import FinishReason
from llmpipe.core.surrogates import without_halves

_FINISH: Mapping[str | None, FinishReason] = {"stop": "stop", "length": "length"}


def read_answer(completion: Any) -> dict[str, Any]:
    """The fields of a `Generation`, request and timing aside, from a chat completion.

    Raises:
        ValueError: it is none, or one that the server broke off.
    """
    try:
        if completion.get("error"):  # gateways send it with status 200
            raise ValueError(words(completion))
        choice = completion["choices"][0]
        reason = choice["finish_reason"]
        if reason == "abort":
            raise ValueError("the server broke the answer off")
        usage = completion.get("usage") or {}
        token_ids, logprobs = _tokens(choice)
        finish = _FINISH.get(reason, "error")
        return {
            "text": _text(choice["message"], finish),
            "finish_reason": finish,
            "prompt_tokens": _count(usage, "prompt_tokens"),
            "completion_tokens": _count(usage, "completion_tokens"),
            "token_ids": token_ids,
            "logprobs": logprobs,
            "error": without_halves(f"the server ended it: {reason}")
            if finish == "error"
            else None,
        }
    except (KeyError, IndexError, TypeError, AttributeError) as e:
        raise ValueError("it answers with something that is no chat completion") from e


def _text(message: Mapping[str, Any], finish: FinishReason) -> str:
    """The answer, with the thinking that a reasoning parser split off back in front of it.

    SGLang and DeepSeek call it ``reasoning_content``, vLLM and OpenRouter ``reasoning``. An answer
    cut off while it thinks stays open, as the model left it.
    """
    content = _said(message.get("content"))
    thinking = _said(message.get("reasoning_content") or message.get("reasoning"))
    if not thinking:
        return content
    if finish == "length" and not content:
        return f"<think>{thinking}"
    return f"<think>{thinking}</think>{content}"


def _said(content: Any) -> str:
    """What is said, by a text or by a list of parts that are texts; nothing of None.

    Raises:
        ValueError: it is something else, which no file of ours could hold.
    """
    if isinstance(content, list):
        content = "".join(part["text"] for part in content)
    if not isinstance(content, str | None):
        raise ValueError(f"what it answers is no text but of type {type(content).__name__}")
    return without_halves(content or "")


def _count(usage: Mapping[str, Any], name: str) -> int:
    """A count of tokens; 0 where the server gives none, or nonsense: the answer is worth more."""
    count = usage.get(name)
    return count if isinstance(count, int) and 0 <= count < 1 << 31 else 0


def _tokens(choice: Mapping[str, Any]) -> tuple[list[int] | None, list[float] | None]:
    """Ids and log-probabilities of the sampled tokens, as far as the server gives them."""
    entries = (choice.get("logprobs") or {}).get("content")
    logprobs = None if entries is None else [float(entry["logprob"]) for entry in entries]
    token_ids: list[int] | None = choice.get("token_ids")  # of vLLM
    if not all(isinstance(i, int) and 0 <= i < 1 << 31 for i in token_ids or ()):
        raise ValueError("it gives token ids that are none")
    if token_ids is not None and logprobs is not None and len(token_ids) != len(logprobs):
        raise ValueError(f"it gives {len(token_ids)} token ids with {len(logprobs)} logprobs")
    return token_ids, logprobs


def words(body: Any) -> str:
    """What an error's body says, in one line: ``{"error": {"message": ...}}`` or what there is."""
    said = body
    for name in ("error", "message"):
        if isinstance(said, Mapping) and said.get(name):
            said = said[name]
    return without_halves(" ".join(str(said).split()))
