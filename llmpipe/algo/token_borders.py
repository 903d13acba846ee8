"""Tokenise texts, and find the tokens that lie within given stretches of them.

Offsets from a tokenizer cost a third of the time, and are needed at a few borders only. The tokens
of a byte-level BPE (GPT-2's kind: Qwen, Llama 3, DeepSeek, SmolLM2) say themselves how many bytes
they stand for, so their ids alone give every border. Other tokenizers are asked for offsets.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llmpipe.core.ahead import mapped

# Tokenised at a time: the library holds 100 bytes and more of each token.
_CHARACTERS = 1 << 20
_TEXTS = 128

Span = tuple[int, int]
Marked = tuple[str, Sequence[Span]]
"""A text and the stretches of it that are asked for."""
Tokens = tuple[NDArray[np.int32], Sequence[slice]]
"""Ids of shape (tokens,), and for each span the tokens that lie in it."""


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

    def tokenise(self, texts: Iterable[Marked]) -> Iterator[Tokens]:
        """For each text its ids, and for each of its spans the tokens that lie whole in it.

        Spans are (from, to) in characters. A token across a border is in neither side. Texts are
        taken ahead, so that the library's threads work while this one does.
        """
        for chunk, encodings in mapped(self._encode, _chunks(texts)):
            if self._bytes is None:
                for (_, spans), encoding in zip(chunk, encodings, strict=True):
                    yield _by_offsets(encoding, spans)
            else:
                yield from self._by_bytes(self._bytes, chunk, encodings)

    def _encode(self, chunk: Sequence[Marked]) -> list[Any]:
        backend = self._backend
        encode = backend.encode_batch if self._bytes is None else backend.encode_batch_fast
        encodings: list[Any] = encode([text for text, _ in chunk], add_special_tokens=False)
        return encodings

    def _by_bytes(
        self, lengths: NDArray[np.int32], chunk: Sequence[Marked], encodings: Sequence[Any]
    ) -> Iterator[Tokens]:
        ids, sizes = array("I"), [0]  # which takes numbers in at twice the speed of "i"
        for encoding in encodings:
            ids.fromlist(encoding.ids)
            sizes.append(len(ids))
        flat = np.frombuffer(ids, np.int32)
        # Bytes before each token, and after the last.
        to = np.zeros(len(flat) + 1, np.int32)
        np.cumsum(lengths.take(flat), out=to[1:])
        begins = to[sizes]
        places: list[int] = []
        totals: list[int] = []
        for text, spans in chunk:
            here = chain.from_iterable(spans)
            if text.isascii():
                places.extend(here)
                totals.append(len(text))
            else:
                *found, total = _in_bytes(text, chain(here, [len(text)]))
                places.extend(found)
                totals.append(total if self._as_it_is(text) else -1)
        counts = [len(spans) for _, spans in chunk]
        borders = (
            np.array(places, np.int32).reshape(-1, 2) + np.repeat(begins[:-1], counts)[:, None]
        )
        first = np.repeat(sizes[:-1], counts)
        lows = np.searchsorted(to, borders[:, 0], side="left") - first
        highs = np.searchsorted(to, borders[:, 1], side="right") - 1 - first
        slices = map(slice, lows.tolist(), highs.tolist())
        proved = (np.diff(begins) == totals).tolist()
        for i, (text, spans) in enumerate(chunk):
            inside = list(islice(slices, len(spans)))
            if proved[i]:
                yield flat[sizes[i] : sizes[i + 1]], inside
            else:
                yield _by_offsets(self._backend.encode(text, add_special_tokens=False), spans)

    def _as_it_is(self, text: str) -> bool:
        """Whether the bytes of the tokens are those of ``text``: NFC, where there is one, may
        change some and leave their number."""
        return not self._normalises or unicodedata.is_normalized("NFC", text)


def _by_offsets(encoding: Any, spans: Sequence[Span]) -> Tokens:
    """The tokens' offsets never go back, so that few need be looked at: all cost as much as the
    tokenizing."""
    place = encoding.token_to_chars
    tokens = range(len(encoding))

    def after(token: int, border: int) -> bool:
        # One of no width at the start is white space before it, as some tokenizers count it.
        start, end = place(token)
        return bool(start >= border and end > border)

    def beyond(token: int, border: int) -> bool:
        return bool(place(token)[1] > border)

    inside = [
        slice(
            bisect_left(tokens, True, key=partial(after, border=a)),
            bisect_left(tokens, True, key=partial(beyond, border=b)),
        )
        for a, b in spans
    ]
    return np.frombuffer(array("I", encoding.ids), np.int32), inside


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


def _in_bytes(text: str, places: Iterable[int]) -> Iterator[int]:
    """Characters of ``text`` to bytes of it in UTF-8. In ascending order they cost one reading."""
    at = before = 0
    for place in places:
        if place < at:
            at = before = 0
        before += len(text[at:place].encode())
        at = place
        yield before


def _chunks(texts: Iterable[Marked]) -> Iterator[list[Marked]]:
    """Texts in groups of at most `_TEXTS` and `_CHARACTERS`; a longer text is one alone."""
    chunk: list[Marked] = []
    characters = 0
    for marked in texts:
        size = len(marked[0])
        if chunk and (len(chunk) == _TEXTS or characters + size > _CHARACTERS):
            yield chunk
            chunk, characters = [], 0
        chunk.append(marked)
        characters += size
    if chunk:
        yield chunk
