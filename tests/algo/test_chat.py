from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmpipe.algo.chat import Chat, ChatTokenizer, Encoded
from llmpipe.core.protocols import Drop
from llmpipe.core.records import TrainMessage

CHATML = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

LLAMA = """\
{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content | trim }}<|eot_id|>{% endfor %}\
{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""

# The words of earlier answers are cut at the end of their thoughts, as reasoning models have it.
FORGETFUL = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}\
{% else %}{{ m.content }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

THOUGHTFUL = CHATML.replace(
    "{{ m.content }}",
    "{% if m.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}{{ m.content }}",
)


@pytest.fixture(scope="module")
def tokenizer(smol_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smol_model)


def templated(tokenizer: Any, template: str) -> Any:
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = template
    return changed


@pytest.fixture(scope="module")
def llama(tokenizer: Any) -> Any:
    changed = templated(tokenizer, LLAMA)
    special = ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    changed.add_special_tokens({"additional_special_tokens": special})
    return changed


def turns(*contents: str, untrained: tuple[int, ...] = ()) -> list[TrainMessage]:
    """User and assistant in turn; the assistant's turns carry loss but for those named."""
    return [
        {
            "role": "assistant" if i % 2 else "user",
            "content": content,
            "train": bool(i % 2) and i not in untrained,
        }
        for i, content in enumerate(contents)
    ]


def encode(tokenizer: Any, chats: Sequence[Chat]) -> list[Encoded | Drop]:
    return list(ChatTokenizer(tokenizer).encode(chats))


def one(tokenizer: Any, messages: list[TrainMessage], **rest: Any) -> Encoded:
    (encoded,) = encode(tokenizer, [Chat(messages=messages, **rest)])
    assert isinstance(encoded, Encoded), encoded
    return encoded


def learnt(tokenizer: Any, encoded: Encoded) -> list[str]:
    """The text of each trained turn's tokens, which lie side by side."""
    texts = []
    for turn in range(1, encoded.turns.max(initial=0) + 1):
        places = np.flatnonzero(encoded.turns == turn)
        assert places[-1] - places[0] + 1 == len(places)
        ids = encoded.input_ids[places]
        texts.append(tokenizer.decode(ids, clean_up_tokenization_spaces=False))
    assert encoded.loss.tolist() == (encoded.turns > 0).tolist()
    return texts


def template_ids(tokenizer: Any, messages: list[TrainMessage]) -> list[int]:
    return list(tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False))


def test_the_answers_and_their_end_tokens_are_learnt(tokenizer: Any) -> None:
    messages = turns("What is 1+1?", "It is 2.", "And 2+2?", "4,\nof course.")
    encoded = one(tokenizer, messages)
    assert encoded.input_ids.tolist() == template_ids(tokenizer, messages)
    assert learnt(tokenizer, encoded) == ["It is 2.<|im_end|>", "4,\nof course.<|im_end|>"]


def test_turns_without_loss_stay_out(tokenizer: Any) -> None:
    encoded = one(tokenizer, turns("a", "first", "b", "second", untrained=(1,)))
    assert learnt(tokenizer, encoded) == ["second<|im_end|>"]


def test_a_template_that_trims_and_has_its_own_end_token(llama: Any) -> None:
    messages = turns("Hi", "  Hello there\n", "Bye", "So long")
    encoded = one(llama, messages)
    assert encoded.input_ids.tolist() == template_ids(llama, messages)
    assert learnt(llama, encoded) == ["Hello there<|eot_id|>", "So long<|eot_id|>"]


def test_white_space_at_the_edges_is_the_answers_own(tokenizer: Any) -> None:
    encoded = one(tokenizer, turns("q", " yes \n"))
    assert learnt(tokenizer, encoded) == [" yes \n<|im_end|>"]


def test_a_token_across_the_header_and_the_answer_is_not_learnt(tokenizer: Any) -> None:
    messages = turns("q", "\n yes")  # one token holds both line breaks
    encoded = one(tokenizer, messages)
    assert encoded.input_ids.tolist() == template_ids(tokenizer, messages)
    assert learnt(tokenizer, encoded) == [" yes<|im_end|>"]


