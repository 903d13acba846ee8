"""Prompts with a tokenizer made here: words are tokens, and <s> is put before plain text."""

from __future__ import annotations

from typing import Any

import pytest

from llmpipe.algo.prompts import PromptError, Prompts

_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ raise_exception('no system turn here') }}{% endif %}"
    " {{ m.role }} {{ m.content }}{% endfor %}{% if add_generation_prompt %} assistant{% endif %}"
)


def _tokenizer(template: str | None) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "<unk>", "user", "assistant", "one", "two"]
    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    made = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", unk_token="<unk>")
    made.chat_template = template
    return made


def test_the_template_brings_the_special_tokens_and_none_is_added() -> None:
    prompts = Prompts(_tokenizer(_TEMPLATE), 100)
    ids = prompts.token_ids(
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": "two"},
        ]
    )
    assert ids == [0, 2, 4, 3, 5, 2, 5, 3]
    assert prompts.describe()["prompt"] == "chat template"
    assert len(prompts.describe()["chat_template_sha256"]) == 64


def test_a_base_model_gets_the_text_of_the_last_user_message() -> None:
    prompts = Prompts(_tokenizer(None), 100)
    ids = prompts.token_ids(
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": "two"},
        ]
    )
    assert ids == [0, 5]
    assert "no chat template" in prompts.describe()["prompt"]


def test_a_prompt_may_fill_all_of_the_context_but_one_token() -> None:
    message = [{"role": "user", "content": "one " * 7}]
    assert len(Prompts(_tokenizer(_TEMPLATE), 11).token_ids(message)) == 10
    with pytest.raises(PromptError, match=r"10 tokens.*context of 10"):
        Prompts(_tokenizer(_TEMPLATE), 10).token_ids(message)


def test_what_the_template_refuses_is_said() -> None:
    with pytest.raises(PromptError, match="no system turn here"):
        Prompts(_tokenizer(_TEMPLATE), 100).token_ids([{"role": "system", "content": "one"}])
