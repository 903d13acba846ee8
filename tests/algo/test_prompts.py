"""Prompts with a tokenizer made here: words are tokens, and <s> is put before plain text."""

from __future__ import annotations

import hashlib
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


@pytest.mark.parametrize(("own", "given"), [(None, None), (_TEMPLATE, "")])
def test_without_a_template_a_model_gets_all_turns_as_bare_text(
    own: str | None, given: str | None
) -> None:
    prompts = Prompts(_tokenizer(own), 100, template=given)
    ids = prompts.token_ids(
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "one"},
            {"role": "user", "content": "two"},
        ]
    )
    assert ids == [0, 4, 4, 5]  # worked examples are turns before the last
    assert prompts.describe() == {"prompt": "bare text, without a chat template"}


def test_another_template_takes_the_place_of_the_models_own() -> None:
    template = (
        "{% for m in messages %}{{ m.content }}{% endfor %}{% if think %} assistant{% endif %}"
    )
    ask = [{"role": "user", "content": "one"}]

    plain = Prompts(_tokenizer(_TEMPLATE), 100, template=template)
    thinking = Prompts(
        _tokenizer(_TEMPLATE), 100, template=template, template_kwargs={"think": True}
    )

    assert plain.token_ids(ask) == [4]
    assert thinking.token_ids(ask) == [4, 3]
    assert plain.describe()["chat_template_sha256"] == hashlib.sha256(template.encode()).hexdigest()
    assert thinking.describe()["chat_template_kwargs"] == {"think": True}


def test_a_prompt_may_fill_all_of_the_context_but_one_token() -> None:
    message = [{"role": "user", "content": "one " * 7}]
    assert len(Prompts(_tokenizer(_TEMPLATE), 11).token_ids(message)) == 10
    with pytest.raises(PromptError, match=r"10 tokens.*context of 10"):
        Prompts(_tokenizer(_TEMPLATE), 10).token_ids(message)


def test_what_the_template_refuses_is_said() -> None:
    with pytest.raises(PromptError, match="no system turn here"):
        Prompts(_tokenizer(_TEMPLATE), 100).token_ids([{"role": "system", "content": "one"}])