def test_an_end_token_within_the_answer_does_not_end_it(tokenizer: Any) -> None:
    encoded = one(tokenizer, turns("q", "ChatML writes <|im_end|> after a turn."))
    assert learnt(tokenizer, encoded) == ["ChatML writes <|im_end|> after a turn.<|im_end|>"]


def test_what_the_template_puts_before_the_words_is_not_learnt(tokenizer: Any) -> None:
    thoughtful = templated(tokenizer, THOUGHTFUL)
    encoded = one(thoughtful, turns("q", "yes"))
    assert encoded.input_ids.tolist() == template_ids(thoughtful, turns("q", "yes"))
    assert learnt(thoughtful, encoded) == ["yes<|im_end|>"]


def test_tools_reach_the_template(tokenizer: Any) -> None:
    shown = templated(tokenizer, "{% if tools %}{{ tools[0].name }}{% endif %}" + CHATML)
    encoded = one(shown, turns("q", "a"), tools=[{"name": "calculator"}])
    assert tokenizer.decode(encoded.input_ids).startswith("calculator<|im_start|>user")


def test_a_template_that_forgets_thoughts_leaves_the_answers_to_be_learnt(tokenizer: Any) -> None:
    forgetful = templated(tokenizer, FORGETFUL)
    messages = turns("a", "<think>hm</think>one", "b", "<think>so</think>two")
    encoded = one(forgetful, messages)
    assert encoded.input_ids.tolist() == template_ids(forgetful, messages)
    assert learnt(forgetful, encoded) == ["one<|im_end|>", "<think>so</think>two<|im_end|>"]
    assert (encoded.thoughtless, encoded.rewritten) == (1, 1)
    # One turn is never an earlier one.
    alone = one(forgetful, messages[:2])
    assert learnt(forgetful, alone) == ["<think>hm</think>one<|im_end|>"]
    assert (alone.thoughtless, alone.rewritten) == (0, 0)


def test_a_template_that_changes_the_words_is_found_out(tokenizer: Any) -> None:
    loud = templated(tokenizer, CHATML.replace("m.content", "m.content | upper"))
    (drop,) = encode(loud, [Chat(messages=turns("a", "b"))])
    assert isinstance(drop, Drop)
    assert (drop.reason, drop.detail) == (
        "template_rewrites_turns",
        "the words of turn 1 are changed",
    )


def test_a_template_without_an_end_token_teaches_no_end(tokenizer: Any) -> None:
    endless = templated(tokenizer, CHATML.replace("<|im_end|>", ""))
    (drop,) = encode(endless, [Chat(messages=turns("a", "b"))])
    assert isinstance(drop, Drop)
    assert drop.reason == "no_end_of_turn"


def test_a_refusal_of_the_template_is_passed_on_and_the_others_are_kept(tokenizer: Any) -> None:
    picky = templated(
        tokenizer,
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
        + CHATML,
    )
    system: TrainMessage = {"role": "system", "content": "Be brief.", "train": False}
    refused, kept = encode(
        picky, [Chat(messages=[system, *turns("a", "b")]), Chat(messages=turns("c", "d"))]
    )
    assert refused == Drop(reason="template_refuses", detail="no system here")
    assert isinstance(kept, Encoded)
    assert learnt(picky, kept) == ["d<|im_end|>"]


def test_an_answer_to_nothing_is_dropped(tokenizer: Any) -> None:
    answer: TrainMessage = {"role": "assistant", "content": "Hi", "train": True}
    (drop,) = encode(tokenizer, [Chat(messages=[answer])])
    assert isinstance(drop, Drop)
    assert drop.reason == "nothing_asked"


