"""Tokenise texts, and find the tokens that lie within given stretches of them.

Offsets from a tokenizer cost a third of the time, and are needed at a few borders only. The tokens
of a byte-level BPE (GPT-2's kind: Qwen, Llama 3, DeepSeek, SmolLM2) say themselves how many bytes
they stand for, so their ids alone give every border. Other tokenizers are asked for offsets.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHARACTERS = 1 << 20  # tokenised at a time: the library holds 100 bytes and more of each token

Span = tuple[int, int]
Tokens = tuple[NDArray[np.int32], Sequence[NDArray[np.bool_] | slice]]
"""Ids of shape (tokens,), and for each span which of them lie in it."""


class Borders:
    """Tokenises with a fast tokenizer of transformers.

    It is the backend that does it, so that ids are those of ``tokenizer(text,
    add_special_tokens=False)``.
    """

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers import decoders, normalizers

        backend = self._backend = tokenizer.backend_tokenizer
        # As transformers has it on every call.
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = tokenizer.split_special_tokens
        normalizer = backend.normalizer
        self._normalises = normalizer is not None
        known = not self._normalises or isinstance(normalizer, normalizers.NFC)
        byte_level = isinstance(backend.decoder, decoders.ByteLevel)
        self._bytes = _byte_lengths(backend) if known and byte_level else None

    def tokenise(self, texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> Iterator[Tokens]:
        """For each text its ids, and for each of its ``spans`` the tokens that lie whole in it.

        Spans are (from, to) in characters. A token across a border is in neither side.
        """
        for first, end in _chunks(texts):
            yield from self._tokenise(texts[first:end], spans[first:end])

    def _tokenise(self, texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> Iterator[Tokens]:
        if self._bytes is None:
            encodings = self._backend.encode_batch(texts, add_special_tokens=False)
            yield from map(_by_offsets, encodings, spans)
            return
        ids, sizes = array("i"), [0]
        for encoding in self._backend.encode_batch_fast(texts, add_special_tokens=False):
            ids.fromlist(encoding.ids)
            sizes.append(len(ids))
        flat = np.frombuffer(ids, np.int32)
        # Bytes before each token, and after the last.
        to = np.concatenate([[0], np.cumsum(self._bytes[flat], dtype=np.int32)])
        begins = to[sizes].tolist()
        places = [_byte_places(text) for text in texts]
        wanted = [
            (begin + place(a), begin + place(b))
            for begin, place, here in zip(begins, places, spans, strict=False)
            for a, b in here
        ]
        borders = np.array(wanted, dtype=np.int32).reshape(-1, 2)
        lows = np.searchsorted(to, borders[:, 0], side="left").tolist()
        highs = (np.searchsorted(to, borders[:, 1], side="right") - 1).tolist()
        found = zip(lows, highs, strict=True)
        for i, (text, here) in enumerate(zip(texts, spans, strict=True)):
            start, end = sizes[i], sizes[i + 1]
            slices = [slice(low - start, high - start) for low, high in islice(found, len(here))]
            if begins[i + 1] - begins[i] == places[i](len(text)) and self._as_it_is(text):
                yield flat[start:end], slices
            else:
                yield _by_offsets(self._backend.encode(text, add_special_tokens=False), here)

    def _as_it_is(self, text: str) -> bool:
        """Whether the bytes of the tokens are those of ``text``: NFC, where there is one, may
        change some and leave their number."""
        return not self._normalises or unicodedata.is_normalized("NFC", text)


def _by_offsets(encoding: Any, spans: Sequence[Span]) -> Tokens:
    ids = np.array(encoding.ids, dtype=np.int32)
    flat = np.fromiter(chain.from_iterable(encoding.offsets), np.int64, 2 * len(ids))
    starts, ends = flat[0::2], flat[1::2]
    # One of no width at the start is white space before it, as some tokenizers count it.
    return ids, [(starts >= a) & (ends > a) & (ends <= b) for a, b in spans]


def _byte_lengths(backend: Any) -> NDArray[np.int32] | None:
    """How many bytes of text each token id stands for.

    GPT-2's alphabet writes every byte as one character; added tokens are written as they are. None
    where a text's tokens may have more bytes than the text: then their sum would prove nothing. (A
    byte that the vocabulary lacks is passed over, which shows in the sum.)
    """
    from tokenizers import pre_tokenizers

    vocabulary: dict[str, int] = backend.get_vocab(with_added_tokens=False)
    added = backend.get_added_tokens_decoder()
    size = max(chain(vocabulary.values(), added), default=-1) + 1
    lengths = np.zeros(size, dtype=np.int32)
    for token, i in vocabulary.items():
        lengths[i] = len(token)
    for i, token in added.items():
        lengths[i] = len(token.content.encode())
    complete = all(byte in vocabulary for byte in pre_tokenizers.ByteLevel.alphabet())
    prefixed = lengths[backend.encode("x", add_special_tokens=False).ids].sum() != 1
    return lengths if (complete or backend.model.unk_token is None) and not prefixed else None


def _byte_places(text: str) -> Callable[[int], int]:
    """Characters of ``text`` to bytes of it in UTF-8."""
    if text.isascii():
        return lambda place: place
    return lambda place: len(text[:place].encode())


def _chunks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Texts in groups of at most `_CHARACTERS`; a longer text is one alone."""
    first = characters = 0
    for i, text in enumerate(texts):
        if characters and characters + len(text) > _CHARACTERS:
            yield first, i
            first, characters = i, 0
        characters += len(text)
    if first < len(texts):
        yield first, len(texts)
