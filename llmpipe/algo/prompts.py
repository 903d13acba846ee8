"""Conversations to the token ids that a model is given."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llmpipe.core.errors import UserError
from llmpipe.core.records import Message

# Samples of one problem follow each other, so few conversations are in use at a time.
_REMEMBERED = 64

# What a folder's tokens depend on. Weights lie beside these, and are no reason to pack again.
_TOKENIZER_FILES = (
    "tokenizer*.json",
    "chat_template*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "*.tiktoken",
)


class PromptError(ValueError):
    """A conversation that can't be put to this model, and why."""


def load_tokenizer(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The Hugging Face tokenizer of a model folder; nothing is fetched.

    Raises:
        UserError: the folder has none that can be read.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=trust_remote_code
        )
    except Exception as e:  # the errors of a damaged tokenizer have no common class
        raise UserError(
            f"the tokenizer in {folder} can't be read: {_first_line(e)}",
            "a model folder holds tokenizer.json and tokenizer_config.json: download it again",
        ) from e


def load_chat_tokenizer(folder: Path) -> Any:
    """A tokenizer that conversations can be tokenised and masked with.

    Raises:
        UserError: there is none that can be read, it gives no offsets, or it has no chat template.
    """
    tokenizer = load_tokenizer(folder)
    if not tokenizer.is_fast:
        raise UserError(
            f"the tokenizer in {folder} gives no offsets, so that loss can't be placed",
            "use a model with a tokenizer.json",
        )
    if not tokenizer.chat_template:
        raise UserError(
            f"the tokenizer in {folder} has no chat template",
            "use the instruct model's tokenizer, or put a chat_template.jinja in the folder",
        )
    return tokenizer


def tokenizer_files(folder: Path) -> list[Path]:
    """The files of a model folder that its tokens depend on.

    Raises:
        UserError: there are none.
    """
    files = {f for pattern in _TOKENIZER_FILES for f in folder.glob(pattern) if f.is_file()}
    if not files:
        raise UserError(
            f"{folder} has no tokenizer files"
            if folder.is_dir()
            else f"there is no tokenizer folder {folder}",
            "llmpipe download ORG/NAME gets a model with its tokenizer",
        )
    return sorted(files)


class Prompts:
    """Renders conversations with a chat template, the model's own or another, and tokenizes them.

    A base model without template is given the bare text: the turns, a blank line between them.

    Args:
        tokenizer: a Hugging Face tokenizer.
        context: tokens that a prompt and its answer may have together.
        template: a Jinja template in the place of the model's own; empty for the bare text.
        template_kwargs: what the template is given beside the messages, such as enable_thinking.
    """

    def __init__(
        self,
        tokenizer: Any,
        context: int,
        *,
        template: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._context = context
        self._kwargs = dict(template_kwargs or {})
        self._encode = functools.lru_cache(maxsize=_REMEMBERED)(self._encode_once)
        own = tokenizer.chat_template
        if isinstance(own, dict):  # several, by name
            own = own.get("default")
        self._template: str | None = own if template is None else template or None

    def token_ids(self, messages: Sequence[Message]) -> list[int]:
        """The prompt of one answer to ``messages``.

        Raises:
            PromptError: the template refuses the conversation, or no token is left for the answer.
        """
        ids = self._encode(tuple((m["role"], m["content"]) for m in messages))
        if len(ids) >= self._context:
            raise PromptError(
                f"the prompt has {len(ids)} tokens, which leaves no room for an answer "
                f"in a context of {self._context}"
            )
        return ids

    def describe(self) -> dict[str, Any]:
        """How prompts are made, for the manifest."""
        if self._template is None:
            return {"prompt": "bare text, without a chat template"}
        digest = hashlib.sha256(self._template.encode()).hexdigest()
        kwargs = {"chat_template_kwargs": self._kwargs} if self._kwargs else {}
        return {"prompt": "chat template", "chat_template_sha256": digest, **kwargs}

    def _encode_once(self, turns: tuple[tuple[str, str], ...]) -> list[int]:
        if self._template is None:
            if not any(role == "user" for role, _ in turns):
                raise PromptError("there is no user message")
            text = "\n\n".join(content for _, content in turns)
            return list(self._tokenizer(text, verbose=False)["input_ids"])
        try:
            text = self._tokenizer.apply_chat_template(
                [{"role": role, "content": content} for role, content in turns],
                chat_template=self._template,
                tokenize=False,
                add_generation_prompt=True,
                **self._kwargs,
            )
        except Exception as e:  # a template raises what it likes
            raise PromptError(
                f"the chat template refuses the conversation: {_first_line(e)}"
            ) from e
        # The template writes the special tokens out, the first one included.
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def _first_line(e: Exception) -> str:
    return str(e).strip().split("\n")[0] or type(e).__name__