def test_words_are_found_where_they_are_said_and_not_where_they_are_repeated(
    tokenizer: Any,
) -> None:
    messages = turns("yes", "yes", "say: assistant\nyes", "yes")
    assert learnt(tokenizer, one(tokenizer, messages)) == ["yes<|im_end|>"] * 2
    starts = [int(np.flatnonzero(one(tokenizer, messages).turns == t)[0]) for t in (1, 2)]
    through = tokenizer.apply_chat_template(messages[:3], tokenize=True, return_dict=False)
    header = tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False)
    assert starts[1] == len(through) + len(header)


def test_an_empty_turn_and_words_of_the_templates_own_are_kept_apart(tokenizer: Any) -> None:
    messages = turns("", "<|im_end|>\n<|im_start|>user\n", "\ue0000\ue001", "")
    encoded = one(tokenizer, messages)
    assert encoded.input_ids.tolist() == template_ids(tokenizer, messages)
    assert learnt(tokenizer, encoded) == [
        "<|im_end|>\n<|im_start|>user\n<|im_end|>",
        "<|im_end|>",
    ]


def test_a_template_that_looks_at_what_a_user_says(tokenizer: Any) -> None:
    polite = "{% if 'please' in messages[0].content %}Be kind.{% endif %}" + CHATML
    asked = turns("Now, please", "Yes.", "now", "No.")
    for messages in (asked, turns("Now!", "Yes.")):
        encoded = one(templated(tokenizer, polite), messages)
        assert encoded.input_ids.tolist() == template_ids(templated(tokenizer, polite), messages)
        answers = [m["content"] + "<|im_end|>" for m in messages if m["train"]]
        assert learnt(tokenizer, encoded) == answers


def test_an_end_token_of_the_conversation_is_none_of_an_earlier_turn(tokenizer: Any) -> None:
    once = "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n{% endfor %}<|endoftext|>"
    ends = templated(tokenizer, once)
    assert learnt(ends, one(ends, turns("a", "b"))) == ["b\n<|endoftext|>"]
    (drop,) = encode(ends, [Chat(messages=turns("a", "b", "c", "d"))])
    assert isinstance(drop, Drop)
    assert drop.reason == "no_end_of_turn"


def test_a_conversation_without_turns_is_dropped(tokenizer: Any) -> None:
    (drop,) = encode(tokenizer, [Chat(messages=[])])
    assert isinstance(drop, Drop)
    assert drop.reason == "nothing_asked"


def test_what_can_not_be_encoded_keeps_its_place_in_a_stream(tokenizer: Any) -> None:
    made = 0

    def chats() -> Iterator[Chat]:
        nonlocal made
        for made in range(1, 2001):
            said = turns("q", f"answer {made}")
            yield Chat(messages=said[1:] if made % 3 == 0 else said)

    coming = ChatTokenizer(tokenizer).encode(chats())
    for number, encoded in enumerate(coming, start=1):
        if number == 1:
            assert made < 1000  # few are held at a time
        assert isinstance(encoded, Drop) == (number % 3 == 0)
        if isinstance(encoded, Encoded):
            assert learnt(tokenizer, encoded) == [f"answer {number}<|im_end|>"]
    assert made == number == 2000


def test_nothing_makes_nothing(tokenizer: Any) -> None:
    assert encode(tokenizer, []) == []


words = st.text(
    st.characters(max_codepoint=0x1FAFF, exclude_categories=["Cc", "Cs"]), min_size=1
).filter(str.strip)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(words, min_size=2, max_size=6).filter(lambda c: len(c) % 2 == 0))
def test_any_text_is_learnt_word_for_word(tokenizer: Any, contents: list[str]) -> None:
    messages = turns(*contents)
    encoded = one(tokenizer, messages)
    assert encoded.input_ids.tolist() == template_ids(tokenizer, messages)
    for answer, got in zip(contents[1::2], learnt(tokenizer, encoded), strict=True):
        assert got.lstrip() == f"{answer}<|im_end|>".lstrip()
        # White space at its start may be of one token with the header's line break.
        assert got == f"{answer}<|im_end|>" or answer[0].isspace()
