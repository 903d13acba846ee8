from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmpipe.algo.token_borders import Borders


@pytest.fixture(scope="module")
def byte_level(smol_model: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smol_model)


@pytest.fixture(scope="module")
def with_nfc(byte_level: Any) -> Any:
    """As Qwen2.5's is."""
    from tokenizers import normalizers

    changed = copy.deepcopy(byte_level)
    changed.backend_tokenizer.normalizer = normalizers.NFC()
    return changed


@pytest.fixture(scope="module")
def with_prefix_space(byte_level: Any) -> Any:
    """Its tokens have a byte that the text has not."""
    from tokenizers import pre_tokenizers

    changed = copy.deepcopy(byte_level)
    changed.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return changed


@pytest.fixture(scope="module")
def with_trimmed_offsets(with_prefix_space: Any) -> Any:
    """As Llama 3's are: white space is not counted, so that a token of it alone has no width."""
    from tokenizers import processors

    changed = copy.deepcopy(with_prefix_space)
    changed.backend_tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return changed


@pytest.fixture(scope="module")
def sentencepiece() -> Any:
    """As Llama 2's and Gemma's are: spaces as a sign, bytes for characters it does not know."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=[
            "<unk>",
            "<|im_start|>",
            "<|im_end|>",
            *(f"<0x{i:02X}>" for i in range(256)),
        ],
        show_progress=False,
    )
    backend.train_from_iterator(["so they say, and they say so once more"] * 20, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend)


BY_OFFSETS = ["with_prefix_space", "with_trimmed_offsets", "sentencepiece"]
KINDS = ["byte_level", "with_nfc", *BY_OFFSETS]

texts = st.lists(
    st.one_of(
        st.text(st.characters(max_codepoint=0x1FAFF, exclude_categories=["Cs"]), max_size=12),
        st.sampled_from(["<|im_start|>", "<|im_end|>", "\n", " so", "é", "  ", "🦊"]),
    ),
    max_size=12,
).map("".join)


def _span(draw: random.Random, size: int) -> tuple[int, int]:
    start, end = sorted(draw.choices(range(size + 1), k=2))
    return start, end


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(texts, min_size=1, max_size=4), st.integers(0, 2**32))
def test_tokens_lie_where_their_offsets_say(
    kind: str, request: pytest.FixtureRequest, texts: list[str], seed: int
) -> None:
    tokenizer = request.getfixturevalue(kind)
    draw = random.Random(seed)
    spans = [[_span(draw, len(text)) for _ in range(3)] for text in texts]
    got = list(Borders(tokenizer).tokenise(zip(texts, spans, strict=True)))
    for text, wanted, (ids, found) in zip(texts, spans, got, strict=True):
        encoding = tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
        assert ids.tolist() == tokenizer(text, add_special_tokens=False)["input_ids"]
        for (start, end), tokens in zip(wanted, found, strict=True):
            inside = np.zeros(len(ids), dtype=bool)
            inside[tokens] = True
            if kind in BY_OFFSETS:
                starts, ends = np.array(encoding.offsets, int).reshape(-1, 2).T
                all_of_them = (starts >= start) & (ends > start) & (ends <= end)
                assert inside.tolist() == all_of_them.tolist()
            for i, (a, b) in enumerate(encoding.offsets):
                # Offsets count a character's bytes as the whole of it: only then do they differ.
                if start <= a < b <= end and text[a:b].isascii():
                    assert inside[i]
                if inside[i]:
                    assert start <= a <= b <= end


def test_ids_alone_tell_the_borders_of_a_byte_level_tokenizer(byte_level: Any) -> None:
    text = "<|im_start|>user\nÜber 🦊: ½ naïve?<|im_end|>"
    start, end = text.index("Über"), text.index("<|im_end|>")
    ((ids, (tokens,)),) = Borders(byte_level).tokenise([(text, [(start, end)])])
    assert isinstance(tokens, slice)
    assert byte_level.decode(ids[tokens]) == "Über 🦊: ½ naïve?"


def test_a_text_that_the_tokenizer_rewrites_is_asked_for_offsets(with_nfc: Any) -> None:
    # Two marks that NFC puts in another order, with the bytes that it had. The letter and the mark
    # below it are one character then, which counted bytes would cut in two.
    text = "a\u0301\u0323 ok" + "e\u0301"
    spans = [(0, 1), (1, 3), (text.index(" ok"), len(text))]
    ((ids, (letter, marks, word)),) = Borders(with_nfc).tokenise([(text, spans)])
    assert with_nfc.decode(ids[letter]) == "\u1ea1"
    assert with_nfc.decode(ids[marks]) == "\u0301"
    assert with_nfc.decode(ids[word]) == " oké"


def test_long_batches_are_cut_and_stay_in_order(byte_level: Any) -> None:
    texts = [f"{i} " * 40_000 for i in range(9)] + ["", "end"]
    spans = [[(0, 1)] for _ in texts[:-2]] + [[], [(0, 3)]]
    got = list(Borders(byte_level).tokenise(zip(texts, spans, strict=True)))
    assert [byte_level.decode(ids) for ids, _ in got] == texts
    firsts = [byte_level.decode(ids[found[0]]) for ids, found in got[:-2]]
    assert firsts == [str(i) for i in range(9)]


def test_a_tokenizers_own_truncation_and_padding_are_turned_off(byte_level: Any) -> None:
    changed = copy.deepcopy(byte_level)
    changed.backend_tokenizer.enable_truncation(4)
    changed.backend_tokenizer.enable_padding(length=30)
    ((ids, _),) = Borders(changed).tokenise([("one two three four five six", [])])
    assert changed.decode(ids) == "one two three four five six"
