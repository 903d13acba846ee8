"""The chat templates of models in use, as TRL ships them, on the small model's tokenizer."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmpipe.algo.chat import Chat, ChatTokenizer, Encoded
from llmpipe.core.records import TrainMessage

CHATML = ["<|im_start|>", "<|im_end|>"]
LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
GEMMA = ["<bos>", "<start_of_turn>", "<end_of_turn>"]
DEEPSEEK = ["<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"]

# A template's file, its special tokens (the last ends a turn), and whether it keeps the thinking
# of an earlier turn and of the last one.
FAMILIES = {
    "qwen2_5": (CHATML, True, True),
    "qwen3": (CHATML, False, True),
    "llama3": (LLAMA, True, True),
    "gemma": (GEMMA, True, True),
    "deepseek_r1_distill": (DEEPSEEK, False, False),
}


def trl_template(name: str) -> str:
    found = importlib.util.find_spec("trl")
    file = Path(found.origin or "").parent / f"chat_templates/{name}.jinja" if found else None
    if file is None or not file.is_file():
        pytest.skip(f"no installed TRL has the template {name}")
    return file.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def smollm2(smol_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smol_model)


@pytest.fixture(scope="module")
def of_family(smollm2: Any) -> Callable[[str, Sequence[str]], Any]:
    def make(name: str, special: Sequence[str]) -> Any:
        changed = copy.deepcopy(smollm2)
        changed.chat_template = trl_template(name)
        changed.add_special_tokens(
            {"bos_token": special[0], "additional_special_tokens": list(special)}
        )
        return changed

    return make


def turns(*contents: str) -> list[TrainMessage]:
    return [
        {"role": "assistant" if i % 2 else "user", "content": c, "train": bool(i % 2)}
        for i, c in enumerate(contents)
    ]


def encode(tokenizer: Any, messages: list[TrainMessage]) -> Encoded:
    (encoded,) = ChatTokenizer(tokenizer).encode([Chat(messages=messages)])
    assert isinstance(encoded, Encoded), encoded
    wanted = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False)
    assert encoded.input_ids.tolist() == wanted
    return encoded


def learnt(tokenizer: Any, encoded: Encoded) -> list[str]:
    return [
        tokenizer.decode(encoded.input_ids[encoded.turns == turn])
        for turn in range(1, encoded.turns.max() + 1)
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_words_and_end_token_are_learnt_and_nothing_else(family: str, of_family: Any) -> None:
    special, keeps_earlier, keeps_last = FAMILIES[family]
    tokenizer = of_family(family, special)
    end = special[-1]
    encoded = encode(tokenizer, turns("What is 1+1?", "It is 2.", "And 2+2?", "4,\nof course."))
    assert learnt(tokenizer, encoded) == [f"It is 2.{end}", f"4,\nof course.{end}"]
    assert encoded.thoughtless == 0

    thought = turns("a", "<think>\nhm\n</think>\n\none", "b", "<think>\nso\n</think>\n\ntwo")
    encoded = encode(tokenizer, thought)
    rest = "\n\n" if family == "deepseek_r1_distill" else ""  # it leaves the line breaks there
    assert learnt(tokenizer, encoded) == [
        f"<think>\nhm\n</think>\n\none{end}" if keeps_earlier else f"{rest}one{end}",
        f"<think>\nso\n</think>\n\ntwo{end}" if keeps_last else f"{rest}two{end}",
    ]
    assert encoded.thoughtless == 2 - keeps_earlier - keeps_last
    # Where the last turn's thoughts are left out, too, an earlier turn reads as if it were last.
    assert encoded.rewritten == (keeps_last and not keeps_earlier)


def test_smollm2s_own_template_adds_a_system_turn(smollm2: Any) -> None:
    encoded = encode(smollm2, turns("a", "one", "b", "two"))
    assert learnt(smollm2, encoded) == ["one<|im_end|>", "two<|im_end|>"]
    assert smollm2.decode(encoded.input_ids).startswith("<|im_start|>system\n")
    assert encoded.rewritten == 0


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        # The empty block that Qwen3 puts before an answer without thoughts is header.
        ("two", "two"),
        ("<think>\n\n</think>\n\ntwo", "<think>\n\n</think>\n\ntwo"),
        ("<think></think>two", "<think>\n\n</think>\n\ntwo"),
        # Its line breaks about the thoughts are the template's.
        ("<think>so</think>two\n", "<think>\nso\n</think>\n\ntwo\n"),
        # What continues a prompt that ends with the opening tag.
        ("so\n</think>\n\ntwo", "so\n</think>\n\ntwo"),
        # What is said before the thoughts is left out.
        ("So:<think>so</think>two", "<think>\nso\n</think>\n\ntwo"),
    ],
)
def test_what_qwen3_makes_of_the_last_turns_words(words: str, wanted: str, of_family: Any) -> None:
    tokenizer = of_family("qwen3", CHATML)
    messages = turns("a", "one", "b", words)
    encoded = encode(tokenizer, messages)
    assert learnt(tokenizer, encoded) == ["one<|im_end|>", f"{wanted}<|im_end|>"]
    # Where turn 1 ends the conversation, the block is there, and here it is not.
    assert encoded.rewritten == 1


def test_qwen3_keeps_the_thoughts_before_a_tools_answer(of_family: Any) -> None:
    tokenizer = of_family("qwen3", CHATML)
    answer = "<tool_response>4</tool_response>"
    encoded = encode(tokenizer, turns("2+2?", "<think>\nhm\n</think>\n\ncalc", answer, "It is 4."))
    assert learnt(tokenizer, encoded) == [
        "<think>\nhm\n</think>\n\ncalc<|im_end|>",
        "It is 4.<|im_end|>",
    ]
    assert encoded.thoughtless == encoded.rewritten == 0


def test_words_left_out_after_the_first_are_no_turn_to_learn(of_family: Any) -> None:
    messages = turns("a", "<think>a</think>b</think>c")
    (drop,) = ChatTokenizer(of_family("qwen3", CHATML)).encode([Chat(messages=messages)])
    assert not isinstance(drop, Encoded)
    assert (drop.reason, drop.detail) == ("template_rewrites_turns", "turn 1 is not all there")


def test_gemma_refuses_a_system_turn(of_family: Any) -> None:
    tokenizer = of_family("gemma", GEMMA)
    system: TrainMessage = {"role": "system", "content": "Be brief.", "train": False}
    (drop,) = ChatTokenizer(tokenizer).encode([Chat(messages=[system, *turns("a", "b")])])
    assert not isinstance(drop, Encoded)
    assert (drop.reason, drop.detail) == ("template_refuses", "System role not supported")


def test_the_distillations_put_the_system_turn_first_without_a_header(of_family: Any) -> None:
    tokenizer = of_family("deepseek_r1_distill", DEEPSEEK)
    system: TrainMessage = {"role": "system", "content": "Be brief.", "train": False}
    encoded = encode(tokenizer, [system, *turns("a", "b")])
    assert tokenizer.decode(encoded.input_ids).startswith(f"{DEEPSEEK[0]}Be brief.{DEEPSEEK[1]}a")
    assert learnt(tokenizer, encoded) == [f"b{DEEPSEEK[-1]}"]


def test_qwen2_5s_mask_is_trls_own_without_the_line_breaks_around_it(of_family: Any) -> None:
    tokenizer = of_family("qwen2_5", CHATML)
    messages = turns(
        "What is 1+1?", "It is 2.", "And 2+2?", "<think>\nhm\n</think>\n\n4, of course."
    )
    encoded = encode(tokenizer, messages)
    theirs = tokenizer.apply_chat_template(
        messages,
        chat_template=trl_template("qwen2_5_training"),
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    assert theirs["input_ids"] == encoded.input_ids.tolist()
    mask = np.array(theirs["assistant_masks"])
    edges = np.flatnonzero(np.diff(mask, prepend=0, append=0))
    for first, end in edges.reshape(-1, 2):
        # The header's line break, and the one after the end-of-turn token.
        assert [tokenizer.decode([encoded.input_ids[i]]) for i in (first, end - 1)] == ["\n", "\n"]
        mask[[first, end - 1]] = 0
    assert encoded.loss.astype(int).tolist() == mask.tolist()
